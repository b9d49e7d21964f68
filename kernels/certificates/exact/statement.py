"""What a re-check works with: the claim that was made, and one yes or no for each thing that it states."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.problems.arrays import Array, Csr

Inputs = Mapping[str, Array | Csr]
FORBIDDEN = -(2**63)
"""In an int64 matrix of costs or benefits: the pair must not be taken. In floats an infinity says so."""


@dataclass(frozen=True)
class Statement:
    """One thing that an answer says. `holds` None: the answer does not carry what a check of it needs."""

    name: str
    holds: bool | None
    words: str


@dataclass(frozen=True)
class Claim:
    """An answer as its document gives it: the numbers that it states, its arrays, and what it says of the run."""

    termination: str
    objective: int | float | None
    bound: int | float | None
    gap_abs: int | float | None
    gap_rel: float | None
    max_violation: int | float | None
    arrays: Mapping[str, Array]
    facts: Mapping[str, Any] = field(default_factory=dict)
    proved: str = ""
    """What the certificate says in a sentence; "" where it says nothing."""

    @property
    def optimal(self) -> bool:
        """Whether it claims an optimum."""
        return self.termination == "optimal"


def rational(value: Any) -> Fraction:
    """A stated number, exactly. Raises TypeError where a text or a word of logic stands in its place."""
    if isinstance(value, str | bool | np.bool_):
        raise TypeError(f"{value!r:.80} is no number")
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def plain(number: Fraction) -> str:
    """A fraction for a reader: all digits of an integer, the nearest float otherwise."""
    if number.denominator == 1 and abs(number) < 10**30:
        return str(number.numerator)
    try:
        return repr(float(number))
    except OverflowError:
        return "a number that no float64 holds"


def gap_statements(claim: Claim, objective: Fraction | None, maximize: bool = False) -> list[Statement]:
    """The gap against the stated bound and the true objective of the answer; the relative one against both."""
    if objective is None or claim.bound is None:
        none = claim.gap_abs is None
        return [Statement("gap", none, "no gap is stated, as there is no objective or no bound" if none else
                          f"a gap of {claim.gap_abs} is stated without an objective and a bound")]  # fmt: skip
    true = (rational(claim.bound) - objective) * (1 if maximize else -1)
    if claim.gap_abs is None:
        return [Statement("gap", False, f"none is stated, and it is {plain(true)}")]
    covers = true <= rational(claim.gap_abs)
    said = [Statement("gap", covers, f"objective and bound are {plain(true)} apart, {claim.gap_abs} is stated")]
    scale = max(abs(rational(claim.objective or 0)), abs(rational(claim.bound)))
    if claim.gap_rel is not None and scale:
        share = rational(claim.gap_abs) / scale
        near = rational(claim.gap_rel) >= share * (1 - Fraction(1, 2**50)) - Fraction(1, 2**1074)
        said.append(Statement("relative gap", near, f"{claim.gap_rel} is stated, {plain(share)} found"))
    return said


def near(stated: int | float, true: Fraction, slack: Fraction) -> bool:
    """Whether a stated number is the true one: equal for an integer, within `slack` for a float."""
    if isinstance(stated, int):
        return rational(stated) == true
    return abs(rational(stated) - true) <= slack


def listed_plan(arrays: Mapping[str, Array], shape: tuple[int, int]) -> tuple[str, list[tuple[int, int, Any]]]:
    """What is wrong with a list of a plan's entries, "" where nothing is, and (row, column, mass) of each.

    A place of -1, -1 stands for none.
    """
    lists = [arrays[name].tolist() for name in ("entry_rows", "entry_columns", "entry_values")]
    found = [one for one in zip(*lists, strict=True) if one[:2] != (-1, -1)]
    if any(not (0 <= i < shape[0] and 0 <= j < shape[1]) for i, j, _ in found):
        return "an entry is outside the plan", []
    if len({one[:2] for one in found}) < len(found):
        return "an entry is listed twice", []
    return "", found


def permitted(entry: Any) -> bool:
    """Whether an entry of a matrix may be taken."""
    return bool(np.isfinite(entry)) and (isinstance(entry, float | np.floating) or entry != FORBIDDEN)


def dyadic(*arrays: Array) -> tuple[list[Any], int]:
    """All entries as Python integers times one power of two: (nested lists, s), entry = integer / 2^s.

    Every float is an integer over a power of two, so nothing is lost. A forbidden entry becomes None.
    """
    shift = 0
    for array in arrays:
        if array.dtype.kind == "f":
            finite = array[np.isfinite(array)]
            shift = max([shift, *(int(x).bit_length() - 1 for x in {x.as_integer_ratio()[1] for x in finite.tolist()})])
    return [_scaled(array.tolist(), shift) for array in arrays], shift


def _scaled(value: Any, shift: int) -> Any:
    if isinstance(value, list):
        return [_scaled(one, shift) for one in value]
    if isinstance(value, int):
        return None if value == FORBIDDEN else value << shift
    if value in (float("inf"), float("-inf")):
        return None
    above, below = value.as_integer_ratio()
    return above * ((1 << shift) // below)
