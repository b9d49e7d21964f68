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

// Post the offer of one place of the queue. The atomic settles which rise for the column is highest.
__device__ __forceinline__ void post(const Auction& auction, Int which, const Offer& offer, Int epsilon) {
    if (threadIdx.x % 32 != offer.holder) return;
    const Int rise = rise_of(auction, offer, epsilon);
    auction.offer_column[which] = offer.column;
    auction.offer_benefit[which] = offer.benefit;
    auction.offer_rise[which] = rise;
    if (offer.column >= 0) atomicMax(auction.top_rise + offer.column, (unsigned long long)rise);
}

// The atomic hands out places in the list of stale positions.
__device__ __forceinline__ void mark_stale(const Auction& auction, Int which) {
    if (threadIdx.x % 32) return;
    auction.stale[add(&auction.state->n_stale, 1)] = (int)which;
}

__device__ void bid(const Auction& auction, Int n_bidders, Int epsilon, const Team& team) {
    const bool alike = auction.state->n_alike;
    for (Int bidder = team.thread / 32; bidder < n_bidders; bidder += team.threads / 32) {
        const Int i = auction.queue[bidder];
        const Offer offer = alike ? look_among(auction, i, bidder, n_bidders, epsilon) : look(auction, i);
        if (is_stale(auction, i, offer)) mark_stale(auction, bidder);
        else post(auction, bidder, offer, epsilon);
    }
}

__device__ void reread(const Auction& auction, Int n_stale, Int epsilon, const Team& team, Scratch& scratch) {
    for (Int k = team.block; k < n_stale; k += team.blocks) {
        const Int bidder = auction.stale[k], i = auction.queue[bidder];
        reveal(auction, i, scratch);
        if (threadIdx.x < 32) {
            const Offer offer = look(auction, i);
            post(auction, bidder, offer, epsilon);
        }
    }
}

// Of the rows that made the highest rise the lowest one wins; without `deterministic`, whichever writes last.
__device__ void settle(const Auction& auction, Int n_bidders, const Team& team) {
    const Int offers = n_bidders + auction.state->n_raised;
    for (Int which = team.thread; which < offers; which += team.threads) {
        const int j = auction.offer_column[which];
        if (j < 0 || (unsigned long long)auction.offer_rise[which] != auction.top_rise[j]) continue;
        if (auction.deterministic) atomicMin(auction.top_row + j, auction.queue[which]);
        else atomicExch(auction.top_row + j, auction.queue[which]);
    }
}

// Hand column j, which was `owner`'s (-1: nobody's), to row i at `price`.
__device__ __forceinline__ void sell(const Auction& auction, int j, int i, int owner, Int benefit, Int price) {
    auction.row_of[j] = i;
    auction.column_of[i] = j;
    auction.held[i] = benefit;
    auction.prices[j] = price;
    if (owner >= 0) auction.column_of[owner] = -1;
}

// The winner of a column takes it, and its former owner is queued; a bidder that won nothing is queued again. Offers from
// place n on are of owners (raise_own in alike.cuh). If such an owner wins, it keeps its column at the new price. If it
// loses, the winner queues it, as any former owner.
__device__ void award(const Auction& auction, Int n_bidders, const Team& team) {
    const Int offers = n_bidders + auction.state->n_raised;
    for (Int which = team.thread; which < offers; which += team.threads) {
        const int i = auction.queue[which], j = auction.offer_column[which];
        const bool wins = j >= 0 && auction.top_row[j] == i;
        int next = i;
        if (which >= n_bidders) {
            next = -1;
            if (wins) auction.prices[j] += auction.offer_rise[which];
        } else if (wins) {
            next = auction.row_of[j];
            sell(auction, j, i, next, auction.offer_benefit[which], auction.prices[j] + auction.offer_rise[which]);
        }
        if (next < 0) continue;  // the atomic hands out places in the next queue
        auction.next_queue[add(&auction.state->n_next, 1)] = next;
    }
}

__device__ void tidy(const Auction& auction, Int n_bidders, Int n_next, const Team& team) {
    const bool alike = auction.state->n_alike;
    const Int offers = n_bidders + auction.state->n_raised;
    for (Int which = team.thread; which < offers; which += team.threads) {
        const int j = auction.offer_column[which];
        if (j >= 0) {
            auction.top_rise[j] = 0;
            auction.top_row[j] = INT_MAX;
        }
        if (alike) {
            const int kind = auction.kind_of[auction.queue[which]];
            auction.gathered[kind] = 0;
            auction.depth[kind] = INT_MAX;
        }
        if (which < n_next) auction.queue[which] = auction.next_queue[which];
    }
}

// Close a round of n bidders; one thread.
__device__ __forceinline__ void count_round(const Auction& auction, Int n_bidders) {
    AuctionState& state = *auction.state;
    if (auction.bidders && state.rounds < auction.trace_size) auction.bidders[state.rounds] = (int)n_bidders;
    state.readings += state.n_stale;
    ++state.rounds;
    state.bids += n_bidders;
    state.n_queue = state.n_next;
    state.n_stale = 0;
}

// What a phase has cost so far, in rounds. Reading as many rows whole as there are counts as 64 rounds, and so do as many
// squabbles: bids of a row against its own kind.
__device__ __forceinline__ Int spent(const Auction& auction) {
    const AuctionState& state = *auction.state;
    return state.rounds + 1 - state.opened +
           64 * (state.readings - state.opened_readings + state.squabbles) / auction.n_rows;
}

// Rounds by one block, with its barriers between the steps, down to FEW_BIDDERS. They end sooner where the phase does, and
// when a list had to be read again, which the grid does faster.
__device__ void crowd_rounds(const Auction& auction, Int epsilon, Int limit, Int stop, Int patience, Scratch& scratch) {
    const Team block = one_block();
    AuctionState& state = *auction.state;
    bool again = true;
    while (again) {
        const Int n_bidders = state.n_queue;
        if (state.n_alike) {
            muster(auction, n_bidders, threadIdx.x / 32, WARPS);
            __syncthreads();  // every place and depth before the bids
        }
        bid(auction, n_bidders, epsilon, block);
        __syncthreads();  // the list of stale rows is complete
        const Int n_stale = state.n_stale;
        reread(auction, n_stale, epsilon, block, scratch);
        __syncthreads();  // all offers are posted
        settle(auction, n_bidders, block);
        __syncthreads();  // every column has its winner
        award(auction, n_bidders, block);
        __syncthreads();  // the next queue is complete, and all winners are read
        const Int n_next = state.n_next;
        tidy(auction, n_bidders, n_next, block);
        __syncthreads();  // n_raised is read before it is cleared
        if (threadIdx.x == 0) {
            count_round(auction, n_bidders);
            state.n_next = state.n_raised = 0;
        }
        __syncthreads();  // the counters stand
        again = !n_stale && n_next > max(stop, (Int)FEW_BIDDERS) && state.rounds < limit && spent(auction) < patience;
        __syncthreads();  // everyone has read the counters before the next round's steps change them
    }
}
