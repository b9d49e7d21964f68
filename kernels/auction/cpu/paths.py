"""Assignment by shortest augmenting paths over short lists: the finish without epsilon, or within a given one.

    reduce_rows    free rows bid with epsilon 0 (augmenting row reduction), which assigns most of them
    augment_rows   for each row still free: Dijkstra over reduced costs to the nearest free column, raise prices, flip
                   the path. A row is scanned through its short list; the edges that the list leaves out wait in the
                   queue as one entry at the distance that `rest` proves they cannot beat, and the row is read whole
                   only when that entry comes up.

Invariant between calls: every assigned row holds an edge of its best net benefit, or within epsilon of it; prices never
fall, and a column without a row has the price it started with. In integers everything is exact; |price| <= n_cols *
span of benefits.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from kernels.auction.cpu.rows import Graph, Lists, reveal, two_best
from kernels.compiling import njit
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Amount, Amounts, Flags, Indices, Indices32, Integers

if TYPE_CHECKING:
    from kernels.auction.cpu.whole_paths import WholeSearch


class Matching(NamedTuple):
    """column_of and held (benefit of the pair) by row, row_of and prices by column."""

    column_of: Indices
    held: Amounts
    row_of: Indices
    prices: Amounts


@register_jitable(no_cfunc_wrapper=True)
def take(
    i: int, j: int, benefit: Amount, rise: Amount, matching: Matching, free: Indices, q: int, kept: int
) -> tuple[int, int]:
    """Pair row i with column j for `rise` more. The row that had it bids next if the price rose, else it waits.

    free[q:] bid in this pass, free[:kept] in the next; returns both places.
    """
    column_of, held, row_of, prices = matching
    owner = row_of[j]
    row_of[j], column_of[i], held[i] = i, j, benefit
    raises = prices[j] + rise > prices[j]
    if raises:
        prices[j] += rise
    if owner >= 0:
        column_of[owner] = UNASSIGNED
        if raises:
            q -= 1
            free[q] = owner
        else:
            free[kept] = owner
            kept += 1
    return q, kept


@njit(cache=True)
def reduce_rows(graph: Graph, lists: Lists, matching: Matching, free: Indices, most_bids: int) -> tuple[int, int]:
    """Let the rows in `free` bid with epsilon 0, in two passes; returns how many stay in `free`, and the bids made.

    A row whose best two edges tie takes the second when the first is taken, and whom it displaces waits.
    """
    row_of, prices = matching.row_of, matching.prices
    n_free, bids = free.size, 0
    for _ in range(2):
        kept, q = 0, 0
        while q < n_free:
            i = free[q]
            q += 1
            at, best, second_at, second = two_best(i, graph, prices, lists)
            bids += 1
            j = -1 if at < 0 else int(lists.columns[i, at])
            if j >= 0 and second_at >= 0 and best == second and row_of[j] >= 0:
                at = second_at
                j = int(lists.columns[i, at])
            if j < 0 or (row_of[j] >= 0 and second_at < 0) or bids > most_bids:
                free[kept] = i
                kept += 1
                continue
            rise = best - second if second_at >= 0 else 0
            q, kept = take(i, j, lists.benefits[i, at], rise, matching, free, q, kept)
        n_free = kept
    return n_free, bids


@register_jitable(no_cfunc_wrapper=True)
def push(keys: Amounts, codes: Integers, size: int, key: Amount, code: int) -> None:
    """Add an entry to a heap of `size`."""
    at = size
    while at > 0:
        parent = (at - 1) // 2
        if keys[parent] <= key:
            break
        keys[at], codes[at] = keys[parent], codes[parent]
        at = parent
    keys[at], codes[at] = key, code


@register_jitable(no_cfunc_wrapper=True)
def drop_root(keys: Amounts, codes: Integers, size: int) -> None:
    """Take the smallest entry out of a heap that has `size` entries from then on."""
    key, code, at = keys[size], codes[size], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at], codes[at] = keys[child], codes[child]
        at = child
    keys[at], codes[at] = key, code


class Search(NamedTuple):
    """Dijkstra's buffers, clean between searches: by column distance, parent row and its benefit, mark; a heap."""

    distance: Amounts
    parent: Indices
    benefit: Amounts
    mark: Flags
    order: Indices
    keys: Amounts
    codes: Integers


def clean_search(n_rows: int, n_cols: int, dtype: Any) -> Search:
    """Buffers for matchings of that shape, in int64 or float64."""
    heap = 2 * (n_rows + n_cols) + 16
    return Search(
        np.zeros(n_cols, dtype),
        np.zeros(n_cols, np.int64),
        np.zeros(n_cols, dtype),
        np.zeros(n_cols, np.int8),
        np.zeros(n_cols, np.int64),
        np.zeros(heap, dtype),
        np.zeros(heap, np.int64),
    )


