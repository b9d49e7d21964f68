// Jacobi auction with epsilon scaling, one persistent cooperative kernel or one launch per step of a round.
//
//   list_rows                        short lists of all rows (rows.cuh)
//   for each epsilon of the schedule
//     keep_content                   unassign who is further than epsilon from his best; queue all without an object
//     while persons are queued
//       THIN or fewer:               thin_rounds in block 0: one warp a person, two block barriers a round
//       more:                        bid, reread, settle, award, tidy over the grid, a grid barrier after each
//
// Invariant between launches (epsilon-complementary slackness): a person with an object is within epsilon of its best
// net benefit; prices never fall; queue[0 .. n_queue) holds exactly the persons without an object; top_rise is 0 and
// top_person INT_MAX everywhere. So a launch may stop after any round and the next goes on.
//
// Buffers: struct Auction and struct State in rows.cuh.
// Overflow: the launcher keeps |scaled benefit| * (n_cols + 2) <= 2^61, prices stay below (n_cols + 1) spans.
// References: Bertsekas 1979; Bertsekas and Castanon 1989; Macri 2022, algorithm 2 (queues, deterministic ties).
// Tried on paper and dropped: clearing top_* in the next round's bid needs offers of two rounds and a third queue to
// save one barrier (1 us of some 5) in the few fat rounds.
#include "auction/rows.cuh"
namespace cg = cooperative_groups;


// Lane 0 posts the offer of queue position q. The atomic settles which raise for the column is highest.
__device__ __forceinline__ void post(const Auction& a, Int q, const Offer& o, Int epsilon) {
    if (threadIdx.x % 32) return;
    const Int rise = rise_of(a, o, epsilon);
    a.offer_column[q] = o.column;
    a.offer_benefit[q] = o.benefit;
    a.offer_rise[q] = rise;
    if (o.column >= 0) atomicMax(a.top_rise + o.column, (unsigned long long)rise);
}

// The atomic hands out places in the list of stale positions.
__device__ __forceinline__ void mark_stale(const Auction& a, Int which) {
    if (threadIdx.x % 32) return;
    a.stale[add(&a.state->n_stale, 1)] = (int)which;
}

__device__ void bid(const Auction& a, Int n, Int epsilon) {
    for (Int q = grid_warp(); q < n; q += grid_warps()) {
        const Int i = a.queue[q];
        const Offer o = look(a, i);
        if (is_stale(a, i, o)) mark_stale(a, q);
        else post(a, q, o, epsilon);
    }
}

__device__ void reread(const Auction& a, Int n_stale, Int epsilon, Scratch& s) {
    for (Int k = blockIdx.x; k < n_stale; k += gridDim.x) {
        const Int q = a.stale[k], i = a.queue[q];
        reveal(a, i, s);
        if (threadIdx.x < 32) post(a, q, look(a, i), epsilon);
    }
}

// Of those who made the highest raise the lowest person wins; else whoever writes last.
__device__ void settle(const Auction& a, Int n) {
    for (Int q = grid_thread(); q < n; q += grid_threads()) {
        const int j = a.offer_column[q];
        if (j < 0 || (unsigned long long)a.offer_rise[q] != a.top_rise[j]) continue;
        if (a.deterministic) atomicMin(a.top_person + j, a.queue[q]);
        else a.top_person[j] = a.queue[q];
    }
}

// Hand column j to person i; returns who lost it, -1 for nobody.
__device__ __forceinline__ int sell(const Auction& a, int j, int i, Int benefit, Int rise) {
    const int owner = a.row_of[j];
    a.row_of[j] = i;
    a.column_of[i] = j;
    a.held[i] = benefit;
    a.prices[j] += rise;
    if (owner >= 0) a.column_of[owner] = -1;
    return owner;
}

