"""The certificate of a linear assignment between points: intervals of costs, widened outward, and their dual bound.

In min form (costs negated to maximise) every cost lies in [high + low - error, high + low + error]. The upper ends of
the chosen pairs add up to the objective. For any prices v, with v_j <= 0 where columns may stay free,

    sum over lines of min_j (lower end of c_ij - v_j)  +  sum_j v_j

is a lower bound. A float64 sweep with a proved error (`coarsely.py`) leaves few pairs of a line that may attain its
minimum. Of many points in few dimensions, boxes rule most pairs out before that (`boxes.py`). Those that are left are
worked out to some 100 bits (`exactly.py`). Lines with more than MOST such pairs keep the sweep's lower ends. On a GPU
the sweep is a kernel's (`gpu_sweep.py`); what it leaves is worked out on the host as here. So `optimal` takes what it
takes of a matrix of floats: a gap of at most 2^-50 of the chosen pairs' sizes and 1e-9 of max(|objective|, S), S from
lower ends of |cost|.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kernels.certificates import assignment as plain
from kernels.certificates import assignment_bound as dual
from kernels.certificates import boxed
from kernels.certificates.assignment_groups import WORST
from kernels.certificates.metrics import boxes
from kernels.certificates.metrics.coarsely import Block, Costs
from kernels.certificates.metrics.exactly import Known
from kernels.certificates.rounded import add_down, sub_down, sum_down, sum_up, two_sum
from kernels.problems import UNASSIGNED, Array
from kernels.problems.arrays import untouched
from kernels.problems.metrics import THREADS
from kernels.problems.points import PointAssignment
from kernels.solution import Certificate, Solution, Termination, unheard

MOST = 256
"""Pairs of a line that are worked out exactly at most; all of them where the whole problem is small."""
SMALL = 1 << 20
"""Coordinates of all pairs of a small problem."""
WIDER, LEAST = 2.0**-50, 2.0**-1000
"""More than what rounding makes of a difference of a cost and a price: relative, and at all."""
MORE = 1 + 2.0**-30
"""More than what rounding makes of a sum of up to 2^22 numbers of one sign; numbers too small for that add exactly."""
ENDINGS = tuple(word for word in WORST if word is not Termination.INFEASIBLE)


class Near(NamedTuple):
    """What a sweep leaves: pairs that may attain the minimum of their line, which ascend; lower ends of all lines.

    `low` are rounded to nearest, from costs off by `widest` at most. A line with more than MOST pairs has none here.
    """

    lines: Array
    others: Array
    low: Array
    widest: Array


Sweep = Callable[[Costs, int, Array, int], Callable[[], Near]]
"""(costs, sign, prices, MOST) -> a call that waits for what is left."""


class Least(NamedTuple):
    """The lower end of min_j (c_ij - v_j) of consecutive lines, as high + low."""

    high: Array
    low: Array


def certify_assignment(
    problem: PointAssignment,
    solution: Solution,
    progress: Callable[[float], None] = unheard,
    sweep: Sweep | None = None,
) -> Certificate:
    """Recompute objective, bound and violation from the points, the assignment and the duals.

    `holds` is False where the answer is none. Duals that are no numbers count as 0, and the gap says what that costs.
    `sweep` looks at all pairs in the place of this machine's threads. Coordinates become float64 here.
    """
    wrong = _misshapen(problem, solution)
    if wrong:
        return Certificate(None, None, None, None, 0, False, wrong)
    sign = -1 if problem.maximize else 1
    points, (m, n) = problem.points, problem.shape
    turned = m > n
    u, v = (sign * solution.arrays[name].astype(np.float64) for name in "uv")
    given, claimed = (u, v) if turned else (v, u)
    lines, others = (points.y, points.x) if turned else (points.x, points.y)
    costs = Costs(lines, others, points.metric)
    price = dual.usable(given[None], m != n)[0]
    near = None if sweep is None else sweep(costs, sign, price, MOST)  # under way from here on
    proof, pairs = _pairs(costs, solution, sign, turned, min(m, n))
    if proof.why:
        return Certificate(None, None, None, None, 0, False, proof.why)
    if near is not None:
        least = _of_near(costs, sign, price, near(), pairs)
    elif boxed.suits(problem):
        least = _boxed(costs, price, pairs, progress)
    else:
        least = _swept(costs, sign, price, progress)
    found = dual.Lines(least.high[None], least.low[None], np.zeros((1, min(m, n)), bool))
    proof.violation = dual.violations(found, claimed[None], given[None], m != n)[0].item()
    total = _total(-1, least.high, least.low, price)
    proof.bound = total if np.isfinite(total) else None
    _judge(proof, pairs, least, price, costs)
    proof.objective = None if proof.objective is None else sign * proof.objective + 0
    proof.bound = None if proof.bound is None else sign * proof.bound + 0
    found_here = plain._certificate(problem, solution, [proof], False)
    told = {"metric": points.metric, "coordinates": points.x.dtype.name}
    how = f"costs of the given points worked out to within 2^-90 of their size where they decide ({points.metric})"
    return replace(found_here, proved=f"{found_here.proved}; {how}", facts={**found_here.facts, **told})


def _misshapen(problem: PointAssignment, solution: Solution) -> str:
    if solution.termination not in ENDINGS:
        return f"an assignment of points does not end with {solution.termination.value}"
    m, n = problem.shape
    for name, size, kind in (("assignment", m, "i"), ("u", m, "f"), ("v", n, "f")):
        array = solution.arrays.get(name)
        if array is None or array.shape != (size,) or array.dtype.kind != kind:
            return f"{name} has the wrong shape or dtype"
    return ""


class _Pairs(NamedTuple):
    """The chosen pairs: line and partner of each, and their costs."""

    lines: Array
    others: Array
    costs: Known


def _pairs(costs: Costs, solution: Solution, sign: int, turned: bool, wanted: int) -> tuple[plain._Proof, _Pairs]:
    """Whether the assignment is one, and its objective in min form, rounded up."""
    assignment = solution.arrays["assignment"].astype(np.int64)
    rows = np.flatnonzero(assignment != UNASSIGNED)
    columns = assignment[rows]
    proof = plain._Proof(solution.termination, unassigned=wanted - len(rows))
    nothing = _Pairs(rows[:0], rows[:0], Known(*(np.zeros(0) for _ in range(3))))
    n_columns = costs.shape[0 if turned else 1]
    if len(columns) and (columns.min() < 0 or columns.max() >= n_columns or np.bincount(columns).max() > 1):
        proof.why = "a column is out of range or assigned twice"
        return proof, nothing
    if solution.termination is Termination.OPTIMAL and proof.unassigned:
        proof.why = f"called optimal with {proof.unassigned} pairs missing"
        return proof, nothing
    lines, others = (columns, rows) if turned else (rows, columns)
    known = costs.exact(lines, others)
    if not proof.unassigned:
        errors = known.error.sum(keepdims=True) * MORE
        proof.objective = _total(1, sign * known.high, sign * known.low, errors)
    return proof, _Pairs(lines, others, known)


def _boxed(costs: Costs, price: Array, pairs: _Pairs, heard: Callable[[float], None]) -> Least:
    """As `_swept`, without a look at most pairs; lines with too many that boxes do not rule out are swept."""
    least, is_left = _searched(costs, price, pairs, heard)
    left = np.flatnonzero(is_left)
    if len(left):
        x, y = costs.given
        settled, m = costs.shape[0] - len(left), costs.shape[0]
        rest = Costs(x[left], y, costs.metric)
        part = _swept(rest, 1, price, lambda fraction: heard((settled + fraction * len(left)) / m))
        for whole, own in zip(least, part, strict=True):
            whole[left] = own
    return least


def _searched(costs: Costs, price: Array, pairs: _Pairs, heard: Callable[[float], None]) -> tuple[Least, Array]:
    """What the pairs that boxes do not rule out come to; and which lines have too many of them, and no numbers here."""
    m = costs.shape[0]
    least, is_left = Least(np.zeros(m), np.zeros(m)), np.zeros(m, bool)
    found = boxes.Boxes(*costs.given, costs.metric, price, pairs.lines, pairs.others)

    def settle(first: int) -> int:
        """Write down what a block's lines come to, and say how many of them do."""
        settled = 0
        for rows, owners, columns, counts in found.search(first, MOST):
            high, low = np.zeros(len(rows)), np.zeros(len(rows))
            known = costs.exact(rows[owners], columns)
            _smallest_of(owners, *_nets(known, 1, price[columns]), high, low)
            least.high[rows], least.low[rows], is_left[rows] = high, low, counts == 0
            settled += int(np.count_nonzero(counts))
        return settled

    done = 0
    with ThreadPoolExecutor(THREADS if len(found.starts()) > 1 else 1) as pool:
        for settled in pool.map(settle, found.starts()):
            done += settled
            heard(done / m)
    return least, is_left