@register_jitable(no_cfunc_wrapper=True)
def _relax(
    i: int,
    here: Amount,
    base: Amount,
    columns: Indices32,
    benefits: Amounts,
    graph: Graph,
    matching: Matching,
    search: Search,
    size: int,
    touched: int,
    nearest: int,
) -> tuple[int, int, int]:
    """Try the edges of row i against the labels and the nearest free column.

    An edge leads to `base` minus its net benefit, or to the row's own distance `here` where the row, kept within
    epsilon, does not hold its best.
    """
    dense = columns.size == 0
    for t in range(benefits.size):
        benefit = benefits[t]
        if benefit <= graph.lowest:
            continue
        j = t if dense else int(columns[t])
        length = max(here, base - (benefit - matching.prices[j]))
        if search.mark[j] == 2 or (nearest >= 0 and length >= search.distance[nearest]):
            continue
        if search.mark[j] == 0:
            search.mark[j] = 1
            search.order[touched] = j
            touched += 1
        elif length >= search.distance[j]:
            continue
        search.distance[j], search.parent[j], search.benefit[j] = length, i, benefit
        if matching.row_of[j] < 0:
            nearest = j
        else:
            if size == search.keys.size:
                size = compact(search, size)
            push(search.keys, search.codes, size, length, j)
            size += 1
    return size, touched, nearest


@register_jitable(no_cfunc_wrapper=True)
def compact(search: "Search | WholeSearch", size: int) -> int:
    """Rebuild a full heap without its stale entries; at most n_cols labels and n_rows readings are current."""
    kept = 0
    for at in range(size):
        key, code = search.keys[at], search.codes[at]
        if code < 0 or (search.mark[code] == 1 and search.distance[code] == key):
            push(search.keys, search.codes, kept, key, code)
            kept += 1
    return kept


@register_jitable(no_cfunc_wrapper=True)
def _search(root: int, graph: Graph, lists: Lists, matching: Matching, search: Search) -> tuple[int, int, int]:
    """Grow the tree of `root`. Returns the nearest free column (-1: none), labelled columns and rows scanned.

    Marks: 0 unseen, 1 labelled, 2 its row is in the tree.
    """
    column_of, held, row_of, prices = matching
    size, touched, nearest, scanned = 0, 0, -1, 1
    at_distance: Amount
    i, at_distance = root, graph.values.dtype.type(0)
    reading = False
    while True:
        profit = _best(i, graph, lists, prices) if i == root else held[i] - prices[column_of[i]]
        length = lists.length[i]
        base = at_distance + profit
        if reading:
            reveal(i, graph, prices, lists)
            start, stop = graph.indptr[i], graph.indptr[i + 1]
            columns = graph.indices[:0] if graph.dense else graph.indices[start:stop]
            benefits = graph.values[start:stop]
        else:
            columns, benefits = lists.columns[i, :length], lists.benefits[i, :length]
        size, touched, nearest = _relax(
            i, at_distance, base, columns, benefits, graph, matching, search, size, touched, nearest
        )
        if not reading and lists.rest[i] > graph.lowest:
            key = max(at_distance, base - lists.rest[i])
            if nearest < 0 or key < search.distance[nearest]:
                if size == search.keys.size:
                    size = compact(search, size)
                push(search.keys, search.codes, size, key, -1 - i)
                size += 1
        while True:
            if size == 0 or (nearest >= 0 and search.keys[0] >= search.distance[nearest]):
                return nearest, touched, scanned
            key, code = search.keys[0], search.codes[0]
            size -= 1
            drop_root(search.keys, search.codes, size)
            if code < 0:
                i, reading = -1 - code, True
                at_distance = _row_distance(i, root, matching, search)
                break
            if search.mark[code] == 1 and search.distance[code] == key:
                search.mark[code] = 2
                i, at_distance, reading = row_of[code], key, False
                scanned += 1
                break


@register_jitable(no_cfunc_wrapper=True)
def _row_distance(i: int, root: int, matching: Matching, search: Search) -> Amount:
    if i == root:
        return matching.prices.dtype.type(0)
    return search.distance[matching.column_of[i]]


@register_jitable(no_cfunc_wrapper=True)
def _best(i: int, graph: Graph, lists: Lists, prices: Amounts) -> Amount:
    return two_best(i, graph, prices, lists)[1]


@register_jitable(no_cfunc_wrapper=True)
def assign_along(root: int, nearest: int, touched: int, matching: Matching, search: "Search | WholeSearch") -> None:
    """Raise prices by what a search found, clear its marks, and assign the rows on the path `root` to `nearest`."""
    column_of, held, row_of, prices = matching
    reach = search.distance[nearest]
    for t in range(touched):
        j = search.order[t]
        if search.mark[j] == 2 and search.distance[j] < reach:
            prices[j] += reach - search.distance[j]
        search.mark[j] = 0
    j, i = nearest, -1
    while i != root:
        i = search.parent[j]
        back = column_of[i]
        row_of[j], column_of[i], held[i] = i, j, search.benefit[j]
        j = back


@njit(cache=True)
def augment_rows(
    graph: Graph, lists: Lists, matching: Matching, search: Search, free: Indices, first: int, most_scans: int
) -> tuple[int, int, int]:
    """Assign free[first], free[first + 1], ... until about `most_scans` rows were scanned.

    Returns the position reached, the rows scanned, and how many columns the last search labelled when it found no
    free column (their rows and free[position] then have too few columns), else -1.
    """
    scans = 0
    while first < free.size and scans < most_scans:
        root = free[first]
        nearest, touched, scanned = _search(root, graph, lists, matching, search)
        scans += scanned
        if nearest < 0:
            return first, scans, touched
        assign_along(root, nearest, touched, matching, search)
        first += 1
    return first, scans, -1
