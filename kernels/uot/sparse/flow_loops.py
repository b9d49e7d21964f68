"""Flows on the stored entries, compiled by numba: along a forest, and along shortest augmenting paths."""

import numpy as np
from numba import njit

from kernels.problems.arrays import Floats, Indices, Indices32, Integers, Mask

UNSEEN = -1


@njit(cache=True)
def spanning_forest(order: Indices, rows: Indices, columns: Indices32, m: int, n: int) -> Mask:
    """Which entries, taken in `order`, join two trees of what was taken before (Kruskal 1956)."""
    parent = np.arange(m + n)
    taken = np.zeros(order.size, np.bool_)
    left = m + n - 1
    for k in order:
        one, other = rows[k], columns[k] + m
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        while parent[other] != other:
            parent[other] = parent[parent[other]]
            other = parent[other]
        if one != other:
            parent[one] = other
            taken[k] = True
            left -= 1
            if left == 0:
                break
    return taken


@njit(cache=True)
def along_forest(taken: Indices, rows: Indices, columns: Indices32, m: int, missing: Floats) -> Floats:
    """What each entry taken must gain so that no line of a tree but its last lacks anything: from the leaves inwards.

    `missing` is that of the m rows, then of the columns; what is left of it stays in its place.
    """
    size = missing.size
    degree, link = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for place in range(taken.size):
        k = taken[place]
        for vertex in (rows[k], columns[k] + m):
            degree[vertex] += 1
            link[vertex] ^= place
    moved = np.zeros(taken.size)
    stack, height = np.empty(size, np.int64), 0
    for vertex in range(size):
        if degree[vertex] == 1:
            stack[height] = vertex
            height += 1
    while height:
        height -= 1
        vertex = stack[height]
        if degree[vertex] != 1:
            continue
        place = link[vertex]
        k = taken[place]
        other = rows[k] if vertex >= m else columns[k] + m
        moved[place] = missing[vertex]
        missing[other] -= missing[vertex]
        missing[vertex] = 0.0
        degree[vertex] = 0
        degree[other] -= 1
        link[other] ^= place
        if degree[other] == 1:
            stack[height] = other
            height += 1
    return moved


@njit(cache=True)
def levels(
    indptr: Indices,
    indices: Indices32,
    turned: Indices,
    rows: Indices32,
    places: Indices,
    flow: Integers,
    rest_a: Integers,
    rest_b: Integers,
    of_rows: Indices,
    of_columns: Indices,
) -> bool:
    """Steps from a row that has mass left to each line; True where a column that lacks some is reached.

    Entries lead from rows to columns, and back where they carry flow. `turned`, `rows` and `places` list the entries of
    each column.
    """
    m, n = of_rows.size, of_columns.size
    of_rows[:] = UNSEEN
    of_columns[:] = UNSEEN
    queue, head, tail = np.empty(m + n, np.int64), 0, 0
    for i in range(m):
        if rest_a[i] > 0:
            of_rows[i] = 0
            queue[tail] = i
            tail += 1
    found = False
    while head < tail:
        vertex = queue[head]
        head += 1
        if vertex < m:
            for k in range(indptr[vertex], indptr[vertex + 1]):
                j = indices[k]
                if of_columns[j] == UNSEEN:
                    of_columns[j] = of_rows[vertex] + 1
                    found = found or rest_b[j] > 0
                    queue[tail] = m + j
                    tail += 1
        else:
            j = vertex - m
            for k in range(turned[j], turned[j + 1]):
                i = rows[k]
                if of_rows[i] == UNSEEN and flow[places[k]] > 0:
                    of_rows[i] = of_columns[j] + 1
                    queue[tail] = i
                    tail += 1
    return found


@njit(cache=True)
def blocking(
    indptr: Indices,
    indices: Indices32,
    turned: Indices,
    rows: Indices32,
    places: Indices,
    flow: Integers,
    rest_a: Integers,
    rest_b: Integers,
    of_rows: Indices,
    of_columns: Indices,
) -> None:
    """Send along paths whose every step goes one level up, until none is left (Dinic 1970); changes flow and rests."""
    m, n = of_rows.size, of_columns.size
    at_row, at_column = indptr[:m].copy(), turned[:n].copy()
    path, used = np.empty(m + n, np.int64), np.empty(m + n, np.int64)
    for source in range(m):
        while rest_a[source] > 0 and of_rows[source] == 0:
            path[0], length, amount = source, 1, 0
            while length:
                vertex = path[length - 1]
                stepped = False
                if vertex < m:
                    while at_row[vertex] < indptr[vertex + 1]:
                        k = at_row[vertex]
                        if of_columns[indices[k]] == of_rows[vertex] + 1:
                            used[length - 1] = k
                            path[length] = m + indices[k]
                            stepped = True
                            break
                        at_row[vertex] += 1
                else:
                    j = vertex - m
                    if rest_b[j] > 0:
                        amount = min(rest_a[source], rest_b[j])
                        for step in range(1, length - 1, 2):
                            amount = min(amount, flow[used[step]])
                        break
                    while at_column[j] < turned[j + 1]:
                        k = at_column[j]
                        if of_rows[rows[k]] == of_columns[j] + 1 and flow[places[k]] > 0:
                            used[length - 1] = places[k]
                            path[length] = rows[k]
                            stepped = True
                            break
                        at_column[j] += 1
                if stepped:
                    length += 1
                    continue
                length -= 1  # a dead end: the line before it goes on with its next entry
                if length:
                    before = path[length - 1]
                    if before < m:
                        at_row[before] += 1
                    else:
                        at_column[before - m] += 1
            if not length:
                break
            for step in range(length - 1):
                flow[used[step]] += amount if step % 2 == 0 else -amount
            rest_a[source] -= amount
            rest_b[path[length - 1] - m] -= amount