__device__ void award(const Auction& a, Int n) {
    for (Int q = grid_thread(); q < n; q += grid_threads()) {
        const int i = a.queue[q], j = a.offer_column[q];
        const bool wins = j >= 0 && a.top_person[j] == i;
        const int next = wins ? sell(a, j, i, a.offer_benefit[q], a.offer_rise[q]) : i;
        if (next < 0) continue;  // the atomic hands out places in the next queue
        a.next_queue[add(&a.state->n_next, 1)] = next;
    }
}

__device__ void tidy(const Auction& a, Int n, Int n_next) {
    for (Int q = grid_thread(); q < n; q += grid_threads()) {
        const int j = a.offer_column[q];
        if (j >= 0) {
            a.top_rise[j] = 0;
            a.top_person[j] = INT_MAX;
        }
        if (q < n_next) a.queue[q] = a.next_queue[q];
    }
}

__device__ __forceinline__ void count_round(const Auction& a, Int n) {
    State& state = *a.state;
    if (a.bidders && state.rounds < a.trace_size) a.bidders[state.rounds] = (int)n;
    state.readings += state.n_stale;
    ++state.rounds;
    state.bids += n;
    state.n_queue = state.n_next;
    state.n_stale = 0;
}

// The phase's queue stands; one thread.
__device__ __forceinline__ void mark_open(const Auction& a) {
    a.state->opened = a.state->rounds + 1;
    a.state->readings += a.state->n_stale;
    a.state->opened_readings = a.state->readings;
    a.state->n_stale = 0;
}

// What a phase has cost so far, in rounds; all rows read whole once count as 64.
__device__ __forceinline__ Int spent(const Auction& a) {
    const State& state = *a.state;
    return state.rounds + 1 - state.opened + 64 * (state.readings - state.opened_readings) / a.n_rows;
}

// On to the next epsilon; one thread. Who is still queued is queued again by keep_content, or left to paths.cu.
__device__ __forceinline__ void next_phase(const Auction& a) {
    if (++a.state->phase < a.n_phases) a.state->n_queue = 0;
    a.state->opened = 0;
}

// Queue person i if it has no object or, by `best`, a better one further than epsilon away. Lane 0 of a warp.
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

struct Thin {
    Int rise[THIN], rounds[2], bids[2];
    int column[THIN], person[THIN];
    bool stale[THIN];
};

// One bidder is left: its warp bids alone, as nobody can be in its way. Stops at a stale list or `limit`.
__device__ int solo_rounds(const Auction& a, int person, Int epsilon, Int limit, Int& rounds) {
    while (person >= 0 && rounds < limit) {
        const Offer o = look(a, person);
        if (is_stale(a, person, o) || o.column < 0) break;
        int next = 0;
        if (threadIdx.x % 32 == 0) {
            next = sell(a, o.column, person, o.benefit, rise_of(a, o, epsilon));
            if (a.bidders && rounds < a.trace_size) a.bidders[rounds] = 1;
        }
        __syncwarp();  // lane 0's price before the next look
        person = __shfl_sync(FULL_WARP, next, 0);
        ++rounds;
    }
    return person;
}

// Whether warp w's offer wins: each lane holds it against one rival. Equal raises go to the lowest person.
__device__ __forceinline__ bool wins_thin(const Thin& t, int w) {
    const int r = threadIdx.x % 32;
    const bool beaten = r != w && t.column[r] == t.column[w] &&
                        (t.rise[r] > t.rise[w] || (t.rise[r] == t.rise[w] && t.person[r] < t.person[w]));
    return !__any_sync(FULL_WARP, beaten);
}

