"""Branch and bound with the level-1 dual ascent at every node: proves optimality for small n.

A node fixes some facilities. Its bound is the ascent's, continued on what is left of the parent's reduced costs; a
node whose bound exceeds the incumbent less one step is done. Otherwise one facility (or one location) is chosen and
tried everywhere it still can go. Locations that an automorphism of the distances maps to each other, while it
leaves the fixed ones in place, give equal subtrees: one of them is searched (likewise facilities and flows).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from kernels.problems import Array, QuadraticAssignment
from kernels.qap.rlt1 import sweep

AUTOMORPHISMS = 2000
STEPS = 200_000
PATIENCE = 3
"""Sweeps like the last one that a node may still need; had16 falls with 3 in 122 thousand nodes, and longer with 6."""


@dataclass(frozen=True, eq=False)
class Node:
    """A subproblem: reduced costs over the facilities and locations that are left, and what is fixed."""

    leaders: Array
    submatrices: Array
    bound: int
    facilities: Array
    locations: Array
    fixed: Array


@njit(cache=True, nogil=True)
def ascend(leaders: Array, submatrices: Array, bound: int, limit: int, sweeps: int, order: Array) -> Any:
    """Sweep until the bound passes `limit`, at most `sweeps` times, or until the gap is beyond PATIENCE sweeps."""
    none = np.empty((0, 0, 0), np.int64)
    for _ in range(sweeps):
        for a in range(order.size - 1, 0, -1):
            b = np.random.randint(0, a + 1)
            order[a], order[b] = order[b], order[a]
        gain = sweep(leaders, submatrices, none, none, order, True)
        bound += gain
        if bound > limit or gain * PATIENCE < limit - bound:
            break
    return bound


@njit(cache=True, nogil=True)
def choose_line(leaders: Array, room: int) -> Any:
    """The row (0 <= k < m) or column (m <= k < 2 m) with the fewest pairs within `room`; ties to the greatest sum."""
    size = leaders.shape[0]
    best, fewest, greatest = 0, size + 1, np.int64(-1)
    for line in range(2 * size):
        count, total = 0, np.int64(0)
        for a in range(size):
            x = leaders[line, a] if line < size else leaders[a, line - size]
            if x <= room:
                count += 1
                total += x
            else:
                total += room
        if count < fewest or (count == fewest and total > greatest):
            best, fewest, greatest = line, count, total
    return best


@njit(cache=True, nogil=True)
def fix(leaders: Array, submatrices: Array, i: int, j: int) -> Any:
    """The costs that are left once local facility i sits at local location j."""
    less = leaders.shape[0] - 1
    new = np.empty((less, less), np.int64)
    rest = np.empty((less, less, less, less), submatrices.dtype)
    for a in range(less):
        k = a + (a >= i)
        for b in range(less):
            m = b + (b >= j)
            new[a, b] = leaders[k, m] + submatrices[i, j, k, m] + submatrices[k, m, i, j]
            for c in range(less):
                p = c + (c >= i)
                for d in range(j):
                    rest[a, b, c, d] = submatrices[k, m, p, d]
                for d in range(j, less):
                    rest[a, b, c, d] = submatrices[k, m, p, d + 1]
    return new, rest


@njit(cache=True, nogil=True)
def _without(values: Array, at: int) -> Array:
    return np.concatenate((values[:at], values[at + 1 :]))


@njit(nogil=True, cache=True)
def explore(
    leaders: Array, submatrices: Array, bound: int, facilities: Array, locations: Array, fixed: Array,
    flow: Array, distance: Array, linear: Array, incumbent: Array, best: Array, step: int, scale: int, sweeps: int,
    counts: Array, stop: Array,
) -> int:  # fmt: skip
    """Search one subtree to its end; 1 when it did, 0 when `stop` cut it short.

    Args:
        incumbent: (1,) int64 the best objective of all threads; best: (n + 1,) this thread's own, objective first.
        counts: (1,) nodes, for whoever watches.
    """
    size = leaders.shape[0]
    counts[0] += 1
    if stop[0] != 0:
        return 0
    if size <= 3:
        _finish(facilities, locations, fixed, flow, distance, linear, incumbent, best)
        return 1
    limit = (incumbent[0] - step) * scale
    bound = ascend(leaders, submatrices, bound, limit, sweeps, np.arange(size * size))
    room = limit - bound
    if room < 0:
        return 1
    line = choose_line(leaders, room)
    costs = leaders[line].copy() if line < size else leaders[:, line - size].copy()
    for a in np.argsort(costs):
        if costs[a] > (incumbent[0] - step) * scale - bound:
            break
        i, j = (line, a) if line < size else (a, line - size)
        new, rest = fix(leaders, submatrices, i, j)
        down = fixed.copy()
        down[facilities[i]] = locations[j]
        done = explore(
            new, rest, bound + costs[a], _without(facilities, i), _without(locations, j), down, flow, distance, linear,
            incumbent, best, step, scale, sweeps, counts, stop,
        )  # fmt: skip
        if done == 0:
            return 0
    return 1


@njit(cache=True, nogil=True)
def _finish(
    facilities: Array, locations: Array, fixed: Array, flow: Array, distance: Array, linear: Array,
    incumbent: Array, best: Array,
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
            best[1:] = p
        incumbent[0] = min(incumbent[0], cost)


def split(node: Node, limit: int, sweeps: int, alike: tuple[list[Array], list[Array]]) -> list[Node]:
    """The children of a node that may hold something better than `limit`, one of each class of equals."""
    leaders, submatrices = node.leaders.copy(), node.submatrices.copy()
    size = len(node.facilities)
    bound = int(ascend(leaders, submatrices, node.bound, limit, sweeps, np.arange(size * size)))
    if bound > limit:
        return []
    line = int(choose_line(leaders, limit - bound))
    places = np.flatnonzero(node.fixed >= 0)
    if line < size:
        open_to = _representatives(node.locations, alike[1], node.fixed[places])
        pairs = [(line, b) for b in range(size) if node.locations[b] in open_to]
    else:
        open_to = _representatives(node.facilities, alike[0], places)
        pairs = [(a, line - size) for a in range(size) if node.facilities[a] in open_to]
    children = []
    for i, j in pairs:
        if bound + leaders[i, j] <= limit:
            new, rest = fix(leaders, submatrices, i, j)
            fixed = node.fixed.copy()
            fixed[node.facilities[i]] = node.locations[j]
            left = np.delete(node.facilities, i), np.delete(node.locations, j)
            children.append(Node(new, rest, bound + int(leaders[i, j]), *left, fixed))
    return children


def _representatives(candidates: Array, automorphisms: list[Array], fixed: Array) -> set[int]:
    """The least of each class of candidates under the automorphisms that leave every fixed index in place."""
    least = {int(c): int(c) for c in candidates}
    for g in automorphisms:
        if (g[fixed] == fixed).all():
            for c in candidates:
                a, b = least[int(c)], least[int(g[c])]
                if a != b:
                    low, high = min(a, b), max(a, b)
                    least = {key: low if value == high else value for key, value in least.items()}
    return set(least.values())


def automorphisms(problem: QuadraticAssignment) -> tuple[list[Array], list[Array]]:
    """Permutations of facilities, and of locations, that change no objective; at most AUTOMORPHISMS of each."""
    linear = np.zeros_like(problem.flow) if problem.linear is None else problem.linear
    if problem.forbidden is not None:
        linear = np.where(problem.forbidden, np.abs(linear).max() + 1, linear)
    return _group(problem.flow, linear), _group(problem.distance, linear.T)


def _group(matrix: Array, linear: Array) -> list[Array]:
    """Permutations g with matrix[g, g] = matrix and linear[g] = linear, by backtracking over equal signatures."""
    n = matrix.shape[0]
    marks = [
        (matrix[i, i], tuple(np.sort(matrix[i])), tuple(np.sort(matrix[:, i])), tuple(linear[i])) for i in range(n)
    ]
    found: list[Array] = []
    image = np.full(n, -1)
    steps = 0

    def extend(depth: int) -> None:
        nonlocal steps
        if depth == n:
            found.append(image.copy())
            return
        for c in range(n):
            steps += 1
            if steps > STEPS or len(found) >= AUTOMORPHISMS:
                return
            if c in image[:depth] or marks[c] != marks[depth]:
                continue
            seen = image[:depth]
            if (matrix[c, seen] == matrix[depth, :depth]).all() and (matrix[seen, c] == matrix[:depth, depth]).all():
                image[depth] = c
                extend(depth + 1)
                image[depth] = -1

    extend(0)
    return found
