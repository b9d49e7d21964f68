// Where a phase begins and ends: rows that are no longer content are queued, and the next epsilon is taken.
#include "auction/rounds.cuh"

// The phase's queue stands; one thread.
__device__ __forceinline__ void mark_open(const Auction& a) {
    a.state->opened = a.state->rounds + 1;
    a.state->readings += a.state->n_stale;
    a.state->opened_readings = a.state->readings;
    a.state->n_stale = a.state->squabbles = 0;
}

// On to the next epsilon; one thread. Who is still queued is queued again by keep_content, or left to paths.cu.
__device__ __forceinline__ void next_phase(const Auction& a) {
    if (++a.state->phase < a.n_phases) a.state->n_queue = 0;
    a.state->opened = 0;
}

// Queue row i if it has no column or, by `best`, one that is better by more than epsilon. Lane 0 of a warp.
__device__ __forceinline__ void keep_or_queue(const Auction& a, Int i, Int best, Int epsilon) {
    const int j = a.column_of[i];
    if (threadIdx.x % 32 || (j >= 0 && a.held[i] - a.prices[j] >= best - epsilon)) return;
    if (j >= 0) a.row_of[j] = a.column_of[i] = -1;
    a.queue[add(&a.state->n_queue, 1)] = (int)i;
}

__device__ void keep_content(const Auction& a, Int epsilon) {
    for (Int i = grid_warp(); i < a.n_rows; i += grid_warps()) {
        const bool sold = a.column_of[i] >= 0;
        const Int best = sold ? look(a, i).net : 0;
        __syncwarp();  // all lanes have read column_of before lane 0 clears it
        if (sold && best < a.rest[i]) mark_stale(a, i);
        else keep_or_queue(a, i, best, epsilon);
    }
}

__device__ void keep_stale(const Auction& a, Int n_stale, Int epsilon, Scratch& s) {
    for (Int k = blockIdx.x; k < n_stale; k += gridDim.x) {
        const Int i = a.stale[k];
        reveal(a, i, s);
        if (threadIdx.x < 32) {
            const Int best = look(a, i).net;
            keep_or_queue(a, i, best, epsilon);
        }
    }
}
