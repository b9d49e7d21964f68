"""Several small problems of one form solved in one go, each answered as if it had been alone.

What is saved is what every call costs whatever its size: most of the time of a matrix of 32 lines. Dense problems are
solved in one compiled call (`cpu/several.py`), others one after the other. Answers in integers are proved by one
certificate of all of them; each of the others has a call of its own.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kernels.card import Device
from kernels.company import in_groups
from kernels.deadline import Deadline
from kernels.problems import Csr
from kernels.problems.arrays import Costs
from kernels.problems.points import PointAuction
from kernels.problems.sparse import Auction
from kernels.solution import Certificate, Solution, Termination

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

Answer = tuple[Solution, Certificate]
LARGEST = 1 << 13
"""Entries of a problem, as of a matrix of 90 x 90. Calls take little of the time of a larger one."""
MOST_ENTRIES = 1 << 17
"""Entries solved between two looks at the clock: a few ms."""


def solve_jointly(
    problems: Sequence[Auction], options: "AuctionOptions", deadline: Deadline, device: Device
) -> list[Answer | None]:
    """Solve small problems together.

    Problem: as `kernels.auction.cpu.solver.solve` of each.
    Args:
        problems: of any shapes; those of one shape and type are the faster.
        options: the same for all.
        deadline: of all together.
        device: where to solve.
    Returns:
        Of each problem its solution and its certificate, or None for one that is to be solved by itself: it has no
        optimum that is proved, or more than LARGEST entries, or there was no time left.
    Guarantee: assignment, prices, profits and certificate of each are those of a solve by itself. A GPU solves nothing
        together, and neither is what may end short of an optimum: with an epsilon or a limit of rounds.
    Complexity: that of the problems.
    """
    found: list[Answer | None] = [None] * len(problems)
    small = [k for k, problem in enumerate(problems) if _entries(problem) <= LARGEST]
    if device == "gpu" or options.epsilon is not None or options.iteration_limit is not None or len(small) < 2:
        return found
    for part in in_groups(small, lambda k: _entries(problems[k]), MOST_ENTRIES):
        if deadline.expired():
            break
        begun_s = deadline.elapsed_s
        those = [problems[k] for k in part]
        solutions = _solved(those, options, deadline)
        solved_s = deadline.elapsed_s
        certificates = _certified(those, solutions)
        spent = {
            "solve": 1e3 * (solved_s - begun_s) / len(part),
            "certify": 1e3 * (deadline.elapsed_s - solved_s) / len(part),
        }
        for k, solution, certificate in zip(part, solutions, certificates, strict=True):
            if _is_optimal(solution, certificate):
                solution.timings_ms |= spent
                solution.facts["solved_together"] = len(small)
                found[k] = solution, certificate
    return found


def _is_optimal(solution: Solution, certificate: Certificate) -> bool:
    """Whether the certificate leaves an optimum's word, so that a solve by itself would end with this answer."""
    proved = certificate.holds and certificate.termination is None and not certificate.loose
    return bool(proved) and solution.termination is Termination.OPTIMAL


def _entries(problem: Auction) -> int:
    if isinstance(problem, PointAuction):
        return problem.shape[0] * problem.shape[1]
    weights = problem.weights
    return int(weights.values.size if isinstance(weights, Csr) else weights.size)


def _solved(problems: Sequence[Auction], options: "AuctionOptions", deadline: Deadline) -> list[Solution]:
    """The solution of each, by the compiled loop over all where they suit it."""
    from kernels.auction.cpu import several, solver  # compiled code

    alike: dict[tuple[tuple[int, int], str], list[int]] = {}
    for k, problem in enumerate(problems):
        if several.suits(problem, options):
            alike.setdefault((problem.shape, np.asarray(problem.weights).dtype.str), []).append(k)
    found: dict[int, Solution | None] = {}
    for those in alike.values():
        found |= zip(those, several.solve([problems[k] for k in those], options), strict=True)
    return [found.get(k) or solver.solve(problem, options, deadline) for k, problem in enumerate(problems)]


