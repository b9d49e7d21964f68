// The steps of one round of the auction, by a team of threads: the grid, or one block where few bid.
//
// A round costs as much as it has bidders, however large the graph is. The queue names the rows, and the offers, by place in
// the queue, name the columns that got a bid. So no step walks over all columns.
#include "auction/alike.cuh"

struct Team {
    Int thread, threads, block, blocks;
};
__device__ __forceinline__ Team whole_grid() { return {grid_thread(), grid_threads(), blockIdx.x, gridDim.x}; }
__device__ __forceinline__ Team one_block() { return {threadIdx.x, BLOCK, 0, 1}; }

// Post the offer of queue position q. The atomic settles which rise for the column is highest.
__device__ __forceinline__ void post(const Auction& a, Int q, const Offer& o, Int epsilon) {
    if (threadIdx.x % 32 != o.holder) return;
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

__device__ void bid(const Auction& a, Int n, Int epsilon, const Team& team) {
    const bool alike = a.state->n_alike;
    for (Int q = team.thread / 32; q < n; q += team.threads / 32) {
        const Int i = a.queue[q];
        const Offer o = alike ? look_among(a, i, q, n, epsilon) : look(a, i);
        if (is_stale(a, i, o)) mark_stale(a, q);
        else post(a, q, o, epsilon);
    }
}

__device__ void reread(const Auction& a, Int n_stale, Int epsilon, const Team& team, Scratch& s) {
    for (Int k = team.block; k < n_stale; k += team.blocks) {
        const Int q = a.stale[k], i = a.queue[q];
        reveal(a, i, s);
        if (threadIdx.x < 32) {
            const Offer o = look(a, i);
            post(a, q, o, epsilon);
        }
    }
}

// Of the rows that made the highest rise the lowest one wins; without `deterministic`, whichever writes last.
__device__ void settle(const Auction& a, Int n, const Team& team) {
    const Int offers = n + a.state->n_raised;
    for (Int q = team.thread; q < offers; q += team.threads) {
        const int j = a.offer_column[q];
        if (j < 0 || (unsigned long long)a.offer_rise[q] != a.top_rise[j]) continue;
        if (a.deterministic) atomicMin(a.top_row + j, a.queue[q]);
        else atomicExch(a.top_row + j, a.queue[q]);
    }
}

// Hand column j, which was `owner`'s (-1: nobody's), to row i at `price`.
__device__ __forceinline__ void sell(const Auction& a, int j, int i, int owner, Int benefit, Int price) {
    a.row_of[j] = i;
    a.column_of[i] = j;
    a.held[i] = benefit;
    a.prices[j] = price;
    if (owner >= 0) a.column_of[owner] = -1;
}

// The winner of a column takes it, and its former owner is queued; a bidder that won nothing is queued again. Offers from
// place n on are of owners (raise_own in alike.cuh). If such an owner wins, it keeps its column at the new price. If it
// loses, the winner queues it, as any former owner.
__device__ void award(const Auction& a, Int n, const Team& team) {
    const Int offers = n + a.state->n_raised;
    for (Int q = team.thread; q < offers; q += team.threads) {
        const int i = a.queue[q], j = a.offer_column[q];
        const bool wins = j >= 0 && a.top_row[j] == i;
        int next = i;
        if (q >= n) {
            next = -1;
            if (wins) a.prices[j] += a.offer_rise[q];
        } else if (wins) {
            next = a.row_of[j];
            sell(a, j, i, next, a.offer_benefit[q], a.prices[j] + a.offer_rise[q]);
        }
        if (next < 0) continue;  // the atomic hands out places in the next queue
        a.next_queue[add(&a.state->n_next, 1)] = next;
    }
}

__device__ void tidy(const Auction& a, Int n, Int n_next, const Team& team) {
    const bool alike = a.state->n_alike;
    const Int offers = n + a.state->n_raised;
    for (Int q = team.thread; q < offers; q += team.threads) {
        const int j = a.offer_column[q];
        if (j >= 0) {
            a.top_rise[j] = 0;
            a.top_row[j] = INT_MAX;
        }
        if (alike) {
            const int kind = a.kind_of[a.queue[q]];
            a.gathered[kind] = 0;
            a.depth[kind] = INT_MAX;
        }
        if (q < n_next) a.queue[q] = a.next_queue[q];
    }
}

// Close a round of n bidders; one thread.
__device__ __forceinline__ void count_round(const Auction& a, Int n) {
    AuctionState& state = *a.state;
    if (a.bidders && state.rounds < a.trace_size) a.bidders[state.rounds] = (int)n;
    state.readings += state.n_stale;
    ++state.rounds;
    state.bids += n;
    state.n_queue = state.n_next;
    state.n_stale = 0;
}

// What a phase has cost so far, in rounds. Reading as many rows whole as there are counts as 64 rounds, and so do as many
// squabbles: bids of a row against its own kind.
__device__ __forceinline__ Int spent(const Auction& a) {
    const AuctionState& state = *a.state;
    return state.rounds + 1 - state.opened + 64 * (state.readings - state.opened_readings + state.squabbles) / a.n_rows;
}

// Rounds by one block, with its barriers between the steps, down to FEW_BIDDERS. They end sooner where the phase does, and
// when a list had to be read again, which the grid does faster.
__device__ void crowd_rounds(const Auction& a, Int epsilon, Int limit, Int stop, Int patience, Scratch& s) {
    const Team block = one_block();
    AuctionState& state = *a.state;
    bool again = true;
    while (again) {
        const Int n = state.n_queue;
        if (state.n_alike) {
            muster(a, n, threadIdx.x / 32, WARPS);
            __syncthreads();  // every place and depth before the bids
        }
        bid(a, n, epsilon, block);
        __syncthreads();  // the list of stale rows is complete
        const Int n_stale = state.n_stale;
        reread(a, n_stale, epsilon, block, s);
        __syncthreads();  // all offers are posted
        settle(a, n, block);
        __syncthreads();  // every column has its winner
        award(a, n, block);
        __syncthreads();  // the next queue is complete, and all winners are read
        const Int n_next = state.n_next;
        tidy(a, n, n_next, block);
        __syncthreads();  // n_raised is read before it is cleared
        if (threadIdx.x == 0) {
            count_round(a, n);
            state.n_next = state.n_raised = 0;
        }
        __syncthreads();  // the counters stand
        again = !n_stale && n_next > max(stop, (Int)FEW_BIDDERS) && state.rounds < limit && spent(a) < patience;
        __syncthreads();  // everyone has read the counters before the next round's steps change them
    }
}
