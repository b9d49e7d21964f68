// Jacobi auction with epsilon scaling, one persistent cooperative kernel.
//
//   seat_rows                        rows that keep the column of an earlier answer
//   find_alike                       rows with the same edges (alike.cuh)
//   list_rows, list_pieces           short lists of all rows: a warp, a block or the whole grid reads one, by degree
//   for each epsilon of the schedule
//     keep_content                   unassign rows further than epsilon from their best; queue all rows without a column
//     while rows are queued
//       few, FEW_BIDDERS at most:    few_rounds in block 0, one warp a row (few.cuh)
//       crowd, CROWD or fewer:       crowd_rounds in block 0, a block barrier after each step
//       many, more:                  muster where rows are alike, bid, reread, settle, award, tidy over the grid, a
//                                    grid barrier after each; also crowds, once the phase has read a list again
//
// Invariant between launches (epsilon-complementary slackness): a row with a column is within epsilon of its best net
// benefit; prices never fall; queue[0 .. n_queue) holds exactly the rows without a column; top_rise is 0 and top_row
// INT_MAX everywhere. So a launch may stop after any round and the next goes on.
//
// Rows are the persons, columns the objects of the papers on auctions.
//
// Equally good columns: with `spread` a row prefers the first from its own number on, and lists those. So rows that see
// the same best columns bid for different ones, and not all for the first. A list that ties with the rest of its row
// need not be read again. Rows with the same edges: alike.cuh. The deterministic rounds of a given epsilon do neither, as
// the lowest column and the lowest row must win there.
//
// Buffers: struct Auction and struct AuctionState in layout.py.
// Overflow: the launcher keeps |scaled benefit| * (n_cols + 2) <= 2^61, prices stay below (n_cols + 1) spans.
// References: Bertsekas 1979; Bertsekas and Castanon 1989; Macri 2022, algorithm 2 (queues, deterministic ties).
// docs/notes/auction.md: what was tried, with its figures.
#include "auction/few.cuh"
#include "auction/phases.cuh"
namespace cg = cooperative_groups;

#define CROWD 128     // up to so many bidders, one block does the steps of a round faster than the grid

// Grid: any, cooperative.  Block: BLOCK.  Shared: Scratch and Offers (static).
// Reads: everything.  Writes: lists, prices, matching, queue, state.
// Requires: list_rows has run; state as the last launch left it, zeros at first.
// Work: rounds until all epsilons are done or state.rounds reaches `limit`. A phase ends with `stop` rows queued or after
// `patience` rounds, as `spent` counts them. With epsilon 0 it ends at once. Its last rows bid again in the next phase;
// those of the last phase stay queued for paths.cu.
// Every barrier separates a step's writes from the next step's reads, in the order of the page header.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) run_auction(const __grid_constant__ RunAuctionArgs args) {
    const Auction& auction = args.a;
    __shared__ Scratch scratch;
    __shared__ Offers offers;
    cg::grid_group grid = cg::this_grid();
    AuctionState& state = *auction.state;
    const bool leader = grid_thread() == 0;
    while (state.phase < auction.n_phases) {
        const Int epsilon = auction.epsilons[state.phase];
        if (!state.opened) {
            keep_content(auction, epsilon);
            grid.sync();
            const Int n_stale = state.n_stale;
            keep_stale(auction, n_stale, epsilon, scratch);
            grid.sync();
            if (leader) mark_open(auction);
            grid.sync();
        }
        const Int n_bidders = state.n_queue, rounds = state.rounds;
        if (rounds >= args.limit) break;
        const bool goes_on = epsilon > 0 && n_bidders > args.stop && spent(auction) < args.patience;
        const bool many = n_bidders > CROWD || state.readings > state.opened_readings;
        if (goes_on && n_bidders > FEW_BIDDERS && many) {
            if (state.n_alike) {
                muster(auction, n_bidders, grid_warp(), grid_warps());
                grid.sync();
            }
            bid(auction, n_bidders, epsilon, whole_grid());
            grid.sync();
            if (state.n_stale) {
                reread(auction, state.n_stale, epsilon, whole_grid(), scratch);
                grid.sync();
            }
            settle(auction, n_bidders, whole_grid());
            grid.sync();
            award(auction, n_bidders, whole_grid());
            grid.sync();
            tidy(auction, n_bidders, state.n_next, whole_grid());
            if (leader) count_round(auction, n_bidders);
        } else {
            grid.sync();  // everyone has read the counters
            const Int last = min(args.limit, state.opened - 1 + args.patience);
            if (blockIdx.x == 0 && goes_on && n_bidders > FEW_BIDDERS)
                crowd_rounds(auction, epsilon, args.limit, args.stop, args.patience, scratch);
            else if (blockIdx.x == 0 && goes_on) few_rounds(auction, n_bidders, epsilon, last, scratch, offers);
            else if (leader && !goes_on) next_phase(auction);
        }
        grid.sync();
        if (leader) state.n_next = state.n_raised = 0;
        // n_next is next touched two barriers on, phase and n_queue were written before this one
    }
}

