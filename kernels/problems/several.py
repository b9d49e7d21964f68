"""Several transport problems that are answered together: each has its own strengths, and may have its own size."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kernels.problems.arrays import TOLD, Array, Floats
from kernels.problems.transport import UnbalancedTransport

Form = Literal["one", "stack", "flat"]
GROUPS = ("", "_xx", "_yy")
"""Of a divergence: between the two sides, of the first with itself, of the second with itself."""
OF_ROWS = ("f", "row_marginal", "rest_a", "top_columns", "top_values", "hall_rows")
OF_COLUMNS = ("g", "column_marginal", "rest_b")
LISTED = ("entry_rows", "entry_columns", "entry_values")


@dataclass(frozen=True, eq=False)
class SeveralTransports:
    """Problems without batch axis.

    `form` says how each array of the answer holds those of the problems: as it is (there is one problem), along a batch
    axis, or one after the other, a plan row by row. With `divergence` the problems come in three groups of one length,
    whose arrays have the suffixes of GROUPS: the value of problem k is V_k - V_k(xx) / 2 - V_k(yy) / 2 + reg / 2
    (sum a - sum b)^2.
    """

    parts: tuple[UnbalancedTransport, ...]
    form: Form
    divergence: bool = False
    told: Mapping[str, Any] = field(default_factory=dict, metadata=TOLD)

    @property
    def batch(self) -> int:
        """Number of problems, those of all groups."""
        return len(self.parts)

    @property
    def groups(self) -> tuple[tuple[str, tuple[UnbalancedTransport, ...]], ...]:
        """The suffix of the arrays of each group, and its problems."""
        names = GROUPS if self.divergence else GROUPS[:1]
        each = len(self.parts) // len(names)
        return tuple((name, self.parts[k * each : (k + 1) * each]) for k, name in enumerate(names))

    @functools.cached_property
    def shape(self) -> tuple[int, int]:
        """The most rows and columns of a plan."""
        return max(p.shape[0] for p in self.parts), max(p.shape[1] for p in self.parts)

    @property
    def reg_m(self) -> tuple[float, float]:
        """Of a problem with two exact sides, where there is one."""
        return next((p.reg_m for p in self.parts if np.isinf(p.reg_m).all()), self.parts[0].reg_m)

    @property
    def mass_factor(self) -> tuple[float, ...]:
        """Of each problem."""
        return tuple(float(p.mass_factor) for p in self.parts if not isinstance(p.mass_factor, tuple))

    def one(self, k: int) -> UnbalancedTransport:
        """Problem k."""
        return self.parts[k]


def taken_apart(problem: SeveralTransports, arrays: Mapping[str, Array]) -> list[dict[str, Array]] | None:
    """The arrays of each problem, those alone that a certificate reads; None where they do not fit the problems."""
    found: list[dict[str, Array]] = []
    for suffix, parts in problem.groups:
        own = _of_group(arrays, suffix)
        if problem.form == "one":
            found.append(own)
        elif problem.form == "stack":
            if any(array.ndim == 0 or len(array) != len(parts) for array in own.values()):
                return None
            found += [{name: array[k] for name, array in own.items()} for k in range(len(parts))]
        else:
            cut = cut_apart([part.shape for part in parts], own)
            if cut is None:
                return None
            found += cut
    return found


def _of_group(arrays: Mapping[str, Array], suffix: str) -> dict[str, Array]:
    names = ("plan", *OF_ROWS, *OF_COLUMNS, *LISTED, "entry_problems")
    return {name: arrays[name + suffix] for name in names if name + suffix in arrays}


def cut_apart(shapes: list[tuple[int, int]], own: Mapping[str, Array]) -> list[dict[str, Array]] | None:
    """The arrays of each problem of such a shape, from those in which they follow one another."""
    sizes = np.array(shapes)
    cuts: list[dict[str, Array]] = [{} for _ in shapes]
    for name, array in own.items():
        if name == "entry_problems":
            continue
        if name in LISTED:
            of = own.get("entry_problems")
            if of is None or of.shape != array.shape:
                return None
            pieces = [array[of == k] for k in range(len(shapes))]
        else:
            lengths = sizes.prod(axis=1) if name == "plan" else sizes[:, int(name in OF_COLUMNS)]
            if array.ndim == 0 or len(array) != lengths.sum():
                return None
            pieces = np.split(array, np.cumsum(lengths)[:-1])
        for cut, piece, shape in zip(cuts, pieces, shapes, strict=True):
            whole = piece.reshape(shape) if name == "plan" else piece
            cut[name] = np.flatnonzero(whole) if name == "hall_rows" else whole
    return cuts


def joined(parts: tuple[UnbalancedTransport, ...], each: list[dict[str, Array]]) -> dict[str, Array]:
    """The arrays of several problems one after the other; listed entries say whose they are."""
    names = dict.fromkeys(name for arrays in each for name in arrays)
    found = {name: _joined(parts, name, [arrays.get(name) for arrays in each]) for name in names}
    if "entry_rows" in names:
        found["entry_problems"] = np.repeat(np.arange(len(parts)), [len(a.get("entry_rows", ())) for a in each])
    return found


def _joined(parts: tuple[UnbalancedTransport, ...], name: str, listed: list[Floats | None]) -> Floats:
    """One after the other; zeros stand for a problem that has none, and marks for rows of a Hall set."""
    if name in LISTED:
        return np.concatenate([array for array in listed if array is not None])
    pieces = []
    first = next(array for array in listed if array is not None)
    for part, array in zip(parts, listed, strict=True):
        m, n = part.shape
        if name == "hall_rows":
            marks = np.zeros(m, bool)
            marks[[] if array is None else array] = True
            pieces.append(marks)
        elif name == "plan":
            pieces.append(np.zeros(m * n) if array is None else array.ravel())
        else:
            lines = n if name in OF_COLUMNS or name.endswith(("_y", "_b")) else m
            pieces.append(np.zeros((lines, *first.shape[1:]), first.dtype) if array is None else array)
    return np.concatenate(pieces)
