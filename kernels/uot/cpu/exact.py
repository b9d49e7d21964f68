"""Optimal transport without an entropic term, on the CPU: a network simplex in whole numbers."""

import math
from typing import Any, cast

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Amounts, Array, Floats, Indices, Integers, Mask
from kernels.problems.exact_transport import ExactTransport
from kernels.solution import Solution, Termination
from kernels.uot.cpu.simplex import SpanningTree

PIVOTS = 2000
"""Between two looks at the deadline."""
LARGEST = 1 << 62
"""Of a potential and of a sum of masses in whole numbers."""


def solve(problem: ExactTransport, options: Any, deadline: Deadline) -> Solution:
    """Solve optimal transport by a primal network simplex.

    Problem:
        min over P >= 0 of <C, P> with row sums a and column sums b. Not solved: unequal masses.
    Args:
        problem: costs (m, n) float64 or int64, forbidden entries among them; masses both whole or both float64.
        options: `TransportOptions`; `output`, and `iterations`: of m + n pivots each.
        deadline: polled every PIVOTS pivots. What is there then is a plan, and its potentials bound how good it is.
    Returns:
        f (m,), g (n,) with f_i + g_j <= c_ij but for rounding; plan (m, n), of whole masses int64; or, for output
        "potentials", its entries entry_rows, entry_columns, entry_values. At most m + n - 1 are not 0. hall_rows
        (rows with more mass than all columns that they may use) in place of all these where there is no plan.
    Guarantee:
        Whole costs and masses: an optimal plan and potentials that prove it. Floats: an optimal plan of a problem whose
        costs and masses were rounded to multiples of a power of two, near the 62nd bit of their sums. Deterministic.
    Numerics:
        int64 throughout: costs so scaled that no sum along a tree overflows, masses so that their sum is below 2^60.
    Complexity:
        A pivot reads sqrt(m n) costs or a row, and the part of the tree that moves. Bytes: two copies of the costs.
    Errors:
        none.
    Source:
        Cunningham, A network simplex method (1976), strongly feasible trees; Grigoriadis, An efficient implementation
        of the network simplex method (1986), block pricing.
    """
    cost, forbidden, power = _whole_costs(problem)
    a, b, unit = _whole_masses(problem)
    tree = SpanningTree(cost, forbidden, a, b)
    ended: Termination | None = None
    done, most = 0, options.iterations * sum(problem.shape)
    while True:
        more, last = tree.search(PIVOTS)
        done += more
        if last or done >= most:
            break
        ended = deadline.expired()
        if ended:
            break
    termination = ended or (Termination.OPTIMAL if last else Termination.ITERATION_LIMIT)
    rows, columns, flows = tree.arcs()
    barred = forbidden[rows, columns] & (flows > 0)
    facts = {"pivots": done, "tolerance": 0.0, "mass_factor": problem.mass_factor, **problem.told}
    lost = int(flows[barred].sum())
    if last and lost > _rounding(problem, a):
        arrays = {"hall_rows": _hall_rows(forbidden, rows, columns, flows)}
        return Solution(Termination.INFEASIBLE, "simplex", arrays, done, facts=facts)
    keep = (flows > 0) & ~barred
    arrays = _potentials(problem, tree, power) | _plan(problem, options, rows[keep], columns[keep], flows[keep], unit)
    return Solution(termination, "simplex", arrays, done, facts=facts)


