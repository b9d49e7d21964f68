"""What the columns of two tables of points are called: genes of two experiments are the same by name, not by place."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

SHOWN = 3
"""Names that an error lists."""


def matched(x: Any, y: Any) -> Any:
    """`y` with its columns in the order of those of `x`, where both are tables that name them.

    Tables of pandas that share no name are taken by place, as arrays are: their names may be two words for one thing.

    Raises:
        ValueError: the names are not the same ones.
    """
    left, right = names_of(x), names_of(y)
    if left is None or right is None or left == right:
        return y
    common = set(left) & set(right)
    if not common and len(left) == len(right) and not _is_annotated(x):
        return y
    order = same_names(left, right)
    return y[:, order] if _is_annotated(y) else y.iloc[:, order]


def same_names(left: Sequence[Any], right: Sequence[Any]) -> list[int]:
    """Where in `right` each name of `left` stands. Raises: ValueError."""
    place = {name: k for k, name in enumerate(right)}
    if len(place) == len(right) == len(left) and place.keys() == set(left):
        return [place[name] for name in left]
    for side, names in (("x", left), ("y", right)):
        if len(set(names)) < len(names):
            raise ValueError(f"columns of {side} share a name; expected a name for each, as x and y are joined by them")
    common = set(left) & set(right)
    own = [name for names in (left, right) for name in names if name not in common]
    raise ValueError(
        f"x has {len(left)} named columns and y {len(right)}, with {len(common)} in common; {_listed(own)} are in one "
        "alone; expected the same, so keep those in common, or give arrays without names"
    )


def names_of(value: Any) -> tuple[Any, ...] | None:
    """The names of a table's columns; None where it has none, or they are counted."""
    if _is_annotated(value):
        return tuple(value.var_names)
    if type(value).__module__.split(".")[0] != "pandas" or not hasattr(value, "columns"):
        return None
    names = tuple(value.columns)
    return None if all(isinstance(name, Integral) for name in names) else names


def _is_annotated(value: Any) -> bool:
    return hasattr(value, "var_names") and hasattr(value, "obs_names")


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")
