"""Inputs as allot_client sends them, of the files that its caller named: an answer is for what was sent.

It widens types that the service solves no problems in. For cosine and correlation it sends points whose squared
distances these are, so that no matrix has to be made (allot_client/points.py).
"""

import contextlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from allot_client.points import sent_in_place

from kernels import Array, Csr
from workers.store.digests import digest_of


def as_points_sent(document: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Array | Csr]:
    """`inputs`, or where others were sent in their place, those that have the stated digests."""
    stated = document.get("input_digests") or {}
    for made in sent_in_place(document["solver"], inputs):
        if all(is_stated(array, stated.get(name)) for name, array in made.items()):
            return {**inputs, **made}
    return dict(inputs)


def widened(value: Array, reference: Mapping[str, Any]) -> Array:
    """An array in the type that is stated, where that holds each number of its own."""
    with contextlib.suppress(TypeError):  # no type of NumPy's
        wide = np.dtype(reference.get("dtype") or value.dtype)
        return value.astype(wide, copy=False) if np.can_cast(value.dtype, wide) else value
    return value


def is_stated(array: Array, reference: Any) -> bool:
    """Whether an array that came in a job has the digest of that reference."""
    stated = digest_in(reference) if isinstance(reference, Mapping) else reference
    return isinstance(stated, str) and digest_of(as_kept(array), stated) == stated


def digest_in(reference: Mapping[str, Any]) -> str | None:
    """What a reference names."""
    return reference.get("blob") or reference.get("digest")


def as_kept(array: Array) -> bytes:
    """The bytes that the service keeps of an array that came in a job."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    return file.getvalue()
