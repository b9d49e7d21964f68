"""The Jacobi auction on the CPU: Bertsekas' rounds, with a queue of unassigned rows and one of columns with a bid.

    while rows are queued
        bid      every queued row offers best - second best + epsilon for its best column
        award    every column with a bid goes to the highest one, of equals to the lowest row, at the raised price;
                 rows that lost their column, or the round, are queued

Rows are the persons, columns the objects of the papers on auctions.

Invariant between rounds (epsilon-complementary slackness): a row with a column is within epsilon of its best net
benefit; prices never fall; a column once sold stays sold.
"""

import numpy as np
from numba.extending import register_jitable

from kernels.auction.cpu.paths import Matching
from kernels.auction.cpu.rows import Graph, Lists, two_best
from kernels.compiling import njit
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Amount, Amounts, Indices, Integers, Records


@register_jitable(no_cfunc_wrapper=True)
def bid(
    queue: Indices,
    n_queue: int,
    epsilon: Amount,
    alone: Amount,
    graph: Graph,
    lists: Lists,
    prices: Amounts,
    offers: Records,
) -> None:
    """Write to offers[q] the column, the benefit and the raise of row queue[q].

    A row with one edge alone has no second best; it raises by `alone`, the span of all benefits.
    """
    for q in range(n_queue):
        at, best, second_at, second = two_best(queue[q], graph, prices, lists)
        offers[q].column = UNASSIGNED if at < 0 else lists.columns[queue[q], at]
        if at >= 0:
            offers[q].benefit = lists.benefits[queue[q], at]
            offers[q].rise = (best - second if second_at >= 0 else alone) + epsilon


@register_jitable(no_cfunc_wrapper=True)
def award(queue: Indices, n_queue: int, offers: Records, winner: Integers, sold: Integers, matching: Matching) -> int:
    """Sell every column that got a bid and rebuild the queue in place; returns its new length.

    `winner` holds, by column, the position in the queue of its highest bid so far; -1 everywhere between rounds.
    """
    column_of, held, row_of, prices = matching
    n_sold = 0
    for q in range(n_queue):
        j = offers[q].column
        if j < 0:
            continue
        w = winner[j]
        if w < 0:
            sold[n_sold] = j
            n_sold += 1
        if w < 0 or offers[q].rise > offers[w].rise or (offers[q].rise == offers[w].rise and queue[q] < queue[w]):
            winner[j] = q
    for s in range(n_sold):
        j = sold[s]
        w = winner[j]
        owner = row_of[j]
        i = queue[w]
        row_of[j], column_of[i], held[i] = i, j, offers[w].benefit
        prices[j] += offers[w].rise
        if owner >= 0:
            column_of[owner] = UNASSIGNED
        sold[s] = owner
        winner[j] = -1
    kept = 0
    for q in range(n_queue):
        if column_of[queue[q]] == UNASSIGNED:
            queue[kept] = queue[q]
            kept += 1
    for s in range(n_sold):
        if sold[s] >= 0:
            queue[kept] = sold[s]
            kept += 1
    return kept


@njit(cache=True)
def run_rounds(
    queue: Indices,
    n_queue: int,
    epsilon: Amount,
    alone: Amount,
    graph: Graph,
    lists: Lists,
    matching: Matching,
    offers: Records,
    winner: Integers,
    sold: Integers,
    bidders: Integers,
    most_bids: int,
    left: int,
) -> tuple[int, int, int]:
    """Run rounds until nobody is queued, `bidders` (bidders of each round, an output) is full or `most_bids` is spent.

    No round begins that would take more than `left` bids in all. Returns the rows still queued, the rounds run and
    the bids made.
    """
    rounds, bids = 0, 0
    while n_queue > 0 and rounds < bidders.size and bids < most_bids and bids + n_queue <= left:
        bidders[rounds] = n_queue
        rounds += 1
        bids += n_queue
        bid(queue, n_queue, epsilon, alone, graph, lists, matching.prices, offers)
        n_queue = award(queue, n_queue, offers, winner, sold, matching)
    return n_queue, rounds, bids


@njit(cache=True)
def keep_content(graph: Graph, lists: Lists, matching: Matching, epsilon: Amount, queue: Indices) -> int:
    """Unassign every row further than `epsilon` from its best net benefit; queue all without a column."""
    column_of, held, row_of, prices = matching
    n_queue = 0
    for i in range(column_of.size):
        j = column_of[i]
        if j >= 0 and lists.length[i] == 0 and held[i] - prices[j] >= lists.rest[i] - epsilon:
            continue  # a row that nobody has read yet, and need not
        if j >= 0 and held[i] - prices[j] < two_best(i, graph, prices, lists)[1] - epsilon:
            row_of[j], column_of[i] = UNASSIGNED, UNASSIGNED
            j = UNASSIGNED
        if j < 0:
            queue[n_queue] = i
            n_queue += 1
    return n_queue


@njit(cache=True)
def best_nets(graph: Graph, lists: Lists, prices: Amounts, nets: Amounts) -> None:
    """Profits: the best net benefit of every row (`lowest` for a row without edges)."""
    for i in range(nets.size):
        nets[i] = two_best(i, graph, prices, lists)[1]


def offers_dtype(dtype: np.dtype) -> np.dtype:
    """One bid: column, benefit of the pair, raise of the price."""
    return np.dtype([("column", np.int64), ("benefit", dtype), ("rise", dtype)])