def _certified(problems: Sequence[Auction], solutions: Sequence[Solution]) -> list[Certificate]:
    """The certificate of each, as it has it by itself."""
    from kernels.auction import CARD

    whole = [k for k, pair in enumerate(zip(problems, solutions, strict=True)) if _is_whole(*pair)]
    proofs = _proved_as_one([problems[k] for k in whole], [solutions[k] for k in whole]) if len(whole) > 1 else None
    found = dict(zip(whole, proofs or [], strict=False))
    return [found.get(k) or CARD.certify(*pair) for k, pair in enumerate(zip(problems, solutions, strict=True))]


def _is_whole(problem: Auction, solution: Solution) -> bool:
    """Whether all is integers, and of the right sizes, and an optimum is claimed in which every row has a column."""
    if isinstance(problem, PointAuction) or problem.reject is not None:
        return False
    (n_rows, n_cols), arrays = problem.shape, solution.arrays
    values = problem.weights.values if isinstance(problem.weights, Csr) else problem.weights
    given = (values, arrays["assignment"], arrays["prices"], arrays["profits"])
    sizes = [array.shape for array in given[1:]] == [(n_rows,), (n_cols,), (n_rows,)]
    return solution.termination is Termination.OPTIMAL and sizes and all(array.dtype.kind == "i" for array in given)


def _proved_as_one(problems: Sequence[Auction], solutions: Sequence[Solution]) -> list[Certificate] | None:
    """The certificates of optima in integers, by one certificate of all; None where that does not prove an optimum.

    Problems side by side, without a pair between them, are one problem, and so are their answers. Its objective and its
    bound are the sums of theirs. No answer has a gap below 0, so where the sum of the gaps is 0 each of them is 0. The
    violation of all is the largest of one. So what the certificate says of all it would say of each, but for the sums.
    """
    from kernels.certificates.auction import auction
    from kernels.certificates.auction_integers import total
    from kernels.certificates.auction_rows import values_at

    graph = _side_by_side([problem.weights for problem in problems])
    named = {name: [solution.arrays[name] for solution in solutions] for name in ("assignment", "prices", "profits")}
    rows = np.cumsum([0, *(problem.shape[0] for problem in problems)]).tolist()
    firsts = np.cumsum([0, *(problem.shape[1] for problem in problems)]).tolist()
    named["assignment"] = [
        np.where(one < 0, one, one + first) for one, first in zip(named["assignment"], firsts, strict=False)
    ]
    arrays = {name: np.concatenate(those) for name, those in named.items()}
    proof = auction(Auction(graph, maximize=True), Solution(Termination.OPTIMAL, "together", arrays))
    if not proof.holds or proof.termination is not None or proof.gap_abs != 0 or proof.max_violation != 0:
        return None
    taken, _ = values_at(graph, np.arange(rows[-1]), arrays["assignment"])
    objectives = [total(taken[first:last]) for first, last in itertools.pairwise(rows)]
    return [replace(proof, objective=objective, bound=objective, facts={}) for objective in objectives]


def _side_by_side(weights: Sequence[Costs | Csr]) -> Csr:
    """One graph of all: the rows and the columns of each follow those of the one before."""
    edges = [one if isinstance(one, Csr) else _edges(one) for one in weights]
    columns = np.cumsum([0, *(one.shape[1] for one in edges)]).tolist()
    sizes = np.concatenate([np.diff(one.indptr) for one in edges])
    return Csr(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([one.indices + np.int32(first) for one, first in zip(edges, columns, strict=False)]),
        np.concatenate([one.values for one in edges]),
        (sizes.size, columns[-1]),
    )


def _edges(matrix: Costs) -> Csr:
    """A matrix as a graph of all pairs."""
    n_rows, n_cols = matrix.shape
    indices = np.tile(np.arange(n_cols, dtype=np.int32), n_rows)
    return Csr(np.arange(n_rows + 1) * n_cols, indices, matrix.reshape(-1), (n_rows, n_cols))
