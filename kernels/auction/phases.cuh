// Where a phase begins and ends: rows that are no longer content are queued, and the next epsilon is taken.
#include "auction/rounds.cuh"

// The phase's queue stands; one thread.
__device__ __forceinline__ void mark_open(const Auction& auction) {
    auction.state->opened = auction.state->rounds + 1;
    auction.state->readings += auction.state->n_stale;
    auction.state->opened_readings = auction.state->readings;
    auction.state->n_stale = auction.state->squabbles = 0;
}

// On to the next epsilon; one thread. Who is still queued is queued again by keep_content, or left to paths.cu.
__device__ __forceinline__ void next_phase(const Auction& auction) {
    if (++auction.state->phase < auction.n_phases) auction.state->n_queue = 0;
    auction.state->opened = 0;
}

// Queue row i if it has no column or, by `best`, one that is better by more than epsilon. Lane 0 of a warp.
__device__ __forceinline__ void keep_or_queue(const Auction& auction, Int i, Int best, Int epsilon) {
    const int j = auction.column_of[i];
    if (threadIdx.x % 32 || (j >= 0 && auction.held[i] - auction.prices[j] >= best - epsilon)) return;
    if (j >= 0) auction.row_of[j] = auction.column_of[i] = -1;
    auction.queue[add(&auction.state->n_queue, 1)] = (int)i;
}

__device__ void keep_content(const Auction& auction, Int epsilon) {
    for (Int i = grid_warp(); i < auction.n_rows; i += grid_warps()) {
        const bool sold = auction.column_of[i] >= 0;
        const Int best = sold ? look(auction, i).net : 0;
        __syncwarp();  // all lanes have read column_of before lane 0 clears it
        if (sold && best < auction.rest[i]) mark_stale(auction, i);
        else keep_or_queue(auction, i, best, epsilon);
    }
}

__device__ void keep_stale(const Auction& auction, Int n_stale, Int epsilon, Scratch& scratch) {
    for (Int k = blockIdx.x; k < n_stale; k += gridDim.x) {
        const Int i = auction.stale[k];
        reveal(auction, i, scratch);
        if (threadIdx.x < 32) {
            const Int best = look(auction, i).net;
            keep_or_queue(auction, i, best, epsilon);
        }
    }
}
