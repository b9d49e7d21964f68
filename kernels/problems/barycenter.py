"""Wasserstein barycenters: the problem and its checks."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kernels.problems.arrays import Floats, Inputs, InvalidProblem, finite, numeric
from kernels.problems.made import make
from kernels.problems.worked_out import worked_out

MOST_MEASURES = 100
LARGEST, SMALLEST = 1e100, 1e-100
"""Of costs, coordinates and reg: products of two of them stay normal."""
SAME_MASS = 1e-5
"""Relative difference of float32 sums of the same masses."""
LINES = 1 << 14
"""Points of a measure, or of the support, at most."""
MOST_COORDINATES = 1 << 24
"""Of points of the support that are drawn: a few bytes ask for any number of them."""
AUTO_REG = 0.05
"""Of the mean size of the costs: reg where it is left to us."""

Regularisation = float | Literal["auto"]


@dataclass(frozen=True, eq=False)
class Barycenter:
    """min over b >= 0 of mass 1 of sum_k w_k T(b, a_k), on m given points; T is the cost of transport.

    T(b, a) = min over P >= 0 with row sums b and column sums a of <C_k, P> + reg sum P log(P / R) - P + R, where R has
    the entries 1 / (m n). `cost` is (m, n), or (k, m, n) where each measure has its own. `masses` (k, n) are the
    quotients of what was given by its sums, each within 3 units of rounding; `weights` (k,) sum to 1 likewise.
    With `debiased`, less T(b, b) / 2, where the costs are between the m points themselves, and symmetric.
    """

    masses: Floats
    weights: Floats
    cost: Floats
    reg: float
    debiased: bool = False

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Measures, points of the support, points of a measure."""
        return self.masses.shape[0], self.cost.shape[-2], self.masses.shape[1]

    def cost_of(self, k: int) -> Floats:
        """(m, n) costs between the support and measure k."""
        return self.cost if self.cost.ndim == 2 else self.cost[k]


