// The thin tail of an auction, rounds of at most THIN bidders, by one block: warp w bids for the person in slot w.
//
//   while anybody is queued
//     bid_together    two barriers a round among the warps that still have a person
//     solo_rounds     no barrier: the last bidder's warp goes on alone, from one owner to the next
//     (a stale list ends both; the whole block reads it again)
//
// Whoever loses its column takes the winner's slot, so slots only empty. A round is a chain of reads that wait for each
// other: the bidder's list, its prices and owners, two warp reductions, the next bidder's list. Owners are read along
// with the prices, so that the next bidder is known as soon as the best edge is.
// Before: all 32 warps at four block barriers a round, shuffles for the two best, the owner read after the round was
// won: 2.1 us a round of 2 to 32 bidders and 0.75 us of one.
#include "auction/rounds.cuh"

struct Thin {
    Int rise[THIN], round[THIN], rounds, bids;  // round: the one that the slot's offer was made in
    int column[THIN], person[THIN];
    bool stale[THIN];
};

// Barrier among the first `warps` warps to come; returns how many of them pass `yes`.
__device__ __forceinline__ int meet(int warps, bool yes) {
    int threads;
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %2, 0; bar.red.popc.u32 %0, 1, %1, p; }"
        : "=r"(threads)
        : "r"(32 * warps), "r"((unsigned)yes)
        : "memory");
    return threads / 32;
}

// Sell the offer's column to person i; every lane learns who lost it, -1 for nobody.
__device__ __forceinline__ int take(const Auction& a, int i, const Offer& o, Int epsilon) {
    if (threadIdx.x % 32 == o.holder) {
        sell(a, o.column, i, o.owner, o.benefit, o.benefit - o.net + rise_of(a, o, epsilon));
    }
    __syncwarp();  // the new price before the next look
    return __shfl_sync(FULL_WARP, o.owner, o.holder);
}

__device__ __forceinline__ void show(const Auction& a, Thin& t, int person, const Offer& o, Int epsilon, Int round,
                                     bool stale) {
    const int w = threadIdx.x / 32;
    if (threadIdx.x % 32) return;
    t.column[w] = o.column < 0 ? -1 - w : o.column;
    t.rise[w] = rise_of(a, o, epsilon);
    t.person[w] = person;
    t.stale[w] = stale;
    t.round[w] = round;
}

// Returns the person that still bids at `limit` or has a stale list; -1 once everybody is served.
__device__ int solo_rounds(const Auction& a, Thin& t, int person, bool fresh, Int epsilon, Int limit, Int& rounds) {
    for (; person >= 0 && rounds < limit; fresh = false) {
        const Offer o = look(a, person);
        if (!fresh && is_stale(a, person, o)) {
            show(a, t, person, o, epsilon, rounds, true);
            break;
        }
        if (a.bidders && rounds < a.trace_size && threadIdx.x % 32 == 0) a.bidders[rounds] = 1;
        ++rounds;
        if (o.column >= 0) person = take(a, person, o, epsilon);
    }
    return person;
}

// Whether warp w's offer wins: each lane holds it against one rival. Equal raises go to the lowest person.
__device__ __forceinline__ bool wins_thin(const Thin& t, int w, bool rival) {
    const int r = threadIdx.x % 32;
    const bool beaten = rival && r != w && t.column[r] == t.column[w] &&
                        (t.rise[r] > t.rise[w] || (t.rise[r] == t.rise[w] && t.person[r] < t.person[w]));
    return !__any_sync(FULL_WARP, beaten);
}

// Rounds of the `warps` warps that have a person; returns this warp's at the end, -1 once it is served. A list that is
// `fresh`, read again for this round, is taken as it is: more edges may tie with its best than it holds.
__device__ int bid_together(const Auction& a, Thin& t, int warps, int person, bool fresh, Int epsilon, Int limit) {
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    Int rounds = t.rounds, bids = t.bids;
    for (; person >= 0 && rounds < limit; fresh = false) {
        if (warps == 1) {
            const Int before = rounds;
            person = solo_rounds(a, t, person, fresh, epsilon, limit, rounds);
            bids += rounds - before;
            break;
        }
        const Offer o = look(a, person);
        show(a, t, person, o, epsilon, rounds, !fresh && is_stale(a, person, o));
        meet(warps, true);  // offers are complete, also before t.rounds changes
        const bool rival = t.round[lane] == rounds;
        if (__any_sync(FULL_WARP, rival && t.stale[lane])) break;
        const int first = __ffs(__ballot_sync(FULL_WARP, rival)) - 1;
        if (w == first && lane == 0 && a.bidders && rounds < a.trace_size) a.bidders[rounds] = warps;
        if (o.column >= 0 && wins_thin(t, w, rival)) person = take(a, person, o, epsilon);
        ++rounds, bids += warps;
        warps = meet(warps, person >= 0);  // prices are written and offers read before the next round's
    }
    if (lane == 0) {  // the warp that stays longest knows the final counts
        atomicMax(&t.rounds, rounds);
        atomicMax(&t.bids, bids);
    }
    return person;
}

__device__ void thin_rounds(const Auction& a, Int n, Int epsilon, Int limit, Scratch& s, Thin& t) {
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    int person = w < n ? a.queue[w] : -1;
    if (lane == 0) t.round[w] = -1;
    if (threadIdx.x == 0) t.rounds = a.state->rounds, t.bids = a.state->bids, s.count = 0;
    Int readings = 0;
    while (true) {
        const int warps = __syncthreads_count(lane == 0 && person >= 0);  // t is written before it is read
        const Int rounds = t.rounds;
        if (!warps || rounds >= limit) break;
        for (int v = 0; v < THIN; ++v) {
            if (t.round[v] != rounds || !t.stale[v]) continue;
            reveal(a, t.person[v], s);
            ++readings;
        }
        const bool fresh = t.round[w] == rounds && t.stale[w];
        __syncthreads();  // everyone has read t before the next offers are shown
        if (person >= 0) person = bid_together(a, t, warps, person, fresh, epsilon, limit);
    }
    if (lane == 0 && person >= 0) a.queue[atomicAdd(&s.count, 1)] = person;  // hands out places
    __syncthreads();
    if (threadIdx.x == 0) {
        State& state = *a.state;
        state.n_queue = s.count;
        state.rounds = t.rounds;
        state.bids = t.bids;
        state.readings += readings;
    }
    __syncthreads();
}
