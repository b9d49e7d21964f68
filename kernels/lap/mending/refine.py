"""Prices rebuilt from an assignment: shortest paths in its residual graph, in twice the precision of the costs.

Nodes are the columns in use, and one more for all free columns together (whose price is 0). An arc i -> k says that the
row of column i could take column k; its length is what that would cost at the given prices,

    r_ik = (c_ik - v_k) - (c_ii - v_i),

which is never negative when the prices are optimal. Where rounding left it negative, the shortest distances d <= 0 from
everywhere are what the prices must still fall by: v + d is optimal for this assignment. A negative cycle is a cheaper
assignment: its pairs are exchanged, and the search begins anew.

Distances are as small as the rounding errors that they mend. So few arcs can matter, those with r_ik below the largest
|d|, and r_ik and d in float64 leave an error of order 2^-106 of the costs: r_ik is found from two exact differences
(Knuth's TwoSum), and v + d stays a sum of two words.
"""

from dataclasses import dataclass

import numpy as np

from kernels.deadline import Deadline
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Floats, Indices, Integers

ROWS_BYTES = 1 << 22
MOST_ARCS = 1 << 24
WIDER = 2.0**12
EXCHANGES = 64
LOOK_FOR_CYCLES = 32
"""Rounds between two looks for a negative cycle."""


@dataclass(frozen=True)
class Refined:
    """`partner_of` (n,); prices `words` (2, m), whose sum they are."""

    partner_of: Indices
    words: Floats


@dataclass(frozen=True)
class _Arcs:
    """The arcs from node `tail` to node `head` that are shorter than the reach, and the column behind each head."""

    tail: Indices
    head: Indices
    length: Floats
    col: Indices


def refine(cost: Floats, partner_of: Indices, prices: Floats, deadline: Deadline) -> Refined | None:
    """Optimal prices for an assignment that is optimal, or a better assignment with its prices.

    Args:
        cost: (n, m) float64 to minimise, n <= m, +inf forbidden.
        partner_of: (n,) the column of every row.
        prices: (m,) finite, near the optimal ones: the further off, the more arcs are looked at.
    Returns:
        None when the deadline passed, arcs became too many, or exchanges did not end.
    """
    n, m = cost.shape
    partner_of = partner_of.copy()
    for _ in range(EXCHANGES):
        price = np.minimum(prices, 0) if n < m else prices.copy()
        free = np.setdiff1d(np.arange(m), partner_of)
        price[free] = 0
        reach = 2.0**-44 * max(np.abs(price).max(), np.abs(cost[np.arange(n), partner_of]).max())
        found = _distances(cost, partner_of, price, free, reach, deadline)
        if found is None:
            return None
        fall, cycle, arcs = found
        if not cycle:
            words = np.zeros((2, m))
            words[0] = price
            words[1, partner_of] = fall[:n] - fall[n]
            return Refined(partner_of, words)
        _exchange(cycle, arcs, partner_of)
    return None


def _distances(
    cost: Floats, partner_of: Indices, price: Floats, free: Indices, reach: float, deadline: Deadline
) -> tuple[Floats, list[int], _Arcs] | None:
    """(distance of every node, a negative cycle's arcs, all arcs), with as wide a reach as it takes."""
    while True:
        if deadline.expired():
            return None
        arcs = _arcs(cost, partner_of, price, free, reach)
        if arcs is None:
            return None
        fall, cycle = _shortest(arcs, len(partner_of) + 1, deadline)
        if cycle or np.abs(fall).max() <= reach:
            return fall, cycle, arcs
        if deadline.expired() or not np.isfinite(reach):
            return None
        reach = max(reach * WIDER, 2 * np.abs(fall).max())


