// The auction of auction.cu with a launch for each step of a round, and many rounds captured in one CUDA graph.
//
//   open_phase, open_stale, close_open                  the phase's queue, as keep_content of auction.cu
//   a graph of rounds: bid, reread, settle, award, tidy, finish
//   close_phase                                         the next epsilon, once the host saw few rows queued
//
// Paper: Macri (2022), algorithm 2, as auction.cu.
// What differs from auction.cu: a step ends where its launch ends, and the host looks at the queue between two graphs.
// CPU reference: kernels/auction/cpu/solver.py. Run: option launch "graph" of solver auction; python -m benchmarks.auction.
// Steps after the queue is empty do nothing.
#include "auction/phases.cuh"

// The steps of a round. Each does what the function of its name does, which rounds.cuh tells.
//
// Grid: any.  Block: BLOCK.  Shared: Scratch in reread_round, else none.  Reads: queue, lists, prices, state, as the step.
// Writes: as the step.  Requires: the steps in this order, epsilons[phase].  Work: as the step.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) bid_round(const __grid_constant__ Auction auction) {
    bid(auction, auction.state->n_queue, auction.epsilons[auction.state->phase], whole_grid());
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) reread_round(const __grid_constant__ Auction auction) {
    __shared__ Scratch scratch;
    reread(auction, auction.state->n_stale, auction.epsilons[auction.state->phase], whole_grid(), scratch);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) settle_round(const __grid_constant__ Auction auction) {
    settle(auction, auction.state->n_queue, whole_grid());
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) award_round(const __grid_constant__ Auction auction) {
    award(auction, auction.state->n_queue, whole_grid());
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) tidy_round(const __grid_constant__ Auction auction) {
    tidy(auction, auction.state->n_queue, auction.state->n_next, whole_grid());
}

// Closes the round; an empty queue leaves the counters alone.
// Grid: 1.  Block: 1.  Shared: none.  Reads, Writes: state, bidders.  Requires: tidy_round has ended.  Work: none.
extern "C" __global__ void finish_round(const __grid_constant__ Auction auction) {
    if (auction.state->n_queue) count_round(auction, auction.state->n_queue);
    auction.state->n_next = 0;
}

// Opens the phase state.phase for the launches above, in three steps.
//
// Grid: any; 1 in close_open and close_phase.  Block: BLOCK; 1 there.  Shared: Scratch in open_stale, else none.
// Reads: matching, lists, prices, state.  Writes: matching, queue, state.  Requires: the steps in this order.
// Work: a look a row in open_phase, a reading a stale row in open_stale.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) open_phase(const __grid_constant__ Auction auction) {
    keep_content(auction, auction.epsilons[auction.state->phase]);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) open_stale(const __grid_constant__ Auction auction) {
    __shared__ Scratch scratch;
    keep_stale(auction, auction.state->n_stale, auction.epsilons[auction.state->phase], scratch);
}

extern "C" __global__ void close_open(const __grid_constant__ Auction auction) { mark_open(auction); }

extern "C" __global__ void close_phase(const __grid_constant__ Auction auction) { next_phase(auction); }
