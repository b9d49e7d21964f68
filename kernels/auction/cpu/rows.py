"""Rows on the CPU: a benefit graph read row by row, and a short list of every row's best edges.

Prices never fall during a solve, so a net benefit (benefit minus price) never rises. A row therefore needs to be
read whole only now and then: its short list keeps the best net benefits of that reading, and `rest` the best one
left out, which bounds every edge that is not listed from then on.
"""

from typing import NamedTuple, cast

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.problems import Csr
from kernels.problems.arrays import Amount, Amounts, Costs, Indices, Indices32, Integers32, untouched

INT_LOWEST = -(2**62)
"""Benefit of a forbidden entry in int64 arithmetic; in float64 it is -inf."""

LIST_LENGTH = 24
"""Edges in a short list: 16 to 32 measure alike, 8 rereads rows too often."""
WHOLE_LENGTH = 48
"""Where no row has more edges, the lists hold whole rows."""


class Graph(NamedTuple):
    """Benefits by rows. `dense` says that `indices` is not used and that row i is values[i * n_cols :]."""

    indptr: Indices
    indices: Indices32
    values: Amounts
    dense: bool
    n_cols: int
    lowest: Amount


class Lists(NamedTuple):
    """Short lists: (n_rows, width) columns and benefits, (n_rows,) length in use and bound on the rest."""

    columns: Indices32
    benefits: Amounts
    length: Integers32
    rest: Amounts


def graph_of(weights: Costs | Csr, scale: int = 1) -> Graph:
    """`weights` in int64 (times `scale`) or float64, as the kernels of this folder read them."""
    if isinstance(weights, Csr):
        indptr, indices, values, n_cols = weights.indptr, weights.indices, weights.values, weights.shape[1]
    else:
        n_cols = weights.shape[1]
        indptr = np.arange(weights.shape[0] + 1, dtype=np.int64) * n_cols
        indices, values = np.empty(0, np.int32), weights.reshape(-1)
    exact = values.dtype.kind == "i"
    values = values.astype(np.int64 if exact else np.float64, copy=False)
    if scale != 1:
        values = values * values.dtype.type(scale)
    lowest = INT_LOWEST if exact else -np.inf
    return Graph(
        untouched(np.ascontiguousarray(indptr, np.int64)),
        untouched(np.ascontiguousarray(indices, np.int32)),
        untouched(np.ascontiguousarray(values)),
        not isinstance(weights, Csr),
        n_cols,
        cast(Amount, values.dtype.type(lowest)),
    )


def empty_lists(graph: Graph) -> Lists:
    """Short lists that hold nothing yet; `fill_lists` fills them."""
    n_rows, dtype = graph.indptr.size - 1, graph.values.dtype
    longest = int(np.diff(graph.indptr).max())
    width = max(2, longest) if longest <= WHOLE_LENGTH else LIST_LENGTH
    return Lists(
        np.empty((n_rows, width), np.int32),
        np.empty((n_rows, width), dtype),
        np.zeros(n_rows, np.int32),
        np.full(n_rows, graph.lowest, dtype),
    )


@njit(cache=True)
def seat_rows(graph: Graph, column_of: Indices, held: Amounts, row_of: Indices) -> None:
    """Fill in held and row_of for an earlier answer's column_of; a pair that is no edge any more is parted."""
    for i in range(column_of.size):
        j = column_of[i]
        if j < 0:
            continue
        start, end = graph.indptr[i], graph.indptr[i + 1]
        at = start + (j if graph.dense else np.searchsorted(graph.indices[start:end], j))
        if at < end and (graph.dense or graph.indices[at] == j) and graph.values[at] > graph.lowest:
            held[i], row_of[j] = graph.values[at], i
        else:
            column_of[i] = -1


@register_jitable(no_cfunc_wrapper=True)
def _worse(net: Amount, column: int, other_net: Amount, other_column: int) -> bool | np.bool_:
    return net < other_net or (net == other_net and column > other_column)


