// Similar rows: rows with the same edges bid together, and never for each other's columns.
//
// Alone, k alike rows would all bid for their best column, and k - 1 of them again. Later they would outbid each other by
// epsilon for what one of them has already. Together, the row in place r bids for the kind's r-th best column that none
// of them owns. It lifts the price until that column is worth no more than the (k + 1)-th best: the kind's *margin*. The
// row in place 0 does the same to the columns that the kind owns, as an offer of each owner. No column is then better for
// any of them than the margin, and none of theirs is worse than epsilon below it (Bertsekas and Castanon 1989, for the
// transportation problem).
// All rows of a kind must see the same order. So they look no deeper than the edges above the rest of every one's list,
// which are the same in all their lists. They order equals by column, also with `spread`: that rule differs from row to
// row, and here the places already spread the rows. Which row gets which place is left to the atomic in `muster`, so it
// may differ from run to run; rounds that must repeat bid for bid find no alike rows.
// A kind that owns most of its lists' columns *squabbles*: its rows bid against each other, one by one, as if alone. That
// counts towards the phase's patience and ends it the sooner. Kinds of up to some 50 rows gain.
#include "auction/rows.cuh"

// A sum over edges that no order of reading changes.
__device__ __forceinline__ unsigned long long hash_edges(const Auction& auction, const Row& row, Int first, Int step) {
    unsigned long long sum = 0;
    for (Int edge = first; edge < row.degree; edge += step) {
        const Int benefit = benefit_at(auction, row, edge);
        if (benefit == LOWEST) continue;
        unsigned long long mixed =
            (unsigned long long)benefit * 0x9e3779b97f4a7c15ULL + (unsigned)column_at(auction, row, edge);
        mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ mixed >> 29) * 0x94d049bb133111ebULL;
        sum += mixed ^ mixed >> 32;
    }
    return sum;
}

// The kind of a row is the place of its hash in the table. The exchange settles who takes a place; who finds its hash
// there is alike. One thread. Two kinds of the same 64 bits would be taken for one, and the certificate would tell.
__device__ __forceinline__ void name_kind(const Auction& auction, Int i, unsigned long long hash) {
    hash += hash == 0;  // 0 marks a free place
    for (Int at = (Int)(hash >> 8) & auction.kind_mask;; at = (at + 1) & auction.kind_mask) {
        const unsigned long long found = atomicCAS(auction.kinds + at, 0ULL, hash);
        if (found == hash) add(&auction.state->n_alike, 1);
        if (found && found != hash) continue;
        auction.kind_of[i] = (int)at;
        return;
    }
}

// What one lane holds of a row's list. `free`: net, or LOWEST where somebody of the same kind owns the column.
struct Pair {
    Int net[2], free[2], benefit[2];
    int column[2], owner[2];
};

__device__ __forceinline__ Pair pair_of(const Auction& auction, Int i) {
    const Int at = i * LIST + threadIdx.x % 32;
    Pair pair;
    for (int k = 0; k < 2; ++k) {
        pair.column[k] = auction.list_columns[at + 32 * k];
        pair.benefit[k] = auction.list_benefits[at + 32 * k];
        pair.owner[k] = pair.column[k] < 0 ? -1 : auction.row_of[pair.column[k]];
        pair.net[k] = pair.column[k] < 0 ? LOWEST : pair.benefit[k] - auction.prices[pair.column[k]];
        const bool own = pair.owner[k] >= 0 && auction.kind_of[pair.owner[k]] == auction.kind_of[i];
        pair.free[k] = own ? LOWEST : pair.net[k];
    }
    return pair;
}

// Give every queued row its place among its kind, and the kind the depth down to which all its lists agree.
// The atomics hand out places and settle the smallest depth.
__device__ void muster(const Auction& auction, Int n_bidders, Int first_warp, Int warps) {
    for (Int bidder = first_warp; bidder < n_bidders; bidder += warps) {
        const Int i = auction.queue[bidder], rest = auction.rest[i];
        const Pair pair = pair_of(auction, i);
        const int depth = __popc(__ballot_sync(FULL_WARP, pair.free[0] > rest)) +
                          __popc(__ballot_sync(FULL_WARP, pair.free[1] > rest));
        const bool own = __any_sync(FULL_WARP, pair.free[0] != pair.net[0] || pair.free[1] != pair.net[1]);
        if (threadIdx.x % 32) continue;
        const int kind = auction.kind_of[i];
        atomicMin(auction.depth + kind, depth);
        const int place = atomicAdd(auction.gathered + kind, 1);
        auction.place[bidder] = place;
        if (depth < 2 && (own || place)) add(&auction.state->squabbles, 1);  // it will bid against its kind
    }
}

// How many of the warp's 64 edges come before edge k of this lane.
__device__ __forceinline__ int edges_before(const Pair& pair, int k) {
    int before = 0;
    for (int lane = 0; lane < 32; ++lane) {
        for (int other = 0; other < 2; ++other) {
            const Int net = __shfl_sync(FULL_WARP, pair.free[other], lane);
            const int column = __shfl_sync(FULL_WARP, pair.column[other], lane);
            before += net > pair.free[k] || (net == pair.free[k] && column < pair.column[k]);
        }
    }
    return before;
}

// Offers of owners of the kind for their own columns, behind those of the n queued: at the new price a column is worth
// `margin` - epsilon to its owner.
__device__ void raise_own(const Auction& auction, const Pair& pair, Int n_bidders, Int margin, Int epsilon) {
    for (int k = 0; k < 2; ++k) {
        const Int rise = pair.net[k] - (margin - epsilon);
        if (pair.free[k] == pair.net[k] || rise <= 0) continue;
        const Int which = n_bidders + add(&auction.state->n_raised, 1);  // hands out places
        auction.queue[which] = pair.owner[k];
        auction.offer_column[which] = pair.column[k];
        auction.offer_rise[which] = rise;
        atomicMax(auction.top_rise + pair.column[k], (unsigned long long)rise);  // a bidder may offer more
    }
}

// What row i, in a place of the queue, bids for: as `look`, or, among its kind, for the column of its place. Column -1 without
// a stale list says that it waits, as the lists are too short for all of the kind.
__device__ Offer look_among(const Auction& auction, Int i, Int bidder, Int n_bidders, Int epsilon) {
    const int kind = auction.kind_of[i], place = auction.place[bidder],
              many = min(auction.gathered[kind], auction.depth[kind] - 1);
    if (many < 1) return look(auction, i);
    Offer offer = {-LOWEST, -LOWEST, 0, -1, 0, -1};
    if (place >= many) return offer;
    const Pair pair = pair_of(auction, i);
    for (int k = 0; k < 2; ++k) {
        const int before = edges_before(pair, k);
        const bool listed = pair.free[k] > LOWEST;
        const unsigned mine = __ballot_sync(FULL_WARP, before == place && listed);
        const unsigned next = __ballot_sync(FULL_WARP, before == many && listed);
        if (mine) {
            offer.holder = __ffs(mine) - 1;
            offer.benefit = pair.benefit[k];
            offer.net = __shfl_sync(FULL_WARP, pair.net[k], offer.holder);
            offer.column = __shfl_sync(FULL_WARP, pair.column[k], offer.holder);
        }
        if (next) offer.second = __shfl_sync(FULL_WARP, pair.net[k], __ffs(next) - 1);
    }
    if (place == 0) raise_own(auction, pair, n_bidders, offer.second, epsilon);
    return offer;
}
