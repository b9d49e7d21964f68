"""Shortest augmenting paths over whole rows of a sparse graph: `paths.py` without short lists, for rows of few edges.

Columns at the distance that the search has reached already wait on a stack, the others in a heap. So among ties, where
most of a tree costs nothing, the search runs straight on, and it ends at the first free column of that distance.

Invariant between searches: every assigned row holds an edge of its best net benefit, to rounding; prices never fall.
"""

from typing import NamedTuple

from numba.extending import register_jitable

from kernels.auction.cpu.paths import Matching, assign_along, compact, drop_root, push
from kernels.auction.cpu.rows import Graph
from kernels.auction.cpu.whole_rows import two_best_of
from kernels.compiling import njit
from kernels.problems.arrays import Amount, Amounts, Flags, Indices, Integers


class WholeSearch(NamedTuple):
    """Buffers, clean between searches: those of `paths.Search`, and columns at the distance reached."""

    distance: Amounts
    parent: Indices
    benefit: Amounts
    mark: Flags
    order: Indices
    keys: Amounts
    codes: Integers
    ready: Integers


@register_jitable(no_cfunc_wrapper=True)
def _relax(
    i: int, here: Amount, base: Amount, graph: Graph, matching: Matching, search: WholeSearch, state: Integers
) -> None:
    """Try the edges of row i; `state`: the heap's size, columns labelled, nearest free column, columns ready."""
    prices, row_of = matching.prices, matching.row_of
    size, touched, nearest, waiting = state[0], state[1], state[2], state[3]
    for t in range(graph.indptr[i], graph.indptr[i + 1]):
        benefit = graph.values[t]
        if benefit <= graph.lowest:
            continue
        j = graph.indices[t]
        length = max(here, base - (benefit - prices[j]))
        if nearest >= 0 and length >= search.distance[nearest]:
            continue
        if search.mark[j] == 0:
            search.mark[j] = 1
            search.order[touched] = j
            touched += 1
        elif length >= search.distance[j]:
            continue
        search.distance[j], search.parent[j], search.benefit[j] = length, i, benefit
        if row_of[j] < 0:
            nearest = j
            if length <= here:
                break
        elif length <= here:
            search.ready[waiting] = j
            waiting += 1
        else:
            if size == search.keys.size:
                size = compact(search, size)
            push(search.keys, search.codes, size, length, j)
            size += 1
    state[0], state[1], state[2], state[3] = size, touched, nearest, waiting


@register_jitable(no_cfunc_wrapper=True)
def _search(root: int, graph: Graph, matching: Matching, search: WholeSearch, state: Integers) -> int:
    """Grow the tree of `root` until it has its nearest free column, if there is one; rows scanned.

    Marks: 0 unseen, 1 labelled, 2 its row is in the tree.
    """
    _, held, row_of, prices = matching
    state[:] = 0
    state[2] = -1
    i, here, scanned = root, graph.values.dtype.type(0), 1
    base = two_best_of(root, graph, prices)[1]
    while True:
        _relax(i, here, base, graph, matching, search, state)
        nearest = state[2]
        if nearest >= 0 and search.distance[nearest] <= here:
            return scanned
        if state[3] > 0:
            state[3] -= 1
            j = search.ready[state[3]]
        else:
            j = -1
            while state[0] > 0 and j < 0:
                key, code = search.keys[0], search.codes[0]
                if nearest >= 0 and key >= search.distance[nearest]:
                    return scanned
                state[0] -= 1
                drop_root(search.keys, search.codes, state[0])
                if search.mark[code] == 1 and search.distance[code] == key:
                    j, here = code, key
            if j < 0:
                return scanned
        search.mark[j] = 2
        i = row_of[j]
        base = here + (held[i] - prices[j])
        scanned += 1


@njit(cache=True, nogil=True)
def augment_whole(
    graph: Graph, matching: Matching, search: WholeSearch, free: Indices, first: int, most_scans: int, state: Integers
) -> tuple[int, int, int]:
    """`augment_rows` of `paths.py`: assign free[first], free[first + 1], ... for about `most_scans` row scans.

    Returns the position reached, the rows scanned, and how many columns the last search labelled when it found no
    free column (their rows and free[position] then have too few columns), else -1.
    """
    scans = 0
    while first < free.size and scans < most_scans:
        root = free[first]
        scans += _search(root, graph, matching, search, state)
        touched, nearest = state[1], state[2]
        if nearest < 0:
            return first, scans, touched
        assign_along(root, nearest, touched, matching, search)
        first += 1
    return first, scans, -1
