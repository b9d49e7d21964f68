// The start of a block's problem: a Jacobi auction with epsilon 0, a warp a row. Part of batched.cu.
//
//   repeat, while more than a 32nd of the rows is free
//     weigh_row    a warp finds the best column of its row and the second best value, and bids their difference
//     award        the highest bid takes the column, whose price falls by it; the former row is free again
//
// Prices and rows lie in shared memory meanwhile. Every row looks at its columns from an offset of its own, so that
// rows that tie choose different ones. Nothing depends on the order of threads: the list of free rows keeps its order.
#define ROW_BITS 10
#include "lap/award.cuh"

#define MOST_ROUNDS 64

// Of row i the best column, a free one if there is a choice, and the second best value; the same in every lane.
__device__ __forceinline__ Nearest weigh_row(const Shared& team, int i, value_t* second) {
    constexpr int BATCH = 8;  // entries in flight per lane
    const int lane = threadIdx.x & 31, offset = (int)(__umulhi((u32)i * 2654435761u, (u32)team.n_cols));
    Nearest best = {TOP, 0, NO_CODE, -1};
    *second = TOP;
    for (int j0 = lane; j0 < team.n_cols; j0 += 32 * BATCH) {
        value_t entries[BATCH];
#pragma unroll
        for (int each = 0; each < BATCH; each++)
            entries[each] = team.entry(i, min(j0 + 32 * each, team.n_cols - 1));  // all before the first use
#pragma unroll
        for (int each = 0; each < BATCH; each++) {
            const int j = j0 + 32 * each;
            if (j >= team.n_cols) break;
            const value_t reduced = entries[each] - team.price[j];
            const u32 code =
                (team.row_of[j] >= 0 ? TAKEN : 0) | (u32)(j >= offset ? j - offset : j - offset + team.n_cols);
            const bool wins = reduced < best.value || (reduced == best.value && reduced < TOP && code < best.code);
            *second = wins ? best.value : reduced < *second ? reduced : *second;
            if (wins) best.value = reduced, best.code = code, best.row = j;
        }
    }
    const int winner = least_lane(best.value, best.code);
    *second = least_value(lane == winner ? *second : best.value);
    return of_lane(best, winner);  // its `row` is the column
}

__device__ __forceinline__ void place_bids(const Shared& team, int n_free) {
    for (int k = threadIdx.x >> 5; k < n_free; k += TEAM / 32) {
        const int i = team.free[k];
        value_t second;
        const Nearest best = weigh_row(team, i, &second);
        if ((threadIdx.x & 31) > 0) continue;
        const bool bids = second < TOP;  // a row with one permitted entry waits for `augment`
        team.target[k] = bids ? best.row : -1;
        team.rise[k] = bids ? second - best.value : (value_t)0;
        if (bids) atomicMax(team.key + best.row, bid_key(team.rise[k], i));  // settles which row a column takes
    }
}

// Awards all bids and keeps the rows left over in the list, in order. Returns their number; `ties` counts bids of 0.
__device__ __forceinline__ int settle(const Shared& team, int n_free, int* ties) {
    __shared__ int counts[32];
    int kept = 0;
    *ties = 0;
    for (int at = 0; at < n_free; at += TEAM) {
        const int k = at + (int)threadIdx.x;
        bool tied = false;
        const int keep = k < n_free ? award(team, team.free[k], team.target[k], team.rise[k], &tied) : -1;
        const int place = place_in_order<TEAM / 32>(keep >= 0, tied, counts, &kept, ties);
        if (keep >= 0) team.free[place] = keep;
        __syncthreads();  // counts read before they are written again; prices, rows and the list before the next bids
    }
    return kept;
}

// The whole auction; returns how many rows wait in free[0:]. Ends early where most bids tie and few find a free column.
__device__ int jacobi_auction(const Shared& team, Own& own) {
#pragma unroll
    for (int k = 0; k < SLOTS; k++)
        if (own.here >> k & 1) team.price[column(k)] = own.price[k], team.key[column(k)] = 0;
    __syncthreads();  // prices before the first bids
    int n_free = team.n_rows;
    for (int round = 0; round < MOST_ROUNDS && n_free > team.n_rows / 32; round++) {
        const int was = n_free;
        int ties;
        place_bids(team, n_free);
        __syncthreads();  // all bids before awards
        n_free = settle(team, n_free, &ties);
        if (ties * 2 > was && (was - n_free) * 4 < was) break;
    }
#pragma unroll
    for (int k = 0; k < SLOTS; k++) {
        if (!(own.here >> k & 1)) continue;
        own.price[k] = team.price[column(k)];
        own.row[k] = team.row_of[column(k)];
        if (own.row[k] >= 0) own.row_dual[k] = team.entry(own.row[k], column(k)) - own.price[k];
        team.row_of[column(k)] = -1;  // `augment` uses it for paths
    }
    __syncthreads();  // rows read before paths are written there
    return n_free;
}
