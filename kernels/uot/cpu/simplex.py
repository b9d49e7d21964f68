"""Network simplex for transport between rows and columns, in whole numbers: strongly feasible trees, block pricing.

Nodes are rows 0..m-1, columns m..m+n-1 and a root. A tree joins them; each node but the root knows its parent and the
flow of the arc between them. The arc of a row leads up, that of a column down, from its row to it. An arc between a
node and the root leads up and carries nothing, ever: nothing leads out of the root.

What always holds between pivots: row sums are a, column sums b; u_i + v_j = c_ij on every arc of the tree; an arc
without flow leads up (the tree is strongly feasible). So no pivot without gain is repeated, and the search ends
(Cunningham, A network simplex method, Mathematical Programming 11, 1976). Forbidden entries cost (1, 0) and others
(0, c), compared in this order: `hu`, `hv` are the first parts of potentials.
"""

from typing import Any

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.problems.arrays import Indices, Integers, Mask

jit = njit(cache=True, nogil=True)
inner = register_jitable(no_cfunc_wrapper=True)
NOTHING = -1


class SpanningTree:
    """The state of a search, as arrays that the loops below change."""

    def __init__(self, cost: Integers, forbidden: Mask, a: Integers, b: Integers) -> None:
        m, n = cost.shape
        nodes = m + n + 1
        self.cost, self.forbidden, self.any_forbidden = cost, forbidden, bool(forbidden.any())
        self.parent, self.first, self.after, self.before = (np.full(nodes, NOTHING, np.int64) for _ in range(4))
        self.flow, self.depth = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        self.potential, self.high = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        self.next_row = 0
        arcs = _greedy(cost, forbidden, a, b)
        self._link(*arcs)

    def _link(self, rows: Indices, columns: Indices, flows: Integers) -> None:
        links = (self.parent, self.first, self.after, self.before, self.flow, self.depth, self.potential, self.high)
        _grow(self.cost, self.forbidden, rows, columns, flows, *links)

    def search(self, most: int) -> tuple[int, bool]:
        """Up to `most` pivots: how many there were, and whether none is left."""
        links = (self.parent, self.first, self.after, self.before, self.flow, self.depth, self.potential, self.high)
        done, self.next_row = _search(self.cost, self.forbidden, self.any_forbidden, most, self.next_row, *links)
        return int(done), bool(done < most)

    def arcs(self) -> tuple[Indices, Indices, Integers]:
        """Rows, columns and flows of the tree's arcs, those without flow among them."""
        m, n = self.cost.shape
        nodes = np.flatnonzero((self.parent[:-1] >= 0) & (self.parent[:-1] < m + n))
        other = self.parent[nodes]
        return np.minimum(nodes, other), np.maximum(nodes, other) - m, self.flow[nodes]


@jit
def _greedy(cost: Any, forbidden: Any, a: Any, b: Any) -> Any:
    """A plan without cycles: each row fills its cheapest columns, beside their least costs; forbidden ones last."""
    m, n = cost.shape
    left_a, left_b = a.copy(), b.copy()
    least = np.empty(n, np.int64)
    for j in range(n):
        least[j] = np.iinfo(np.int64).max
    for i in range(m):
        for j in range(n):
            if not forbidden[i, j] and cost[i, j] < least[j]:
                least[j] = cost[i, j]
    rows, columns, flows = np.empty(m + n, np.int64), np.empty(m + n, np.int64), np.empty(m + n, np.int64)
    count = 0
    for barred in (False, True):
        for i in range(m):
            while left_a[i] > 0:
                best = -1
                for j in range(n):
                    if left_b[j] <= 0 or forbidden[i, j] != barred:
                        continue
                    if best < 0 or (not barred and cost[i, j] - least[j] < cost[i, best] - least[best]):
                        best = j
                if best < 0:
                    break
                moved = min(left_a[i], left_b[best])
                left_a[i] -= moved
                left_b[best] -= moved
                rows[count], columns[count], flows[count] = i, best, moved
                count += 1
    return rows[:count], columns[:count], flows[:count]


@jit
def _grow(
    cost: Any, forbidden: Any, rows: Any, columns: Any, flows: Any,
    parent: Any, first: Any, after: Any, before: Any, flow: Any, depth: Any, potential: Any, high: Any,
) -> Any:  # fmt: skip
    """The tree of a plan without cycles: every part of it hangs from the root by one of its nodes."""
    m, n = cost.shape
    root = m + n
    degree = np.zeros(m + n + 1, np.int64)
    for k in range(rows.size):
        degree[rows[k] + 1] += 1
        degree[m + columns[k] + 1] += 1
    starts = np.cumsum(degree)
    place = starts.copy()
    arcs = np.empty(2 * rows.size, np.int64)
    for k in range(rows.size):
        arcs[place[rows[k]]] = k
        place[rows[k]] += 1
        arcs[place[m + columns[k]]] = k
        place[m + columns[k]] += 1
    stack = np.empty(m + n + 1, np.int64)
    for seed in range(m + n):
        if parent[seed] >= 0:
            continue
        _attach(seed, root, parent, first, after, before)
        depth[seed] = 1
        stack[0], size = seed, 1
        while size > 0:
            size -= 1
            node = stack[size]
            for place_of in range(starts[node], starts[node + 1]):
                k = arcs[place_of]
                i, j = rows[k], m + columns[k]
                other = j if node == i else i
                if other == parent[node]:
                    continue
                _attach(other, node, parent, first, after, before)
                flow[other] = flows[k]
                depth[other] = depth[node] + 1
                barred = forbidden[i, j - m]
                potential[other] = (0 if barred else cost[i, j - m]) - potential[node]
                high[other] = (1 if barred else 0) - high[node]
                stack[size] = other
                size += 1


