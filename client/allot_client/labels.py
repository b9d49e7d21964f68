"""What points are known as: words or numbers, some of them missing, and the codes that stand for them in a job."""

from __future__ import annotations

from typing import Any

import numpy as np

from allot_client.arrays import Array, held, is_nothing


def coded(labels: Any) -> tuple[Array, tuple[Any, ...] | None]:
    """Labels as whole numbers from 0 on, and what each stands for; None for labels that are such numbers already.

    A missing one (None, NaN, NA, a masked entry) has the number after those of all others, which stands for no label.

    Raises:
        ValueError: not a label for each of a row of points.
    """
    values = held(labels).value
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise ValueError(f"labels have shape {values.shape}; expected a label for each column")
    whole = values.dtype.kind in "iu" and values.size and not isinstance(values, np.ma.MaskedArray)
    if whole and values.min() >= 0 and values.max() < values.size:
        return values, None
    # of words and NaN NumPy makes words, and so the word "nan"
    entries = list(labels) if isinstance(labels, (list, tuple)) else values.tolist()
    missing = [_is_missing(entry) for entry in entries]
    known = {entry for entry, none in zip(entries, missing, strict=True) if not none}
    codes = {entry: code for code, entry in enumerate(sorted(known, key=str))}
    found = [len(codes) if none else codes[entry] for entry, none in zip(entries, missing, strict=True)]
    return np.array(found, np.int64), tuple(codes)


def named(codes: Array, names: tuple[Any, ...] | None) -> Array:
    """What codes of labels stand for; -1, no mass, stands for None, and for itself where the codes are the labels."""
    return codes if names is None else np.array([*names, None], object)[codes]


def _is_missing(entry: Any) -> bool:
    """None, NA, and what is not itself: NaN and NaT."""
    return is_nothing(entry) or bool(entry != entry)
