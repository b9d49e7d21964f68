"""Branch and bound with the level-1 dual ascent at every node: proves optimality for small n; the twin of branch.cu.

A node fixes some facilities. Its bound is the ascent's, continued on what is left of the parent's prices; a node whose
bound exceeds the incumbent less one step is done. Otherwise one facility (or one location) is chosen and tried
everywhere it still can go. Locations that an automorphism of the distances maps to each other, while it leaves the
fixed ones in place, give equal subtrees: one of them is searched (likewise facilities and flows).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.problems.arrays import Bytes, Indices, Integers, Mask
from kernels.qap.bounds.rlt1 import DualAscent
from kernels.qap.exact import symmetry
from kernels.qap.exact.ascent import SWEEPS, ascend, pair_of
from kernels.qap.exact.log import LEAF, OPEN, TWIN, Record

SHARP = 1.0
"""Of the work below a child: 2 to this times its share of the room."""


@dataclass(frozen=True, eq=False)
class Node:
    """A subproblem: what is left of the costs over the facilities and locations that are left, and what is fixed.

    leaders: (m, m) int64; prices: (m (m - 1) / 2, m, m), block of rows i < k, entry [j, l]: the price of (i, j) and
    (k, l) together. A leader or price above `room` = limit - bound excludes what it stands for, in the whole subtree.
    """

    leaders: Integers
    prices: Integers
    bound: int
    facilities: Indices
    locations: Indices
    fixed: Integers
    record: Record = field(default_factory=Record)


def root(ascent: DualAscent) -> Node:
    """The node above all others, from the ascent's reduced costs: complementary entries become one price."""
    n = ascent.problem.n
    above, below = np.triu_indices(n, 1)
    submatrices = ascent.submatrices.astype(np.int64)
    prices = submatrices[above, :, below, :] + submatrices[below, :, above, :].transpose(0, 2, 1)
    everyone = np.arange(n)
    return Node(ascent.leaders.copy(), prices, ascent.total, everyone, everyone, np.full(n, -1))


@njit(cache=True, nogil=True)
def choose_line(leaders: Integers, room: int, facilities: Mask, locations: Mask) -> Any:
    """The row (0 <= k < m) or column (m <= k < 2 m) with the least work below it, as in branch.cu.

    facilities, locations: (m,), which of them a branch tries; one of each class of equals.
    """
    m = leaders.shape[0]
    best, least = 0, np.inf
    for line in range(2 * m):
        work = 0.0
        for a in range(m):
            x = leaders[line, a] if line < m else leaders[a, line - m]
            if x <= room and (locations[a] if line < m else facilities[a]):
                work += 2.0 ** (SHARP * (room - x) / (room + 1))
        if work < least:
            best, least = line, work
    return best