def _whole_costs(problem: ExactTransport) -> tuple[Integers, Mask, int]:
    """(whole costs, forbidden entries, k): a cost is a whole one times 2^k, rounded where it has more digits."""
    forbidden = ~problem.permitted
    held = np.where(forbidden, 0, problem.cost)
    most = LARGEST // (sum(problem.shape) + 2)
    if held.dtype == np.int64:
        top = max(abs(int(held.min())), abs(int(held.max())))
        power = max(0, (top // most).bit_length())
        return held >> power, forbidden, power
    largest = float(abs(held).max())
    if largest == 0:
        return held.astype(np.int64), forbidden, 0
    power = math.frexp(largest)[1] - (most.bit_length() - 1)
    return np.rint(_times(held, -power)).astype(np.int64), forbidden, power


def _times(values: Amounts, power: int) -> Floats:
    """values times 2^power, in two steps where one factor leaves float64."""
    half = power // 2
    return np.asarray(np.ldexp(np.ldexp(values, half), power - half))


def _whole_masses(problem: ExactTransport) -> tuple[Integers, Integers, int]:
    """(masses of rows, of columns, k): a mass is a whole one times 2^k; what rounding leaves is put on the largest."""
    if problem.a.dtype == np.int64:
        return cast(Integers, problem.a), cast(Integers, problem.b), 0
    power = math.frexp(math.fsum(problem.a))[1] - 60
    a, b = (np.rint(_times(masses, -power)).astype(np.int64) for masses in (problem.a, problem.b))
    apart = int(a.sum()) - int(b.sum())
    if apart > 0:
        b[b.argmax()] += apart
    else:
        a[a.argmax()] -= apart
    return a, b, power


def _rounding(problem: ExactTransport, a: Integers) -> int:
    """Mass that may have no way by rounding alone."""
    return 0 if problem.a.dtype == np.int64 else int(a.sum()) >> 40


def _potentials(problem: ExactTransport, tree: SpanningTree, power: int) -> dict[str, Array]:
    """f and g that make the tree's arcs tight at the costs as they were given, summed without rounding.

    Subtrees that hang from the root, or from a forbidden entry, keep the places that the search gave them.
    """
    m, n = problem.shape
    if problem.cost.dtype == np.int64 and power == 0:
        exact = tree.potential[: m + n].tolist()
        if not tree.high.any():
            return {"f": np.array(exact[:m]), "g": np.array(exact[m:])}
        numbers = _apart(problem, tree, exact)
        if max(map(abs, numbers)) < LARGEST:
            return {"f": np.array(numbers[:m]), "g": np.array(numbers[m:])}
        return {"f": np.array(numbers[:m], float), "g": np.array(numbers[m:], float)}
    whole, shift = _integers(problem, tree)
    numbers = _apart(problem, tree, _down_the_tree(tree, whole, power + shift), 1 << shift)
    found = np.array([_float(number, shift) for number in numbers])
    return {"f": found[:m], "g": found[m:]}


def _integers(problem: ExactTransport, tree: SpanningTree) -> tuple[dict[int, int], int]:
    """The costs of the tree's arcs, by their lower node, as integers over one power of two."""
    m, n = problem.shape
    nodes = np.flatnonzero(tree.parent[: m + n] < m + n)
    above = tree.parent[nodes]
    rows, columns = np.minimum(nodes, above), np.maximum(nodes, above) - m
    costs = np.where(tree.forbidden[rows, columns], problem.cost.dtype.type(0), problem.cost[rows, columns])
    ratios = [cost.as_integer_ratio() for cost in costs.tolist()]
    shift = max((under.bit_length() - 1 for _, under in ratios), default=0)
    wholes = (over * ((1 << shift) // under) for over, under in ratios)
    return dict(zip(nodes.tolist(), wholes, strict=True)), shift


def _ratio(cost: Any) -> tuple[int, int]:
    value = cost.item()
    return (value, 1) if isinstance(value, int) else value.as_integer_ratio()


def _down_the_tree(tree: SpanningTree, whole: dict[int, int], power: int) -> list[int]:
    """Potentials of all nodes: what a subtree's top has by the search, and arcs' costs from there."""
    size = tree.parent.size - 1
    found = [0] * size
    tops, parents = tree.potential[:size].tolist(), tree.parent[:size].tolist()
    for node in np.argsort(tree.depth[:size], kind="stable").tolist():
        if node not in whole:
            found[node] = tops[node] << power if power >= 0 else tops[node] >> -power
        else:
            found[node] = whole[node] - found[parents[node]]
    return found


def _apart(problem: ExactTransport, tree: SpanningTree, numbers: list[int], one: int = 1) -> list[int]:
    """The numbers, with what forbidden entries cost in place of the first parts of potentials."""
    if not tree.high.any():
        return numbers
    held = problem.cost[problem.permitted]
    top = max((abs(above) * one // below + 1 for above, below in map(_ratio, (held.min(), held.max()))), default=0)
    dear = 2 * max(top, *map(abs, numbers)) + 1
    return [number + dear * int(high) for number, high in zip(numbers, tree.high[:-1], strict=True)]


def _float(number: int, shift: int) -> float:
    try:
        return math.ldexp(float(number), -shift) if number.bit_length() < 1000 else number / (1 << shift)
    except OverflowError:
        return math.copysign(math.inf, number)


def _plan(
    problem: ExactTransport, options: Any, rows: Indices, columns: Indices, flows: Integers, unit: int
) -> dict[str, Array]:
    masses = flows if problem.a.dtype == np.int64 else np.ldexp(flows.astype(np.float64), unit)
    if options.output == "potentials":
        return {"entry_rows": rows, "entry_columns": columns, "entry_values": masses}
    plan = np.zeros(problem.shape, masses.dtype)
    plan[rows, columns] = masses
    return {"plan": plan}


def _hall_rows(forbidden: Mask, rows: Indices, columns: Indices, flows: Integers) -> Indices:
    """Rows with more mass than all columns that they may use: what a row that is short of them reaches."""
    m, n = forbidden.shape
    barred = forbidden[rows, columns]
    short = rows[barred & (flows > 0)]
    in_rows, in_columns = np.zeros(m, bool), np.zeros(n, bool)
    carried = ~barred & (flows > 0)
    fresh: Indices = np.unique(short)
    in_rows[np.unique(short)] = True
    while True:
        reached = (~forbidden[fresh]).any(axis=0) & ~in_columns
        in_columns |= reached
        found = np.unique(rows[carried & reached[columns]])
        fresh = found[~in_rows[found]]
        if not fresh.size:
            return np.flatnonzero(in_rows)
        in_rows[fresh] = True
