// Between two sweeps: column sums -> column values, translation, certified gap. Shared by fused.cu and log.cu.
//
// Block k owns the columns [k * slice, (k + 1) * slice). Sums over blocks are taken in a fixed order: the same bits each run.
#include "uot/sweep.cuh"

constexpr int FEW = EMPTY + 1;  // sums that every iteration needs; the others only where the gap is worked out

struct Owned {
    int begin, end, lanes, bits;  // the block's columns, `lanes` = 2^bits (at least 8) at a time
};

__device__ __forceinline__ Owned owned(int n, int lanes) {
    const int slice = (n + gridDim.x - 1) / gridDim.x, begin = min(n, (int)blockIdx.x * slice);
    return {begin, min(n, begin + slice), lanes, __ffs(lanes) - 1};
}

// The block's share of sum a_i f_i (log2 units): the rows' side of the dual where their marginal is exact.
__device__ __forceinline__ float exact_rows(const Problem& p, const float* log_mass, const double* potential) {
    float sum = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < p.m; i += gridDim.x * THREADS)
        sum += exp2f(log_mass[i]) * (float)(__ldcg(potential + i) - (p.product ? log_mass[i] : 0.f));
    return sum;
}

// The sum over teams of column j, in threads below `lanes`; `part` is THREADS floats of shared memory.
__device__ __forceinline__ float add_partials(const float* partial, int teams, int ld, int j, bool inside, Owned own, float* part) {
    const int lanes = own.lanes, step = THREADS >> own.bits;
    float sum = 0.f;
    if (inside && threadIdx.x < step * lanes) {
#pragma unroll 8
        for (int k = threadIdx.x >> own.bits; k < teams; k += step) sum += __ldcg(partial + (size_t)k * ld + j);
    }
    int groups = step;
    if (lanes < 32) {  // add within the warp first
        for (int apart = 16; apart >= lanes; apart >>= 1) sum += __shfl_xor_sync(FULL_WARP, sum, apart);
        groups = WARPS;
    }
    if (threadIdx.x < THREADS && (threadIdx.x & 31) < lanes) part[threadIdx.x / 32 * min(lanes, 32) + (threadIdx.x & 31)] = sum;
    __syncthreads();  // part written above, read below
    if (threadIdx.x < lanes) {
        sum = 0.f;
#pragma unroll 8
        for (int k = 0; k < groups; ++k) sum += part[k * lanes + threadIdx.x];
    }
    return sum;
}

// Adds up each column of the block, writes its next value, and leaves the block's sums in place[SUMS].
__device__ __forceinline__ void update_columns(const Problem& p, const Marginals& w, const float* partial, int teams, Owned own,
                                               const float* log_mass, const float* value, float shift, float* next, bool full,
                                               const float* row_log_mass, const double* potential, float* place) {
    __shared__ float part[THREADS];
    __shared__ float scratch[WARPS][SUMS];
    float sums[SUMS] = {};
    const int busy = (own.lanes + 31) / 32;  // warps that hold columns
    for (int base = own.begin; base < own.end; base += own.lanes) {
        const int j = base + (threadIdx.x & (own.lanes - 1));
        const bool inside = threadIdx.x < THREADS && j < own.end;
        const float before = inside && threadIdx.x < own.lanes ? __ldcg(value + j) - shift : 0.f;
        float t = add_partials(partial, teams, p.ld, j, inside, own, part);
        if (inside && threadIdx.x < own.lanes) {
            if (!ROWS_KEEP_REFERENCE) t *= exp2f(before);
            next[j] = column_value(p, w, t, before, log_mass[j], full, sums);
        }
        if (base + own.lanes < own.end) __syncthreads();  // part read above, written by the next round
    }
    if (full && isinf(w.rho_a) && threadIdx.x < THREADS) sums[EXACT] += exact_rows(p, row_log_mass, potential);
    const int warps = full && isinf(w.rho_a) ? WARPS : busy;
#pragma unroll
    for (int s = 0; s < SUMS; ++s) {
        if ((s >= FEW && !full) || threadIdx.x / 32 >= warps) continue;
        const float value_s = s == LARGEST_JUMP ? -warp_min(-sums[s]) : warp_sum(sums[s]);
        if ((threadIdx.x & 31) == 0) {
            if (warps == 1) place[s] = value_s;
            else scratch[threadIdx.x / 32][s] = value_s;
        }
    }
    if (warps == 1) return;
    __syncthreads();  // scratch written above, read below
    if (threadIdx.x >= SUMS) return;
    float value_s = 0.f;
    for (int k = 0; k < warps; ++k)
        value_s = threadIdx.x == LARGEST_JUMP ? fmaxf(value_s, scratch[k][threadIdx.x]) : value_s + scratch[k][threadIdx.x];
    place[threadIdx.x] = value_s;
}

// Adds up all blocks' sums, in every block alike, into `total` in shared memory.
__device__ __forceinline__ void add_blocks(const float* all, int count, double* total) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    for (int s = warp; s < count; s += WARPS + 1) {
        double value = 0;
#pragma unroll 5
        for (int k = lane; k < gridDim.x; k += 32) {
            const float other = __ldcg(all + k * ALL_SUMS + s);
            value = s == LARGEST_JUMP ? fmax(value, (double)other) : value + other;
        }
#pragma unroll
        for (int step = 16; step; step >>= 1) {
            const double other = __shfl_xor_sync(FULL_WARP, value, step);
            value = s == LARGEST_JUMP ? fmax(value, other) : value + other;
        }
        if (lane == 0) total[s] = value;
    }
    __syncthreads();  // total written above, read below
}

// What follows from the sums of this iteration, in every block alike; block 0 also writes the status.
__device__ __forceinline__ Decision decide(const Marginals& w, const double* total, double* status, float shift, int done,
                                           int parity, bool full) {
    __shared__ Decision decision;
    if (full) {
        if (threadIdx.x == 0) decision = judge(w, total, blockIdx.x == 0 ? status : nullptr, shift, done, parity, JUMP_LIMIT);
        __syncthreads();  // decision written above, read below
        return decision;
    }
    Decision d;
    d.shift = translation(w, total[MASS], total[COLUMN_SIDE]);
    const float jump = (float)total[LARGEST_JUMP] + fabsf(d.shift - shift);
    d.reason = total[EMPTY] > 0 ? EMPTY_COLUMN : jump > JUMP_LIMIT ? JUMPED : RUNNING;
    if (d.reason != RUNNING && blockIdx.x == 0 && threadIdx.x == 0) {
        status[ITERATIONS] = done, status[PARITY] = parity, status[SHIFT] = d.shift, status[SHIFT_CERTIFIED] = shift;
        status[REASON] = d.reason, status[JUMP] = jump;
    }
    return d;
}