def _swept(costs: Costs, sign: int, price: Array, heard: Callable[[float], None]) -> Least:
    """Of every line the lower end of its smallest cost less price, by a look at all pairs."""
    found = [np.zeros(costs.shape[0]) for _ in range(2)]
    starts = costs.starts()
    with ThreadPoolExecutor(THREADS if len(starts) > 1 else 1) as pool:
        each = pool.map(lambda first: _of_block(costs, costs.block(first), sign, price), starts)
        for done, (first, part) in enumerate(zip(starts, each, strict=True), 1):
            for whole, own in zip(found, part, strict=True):
                whole[first : first + len(own)] = own
            heard(done / len(starts))
    return Least(*found)


def _of_near(costs: Costs, sign: int, price: Array, near: Near, pairs: _Pairs) -> Least:
    """Lower ends, from the pairs that a sweep left."""
    high = sub_down(near.low, WIDER * (np.abs(near.low) + 2 * near.widest + LEAST))
    low, at = np.zeros(len(high)), np.full(len(high), -1)
    at[pairs.lines] = np.arange(len(pairs.lines))
    at = at[near.lines]
    at[(at >= 0) & (np.append(pairs.others, -1)[at] != near.others)] = -1
    new = np.flatnonzero(at < 0)  # the chosen pairs, half of all that are left, are worked out already
    worked_out = costs.exact(near.lines[new], near.others[new])
    known = Known(*(np.append(of_pairs, 0.0)[at] for of_pairs in pairs.costs))
    for whole, part in zip(known, worked_out, strict=True):
        whole[new] = part
    _smallest_of(near.lines, *_nets(known, sign, price[near.others]), high, low)
    return Least(high, low)


