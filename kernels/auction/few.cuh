// The last rounds of a phase, of at most FEW_BIDDERS, by one block: warp w bids for the row in slot w.
//
//   while anybody is queued
//     one bidder:   solo_rounds, no barrier: its warp goes on alone, from one owner to the next
//     more:         look, show, (a stale list: the block reads it again), take; two block barriers a round
//
// A row that loses its column takes the winner's slot, so no slot is ever filled that was empty. A round is a chain of
// reads that wait for each other: the bidder's list, its prices and owners, two warp reductions, the next bidder's list.
// Owners are read along with the prices, so that the next bidder is known as soon as the best edge is.
// docs/notes/auction.md: what was tried, with its figures.
#include "auction/rounds.cuh"

// The offers of a round, by slot; an empty slot offers for a column of its own below 0.
struct Offers {
    Int rise[FEW_BIDDERS], rounds;
    int column[FEW_BIDDERS], row[FEW_BIDDERS];
    bool stale[FEW_BIDDERS];
};

// Sell the offer's column to row i; every lane learns which row lost it, -1 for none.
__device__ __forceinline__ int take(const Auction& auction, int i, const Offer& offer, Int epsilon) {
    if (threadIdx.x % 32 == offer.holder) {
        sell(auction, offer.column, i, offer.owner, offer.benefit,
             offer.benefit - offer.net + rise_of(auction, offer, epsilon));
    }
    __syncwarp();  // the new price before the next look
    return __shfl_sync(FULL_WARP, offer.owner, offer.holder);
}

__device__ __forceinline__ void show(const Auction& auction, Offers& offers, int row, const Offer& offer, Int epsilon,
                                     bool stale) {
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32) return;
    offers.column[warp] = row < 0 || offer.column < 0 ? -1 - warp : offer.column;
    offers.rise[warp] = rise_of(auction, offer, epsilon);
    offers.row[warp] = row;
    offers.stale[warp] = stale;
}

// Returns the row that still bids at `limit` or has a stale list; -1 once all rows are served. A list that is `fresh` was
// read again for this round, and is not asked whether it is stale. It could look stale for ever: where more edges tie
// with the best than a list holds, one of them is always left out.
__device__ int solo_rounds(const Auction& auction, int row, bool fresh, Int epsilon, Int limit, Int& rounds) {
    for (; row >= 0 && rounds < limit; fresh = false) {
        const Offer offer = look(auction, row);
        if (!fresh && is_stale(auction, row, offer)) break;
        if (auction.bidders && rounds < auction.trace_size && threadIdx.x % 32 == 0) auction.bidders[rounds] = 1;
        ++rounds;
        if (offer.column >= 0) row = take(auction, row, offer, epsilon);
    }
    return row;
}

// Whether warp w's offer wins: each lane holds it against one rival. Equal rises go to the lowest row.
__device__ __forceinline__ bool wins_slot(const Offers& offers, int warp) {
    const int lane = threadIdx.x % 32;
    const bool beaten = lane != warp && offers.column[lane] == offers.column[warp] &&
                        (offers.rise[lane] > offers.rise[warp] ||
                         (offers.rise[lane] == offers.rise[warp] && offers.row[lane] < offers.row[warp]));
    return !__any_sync(FULL_WARP, beaten);
}

// Read the stale lists of the round again, the whole block one after the other; returns how many.
__device__ int reveal_stale(const Auction& auction, const Offers& offers, Scratch& scratch) {
    int readings = 0;
    for (int other = 0; other < FEW_BIDDERS; ++other) {
        if (!offers.stale[other]) continue;
        reveal(auction, offers.row[other], scratch);
        ++readings;
    }
    return readings;
}

// Put the rows that are left back into the queue, and the counters into the state.
__device__ void leave_few(const Auction& auction, int row, Int rounds, Int bids, Int readings, Scratch& scratch) {
    if (threadIdx.x == 0) scratch.count = 0;
    __syncthreads();  // 0 before the first row asks for a place
    if (threadIdx.x % 32 == 0 && row >= 0) auction.queue[atomicAdd(&scratch.count, 1)] = row;  // hands out places
    __syncthreads();  // all rows are counted
    if (threadIdx.x == 0) {
        AuctionState& state = *auction.state;
        state.n_queue = scratch.count;
        state.rounds = rounds;
        state.bids = bids;
        state.readings += readings;
    }
    __syncthreads();  // the state stands before any thread returns
}

__device__ void few_rounds(const Auction& auction, Int n_bidders, Int epsilon, Int limit, Scratch& scratch,
                           Offers& offers) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp < n_bidders ? auction.queue[warp] : -1;
    Int rounds = auction.state->rounds, bids = auction.state->bids, readings = 0;
    bool fresh = false;
    while (true) {
        // Separates last round's prices and the reads of its offers from this round's reads and offers.
        const int bidders = __syncthreads_count(lane == 0 && row >= 0);
        if (!bidders || rounds >= limit) break;
        if (bidders == 1) {
            if (row >= 0) {
                Int reached = rounds;
                row = solo_rounds(auction, row, fresh, epsilon, limit, reached);
                if (lane == 0) offers.rounds = reached;
            }
            __syncthreads();  // its count is complete
            const Int ran = offers.rounds - rounds;
            rounds += ran, bids += ran;
            fresh = fresh && !ran;
            if (ran) continue;
        }
        Offer offer = {LOWEST, LOWEST, 0, -1, 0, -1};
        if (row >= 0) offer = look(auction, row);
        const bool stale = row >= 0 && !fresh && is_stale(auction, row, offer);
        show(auction, offers, row, offer, epsilon, stale);
        if (__syncthreads_or(stale)) {  // offers are complete
            readings += reveal_stale(auction, offers, scratch);
            fresh = fresh || stale;
            continue;
        }
        if (threadIdx.x == 0 && auction.bidders && rounds < auction.trace_size) auction.bidders[rounds] = bidders;
        if (offer.column >= 0 && wins_slot(offers, warp)) row = take(auction, row, offer, epsilon);
        ++rounds, bids += bidders;
        fresh = false;
    }
    leave_few(auction, row, rounds, bids, readings, scratch);
}