// Grid: any.  Block: BLOCK.  Shared: one sum (static).  Reads: graph.  Writes: kinds, kind_of, state.n_alike.
// Requires: kinds all 0.  Work: every edge once, short rows by a warp each.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) find_alike(const __grid_constant__ Auction auction) {
    __shared__ unsigned long long sum;
    for (Int i = grid_warp(); i < auction.n_rows; i += grid_warps()) {
        const Row row = row_at(auction, i);
        if (row.degree > LIST) continue;
        const unsigned long long hash = warp_sum(hash_edges(auction, row, threadIdx.x % 32, 32));
        if (threadIdx.x % 32 == 0) name_kind(auction, i, hash);
    }
    if (auction.longest <= LIST) return;
    for (Int i = blockIdx.x; i < auction.n_rows; i += gridDim.x) {
        const Row row = row_at(auction, i);
        if (row.degree <= LIST) continue;
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();  // 0 before the first warp adds
        const unsigned long long hash = warp_sum(hash_edges(auction, row, threadIdx.x, BLOCK));
        if (threadIdx.x % 32 == 0) atomicAdd(&sum, hash);  // all warps add to one word
        __syncthreads();  // all warps have added
        if (threadIdx.x == 0) name_kind(auction, i, sum);
        __syncthreads();  // the sum is read before it is cleared
    }
}

// Grid: any.  Block: BLOCK.  Shared: none.  Reads: graph, column_of (an earlier answer's).  Writes: column_of, held, row_of.
// Requires: no column twice in column_of.  Work: one bisection a row; a pair that is no edge any more is parted.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) seat_rows(const __grid_constant__ Auction auction) {
    for (Int i = grid_thread(); i < auction.n_rows; i += grid_threads()) {
        const int j = auction.column_of[i];
        if (j < 0) continue;
        const Int benefit = benefit_of(auction, i, j);
        if (benefit == LOWEST) auction.column_of[i] = -1;
        else auction.held[i] = benefit, auction.row_of[j] = (int)i;
    }
}

// Grid: any.  Block: BLOCK.  Shared: Scratch.  Reads: graph, prices.  Writes: lists.  Requires: nothing.
// Work: a warp reads each row of at most LIST edges once. A block reads each of the others twice.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) list_rows(const __grid_constant__ Auction auction) {
    __shared__ Scratch scratch;
    for (Int i = grid_warp(); i < auction.n_rows; i += grid_warps()) {
        const Row row = row_at(auction, i);
        if (row.degree <= LIST) list_short(auction, row);
    }
    if (auction.longest <= LIST) return;
    for (Int i = blockIdx.x; i < auction.n_rows; i += gridDim.x) {
        const Row row = row_at(auction, i);
        if (row.degree > LIST && (!auction.pieces.rows || row.degree < LONG))
            reveal(auction, row, listing_of(auction, i), scratch);
    }
}

// The best edges of the best edges of its pieces are a row's best edges.
__device__ void join_pieces(const Auction& auction, Int k, Scratch& scratch) {
    const Pieces& pieces = auction.pieces;
    const Int i = pieces.rows[k], n_pieces = gridDim.x, at = k * n_pieces * LIST;
    reveal(auction, Row{0, n_pieces * LIST, i, 0, pieces.columns + at, pieces.benefits + at}, listing_of(auction, i),
           scratch);
    Int rest = LOWEST;
    for (Int block = threadIdx.x; block < n_pieces; block += BLOCK) rest = max(rest, pieces.rest[k * n_pieces + block]);
    rest = block_extreme<true>(rest, scratch);
    if (threadIdx.x == 0) auction.rest[i] = max(auction.rest[i], rest);
}

// Grid: any, cooperative.  Block: BLOCK.  Shared: Scratch.  Reads: graph, prices.  Writes: pieces, lists.
// Requires: pieces.rows are the rows of LONG or more edges, and no more than there are blocks.
// Work: the rows of LONG or more edges, each by all blocks: every block lists its piece, then one block joins them.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) list_pieces(const __grid_constant__ Auction auction) {
    __shared__ Scratch scratch;
    const Pieces& pieces = auction.pieces;
    const Int block = blockIdx.x, n_pieces = gridDim.x;
    for (Int k = 0; k < pieces.n_rows; ++k) {
        Row piece = row_at(auction, pieces.rows[k]);
        piece.first = piece.degree * block / n_pieces;
        piece.start += piece.first;
        piece.degree = piece.degree * (block + 1) / n_pieces - piece.first;
        const Int at = k * n_pieces + block;
        reveal(auction, piece, Listing{pieces.columns + at * LIST, pieces.benefits + at * LIST, pieces.rest + at},
               scratch);
    }
    cg::this_grid().sync();  // all pieces are listed
    for (Int k = block; k < pieces.n_rows; k += n_pieces) join_pieces(auction, k, scratch);
}

// Grid: any.  Block: BLOCK.  Shared: Scratch.  Reads: graph, lists, prices.  Writes: lists that were stale; nets (m,), every
// row's best net benefit, LOWEST for none.  Requires: list_rows has run.  Work: one look a row; stale rows are read again.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) best_nets(const __grid_constant__ BestNetsArgs args) {
    const Auction& auction = args.a;
    __shared__ Scratch scratch;
    __shared__ bool stale[WARPS];
    const int warp = threadIdx.x / 32;
    for (Int base = (Int)blockIdx.x * WARPS; base < auction.n_rows; base += grid_warps()) {
        const Int i = base + warp;
        Offer offer = i < auction.n_rows ? look(auction, i) : Offer{LOWEST, LOWEST, 0, -1, 0, -1};
        const bool again = i < auction.n_rows && offer.net < auction.rest[i];
        if (threadIdx.x % 32 == 0) stale[warp] = again;
        __syncthreads();  // all of stale is written
        for (int other = 0; other < WARPS; ++other)
            if (stale[other]) reveal(auction, base + other, scratch);
        if (again) offer = look(auction, i);
        if (i < auction.n_rows && threadIdx.x % 32 == 0) args.nets[i] = offer.net;
        __syncthreads();  // stale is rewritten next time
    }
}