@dataclass(frozen=True, eq=False)
class FreeBarycenter:
    """min over m points y of sum_k w_k W(y, a_k); W is the least mean of squared distances, each y of mass 1 / m.

    `clouds` (k, n, d) are the points of the measures, `masses` (k, n) and `weights` (k,) as in `Barycenter`, `start`
    (m, d) the points from which the search begins.
    """

    masses: Floats
    weights: Floats
    clouds: Floats
    start: Floats

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Measures, points of the support, points of a measure."""
        return self.masses.shape[0], self.start.shape[0], self.masses.shape[1]


def fixed_barycenter(inputs: Inputs, reg: Regularisation, metric: str, debiased: bool = False) -> Barycenter:
    """The problem on given points: from costs, or from points. Raises InvalidProblem."""
    if "cost" in inputs:
        for name in ("x", "support"):
            if name in inputs:
                raise InvalidProblem(name, "is given beside cost; expected either costs or points")
        cost = _array(inputs, "cost", (2, 3))
    else:
        cost = _between(inputs, metric)
    count = None if cost.ndim == 2 else cost.shape[0]
    masses = _masses(inputs, count, cost.shape[-1])
    if cost.ndim == 3 and cost.shape[0] != masses.shape[0]:
        told = f"holds {cost.shape[0]} matrices for {masses.shape[0]} histograms"
        raise InvalidProblem("cost", f"{told}; expected one for each, or one for all")
    _within_size("cost", cost.shape[-2])
    strength = _strength(reg, cost)
    if debiased and (cost.ndim != 2 or cost.shape[0] != cost.shape[1] or (cost != cost.T).any()):
        raise InvalidProblem(
            "debiased", "needs one symmetric cost between the points; expected cost (n, n), or x alone"
        )
    if debiased and not strength:
        raise InvalidProblem("debiased", "is set with reg 0, which smears nothing; expected a reg above 0")
    return Barycenter(masses, _weights(inputs, masses.shape[0]), cost, strength, debiased)


def free_barycenter(inputs: Inputs, points: int | None, seed: int) -> FreeBarycenter:
    """The problem whose points may move. Raises InvalidProblem."""
    if "cost" in inputs:
        raise InvalidProblem("cost", "is given for points that move; expected the clouds x alone")
    clouds = _array(inputs, "x", (3,))
    masses = _masses(inputs, clouds.shape[0], clouds.shape[1])
    weights = _weights(inputs, clouds.shape[0])
    if "support" in inputs:
        start = _array(inputs, "support", (2,))
        if start.shape[1] != clouds.shape[2]:
            told = f"has points of dimension {start.shape[1]}"
            raise InvalidProblem("support", f"{told}; expected {clouds.shape[2]}, as in x")
        if points not in (None, len(start)):
            raise InvalidProblem("support_points", f"is {points}, and support has {len(start)}; expected one of both")
    else:
        m = clouds.shape[1] if points is None else points
        start = _drawn(clouds, masses, weights, m, seed)
    _within_size("support", len(start))
    return FreeBarycenter(masses, weights, clouds, start)


def _drawn(clouds: Floats, masses: Floats, weights: Floats, m: int, seed: int) -> Floats:
    """m points of the measures, by their masses."""
    if m * clouds.shape[2] > MOST_COORDINATES:
        told = f"of dimension {clouds.shape[2]} are {m}, of more than {MOST_COORDINATES} coordinates"
        raise InvalidProblem("support_points", f"{told}; expected fewer of them")
    make(m * clouds.shape[2])
    shares = (weights[:, None] * masses).ravel()
    rng = np.random.default_rng(seed)
    again = bool(m > np.count_nonzero(shares))
    chosen = rng.choice(shares.size, m, replace=again, p=shares / shares.sum())
    return np.asarray(clouds.reshape(-1, clouds.shape[2])[np.sort(chosen)])


def _array(inputs: Inputs, name: str, ndim: tuple[int, ...]) -> Floats:
    given = inputs.get(name)
    if not isinstance(given, np.ndarray):
        told = "is missing" if given is None else "is sparse"
        raise InvalidProblem(name, f"{told}; expected a dense array")
    found = finite(name, numeric(name, given, ndim=ndim), allow=None).astype(np.float64)
    if np.abs(found).max() > LARGEST:
        raise InvalidProblem(name, f"holds {np.abs(found).max():.3g}; expected sizes of at most {LARGEST:g}")
    return found


def _between(inputs: Inputs, metric: str) -> Floats:
    """The costs from the support to the points of the measures, worked out in float64."""
    x = _array(inputs, "x", (2, 3))
    support = _array(inputs, "support", (2,)) if "support" in inputs else x
    if support.ndim == 3:
        raise InvalidProblem("support", "is missing; expected points for clouds that differ, or method free")
    if support.shape[1] != x.shape[-1]:
        told = f"has points of dimension {support.shape[1]}"
        raise InvalidProblem("support", f"{told}; expected {x.shape[-1]}, as in x")
    found = worked_out(support, x, metric) if x.ndim == 2 else np.stack([worked_out(support, y, metric) for y in x])
    if not np.isfinite(found).all() or np.abs(found).max() > LARGEST:
        raise InvalidProblem("x", f"has costs beyond {LARGEST:g}; expected points nearer to each other")
    return found


def _masses(inputs: Inputs, count: int | None, n: int) -> Floats:
    """Histograms divided by their sums; uniform where they are left out and their number is known."""
    if "histograms" not in inputs:
        if count is None:
            raise InvalidProblem("histograms", "is missing; expected the masses of each measure, (k, n)")
        _within_count("x", count)
        return np.full((count, n), 1.0 / n)
    found = _array(inputs, "histograms", (2,))
    _within_count("histograms", len(found))
    if found.shape[1] != n or (count is not None and len(found) != count):
        wanted = ("k" if count is None else count, n)
        raise InvalidProblem("histograms", f"has shape {found.shape}; expected {wanted}")
    _within_size("histograms", n)
    if (found < 0).any():
        k, j = np.unravel_index(int(found.argmin()), found.shape)
        raise InvalidProblem("histograms", f"holds {found.min()} at [{k}, {j}]; expected masses of at least 0")
    sums = np.array([math.fsum(row) for row in found])
    if not sums.min() > SMALLEST:
        raise InvalidProblem("histograms", f"sums to {sums.min()} at [{sums.argmin()}]; expected a sum above 0")
    if sums.max() - sums.min() > SAME_MASS * sums.max():
        told = f"has sums from {sums.min():.9g} to {sums.max():.9g}"
        raise InvalidProblem("histograms", f"{told}; expected the same sum in each")
    return np.asarray(found / sums[:, None])


def _weights(inputs: Inputs, count: int) -> Floats:
    if "measure_weights" not in inputs:
        return np.full(count, 1.0 / count)
    found = _array(inputs, "measure_weights", (1,))
    if found.shape != (count,):
        raise InvalidProblem("measure_weights", f"has shape {found.shape}; expected {(count,)}")
    total = math.fsum(found)
    if (found < 0).any() or not total > SMALLEST:
        raise InvalidProblem(
            "measure_weights", f"holds {found.min()} and sums to {total}; expected weights of at least 0"
        )
    return np.asarray(found / total)


def _strength(reg: Regularisation, cost: Floats) -> float:
    """reg as a number: AUTO_REG of the mean size of the costs, 1 where all are 0."""
    found = AUTO_REG * float(np.abs(cost).mean()) or 1.0 if reg == "auto" else float(reg)
    if found and not SMALLEST <= found <= LARGEST:
        raise InvalidProblem("reg", f"is {found:g}; expected 0, or a number from {SMALLEST:g} to {LARGEST:g}")
    return found


def _within_count(name: str, count: int) -> None:
    if not 2 <= count <= MOST_MEASURES:
        raise InvalidProblem(name, f"holds {count} measures; expected 2 to {MOST_MEASURES}")


def _within_size(name: str, lines: Any) -> None:
    if lines > LINES:
        raise InvalidProblem(name, f"has {lines} points; expected at most {LINES}")