@register_jitable(no_cfunc_wrapper=True)
def reveal(i: int, graph: Graph, prices: Amounts, lists: Lists) -> None:
    """Read row i whole and list its best net benefits, of equals those with the lowest columns.

    The list is a binary heap with its worst entry at the root, so that one comparison turns an edge away.
    """
    columns, benefits = lists.columns[i], lists.benefits[i]
    capacity, size, rest = columns.size, 0, graph.lowest
    nets = np.empty(capacity, graph.values.dtype)
    start = graph.indptr[i]
    for t in range(start, graph.indptr[i + 1]):
        benefit = graph.values[t]
        if benefit <= graph.lowest:
            continue
        j = int(t - start) if graph.dense else int(graph.indices[t])
        net = benefit - prices[j]
        if size == capacity:
            if not _worse(nets[0], columns[0], net, j):
                rest = max(rest, net)
                continue
            rest = max(rest, nets[0])
            at = 0
            while True:
                child = 2 * at + 1
                if child >= capacity:
                    break
                if child + 1 < capacity and _worse(nets[child + 1], columns[child + 1], nets[child], columns[child]):
                    child += 1
                if not _worse(nets[child], columns[child], net, j):
                    break
                nets[at], columns[at], benefits[at] = nets[child], columns[child], benefits[child]
                at = child
        else:
            at = size
            size += 1
            while at > 0:
                parent = (at - 1) // 2
                if not _worse(net, j, nets[parent], columns[parent]):
                    break
                nets[at], columns[at], benefits[at] = nets[parent], columns[parent], benefits[parent]
                at = parent
        nets[at], columns[at], benefits[at] = net, j, benefit
    lists.length[i], lists.rest[i] = size, rest


@njit(cache=True)
def fill_lists(first: int, last: int, graph: Graph, prices: Amounts, lists: Lists) -> None:
    """Reveal rows first to last - 1."""
    for i in range(first, last):
        reveal(i, graph, prices, lists)


@njit(cache=True)
def bound_rows(first: int, last: int, graph: Graph, prices: Amounts, lists: Lists) -> None:
    """Empty the lists of rows first to last - 1; `rest` alone bounds their edges until they are revealed."""
    for i in range(first, last):
        start, best = graph.indptr[i], graph.lowest
        for t in range(start, graph.indptr[i + 1]):
            if graph.values[t] > graph.lowest:
                best = max(best, graph.values[t] - prices[t - start if graph.dense else graph.indices[t]])
        lists.length[i], lists.rest[i] = 0, best


@register_jitable(no_cfunc_wrapper=True)
def _listed_two_best(i: int, graph: Graph, prices: Amounts, lists: Lists) -> tuple[int, Amount, int, Amount]:
    best_at, second_at = -1, -1
    best, second = graph.lowest, graph.lowest
    best_column, second_column = graph.n_cols, graph.n_cols
    for t in range(lists.length[i]):
        j = int(lists.columns[i, t])
        net = lists.benefits[i, t] - prices[j]
        if best_at < 0 or _worse(best, best_column, net, j):
            second_at, second, second_column = best_at, best, best_column
            best_at, best, best_column = t, net, j
        elif second_at < 0 or _worse(second, second_column, net, j):
            second_at, second, second_column = t, net, j
    return best_at, best, second_at, second


@register_jitable(no_cfunc_wrapper=True)
def two_best(i: int, graph: Graph, prices: Amounts, lists: Lists) -> tuple[int, Amount, int, Amount]:
    """Positions in row i's list, and net benefits, of its best and second best edge; -1 and `lowest` for none.

    Equals go to the lowest column, so an edge that ties with `rest` sends us back to the whole row.
    """
    found = _listed_two_best(i, graph, prices, lists)
    rest = lists.rest[i]
    if rest > graph.lowest and (found[1] <= rest or found[3] < rest):
        reveal(i, graph, prices, lists)
        found = _listed_two_best(i, graph, prices, lists)
    return found
