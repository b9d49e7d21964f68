// The nearest of a team's columns, and the second nearest. Part of batched.cu.
#include "device/limits.cuh"
#include "device/ordered.cuh"

#define NO_CODE 0xffffffffu

#define TOP top(value_t())

struct Nearest {
    value_t value, extra;  // extra: what the owner tells with it
    u32 code;              // the column, TAKEN while it has a row: the smallest code of the least value wins
    int row;               // the column's row, or -1
};

// A coarser rank_of onto 32 bits: x < y gives lead(x) <= lead(y). Integers below 2^31 keep their order whole.
__device__ __forceinline__ u32 lead(double value) { return (u32)(rank_of(value) >> 32); }
__device__ __forceinline__ u32 lead(long long value) {
    const long long most = 0x7fffffffll;
    return (u32)(value > most ? most : value < -most ? -most : value) ^ 0x80000000u;
}

__device__ __forceinline__ double from_lane(double value, int lane) { return __shfl_sync(FULL_WARP, value, lane); }
__device__ __forceinline__ long long from_lane(long long value, int lane) { return __shfl_sync(FULL_WARP, value, lane); }

// Of the lanes in `who`, which agree in the leading bits: those with the least value.
__device__ __forceinline__ u32 least_among(value_t value, u32 who) {
    const bool in = who >> (threadIdx.x & 31) & 1;
    const u64 key = rank_of(value);
    const u32 high = __reduce_min_sync(FULL_WARP, in ? (u32)(key >> 32) : 0xffffffffu);
    const bool level = in && (u32)(key >> 32) == high;
    const u32 low = __reduce_min_sync(FULL_WARP, level ? (u32)key : 0xffffffffu);
    return __ballot_sync(FULL_WARP, level && (u32)key == low);
}

// The lane with the least value; of several, the one with the least code.
__device__ __forceinline__ int least_lane(value_t value, u32 code) {
    const u32 mine = lead(value), least = __reduce_min_sync(FULL_WARP, mine);
    u32 who = __ballot_sync(FULL_WARP, mine == least);
    if (who & (who - 1)) {  // the same in every lane
        who = least_among(value, who);
        const bool in = who >> (threadIdx.x & 31) & 1;
        const u32 first = __reduce_min_sync(FULL_WARP, in ? code : NO_CODE);
        who = __ballot_sync(FULL_WARP, in && code == first);
    }
    return __ffs(who) - 1;
}

__device__ __forceinline__ value_t least_value(value_t value) {
    const u32 mine = lead(value), least = __reduce_min_sync(FULL_WARP, mine);
    u32 who = __ballot_sync(FULL_WARP, mine == least);
    if (who & (who - 1)) who = least_among(value, who);
    return from_lane(value, __ffs(who) - 1);
}

__device__ __forceinline__ Nearest of_lane(const Nearest& mine, int lane) {
    Nearest out;
    out.value = from_lane(mine.value, lane);
    out.extra = from_lane(mine.extra, lane);
    out.code = __shfl_sync(FULL_WARP, mine.code, lane);
    out.row = __shfl_sync(FULL_WARP, mine.row, lane);
    return out;
}

// The nearest of the warp's lanes, in every lane.
__device__ __forceinline__ Nearest warp_nearest(const Nearest& best) {
    return of_lane(best, least_lane(best.value, best.code));
}

// The nearest of the team's threads, in every thread. The barrier separates the warps' partial results from their
// readers; two sets of them take turns, so that the next call's writes need no barrier of their own.
__device__ __forceinline__ Nearest team_nearest(Nearest* partials, int& turn, Nearest best) {
    best = warp_nearest(best);
    if (TEAM == 32) return best;
    Nearest* partial = partials + (turn ^= 32);
    const int lane = threadIdx.x & 31;
    if (lane == 0) partial[threadIdx.x >> 5] = best;
    __syncthreads();  // partial results before they are read
    best = {TOP, 0, NO_CODE, -1};
    if (lane < TEAM / 32) best = partial[lane];
    return warp_nearest(best);
}

// The nearest of the team's threads, and in `second`, which brings each thread's own, the least value of all
// other columns.
__device__ __forceinline__ Nearest team_nearest_two(Nearest* partials, int& turn, Nearest best, value_t* second) {
    __shared__ value_t seconds[TEAM == 32 ? 1 : 64];
    const int lane = threadIdx.x & 31;
    int winner = least_lane(best.value, best.code);
    *second = least_value(lane == winner ? *second : best.value);
    best = of_lane(best, winner);
    if (TEAM == 32) return best;
    turn ^= 32;
    if (lane == 0) partials[turn + (threadIdx.x >> 5)] = best, seconds[turn + (threadIdx.x >> 5)] = *second;
    __syncthreads();  // as above
    best = {TOP, 0, NO_CODE, -1};
    *second = TOP;
    if (lane < TEAM / 32) best = partials[turn + lane], *second = seconds[turn + lane];
    winner = least_lane(best.value, best.code);
    *second = least_value(lane == winner ? *second : best.value);
    return of_lane(best, winner);
}
