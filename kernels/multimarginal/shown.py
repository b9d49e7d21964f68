"""Transport among three measures on a line, where the best plan is known, and among clouds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.demonstration import Demonstration, require
from kernels.problems import Array


def demonstrations() -> tuple[Demonstration, ...]:
    """One by products of matrices, one by a linear programme."""
    return clouds(60), line(12)


def clouds(n: int) -> Demonstration:
    """Clouds in the plane, whose pair marginals must agree with one another."""
    rng = np.random.default_rng(4)
    points = {name: (rng.random((n + 5 * at, 2)) + at).tolist() for at, name in enumerate("xyz")}

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        xy, xz, yz = (arrays[f"plan_{name}"] for name in ("xy", "xz", "yz"))
        sides = ((xy, 1, xz, 1), (xy, 0, yz, 1), (xz, 0, yz, 0))
        off = max(np.abs(one.sum(axis=i) - other.sum(axis=j)).max() for one, i, other, j in sides)
        require(off < 1e-12, f"pair marginals differ by {off} in what they share", answer)
        apart = answer["objective"] - answer["certificate"]["bound"]
        require(0 <= apart <= 1e-6 * answer["objective"], "objective and bound do not meet", answer)

    options = {"reg": 0.2, "output": "marginals"}
    return Demonstration("multimarginal", f"{n} x {n + 5} x {n + 10}", "json", check, inputs=points, options=options)


def line(n: int) -> Demonstration:
    """As many points in each measure, on a line, of one mass: squared distances are least where ranks are the same."""
    points = np.sort(np.random.default_rng(5).random((3, n)), axis=1)
    best = float(sum(((points[i] - points[j]) ** 2).mean() for i, j in ((0, 1), (0, 2), (1, 2))))
    inputs = {name: side[:, None].tolist() for name, side in zip("xyz", points, strict=True)}

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        require(abs(answer["objective"] - best) <= 1e-9 * best, f"the same ranks cost {best}", answer)
        require(answer["certificate"]["gap_rel"] <= 1e-9, "it is not proved to be optimal", answer)

    return Demonstration("multimarginal, exact", f"{n} x {n} x {n}", "json", check, inputs=inputs, options={"reg": 0})
