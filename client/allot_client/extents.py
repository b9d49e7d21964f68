"""How many rows and columns the answer to a problem has, by the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SIDES = (("x", "y"), ("flow", "distance"), ("x_distance", "y_distance"))
"""Inputs whose lines are the rows and the columns of the answer, where no matrix has both."""
SEVERAL = ("sizes", "histograms")
"""Inputs beside which there are more than two sides."""
Shapes = Mapping[str, Sequence[int]]


def extents(shapes: Shapes) -> tuple[int | None, int | None]:
    """Rows and columns, or facilities and locations, of one problem; None for what these shapes do not tell."""
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
