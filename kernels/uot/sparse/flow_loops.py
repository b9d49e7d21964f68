"""Flows on the stored entries, compiled by numba: along a forest, and along shortest augmenting paths."""

from typing import NamedTuple

import numpy as np

from kernels.compiling import njit
from kernels.problems.arrays import Floats, Indices, Indices32, Integers, Mask

UNSEEN = -1


class Residual(NamedTuple):
    """A flow on the entries under way, and the steps to each line; see `levels`.

    `indptr` and `indices` list the entries of each row; `turned`, `rows` and `places` those of each column, and which
    entry each is. `flow` is that of each entry; `rest_a`, `rest_b` what rows have left and columns lack.
    """

    indptr: Indices
    indices: Indices32
    turned: Indices
    rows: Indices32
    places: Indices
    flow: Integers
    rest_a: Integers
    rest_b: Integers
    of_rows: Indices
    of_columns: Indices


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
def levels(s: Residual) -> bool:
    """Steps from a row that has mass left to each line; True where a column that lacks some is reached.

    Entries lead from rows to columns, and back where they carry flow.
    """
    m, n = s.of_rows.size, s.of_columns.size
    s.of_rows[:] = UNSEEN
    s.of_columns[:] = UNSEEN
    queue, head, tail = np.empty(m + n, np.int64), 0, 0
    for i in range(m):
        if s.rest_a[i] > 0:
            s.of_rows[i] = 0
            queue[tail] = i
            tail += 1
    found = False
    while head < tail:
        vertex = queue[head]
        head += 1
        if vertex < m:
            for k in range(s.indptr[vertex], s.indptr[vertex + 1]):
                j = s.indices[k]
                if s.of_columns[j] == UNSEEN:
                    s.of_columns[j] = s.of_rows[vertex] + 1
                    found = found or s.rest_b[j] > 0
                    queue[tail] = m + j
                    tail += 1
        else:
            j = vertex - m
            for k in range(s.turned[j], s.turned[j + 1]):
                i = s.rows[k]
                if s.of_rows[i] == UNSEEN and s.flow[s.places[k]] > 0:
                    s.of_rows[i] = s.of_columns[j] + 1
                    queue[tail] = i
                    tail += 1
    return found


@njit(cache=True)
def blocking(s: Residual) -> None:
    """Send along paths whose every step goes one level up, until none is left (Dinic 1970); changes flow and rests."""
    m, n = s.of_rows.size, s.of_columns.size
    at_row, at_column = s.indptr[:m].copy(), s.turned[:n].copy()
    path, used = np.empty(m + n, np.int64), np.empty(m + n, np.int64)
    for source in range(m):
        while s.rest_a[source] > 0 and s.of_rows[source] == 0:
            path[0], length, amount = source, 1, 0
            while length:
                vertex = path[length - 1]
                stepped = False
                if vertex < m:
                    while at_row[vertex] < s.indptr[vertex + 1]:
                        k = at_row[vertex]
                        if s.of_columns[s.indices[k]] == s.of_rows[vertex] + 1:
                            used[length - 1] = k
                            path[length] = m + s.indices[k]
                            stepped = True
                            break
                        at_row[vertex] += 1
                else:
                    j = vertex - m
                    if s.rest_b[j] > 0:
                        amount = min(s.rest_a[source], s.rest_b[j])
                        for step in range(1, length - 1, 2):
                            amount = min(amount, s.flow[used[step]])
                        break
                    while at_column[j] < s.turned[j + 1]:
                        k = at_column[j]
                        if s.of_rows[s.rows[k]] == s.of_columns[j] + 1 and s.flow[s.places[k]] > 0:
                            used[length - 1] = s.places[k]
                            path[length] = s.rows[k]
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
                s.flow[used[step]] += amount if step % 2 == 0 else -amount
            s.rest_a[source] -= amount
            s.rest_b[path[length - 1] - m] -= amount
