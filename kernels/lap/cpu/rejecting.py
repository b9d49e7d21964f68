"""Assignments whose lines may be left at a price on the CPU, and batches of different sizes: one call, all threads.

    set_out       v_j = the price of leaving column j
    reduce_rows   each row takes its best column or its way out; its column's price falls to the second choice
    place         Dijkstra's search from each row that waits, to a free column or to some row's way out
    close         u_i = min(r_i, min_j c_ij - v_j)

The steps are in `reject.py`. The longer side of a problem is its columns here: others are turned.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.counter import new_counter, take
from kernels.deadline import Deadline
from kernels.lap.cpu import between
from kernels.lap.cpu import reject as steps
from kernels.lap.cpu.reject_pieces import shared_out, solve_pieces
from kernels.lap.cpu.threads import threads_for, together
from kernels.lap.masks import BEYOND, infinity
from kernels.lap.members import BEST_TO_WORST, CODES
from kernels.problems import FORBIDDEN, UNASSIGNED, Rejecting
from kernels.problems.arrays import Amounts, Costs, Flags, Indices, Mask, is_masked, transposed, untouched
from kernels.problems.clouds import PointRejecting
from kernels.problems.points import Points
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

LARGE = 512 * 512
"""Entries from which a problem is solved by itself, with the deadline polled inside."""
CHUNK = 1 << 18
"""Entries solved by a thread between two looks at the deadline: 0.5 ms with frames of 10 to 60 boxes."""
PIECE = 1 << 13
"""Entries of what a thread takes at once: 0.015 ms, the most that others wait for at the end."""
A_WAKE = 1 << 15
"""Entries that are solved in the time that one more thread costs all others: see `threads_for`."""
WORK = 1 << 22
REDUCED = 1 << 27
"""Entries that row reductions of a large problem read at most, beyond one look at each row."""

SolveOne = Callable[[Costs, bool, Costs | None, Costs | None, int, Deadline], Solution]


@dataclass
class Books:
    """What a solve reads and writes, in min form but for the costs: flat arrays of all problems.

    What is only read may not be written to, so that the loops know one form of it (`untouched`).
    """

    problem: Rejecting
    costs: Amounts
    clouds: between.Clouds | None
    row_prices: Amounts
    col_prices: Amounts
    sign: Any
    inf: Any
    starts: Indices
    turned: Mask
    col_of: Indices
    u: Amounts
    v: Amounts
    ended: Flags
    violators: dict[int, tuple[Indices, Indices]]

    def write_out(self) -> None:
        """From here on the costs are there."""
        if isinstance(self.problem, PointRejecting):
            self.problem, self.clouds = between.written_out(self.problem), None
            self.costs = untouched(np.asarray(self.problem.costs, self.sign.dtype))


def solve(problem: Rejecting, options: "LapOptions", deadline: Deadline, solve_one: SolveOne) -> Solution:
    """Solve assignments whose rows and columns may stay unassigned at a price, exactly, by shortest augmenting paths.

    Problem: min sum of c[i, j] over the pairs + the prices of the rows and columns that are left (max with
        `maximize`), of one problem or of many of any sizes.
    Args:
        problem: see `Rejecting`. Without prices of the caller it is the ordinary assignment. The costs of points are
            worked out in the thread that solves a problem; of one that is large, all are before.
        options: `LapOptions`; `iteration_limit` counts nothing here.
        deadline: polled between small problems, and between the paths of a large one.
        solve_one: solves an ordinary assignment that is large, late or has no answer (`cpu.solve_one`).
    Returns:
        `assignment` (-1: left), `u`, `v` in the form of the problem; int64 or float64. Stopped early, rows that wait
        are left at their price, and the duals still give a bound.
    Guarantee: exact; deterministic.
    Numerics: duals in float64, or in int64, where no sum passes 16 (n_rows + n_cols) max |c|.
    Complexity: O(short^2 long) at worst for each problem; small ones side by side in threads without the GIL.
    Source: R. Jonker, A. Volgenant, Computing 38 (1987), section 4, with a private column for each row.
    """
    start = time.perf_counter()
    books = _books(problem)
    small = shared_out(books.starts, LARGE, PIECE)
    large: list[int] = []
    if len(small[0]) < len(books.ended):
        large = np.flatnonzero(np.diff(books.starts[:, 0]) >= LARGE).tolist()
        books.write_out()
    _solve_small(books, small, deadline, solve_one)
    for k in large:
        if problem.strict:
            _ordinary(books, k, deadline, solve_one)
        else:
            _solve_large(books, k, deadline)
        deadline.report(k + 1, fraction=(k + 1) / len(problem.sizes))
    solution = _answer(books)
    solution.seed = options.seed
    solution.timings_ms["solve"] = (time.perf_counter() - start) * 1e3
    return solution


def _books(problem: Rejecting) -> Books:
    exact = problem.row_prices.dtype.kind == "i"
    sign = np.int64(-1 if problem.maximize else 1) if exact else np.float64(-1 if problem.maximize else 1)
    costs, prices = problem.costs, [problem.row_prices, problem.col_prices]
    masked = exact and (is_masked(costs) or any(is_masked(price) for price in prices))
    opened: list[Amounts] = [
        untouched(_signed(sign, np.where(p == FORBIDDEN, sign * BEYOND, p) if masked else p)) for p in prices
    ]
    if masked:
        costs = np.where(costs == FORBIDDEN, sign * BEYOND, costs)
    sizes, clouds = problem.sizes, None
    if isinstance(problem, PointRejecting) and not exact:  # with whole prices there is no pair
        clouds = between.clouds_of(problem)
    return Books(
        problem, untouched(np.ascontiguousarray(costs, dtype=sign.dtype)), clouds, opened[0], opened[1], sign,
        infinity(exact, masked), problem.starts, sizes[:, 0] > sizes[:, 1], np.full(len(prices[0]), UNASSIGNED),
        np.zeros(len(prices[0]), sign.dtype), np.zeros(len(prices[1]), sign.dtype),
        np.full(len(sizes), CODES[Termination.OPTIMAL], np.int8), {},
    )  # fmt: skip


def _signed(sign: Any, amounts: Amounts) -> Amounts:
    """In min form, or back; the same array where that is no other."""
    return amounts if sign > 0 else np.asarray(sign * amounts)


def _solve_small(books: Books, shared: tuple[Indices, Indices, int], deadline: Deadline, solve_one: SolveOne) -> None:
    """Small problems across threads, each of which takes the next few and polls the deadline now and then.

    `shared`: by `shared_out`.
    """
    small, ends, work = shared
    if not len(small):
        return
    solved = np.ones(len(books.ended), bool)
    late: list[tuple[int, Termination]] = []
    given = (
        books.costs, books.clouds, books.starts, untouched(books.problem.sizes), books.turned, books.sign, books.inf,
        books.row_prices, books.col_prices, books.col_of, books.u, books.v, solved,
    )  # fmt: skip
    counter = new_counter()

    def some() -> None:
        left = True
        while left:
            if ended := deadline.expired():
                late.append((take(counter, len(ends)), ended))
                return
            left = solve_pieces(counter, ends, small, CHUNK, *given)

    together(some, threads_for(work if books.clouds is None else 2 * work, A_WAKE))
    if late or not solved.all():
        books.write_out()
    for piece, ended in late:
        for k in small[ends[min(piece, len(ends) - 1)] :].tolist():
            if books.problem.strict:
                _ordinary(books, k, deadline, solve_one)
            else:
                _greedily(books, k, ended)
    for k in np.flatnonzero(~solved).tolist():
        _ordinary(books, k, deadline, solve_one)


def _lines(books: Books, k: int) -> tuple[Amounts, Amounts, Amounts, Amounts, Amounts]:
    """Problem k with its longer side as columns: costs, ways out, prices of columns, duals of both."""
    at = books.starts
    rows, cols = slice(at[k, 1], at[k + 1, 1]), slice(at[k, 2], at[k + 1, 2])
    cost = books.costs[at[k, 0] : at[k + 1, 0]].reshape(books.problem.sizes[k])
    if books.turned[k]:
        turned = untouched(transposed(cost))
        return turned, books.col_prices[cols], books.row_prices[rows], books.v[cols], books.u[rows]
    return cost, books.row_prices[rows], books.col_prices[cols], books.u[rows], books.v[cols]


def _solve_large(books: Books, k: int, deadline: Deadline) -> None:
    """One problem with a look at the deadline between its paths."""
    cost, way_out, top, u, v = _lines(books, k)
    n, m = cost.shape
    col_of, row_of = np.full(n, steps.WAITS), np.full(m, steps.WAITS)
    room = steps.new_room(m, m, v)
    steps.set_out(cost, books.sign, books.inf, top, v)
    most = min(steps.REDUCTIONS_PER_ROW * n, max(n, REDUCED // m))
    steps.reduce_rows(cost, books.sign, books.inf, way_out, v, col_of, row_of, most, room)
    at, ended = 0, None
    while at < n:
        ended = deadline.expired()
        if ended:
            books.ended[k] = CODES[ended]
            break
        at = steps.place_all(cost, books.sign, books.inf, way_out, v, col_of, row_of, at, WORK, room)
        deadline.report(at, fraction=at / n)
    steps.close(cost, books.sign, books.inf, way_out, v, u, room)
    _write(books, k, col_of, row_of)


def _greedily(books: Books, k: int, ended: Termination) -> None:
    """A first answer: one look at each row."""
    cost, way_out, top, u, v = _lines(books, k)
    n, m = cost.shape
    col_of, row_of = np.full(n, steps.WAITS), np.full(m, steps.WAITS)
    steps.set_out(cost, books.sign, books.inf, top, v)
    room = steps.new_room(m, m, v)
    steps.reduce_rows(cost, books.sign, books.inf, way_out, v, col_of, row_of, n, room)
    steps.close(cost, books.sign, books.inf, way_out, v, u, room)
    books.ended[k] = CODES[ended]
    _write(books, k, col_of, row_of)


def _write(books: Books, k: int, col_of: Indices, row_of: Indices) -> None:
    found = row_of if books.turned[k] else col_of
    books.col_of[books.starts[k, 1] : books.starts[k + 1, 1]] = np.where(found < 0, UNASSIGNED, found)


def _ordinary(books: Books, k: int, deadline: Deadline, solve_one: SolveOne) -> None:
    """A problem whose shorter side must be paired, by the solver of ordinary ones, which also says why it cannot."""
    at = books.starts
    matrix = books.problem.matrix(k, at)
    rows, cols = slice(at[k, 1], at[k + 1, 1]), slice(at[k, 2], at[k + 1, 2])
    if matrix.size == 0:
        return
    wide = np.int64 if matrix.dtype.kind == "i" else np.float64
    one = solve_one(matrix.astype(wide, copy=False), books.problem.maximize, None, None, matrix.size, deadline)
    books.ended[k] = CODES[one.termination]
    if one.termination is Termination.INFEASIBLE:
        books.violators[k] = (one.arrays["hall_rows"], one.arrays["hall_cols"])
        books.col_of[rows], books.u[rows], books.v[cols] = UNASSIGNED, 0, 0
        return
    books.col_of[rows] = one.arrays["assignment"]
    books.u[rows], books.v[cols] = books.sign * one.arrays["u"], books.sign * one.arrays["v"]


def _answer(books: Books) -> Solution:
    """The arrays in the form of the problem."""
    problem, facts = books.problem, {"problems": len(books.ended)}
    worst = Termination.OPTIMAL
    if (codes := set(books.ended.tobytes())) - {CODES[worst]}:
        worst = max((tuple(Termination)[code] for code in codes), key=BEST_TO_WORST.index)
    if problem.form == "one" and books.violators:
        hall_rows, hall_cols = books.violators[0]
        return Solution(worst, "sap", {"hall_rows": hall_rows, "hall_cols": hall_cols})
    flat = {"assignment": books.col_of, "u": _signed(books.sign, books.u), "v": _signed(books.sign, books.v)}
    if books.violators:
        facts["problem"] = min(books.violators)
        flat |= {"hall_rows": np.zeros(len(books.u), bool), "hall_cols": np.zeros(len(books.v), bool)}
        for k, sides in books.violators.items():
            for side, name in enumerate(("hall_rows", "hall_cols"), 1):
                flat[name][books.starts[k, side] + sides[side - 1]] = True
    arrays = {name: problem.shaped(name, array) for name, array in flat.items()}
    evidence = {} if problem.form == "one" else {"ended": books.ended}
    return Solution(worst, "sap", arrays, len(books.ended), facts=facts, evidence=evidence)


def warm_up() -> None:
    """Compile the steps for float64 and int64, or load them from numba's cache."""
    ties = np.random.default_rng(0).integers(0, 3, (8, 9))
    for dtype in (np.float64, np.int64):
        prices: list[Amounts] = [np.ones(8, dtype), np.zeros(9, dtype)]
        costs: Amounts = ties.astype(dtype)
        problem = Rejecting(costs.reshape(-1), np.array([[8, 9]]), prices[0], prices[1])
        books = _books(problem)
        _solve_small(books, shared_out(books.starts, LARGE, PIECE), Deadline(), None)  # type: ignore[arg-type]
        _greedily(books, 0, Termination.TIME_LIMIT)
        _solve_large(books, 0, Deadline())
    boxes = np.array([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]])
    limits, points = np.ones(2), Points(boxes, boxes, "iou")
    problem = PointRejecting(np.zeros(0), np.array([[2, 2]]), limits, limits, points=points)
    books = _books(problem)
    _solve_small(books, shared_out(books.starts, LARGE, PIECE), Deadline(), None)  # type: ignore[arg-type]