@njit(cache=True, nogil=True)
def fix(leaders: Integers, prices: Integers, i: int, j: int) -> Any:
    """The costs that are left once local facility i sits at local location j."""
    wide = leaders.shape[0]
    m = wide - 1
    new, rest = np.empty((m, m), np.int64), np.empty((m * (m - 1) // 2, m, m), np.int64)
    at = 0
    for a in range(m):
        k = a + (a >= i)
        of = pair_of(min(i, k), max(i, k), wide)
        for c in range(m):
            q = c + (c >= j)
            new[a, c] = leaders[k, q] + (prices[of, j, q] if i < k else prices[of, q, j])
        for b in range(a + 1, m):
            block = prices[pair_of(k, b + (b >= i), wide)]
            for c in range(m):
                for d in range(m):
                    rest[at, c, d] = block[c + (c >= j), d + (d >= j)]
            at += 1
    return new, rest


@register_jitable(no_cfunc_wrapper=True)
def _without(values: Integers, at: int) -> Integers:
    return np.concatenate((values[:at], values[at + 1 :]))


@njit(cache=True, nogil=True, inline="always")
def _note(log: Bytes, at: Integers, code: int) -> None:
    if at[0] < log.size:
        log[at[0]] = code
    at[0] += 1


@njit(nogil=True, cache=True)
def explore(
    leaders: Integers, prices: Integers, bound: int, facilities: Indices, locations: Indices, fixed: Integers,
    flow: Integers, distance: Integers, linear: Integers, incumbent: Integers, best: Integers, step: int, scale: int,
    counts: Integers, stop: Bytes, log: Bytes, at: Indices,
) -> int:  # fmt: skip
    """Search one subtree to its end; 1 when it did, 0 when `stop` cut it short.

    Args:
        incumbent: (1,) int64 the best objective of all threads; best: (n + 1,) this thread's own, objective first.
        counts: (1,) nodes. log: takes the subtree in preorder (log.py) from `at` (1,) on, and counts on beyond its end.
    """
    size = leaders.shape[0]
    counts[0] += 1
    if stop[0] != 0:
        _note(log, at, OPEN)
        return 0
    limit = (incumbent[0] - step) * scale
    if size <= 3:
        finish(facilities, locations, fixed, flow, distance, linear, incumbent, best)
        _note(log, at, LEAF)
        return 1
    room = limit - bound if bound > limit else ascend(leaders, prices, limit - bound, SWEEPS, stop)
    if room < 0 or stop[0] != 0:
        _note(log, at, LEAF if room < 0 else OPEN)
        return 1 if room < 0 else 0
    bound = limit - room
    every = np.ones(size, np.bool_)
    line, done = choose_line(leaders, room, every, every), 1
    _note(log, at, line)
    for a in range(size):
        i, j = (line, a) if line < size else (a, line - size)
        if leaders[i, j] > (incumbent[0] - step) * scale - bound:
            _note(log, at, LEAF)
            continue
        if stop[0] != 0:
            _note(log, at, OPEN)
            done = 0
            continue
        new, rest = fix(leaders, prices, i, j)
        down = fixed.copy()
        down[facilities[i]] = locations[j]
        done &= explore(
            new, rest, bound + leaders[i, j], _without(facilities, i), _without(locations, j), down, flow, distance,
            linear, incumbent, best, step, scale, counts, stop, log, at,
        )  # fmt: skip
    return done


@njit(cache=True, nogil=True)
def finish(
    facilities: Indices, locations: Indices, fixed: Integers, flow: Integers, distance: Integers, linear: Integers,
    incumbent: Integers, best: Integers,
) -> None:  # fmt: skip
    """Try every way to place the last three."""
    n, size = fixed.size, facilities.size
    p = fixed.copy()
    for code in range(6):
        first = code % size
        order = np.array([first, (first + 1 + code // 3) % 3, (first + 2 - code // 3) % 3])
        for a in range(size):
            p[facilities[a]] = locations[order[a]]
        cost = np.int64(0)
        for i in range(n):
            cost += linear[i, p[i]]
            for k in range(n):
                cost += flow[i, k] * distance[p[i], p[k]]
        if cost < best[0]:
            best[0] = cost
            for i in range(n):
                best[1 + i] = p[i]
        incumbent[0] = min(incumbent[0], cost)


def split(node: Node, limit: int, alike: tuple[list[Integers], list[Integers]], stop: Bytes) -> list[Node]:
    """The children of a node that may hold something better than `limit`, one of each class of equals.

    The node itself where `stop` came first. Its record becomes what the log is to say of it.
    """
    if node.bound <= limit and stop[0]:
        return [node]
    leaders, prices, room = node.leaders.copy(), node.prices.copy(), limit - node.bound
    if room >= 0:
        room = int(ascend(leaders, prices, room, SWEEPS, stop))
    if room < 0:
        node.record.code = LEAF
        return []
    if stop[0]:
        return [node]
    size, places = len(node.facilities), np.flatnonzero(node.fixed >= 0)
    held = places, node.fixed[places]
    candidates = node.facilities, node.locations
    firsts = [symmetry.representatives(candidates[side], alike[side], held[side]) for side in (0, 1)]
    first = [np.isin(candidates[side], list(firsts[side])) for side in (0, 1)]
    line = int(choose_line(leaders, room, first[0], first[1]))
    node.record.code = line
    side = int(line < size)
    children = []
    for a in range(size):
        record = Record(LEAF)
        node.record.children.append(record)
        i, j = (line, a) if side else (a, line - size)
        if leaders[i, j] > room:
            continue
        mine = int(candidates[side][a])
        g = None if first[side][a] else symmetry.mapping(firsts[side], mine, alike[side], held[side])
        if g is not None:
            record.code, record.twin = TWIN, (side, g.astype(np.uint8).tobytes())
            continue
        record.code = OPEN
        children.append(child(node, leaders, prices, limit - room, i, j, record))
    return children


def child(node: Node, leaders: Integers, prices: Integers, bound: int, i: int, j: int, record: Record) -> Node:
    """The node below with local facility i at local location j, from what an ascent left of the node's costs."""
    new, rest = fix(leaders, prices, i, j)
    fixed = node.fixed.copy()
    fixed[node.facilities[i]] = node.locations[j]
    left = np.delete(node.facilities, i), np.delete(node.locations, j)
    return Node(new, rest, bound + int(leaders[i, j]), *left, fixed, record)


def reopen(node: Node, limit: int, stop: Bytes) -> list[Node]:
    """The children of a branched node below which a log left something open; the node itself where `stop` came first.

    What the present limit closes is closed in the record.
    """
    leaders, prices, room = node.leaders.copy(), node.prices.copy(), limit - node.bound
    if room >= 0:
        room = int(ascend(leaders, prices, room, SWEEPS, stop))
    if room < 0:
        node.record.code, node.record.children = LEAF, []
        return []
    if stop[0]:
        return [node]
    line, size, children = node.record.code, len(node.facilities), []
    for a, record in enumerate(node.record.children):
        i, j = (line, a) if line < size else (a, line - size)
        if not record.open:
            continue
        if leaders[i, j] > room:
            record.code, record.children = LEAF, []
            continue
        children.append(child(node, leaders, prices, limit - room, i, j, record))
    return children