def _of_block(costs: Costs, block: Block, sign: int, price: Array) -> Least:
    """A pair is left out where its lower end lies above the upper end of another, by more than rounding explains."""
    values, error = block.values, block.error
    nets = values * sign
    nets -= price
    widest = error.max(axis=1)
    best = nets.min(axis=1) + widest if error.shape[1] == 1 else (nets + error).min(axis=1)
    if error.shape[1] > 1:
        nets -= error
    off = WIDER * (np.abs(best) + 2 * widest + LEAST)
    mask = nets <= (best + off + (error[:, 0] if error.shape[1] == 1 else 0.0))[:, None]
    few = np.count_nonzero(mask, axis=1) <= MOST
    high, low = np.zeros(len(few)), np.zeros(len(few))
    if costs.shape[0] * costs.shape[1] * costs.d > SMALL and not few.all():
        many = ~few
        rough = nets[many].min(axis=1) - (error[:, 0][many] if error.shape[1] == 1 else 0.0)
        high[many] = sub_down(rough, WIDER * (np.abs(rough) + 2 * widest[many] + LEAST))
        mask[many] = False
    lines, others = np.nonzero(mask)
    known = costs.exact(block.first + lines, others, values[lines, others])
    _smallest_of(lines, *_nets(known, sign, price[others]), high, low)
    return Least(high, low)


def _nets(known: Known, sign: int, price: Array) -> tuple[Array, Array]:
    """Lower ends of costs less prices as sums of two float64, the second rounded down."""
    high, low = two_sum(sign * known.high, -price)
    low = add_down(low, sub_down(sign * known.low, known.error))
    return two_sum(high, low)


def _smallest_of(lines: Array, nets: Array, rests: Array, high: Array, low: Array) -> None:
    """Write the smallest of each line's, which ascend, to its place."""
    where, starts = np.unique(lines, return_index=True)
    if not len(where):
        return
    high[where] = np.minimum.reduceat(nets, starts)
    low[where] = np.minimum.reduceat(np.where(nets == high[lines], rests, np.inf), starts)


def _total(side: int, *terms: Array) -> float:
    """The exact sum of all terms rounded towards `side` infinity, by compiled code where that has words enough."""
    from kernels.certificates.brief import loops  # compiled

    values = np.concatenate(terms)
    found, is_exact = loops.total(untouched(values), float(side))
    if is_exact:
        return float(found)
    return sum_down(values) if side < 0 else sum_up(values)


def _judge(proof: plain._Proof, pairs: _Pairs, least: Least, price: Array, costs: Costs) -> None:
    """The gap in min form, and the word that it earns."""
    if proof.objective is not None and proof.bound is not None:
        proof.gap = sum_up([proof.objective, -proof.bound])
    if proof.ended is Termination.OPTIMAL and not _is_closed(proof, pairs, least, price, costs):
        proof.ended = Termination.CONVERGED


def _is_closed(proof: plain._Proof, pairs: _Pairs, least: Least, price: Array, costs: Costs) -> bool:
    """Whether the gap is what rounding alone may leave: the rule of `assignment.py`, with lower ends of sizes."""
    gap = proof.gap
    if gap is None or gap <= 0:
        return gap == 0
    cost = np.maximum(np.abs(pairs.costs.high) - np.abs(pairs.costs.low) - pairs.costs.error, 0)
    sizes = _total(-1, cost, np.abs(least.high[pairs.lines]), np.abs(price[pairs.others]))
    if gap > plain.TOO_MUCH or np.ldexp(gap, plain.OF_PAIRS) > sizes:
        return False
    return bool(gap <= plain._share(abs(proof.objective or 0.0)) or gap <= plain._share(_natural_scale(costs)))


def _natural_scale(costs: Costs) -> float:
    """S of the rule: smallest sizes that are not 0, summed over the rows or the columns, whichever is less.

    Lower ends of sizes stand for them. A cost that the sweep cannot tell from 0 is worked out, unless there are many.
    """
    of_lines, of_others = [], np.full(costs.shape[1], np.inf)
    for first, values, error in costs.blocks():
        sizes = np.maximum(np.abs(values) - error, 0)
        lines, others = np.nonzero(sizes == 0)
        if len(lines) <= MOST * len(values):
            known = costs.exact(first + lines, others, values[lines, others])
            least = np.maximum(np.abs(known.high) - np.abs(known.low) - known.error, 0)
            sizes[lines, others] = np.where((known.high == 0) & (known.error == 0), np.inf, least)
        of_lines.append(sizes.min(axis=1))
        np.minimum(of_others, sizes.min(axis=0), out=of_others)
    sides = np.concatenate(of_lines), of_others
    return min(sum_down(side[np.isfinite(side)]) for side in sides)