@inner
def _attach(node: Any, to: Any, parent: Any, first: Any, after: Any, before: Any) -> Any:
    parent[node] = to
    head = first[to]
    after[node], before[node] = head, NOTHING
    if head >= 0:
        before[head] = node
    first[to] = node


@inner
def _detach(node: Any, parent: Any, first: Any, after: Any, before: Any) -> Any:
    ahead, behind = before[node], after[node]
    if ahead >= 0:
        after[ahead] = behind
    else:
        first[parent[node]] = behind
    if behind >= 0:
        before[behind] = ahead


@inner
def _best_of_row(cost: Any, forbidden: Any, any_forbidden: Any, i: Any, potential: Any, high: Any) -> Any:
    """The column of the row's most negative reduced cost, or -1; and the two parts of that cost."""
    m, n = cost.shape
    best, best_high, best_low = -1, 0, 0
    u, hu = potential[i], high[i]
    if not any_forbidden:
        for j in range(n):
            low = cost[i, j] - u - potential[m + j]
            if low < best_low:
                best, best_low = j, low
        return best, best_high, best_low
    for j in range(n):
        if forbidden[i, j]:
            continue
        up, low = -hu - high[m + j], cost[i, j] - u - potential[m + j]
        if up < best_high or (up == best_high and low < best_low):
            best, best_high, best_low = j, up, low
    return best, best_high, best_low


@jit
def _search(
    cost: Any, forbidden: Any, any_forbidden: Any, most: Any, next_row: Any,
    parent: Any, first: Any, after: Any, before: Any, flow: Any, depth: Any, potential: Any, high: Any,
) -> Any:  # fmt: skip
    """Pivots until none gains or there were `most`; a block of pricing is as many rows as hold sqrt(m n) entries."""
    m, n = cost.shape
    stack = np.empty(m + n + 1, np.int64)
    block = max(1, int(np.sqrt(m * n) / n))
    done, idle = 0, 0
    while done < most and idle < m:
        row, column, gain_high, gain = -1, -1, 0, 0
        for _ in range(block):
            j, up, low = _best_of_row(cost, forbidden, any_forbidden, next_row, potential, high)
            if j >= 0 and (up < gain_high or (up == gain_high and low < gain)):
                row, column, gain_high, gain = next_row, j, up, low
            next_row = next_row + 1 if next_row + 1 < m else 0
        if row < 0:
            idle += block
            continue
        idle = 0
        done += 1
        _pivot(row, m + column, gain, gain_high, stack, m, parent, first, after, before, flow, depth, potential, high)
    return done, next_row


@inner
def _pivot(
    i: Any, j: Any, gain: Any, gain_high: Any, stack: Any, m: Any,
    parent: Any, first: Any, after: Any, before: Any, flow: Any, depth: Any, potential: Any, high: Any,
) -> Any:  # fmt: skip
    """The arc from i to j enters: flow goes round its cycle, and the last arc to block it, from the top, leaves."""
    root = parent.size - 1
    moved, leaves, of_row = np.iinfo(np.int64).max, -1, True
    p, q = i, j
    while p != q:
        if depth[p] >= depth[q]:  # down the cycle's side of i: an arc that leads up loses
            if (p < m or parent[p] == root) and flow[p] < moved:
                moved, leaves, of_row = flow[p], p, True
            p = parent[p]
        else:
            q = parent[q]
    top = p
    q = j
    while q != top:  # up the side of j: an arc that leads down loses
        if q >= m and parent[q] != root and flow[q] <= moved:
            moved, leaves, of_row = flow[q], q, False
        q = parent[q]
    if moved > 0:
        p, q = i, j
        while p != top:
            flow[p] += -moved if (p < m or parent[p] == root) else moved
            p = parent[p]
        while q != top:
            flow[q] += -moved if (q >= m and parent[q] != root) else moved
            q = parent[q]
    node, above = (i, j) if of_row else (j, i)
    carried = moved
    while True:  # the part below the arc that leaves hangs from the arc that enters: its path up is turned round
        old, of_arc = parent[node], flow[node]
        _detach(node, parent, first, after, before)
        _attach(node, above, parent, first, after, before)
        flow[node] = carried
        if node == leaves:
            break
        above, carried, node = node, of_arc, old
    _lift(i if of_row else j, gain, gain_high, stack, m, parent, first, after, depth, potential, high)


@inner
def _lift(
    start: Any, gain: Any, gain_high: Any, stack: Any, m: Any,
    parent: Any, first: Any, after: Any, depth: Any, potential: Any, high: Any,
) -> Any:  # fmt: skip
    """Depths and potentials of the part of the tree below `start`: its own side gains, the other loses."""
    stack[0], size = start, 1
    side = start < m
    while size > 0:
        size -= 1
        node = stack[size]
        depth[node] = depth[parent[node]] + 1
        if (node < m) == side:
            potential[node] += gain
            high[node] += gain_high
        else:
            potential[node] -= gain
            high[node] -= gain_high
        child = first[node]
        while child >= 0:
            stack[size] = child
            size += 1
            child = after[child]
