"""One search for a shortest augmenting path, and the exchange along it: for lists of assignments and for so many pairs.

Dijkstra's search over the columns. A column that is taken leads on to its row's entries, at reduced costs that are not
negative. The caller says where the paths begin, by the first distances and their rows.
"""

from kernels.lap.cpu.shortlist import inner, jit
from kernels.problems.arrays import Amount, Amounts, Indices, Mask


@inner
def nearest_free(
    cost: Amounts,
    inf: Amount,
    v: Amounts,
    row_of: Indices,
    distance: Amounts,
    parent: Indices,
    order: Indices,
    seen: Mask,
) -> tuple[int, int]:
    """(the nearest free column, the number of columns scanned before it, which `order` lists and `seen` marks).

    The column is -1 where none can be reached. Of columns at one distance a free one comes first. Columns that are
    marked from the start are passed over.
    """
    m, scanned = len(v), 0
    while True:
        nearest, near = inf, -1
        for j in range(m):
            if not seen[j] and (distance[j] < nearest or (distance[j] == nearest and near >= 0 and row_of[j] < 0)):
                nearest, near = distance[j], j
        if near < 0 or row_of[near] < 0:
            return near, scanned
        seen[near] = True
        order[scanned] = near
        scanned += 1
        i = row_of[near]
        own = cost[i, near] - v[near]
        for j in range(m):
            if not seen[j] and cost[i, j] < inf:
                length = max(nearest, nearest + ((cost[i, j] - v[j]) - own))
                if length < distance[j]:
                    distance[j], parent[j] = length, i


@jit
def exchange(parent: Indices, col_of: Indices, row_of: Indices, end: int) -> int:
    """Pair along the path that ends at column `end`, back to its first row, which had no column; that row."""
    j = end
    while True:
        i = parent[j]
        row_of[j] = i
        before = col_of[i]
        col_of[i] = j
        if before < 0:
            return int(i)
        j = before
