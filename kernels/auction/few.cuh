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
__device__ __forceinline__ int take(const Auction& a, int i, const Offer& o, Int epsilon) {
    if (threadIdx.x % 32 == o.holder) {
        sell(a, o.column, i, o.owner, o.benefit, o.benefit - o.net + rise_of(a, o, epsilon));
    }
    __syncwarp();  // the new price before the next look
    return __shfl_sync(FULL_WARP, o.owner, o.holder);
}

__device__ __forceinline__ void show(const Auction& a, Offers& t, int row, const Offer& o, Int epsilon, bool stale) {
    const int w = threadIdx.x / 32;
    if (threadIdx.x % 32) return;
    t.column[w] = row < 0 || o.column < 0 ? -1 - w : o.column;
    t.rise[w] = rise_of(a, o, epsilon);
    t.row[w] = row;
    t.stale[w] = stale;
}

// Returns the row that still bids at `limit` or has a stale list; -1 once all rows are served. A list that is `fresh` was
// read again for this round, and is not asked whether it is stale. It could look stale for ever: where more edges tie
// with the best than a list holds, one of them is always left out.
__device__ int solo_rounds(const Auction& a, int row, bool fresh, Int epsilon, Int limit, Int& rounds) {
    for (; row >= 0 && rounds < limit; fresh = false) {
        const Offer o = look(a, row);
        if (!fresh && is_stale(a, row, o)) break;
        if (a.bidders && rounds < a.trace_size && threadIdx.x % 32 == 0) a.bidders[rounds] = 1;
        ++rounds;
        if (o.column >= 0) row = take(a, row, o, epsilon);
    }
    return row;
}

// Whether warp w's offer wins: each lane holds it against one rival. Equal rises go to the lowest row.
__device__ __forceinline__ bool wins_slot(const Offers& t, int w) {
    const int r = threadIdx.x % 32;
    const bool beaten = r != w && t.column[r] == t.column[w] &&
                        (t.rise[r] > t.rise[w] || (t.rise[r] == t.rise[w] && t.row[r] < t.row[w]));
    return !__any_sync(FULL_WARP, beaten);
}

// Read the stale lists of the round again, the whole block one after the other; returns how many.
__device__ int reveal_stale(const Auction& a, const Offers& t, Scratch& s) {
    int readings = 0;
    for (int v = 0; v < FEW_BIDDERS; ++v) {
        if (!t.stale[v]) continue;
        reveal(a, t.row[v], s);
        ++readings;
    }
    return readings;
}

// Put the rows that are left back into the queue, and the counters into the state.
__device__ void leave_few(const Auction& a, int row, Int rounds, Int bids, Int readings, Scratch& s) {
    if (threadIdx.x == 0) s.count = 0;
    __syncthreads();  // 0 before the first row asks for a place
    if (threadIdx.x % 32 == 0 && row >= 0) a.queue[atomicAdd(&s.count, 1)] = row;  // hands out places
    __syncthreads();  // all rows are counted
    if (threadIdx.x == 0) {
        AuctionState& state = *a.state;
        state.n_queue = s.count;
        state.rounds = rounds;
        state.bids = bids;
        state.readings += readings;
    }
    __syncthreads();  // the state stands before any thread returns
}

__device__ void few_rounds(const Auction& a, Int n, Int epsilon, Int limit, Scratch& s, Offers& t) {
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = w < n ? a.queue[w] : -1;
    Int rounds = a.state->rounds, bids = a.state->bids, readings = 0;
    bool fresh = false;
    while (true) {
        // Separates last round's prices and the reads of its offers from this round's reads and offers.
        const int bidders = __syncthreads_count(lane == 0 && row >= 0);
        if (!bidders || rounds >= limit) break;
        if (bidders == 1) {
            if (row >= 0) {
                Int reached = rounds;
                row = solo_rounds(a, row, fresh, epsilon, limit, reached);
                if (lane == 0) t.rounds = reached;
            }
            __syncthreads();  // its count is complete
            const Int ran = t.rounds - rounds;
            rounds += ran, bids += ran;
            fresh = fresh && !ran;
            if (ran) continue;
        }
        Offer o = {LOWEST, LOWEST, 0, -1, 0, -1};
        if (row >= 0) o = look(a, row);
        const bool stale = row >= 0 && !fresh && is_stale(a, row, o);
        show(a, t, row, o, epsilon, stale);
        if (__syncthreads_or(stale)) {  // offers are complete
            readings += reveal_stale(a, t, s);
            fresh = fresh || stale;
            continue;
        }
        if (threadIdx.x == 0 && a.bidders && rounds < a.trace_size) a.bidders[rounds] = bidders;
        if (o.column >= 0 && wins_slot(t, w)) row = take(a, row, o, epsilon);
        ++rounds, bids += bidders;
        fresh = false;
    }
    leave_few(a, row, rounds, bids, readings, s);
}