// Rounds of at most THIN bidders by one block: warp w bids for the person in slot w, who loses it takes the slot.
__device__ void thin_rounds(const Auction& a, Int n, Int epsilon, Int limit, Scratch& s, Thin& t) {
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    int person = w < n ? a.queue[w] : -1;
    if (threadIdx.x == 0) t.rounds[0] = a.state->rounds, t.bids[0] = a.state->bids;
    for (int turn = 0;; turn ^= 1) {
        // Separates last round's prices, t.column and t.rounds from this round's reads.
        const int bidders = __syncthreads_count(lane == 0 && person >= 0);
        Int rounds = t.rounds[turn];
        const Int bids = t.bids[turn];
        if (!bidders || rounds >= limit) break;
        if (bidders == 1) {
            const Int before = rounds;
            if (person >= 0) {
                person = solo_rounds(a, person, epsilon, limit, rounds);
                if (lane == 0) t.rounds[turn ^ 1] = rounds, t.bids[turn ^ 1] = bids + rounds - before;
            }
            // Progress was made unless the list is stale; then the general round below reads it again.
            if (__syncthreads_or(person >= 0 && rounds > before) || !__syncthreads_or(person >= 0)) continue;
        }
        Offer o = person >= 0 ? look(a, person) : Offer{LOWEST, LOWEST, 0, -1};
        bool stale = person >= 0 && is_stale(a, person, o);
        if (lane == 0) t.stale[w] = stale, t.person[w] = person;
        if (__syncthreads_or(stale)) {
            for (int v = 0; v < THIN; ++v)
                if (t.stale[v]) reveal(a, t.person[v], s);
            if (stale) o = look(a, person);
        }
        if (lane == 0) t.column[w] = person < 0 || o.column < 0 ? -1 - w : o.column, t.rise[w] = rise_of(a, o, epsilon);
        if (threadIdx.x == 0) {
            if (a.bidders && rounds < a.trace_size) a.bidders[rounds] = bidders;
            t.rounds[turn ^ 1] = rounds + 1, t.bids[turn ^ 1] = bids + bidders;
        }
        __syncthreads();  // offers are complete
        const bool wins = person >= 0 && o.column >= 0 && wins_thin(t, w);
        if (wins) {
            int next = lane ? 0 : sell(a, o.column, person, o.benefit, t.rise[w]);
            person = __shfl_sync(FULL_WARP, next, 0);
        }
    }
    if (threadIdx.x == 0) s.count = 0;
    __syncthreads();
    if (lane == 0 && person >= 0) a.queue[atomicAdd(&s.count, 1)] = person;  // hands out places
    __syncthreads();
    if (threadIdx.x == 0) {
        a.state->n_queue = s.count;
        a.state->rounds = max(t.rounds[0], t.rounds[1]);
        a.state->bids = max(t.bids[0], t.bids[1]);
    }
    __syncthreads();
}

// Grid: any, cooperative.  Block: BLOCK.  Shared: Scratch, Thin (static).
// Reads: everything.  Writes: lists, prices, matching, queue, state.
// Requires: list_rows has run; state as the last launch left it, zeros at first.
// Work: rounds until all epsilons are done or state.rounds reaches `limit`. A phase ends with `stop` persons queued or
// after `patience` rounds (ties make rows be read again and again, which counts too), with epsilon 0 at once; its last persons bid again in the next, and those of the last phase stay queued for paths.cu.
// Every barrier separates a step's writes from the next step's reads, in the order of the page header.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) run_auction(
    const __grid_constant__ Auction a, Int limit, Int stop, Int patience) {
    __shared__ Scratch s;
    __shared__ Thin t;
    cg::grid_group grid = cg::this_grid();
    State& state = *a.state;
    const bool leader = grid_thread() == 0;
    while (state.phase < a.n_phases) {
        const Int epsilon = a.epsilons[state.phase];
        if (!state.opened) {
            keep_content(a, epsilon);
            grid.sync();
            const Int n_stale = state.n_stale;
            keep_stale(a, n_stale, epsilon, s);
            grid.sync();
            if (leader) mark_open(a);
            grid.sync();
        }
        const Int n = state.n_queue, rounds = state.rounds;
        if (rounds >= limit) break;
        const bool goes_on = epsilon > 0 && n > stop && spent(a) < patience;
        if (goes_on && n > THIN) {
            bid(a, n, epsilon);
            grid.sync();
            if (state.n_stale) {
                reread(a, state.n_stale, epsilon, s);
                grid.sync();
            }
            settle(a, n);
            grid.sync();
            award(a, n);
            grid.sync();
            tidy(a, n, state.n_next);
            if (leader) count_round(a, n);
        } else if (goes_on) {
            grid.sync();  // everyone has read n_queue and rounds
            if (blockIdx.x == 0) thin_rounds(a, n, epsilon, limit, s, t);
        } else {
            grid.sync();  // as above
            if (leader) next_phase(a);
        }
        grid.sync();
        if (leader) state.n_next = 0;
        // n_next is next touched two barriers on, phase and n_queue were written before this one
    }
}

