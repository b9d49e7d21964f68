"""How many rows and columns the answer to a problem has, by the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SIDES = (("x", "y"), ("flow", "distance"), ("x_distance", "y_distance"))
"""Inputs whose lines are the rows and the columns of the answer, where no matrix has both."""
SEVERAL = ("sizes", "histograms")
"""Inputs beside which there are more than two sides."""
Shapes = Mapping[str, Sequence[int]]
Extents = tuple[int | None, int | None]
"""Rows and columns, or facilities and locations; None for what is not known."""


def extents(shapes: Shapes) -> Extents:
    """Those of one problem with inputs of these shapes."""
    if any(name in shapes for name in SEVERAL):
        return None, None
    for name in ("cost", "benefit"):
        if len(shapes.get(name, ())) in (2, 4):  # four of costs for each two placements
            return shapes[name][0], shapes[name][1]
    for sides in SIDES:
        if any(name in shapes for name in sides):
            rows, columns = (shapes[name][0] if len(shapes.get(name, ())) == 2 else None for name in sides)
            return rows, columns
    return None, None


def shapes_of(inputs: Mapping[str, Any]) -> Shapes:
    """The shapes of those inputs that are arrays or sparse matrices."""
    return {name: value.shape for name, value in inputs.items() if hasattr(value, "shape")}


def sent_shapes(document: Mapping[str, Any]) -> Shapes:
    """The shapes of the inputs that an answer was given for, as its document tells them beside their digests."""
    told = {}
    for name, reference in (document.get("input_digests") or {}).items():
        parts = reference.get("csr", reference) if isinstance(reference, Mapping) else {}
        if parts.get("shape"):
            told[name] = parts["shape"]
    return told


def answered_extents(document: Mapping[str, Any], arrays: Mapping[str, Any]) -> Extents:
    """Those of an answer to one problem: as its inputs tell them, or else its arrays."""
    rows, columns = extents(sent_shapes(document))
    shapes = shapes_of(arrays)
    plan, pairs = shapes.get("plan", ()), shapes.get("assignment", ())
    if len(plan) == 2:
        return plan[0], plan[1]
    if rows is None and len(pairs) == 1:
        rows = pairs[0]
    if columns is None and "permutation" in shapes:
        columns = shapes["permutation"][0]
    return rows, columns


def counted(found: Extents, names: tuple[str, str]) -> str:
    """As "3 rows and 4 columns", or what is known of it."""
    return " and ".join(f"{count} {name}" for count, name in zip(found, names, strict=True) if count is not None)
