"""Transport among three measures: the problem and its checks."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernels.problems.arrays import Floats, Inputs, InvalidProblem, finite, numeric
from kernels.problems.worked_out import worked_out

SIDES = (("a", "x"), ("b", "y"), ("c", "z"))
"""The inputs of each measure: its masses, its points."""
PAIRS = ((0, 1), (0, 2), (1, 2))
"""The measures between which costs are, in the order of `pair_weights`."""
LARGEST, SMALLEST = 1e100, 1e-100
"""Of costs, coordinates and reg, and of a mass over the sum: products of two of them stay normal."""
SHARPEST = 1e-8
"""Of the largest cost: with a smaller reg the rounding of a cost would change a plan's entries by more than 1e-8."""
LINES = 1 << 13
"""Points of a measure at most."""
MOST_ENTRIES = 1 << 28
"""Of a tensor that may have to be looked at entry by entry."""
WIDEST = 100.0
"""Of the costs over reg: up to here sums over pairs are products of matrices whatever the potentials. Beyond, they most
often are; where not, triples are looked at one by one."""
AUTO_REG = 0.05
"""Of the mean size of the costs: reg where it is left to us."""

Regularisation = float | Literal["auto"]


@dataclass(frozen=True, eq=False)
class Multimarginal:
    """min over P >= 0 with the marginals a, b, c of <C, P> + reg sum P log(P / R), R = a x b x c.

    `masses` a (l,), b (m,), c (n,) are the quotients of what was given by its sums, each within 3 units of rounding.
    C is `tensor` (l, m, n), or C_ijk = C12_ij + C13_ik + C23_jk, the sum as real numbers of the `pairs`, where
    `tensor` is None. All of it is float64.
    """

    masses: tuple[Floats, Floats, Floats]
    reg: float
    tensor: Floats | None = None
    pairs: tuple[Floats, ...] = ()

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Points of each measure."""
        a, b, c = self.masses
        return len(a), len(b), len(c)

    @property
    def parts(self) -> tuple[Floats, ...]:
        """The arrays whose sum is the cost: one tensor, or three matrices."""
        return self.pairs if self.tensor is None else (self.tensor,)

    @property
    def spread(self) -> float:
        """At least the largest cost less the smallest."""
        return float(sum(part.max() - part.min() for part in self.parts))

    @property
    def largest(self) -> float:
        """At least the size of the largest cost."""
        return float(sum(np.abs(part).max() for part in self.parts))

    def costs(self, some: slice) -> Floats:
        """(some of l, m, n) costs, rounded where they are sums."""
        if self.tensor is not None:
            return np.asarray(self.tensor[some])
        first, second, third = self.pairs
        return np.asarray(first[some, :, None] + second[some, None, :] + third)


def multimarginal(inputs: Inputs, reg: Regularisation, metric: str) -> Multimarginal:
    """The problem, from a tensor of costs or from three clouds. Raises InvalidProblem."""
    tensor, pairs = None, tuple[Floats, ...]()
    if "cost" in inputs:
        for name in ("x", "y", "z", "pair_weights"):
            if name in inputs:
                raise InvalidProblem(name, "is given beside cost; expected a tensor of costs or three clouds of points")
        tensor = _array(inputs, "cost", 3)
        shape = tensor.shape
        if tensor.size > MOST_ENTRIES:
            raise InvalidProblem("cost", f"has {tensor.size} entries; expected at most {MOST_ENTRIES}")
    else:
        clouds = [_cloud(inputs, name) for _, name in SIDES]
        shape = tuple(map(len, clouds))
    masses = [_masses(inputs, name, size) for (name, _), size in zip(SIDES, shape, strict=True)]
    if tensor is None:
        pairs = _between(inputs, clouds, metric)
    problem = Multimarginal((masses[0], masses[1], masses[2]), 0.0, tensor, pairs)
    found = Multimarginal(problem.masses, _strength(reg, problem), tensor, pairs)
    if found.reg and found.spread > WIDEST * found.reg and math.prod(shape) > MOST_ENTRIES:
        told = f"is below 1 / {WIDEST:g} of the spread of the costs, with {math.prod(shape)} triples of points"
        raise InvalidProblem("reg", f"{told}; expected a larger one, or at most {MOST_ENTRIES} triples")
    return found


def _array(inputs: Inputs, name: str, ndim: int) -> Floats:
    given = inputs.get(name)
    if not isinstance(given, np.ndarray):
        told = "is missing" if given is None else "is sparse"
        raise InvalidProblem(name, f"{told}; expected a dense array")
    found = finite(name, numeric(name, given, ndim=(ndim,)), allow=None).astype(np.float64)
    if np.abs(found).max() > LARGEST:
        raise InvalidProblem(name, f"holds {np.abs(found).max():.3g}; expected sizes of at most {LARGEST:g}")
    if max(found.shape) > LINES:
        raise InvalidProblem(name, f"has shape {found.shape}; expected at most {LINES} points of a measure")
    return found


def _cloud(inputs: Inputs, name: str) -> Floats:
    found = _array(inputs, name, 2)
    first = inputs.get("x")
    if isinstance(first, np.ndarray) and first.ndim == 2 and first.shape[1] != found.shape[1]:
        raise InvalidProblem(name, f"has points of dimension {found.shape[1]}; expected {first.shape[1]}, as in x")
    return found


def _between(inputs: Inputs, clouds: list[Floats], metric: str) -> tuple[Floats, ...]:
    """The weighted costs of the three pairs, worked out in float64."""
    weights = np.ones(3)
    if "pair_weights" in inputs:
        weights = _array(inputs, "pair_weights", 1)
        if weights.shape != (3,) or (weights < 0).any():
            told = f"is {weights.tolist()}" if weights.size <= 9 else f"has shape {weights.shape}"
            raise InvalidProblem("pair_weights", f"{told}; expected three weights of at least 0, of xy, xz and yz")
    pairs = []
    for weight, (one, other) in zip(weights, PAIRS, strict=True):
        with np.errstate(over="ignore"):
            found = worked_out(clouds[one], clouds[other], metric)
            found *= weight
        if not np.isfinite(found).all() or np.abs(found).max() > LARGEST:
            raise InvalidProblem(SIDES[one][1], f"has costs beyond {LARGEST:g}; expected points nearer to each other")
        pairs.append(found)
    return tuple(pairs)


def _masses(inputs: Inputs, name: str, size: int) -> Floats:
    """Masses divided by their sum; uniform where they are left out."""
    if name not in inputs:
        return np.full(size, 1.0 / size)
    found = _array(inputs, name, 1)
    if found.shape != (size,):
        raise InvalidProblem(name, f"has shape {found.shape}; expected {(size,)}")
    if (found < 0).any():
        raise InvalidProblem(name, f"holds {found.min()} at [{found.argmin()}]; expected masses of at least 0")
    total = math.fsum(found)
    if not total > SMALLEST:
        raise InvalidProblem(name, f"sums to {total}; expected a sum above 0")
    found = np.asarray(found / total)
    if (found[found > 0] < SMALLEST).any():
        raise InvalidProblem(name, f"holds a mass below {SMALLEST:g} of the sum; expected 0, or more")
    return found


def _strength(reg: Regularisation, problem: Multimarginal) -> float:
    """reg as a number: AUTO_REG of the mean size of the costs, 1 where all are 0."""
    mean = sum(float(np.abs(part).mean()) for part in problem.parts)
    found = AUTO_REG * mean or 1.0 if reg == "auto" else float(reg)
    least = max(SMALLEST, SHARPEST * problem.largest)
    if found and not least <= found <= LARGEST:
        raise InvalidProblem("reg", f"is {found:g}; expected 0, or a number from {least:g} to {LARGEST:g}")
    return found