// The steps of one round as launches of their own, for a CUDA graph of many rounds; empty once the queue is.
// Grid: any.  Block: BLOCK.  Shared: Scratch in reread.  Requires: the steps in this order, epsilons[phase].
// Work: as the steps above; `finish_round` by one thread.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) bid_round(const __grid_constant__ Auction a) {
    bid(a, a.state->n_queue, a.epsilons[a.state->phase]);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) reread_round(const __grid_constant__ Auction a) {
    __shared__ Scratch s;
    reread(a, a.state->n_stale, a.epsilons[a.state->phase], s);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) settle_round(const __grid_constant__ Auction a) {
    settle(a, a.state->n_queue);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) award_round(const __grid_constant__ Auction a) {
    award(a, a.state->n_queue);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) tidy_round(const __grid_constant__ Auction a) {
    tidy(a, a.state->n_queue, a.state->n_next);
}

// Grid: 1.  Block: 1.  Closes the round; an empty queue leaves the counters alone.
extern "C" __global__ void finish_round(const __grid_constant__ Auction a) {
    if (a.state->n_queue) count_round(a, a.state->n_queue);
    a.state->n_next = 0;
}

// Grid: any.  Block: BLOCK.  Shared: Scratch.  Opens the phase state.phase for the launches above.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) open_phase(const __grid_constant__ Auction a) {
    keep_content(a, a.epsilons[a.state->phase]);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) open_stale(const __grid_constant__ Auction a) {
    __shared__ Scratch s;
    keep_stale(a, a.state->n_stale, a.epsilons[a.state->phase], s);
}

extern "C" __global__ void close_open(const __grid_constant__ Auction a) { mark_open(a); }

extern "C" __global__ void close_phase(const __grid_constant__ Auction a) { next_phase(a); }

// Grid: any.  Block: BLOCK.  Shared: Scratch.  Reads: graph, prices.  Writes: lists.  Work: two readings of every row.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) list_rows(const __grid_constant__ Auction a) {
    __shared__ Scratch s;
    for (Int i = blockIdx.x; i < a.n_rows; i += gridDim.x) reveal(a, i, s);
}

// Grid: any.  Block: BLOCK.  Writes: nets (m,), every row's best net benefit, LOWEST for none; stale rows are read again.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) best_nets(const __grid_constant__ Auction a, Int* nets) {
    __shared__ Scratch s;
    __shared__ bool stale[WARPS];
    const int w = threadIdx.x / 32;
    for (Int base = (Int)blockIdx.x * WARPS; base < a.n_rows; base += grid_warps()) {
        const Int i = base + w;
        Offer o = i < a.n_rows ? look(a, i) : Offer{LOWEST, LOWEST, 0, -1};
        const bool again = i < a.n_rows && o.net < a.rest[i];
        if (threadIdx.x % 32 == 0) stale[w] = again;
        __syncthreads();
        for (int v = 0; v < WARPS; ++v)
            if (stale[v]) reveal(a, base + v, s);
        if (again) o = look(a, i);
        if (i < a.n_rows && threadIdx.x % 32 == 0) nets[i] = o.net;
        __syncthreads();  // stale is rewritten next time
    }
}
