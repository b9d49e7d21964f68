"""Lines that may be left at a price, as an ordinary assignment with more columns, for the solvers of a GPU.

A column's price s_j moves into its entries, c_ij - s_j, and is paid for all columns beforehand; then only rows have
ways out. A problem with n rows gets n more columns, each of which costs row i its own price r_i: whichever a row takes,
it is left. Where fewer than n rows are left one of these columns stays free, at price 0, so that u_i <= r_i; where all
are left the prices of the others are 0. So v_j + s_j are prices for the problem as it was given.

The longer side plays the columns. An ordinary assignment needs no more columns, only padding.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline, Retold
from kernels.lap.cpu.between import written_out
from kernels.lap.members import CODES
from kernels.problems import UNASSIGNED, Array, Assignment, Rejecting
from kernels.problems.arrays import Amounts, Costs, Indices, Indices32, permitted
from kernels.problems.clouds import PointRejecting
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions


def solve_extended(
    problem: Rejecting,
    options: "LapOptions",
    deadline: Deadline,
    solve: Callable[[Assignment, "LapOptions", Deadline], Solution],
) -> Solution:
    """Let `solve`, which pairs all lines of the shorter side, solve a problem whose lines may be left."""
    if isinstance(problem, PointRejecting):
        problem = written_out(problem)
    used = np.flatnonzero(problem.sizes.prod(axis=1))
    count = len(problem.sizes)
    flat = {
        "assignment": np.full(len(problem.row_prices), UNASSIGNED),
        "u": _left(problem.row_prices),
        "v": _left(problem.col_prices),
    }
    ended = np.full(count, CODES[Termination.OPTIMAL], np.int8)
    hall = {"hall_rows": np.zeros(len(flat["u"]), bool), "hall_cols": np.zeros(len(flat["v"]), bool)}
    solution = Solution(Termination.OPTIMAL, "auto", {})
    if len(used):
        weights, sizes = _extended(problem, used)
        watched = Retold(deadline, lambda objective, bound: (None, None))  # of another form of the problem
        solution = solve(Assignment(weights, problem.maximize, sizes=sizes), options, watched)
        ended[used] = solution.evidence["ended"]
        for at, k in enumerate(used.tolist()):
            _taken_back(problem, k, {name: array[at] for name, array in solution.arrays.items()}, flat, hall)
    infeasible = ended == CODES[Termination.INFEASIBLE]
    facts = {name: fact for name, fact in solution.facts.items() if name != "device_proof"}  # of the longer problem
    rest: dict[str, Any] = {"timings_ms": solution.timings_ms, "seed": options.seed, "facts": facts}
    if problem.form == "one" and infeasible.any():
        violator = {name: np.flatnonzero(array) for name, array in hall.items()}
        return Solution(Termination.INFEASIBLE, solution.method, violator, solution.iterations, **rest)
    arrays = {name: problem.shaped(name, array) for name, array in (flat | (hall if infeasible.any() else {})).items()}
    rest["evidence"] = {} if problem.form == "one" else {"ended": ended}
    return Solution(solution.termination, solution.method, arrays, solution.iterations, **rest)


def _left(prices: Amounts) -> Amounts:
    """Duals of lines that nobody can take: their prices, 0 where they must be paired."""
    return np.where(permitted(prices), prices, np.zeros((), prices.dtype))


def _extended(problem: Rejecting, used: Indices) -> tuple[Amounts, Indices32]:
    """A batch of the problems with entries, longer side across, and their sizes with what was added."""
    starts = problem.starts
    short, long = np.sort(problem.sizes[used], axis=1).T
    added = np.zeros_like(short) if problem.strict else short
    dtype = problem.row_prices.dtype
    weights = np.zeros((len(used), int(short.max()), int((long + added).max())), dtype)
    for at, k in enumerate(used.tolist()):
        matrix, out, caps = _turned(problem, k, starts)
        n, m = matrix.shape
        entries = matrix.astype(dtype)
        if problem.strict:
            weights[at, :n, :m] = entries
            continue
        permitted_pairs = permitted(entries)
        np.subtract(entries, caps, out=entries, where=permitted_pairs)
        weights[at, :n, :m] = entries
        weights[at, :n, m : m + n] = out[:, None]
    return weights, np.column_stack([short, long + added]).astype(np.int32)


def _turned(problem: Rejecting, k: int, starts: Indices) -> tuple[Costs, Amounts, Amounts]:
    """Costs with the longer side across, the prices of the lines and of the others."""
    rows, cols = slice(starts[k, 1], starts[k + 1, 1]), slice(starts[k, 2], starts[k + 1, 2])
    matrix = problem.matrix(k, starts)
    if matrix.shape[0] > matrix.shape[1]:
        return matrix.T, problem.col_prices[cols], problem.row_prices[rows]
    return matrix, problem.row_prices[rows], problem.col_prices[cols]


def _taken_back(
    problem: Rejecting, k: int, found: dict[str, Array], flat: dict[str, Array], hall: dict[str, Array]
) -> None:
    """Write the answer of the longer problem down as that of problem k."""
    starts = problem.starts
    rows, cols = slice(starts[k, 1], starts[k + 1, 1]), slice(starts[k, 2], starts[k + 1, 2])
    short, long = np.sort(problem.sizes[k]).tolist()
    turned = problem.sizes[k, 0] > problem.sizes[k, 1]
    caps = _left(problem.row_prices[rows] if turned else problem.col_prices[cols])
    column, lines, others = found["assignment"][:short], found["u"][:short], found["v"][:long] + caps
    column = np.where(column < long, column, UNASSIGNED)
    if turned:
        taken = np.flatnonzero(column != UNASSIGNED)
        own = np.full(long, UNASSIGNED)
        own[column[taken]] = taken
        flat["assignment"][rows], flat["u"][rows], flat["v"][cols] = own, others, lines
    else:
        flat["assignment"][rows], flat["u"][rows], flat["v"][cols] = column, lines, others
    if "hall_rows" in found and found["hall_rows"].any():
        in_lines, in_others = found["hall_rows"][:short], found["hall_cols"][:long]
        if turned:  # lines are columns: what they leave over are rows with too few columns
            hall["hall_rows"][rows], hall["hall_cols"][cols] = ~in_others, ~in_lines
        else:
            hall["hall_rows"][rows], hall["hall_cols"][cols] = in_lines, in_others
