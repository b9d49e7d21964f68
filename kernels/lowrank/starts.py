"""Where searches begin: components made of the pairs of an optimal plan, of all rows and columns or of a sample."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernels.deadline import Deadline
from kernels.lowrank.costs import Costs
from kernels.lowrank.descent import Factors, Over, Rounds, Sums, projected
from kernels.problems.arrays import Floats, Indices
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.lowrank import LowRankTransport

LARGEST_SIMPLEX, SAMPLE = 1500, 600
"""Rows and columns together up to which all of them are paired; how many of each are drawn where there are more."""
ROUNDS = 10
"""Of nearest components."""
SHARP, FARTHEST = 50.0, 200.0
"""Of the kernel that spreads components: how sharp by the mean cost, and its largest exponent."""
FIRST_SUMS, FIRST_ROUNDS = 1e-9, 1000
"""Of the projection of a start."""


@dataclass(frozen=True)
class Sample:
    """Rows and columns, their costs, the pairs of an optimal plan between them, and potentials of the rows.

    `rows`, `columns` are places in the problem; `at_row`, `at_column` are those of each pair within the sample.
    """

    rows: Indices
    columns: Indices
    cost: Floats
    at_row: Indices
    at_column: Indices
    mass: Floats
    f: Floats
    is_all: bool


def draw(problem: LowRankTransport, costs: Costs, seed: int, deadline: Deadline) -> Sample:
    """Pair all rows and columns, or some that are drawn by their weights."""
    rng = np.random.default_rng(seed)
    is_all = sum(problem.shape) <= LARGEST_SIMPLEX
    places, weights = [], []
    for given in (problem.a, problem.b):
        shares = given / given.sum()
        if is_all or len(shares) <= SAMPLE:
            places.append(np.arange(len(shares)))
            weights.append(shares)
        else:
            places.append(np.sort(rng.choice(len(shares), SAMPLE, p=shares)))
            weights.append(np.full(SAMPLE, 1 / SAMPLE))
    rows, columns = places
    cost = on_host(costs.among(costs.xp.asarray(rows), costs.xp.asarray(columns)), costs.xp)
    f, plan = exact_transport(cost, weights[0], weights[1], deadline)
    at_row, at_column = np.nonzero(plan)
    return Sample(rows, columns, cost, at_row, at_column, plan[at_row, at_column], f, is_all)


def exact_transport(cost: Floats, a: Floats, b: Floats, deadline: Deadline) -> tuple[Floats, Floats]:
    """Potentials of the rows, and a plan, by the network simplex of `kernels.uot`."""
    from kernels.uot.cpu import exact  # compiles: loaded when first used

    asked = SimpleNamespace(output="plan", iterations=10_000)
    found = exact.solve(ExactTransport(np.ascontiguousarray(cost), a, b), asked, deadline)
    return found.arrays["f"], found.arrays["plan"]


def components(sample: Sample, rank: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Q, R and g of the sample: its pairs shared out among `rank` components, some of which may come out empty.

    Where the sample has no more rows, or columns, than that, each is a component: then P is the plan.
    """
    m, n = sample.cost.shape
    if rank >= min(m, n):
        return _gathered(sample, sample.at_row if m <= n else sample.at_column, min(m, n))
    label = _seeded(sample, rank, rng)
    for _ in range(ROUNDS):
        q, r, g = _gathered(sample, label, rank)
        by_rows, by_columns = sample.cost @ (r / g), sample.cost.T @ (q / g)
        inside = (q * by_rows).sum(axis=0) / g
        before, label = label, (by_rows[sample.at_row] + by_columns[sample.at_column] - inside).argmin(axis=1)
        if (label == before).all():
            break
    return _gathered(sample, label, rank)


def _gathered(sample: Sample, label: Indices, rank: int) -> tuple[Floats, Floats, Floats]:
    m, n = sample.cost.shape
    q, r = np.zeros((m, rank)), np.zeros((n, rank))
    np.add.at(q, (sample.at_row, label), sample.mass)
    np.add.at(r, (sample.at_column, label), sample.mass)
    kept = q.sum(axis=0) > 0
    return q[:, kept], r[:, kept], q[:, kept].sum(axis=0)


def _seeded(sample: Sample, rank: int, rng: np.random.Generator) -> Indices:
    """Each pair's nearest seed by exchange; seeds are drawn by mass times what an exchange with the nearest loses."""
    own = sample.cost[sample.at_row, sample.at_column]
    near, label = np.full(own.size, np.inf), np.zeros(own.size, np.int64)
    chosen = rng.choice(own.size, p=sample.mass / sample.mass.sum())
    for k in range(rank):
        away = (
            sample.cost[sample.at_row, sample.at_column[chosen]] + sample.cost[sample.at_row[chosen], sample.at_column]
        )
        away = np.maximum(0.0, away - own - own[chosen])
        label[away < near] = k
        near = np.minimum(near, away)
        odds = sample.mass * near
        if not odds.sum() > 0:
            break
        chosen = rng.choice(own.size, p=odds / odds.sum())
    return label


def spread(costs: Costs, sample: Sample, parts: tuple[Floats, Floats, Floats], sums: Sums, over: Over) -> Factors:
    """Components of a sample, taken to all rows and columns: by what each costs them, softly."""
    xp = sums.xp
    q, r, g = (xp.asarray(part) for part in parts)
    if sample.is_all:
        return Factors(q, r, g)
    of_rows = _nearness(costs.times(r / g, xp.asarray(sample.columns)), xp)
    of_columns = _nearness(costs.transposed_times(q / g, xp.asarray(sample.rows)), xp)
    return projected(Factors(of_rows, of_columns, g), sums, Rounds(FIRST_SUMS, FIRST_ROUNDS, over))


def _nearness(cost: Any, xp: Any) -> Any:
    """Of each line to each component, 1 to the nearest."""
    away = cost - cost.min(axis=1, keepdims=True)
    usual = max(float(away.mean()), 1e-300)
    return xp.exp(-xp.minimum(away * (SHARP / usual), FARTHEST))


def drawn(rank: int, sums: Sums, rng: np.random.Generator, over: Over) -> Factors:
    """Random factors, projected."""
    xp = sums.xp
    q, r = (xp.asarray(rng.random((len(weights), rank)) + 0.1) for weights in (sums.a, sums.b))
    return projected(Factors(q, r, xp.full(rank, 1 / rank)), sums, Rounds(FIRST_SUMS, FIRST_ROUNDS, over))


def on_host(array: Any, xp: Any) -> Floats:
    """In NumPy's memory."""
    return np.asarray(array if xp is np else array.get())