def _arcs(cost: Floats, partner_of: Indices, price: Floats, free: Indices, reach: float) -> _Arcs | None:
    """Every arc that is no longer than `reach`; the free columns are node n, an arc to them takes the cheapest."""
    n, m = cost.shape
    node = np.full(m, n)
    node[partner_of] = np.arange(n)
    own_high, own_low = _difference(cost[np.arange(n), partner_of], price[partner_of])
    parts, total = [], 0
    step = max(1, ROWS_BYTES // (8 * m))
    for first in range(0, n, step):
        block = cost[first : first + step]
        rough = block - price - own_high[first : first + step, None]
        noise = 2.0**-50 * (np.abs(own_high[first : first + step, None]) + np.abs(price) + np.abs(block))
        rough[np.arange(len(block)), partner_of[first : first + step]] = np.inf
        i, j = np.nonzero(rough - np.where(np.isfinite(noise), noise, 0) <= reach)
        total += len(i)
        if total > MOST_ARCS:
            return None
        high, low = _difference(block[i, j], price[j])
        i += first
        sum_high, sum_low = _difference(high, own_high[i])
        parts.append((i, j, sum_high + (sum_low + (low - own_low[i]))))
    tail, col = (np.concatenate([part[k] for part in parts]).astype(np.int64) for k in (0, 1))
    head, length = node[col], np.concatenate([part[2] for part in parts])
    if len(free):  # the free node may hand on any column in use: its price must not rise above 0
        tail, head = np.append(tail, np.full(n, n)), np.append(head, np.arange(n))
        col, length = np.append(col, partner_of), np.append(length, -price[partner_of])
    return _Arcs(tail, head, length, col)


def _difference(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """x - y as a rounded difference and its error, exactly."""
    s = x - y
    t = s - x
    return s, (x - (s - t)) - (y + t)


def _shortest(arcs: _Arcs, n_nodes: int, deadline: Deadline) -> tuple[Floats, list[int]]:
    """Bellman and Ford's rounds from all nodes at distance 0: (distances, arcs of a negative cycle or none)."""
    fall, via = np.zeros(n_nodes), np.full(n_nodes, -1)
    order = np.argsort(arcs.head, kind="stable")
    tail, head, length = arcs.tail[order], arcs.head[order], arcs.length[order]
    starts = np.flatnonzero(np.r_[True, head[1:] != head[:-1]]) if len(head) else np.zeros(0, np.int64)
    for rounds in range(1, n_nodes + 2):
        if not len(head):
            break
        through = fall[tail] + length
        least = np.minimum.reduceat(through, starts)
        lower = least < fall[head[starts]]
        if not lower.any():
            break
        improved = np.flatnonzero(
            (through == np.repeat(least, np.diff(np.r_[starts, len(head)])))
            & np.repeat(lower, np.diff(np.r_[starts, len(head)]))
        )
        via[head[improved]] = order[improved]
        fall[head[starts][lower]] = least[lower]
        if rounds % LOOK_FOR_CYCLES == 0 or rounds > n_nodes:
            if cycle := _cycle(via, arcs.tail):
                return fall, cycle
            if deadline.expired():
                break
    return fall, []


def _cycle(via: Integers, tail: Indices) -> list[int]:
    """The arcs of a cycle among `via`, the last arc into each node; empty when there is none."""
    before = np.where(via >= 0, tail[via], -1)
    at = np.append(before, -1)  # the last entry stands for "no arc", and leads to itself
    for _ in range(len(via).bit_length() + 1):
        at = at[at]
    on = np.flatnonzero(at[:-1] >= 0)
    if not len(on):
        return []
    node = int(at[on[0]])
    cycle, first = [int(via[node])], node
    while (node := int(before[node])) != first:
        cycle.append(int(via[node]))
    return cycle


def _exchange(cycle: list[int], arcs: _Arcs, partner_of: Indices) -> None:
    """Every row of the cycle takes the column that its arc leads to."""
    n = len(partner_of)
    for arc in cycle:
        if arcs.tail[arc] < n:
            partner_of[arcs.tail[arc]] = arcs.col[arc]
    assert len(np.unique(partner_of)) == n
    assert (partner_of != UNASSIGNED).all()
