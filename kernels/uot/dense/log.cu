// Sinkhorn sweeps from the costs themselves: one exponential an entry and iteration, right at any eps in float32.
//
//   as fused.cu, with terms e_ij = 2^(G_j - C_ij s - reference_i), s = log2(e) / eps, in place of K_ij v_j. The
//   reference of a row is the log2 of its last row sum, so that e is the current plan over its row sums: no overflow,
//   and what underflows is 2^-126 of its row. forward leaves e in shared memory where C was, and backward weighs it.
//
// Invariant between launches: as fused.cu; references come back from the potentials when a launch begins.
// Buffers: as fused.cu; matrix holds costs, float32, +inf where forbidden.
//
// Underflow guard: a row sum moves by at most as much as the column values do. Once one of those or the translation
// moves by 2^30 the launch ends (JUMPED), row_reference sets references from row maxima, and the next launch goes on. A
// column whose whole mass underflows ends the launch too (EMPTY_COLUMN); the caller then makes one float64 sweep.
// Exponentials are not the bound: at n = 10240 there are 1.05e8 of them. At 16 a clock and multiprocessor, 4.2e12 a
// second, they take 25 us. Reading C takes 91 us.
// Where a matrix stays in shared memory for all iterations, C must survive: backward works e out again (STORES_TERMS 0).
// Precision: exponents are rounded at the size of the potentials in log2 units. At eps = 1e-3 that is 6e-5 of an entry at
// most. Terms below 2^-126 vanish (-ftz). Even after a jump of 2^60 they are below 2^-66 of a row sum.
//
// The arithmetic of exponents and the storing of terms bound it, not the copies. docs/notes/uot.md: what was tried.
#include "device/barriers.cuh"
#define ROWS_KEEP_REFERENCE 1
#define JUMP_LIMIT 60.f  // a row sum moves by at most as much as the column values: terms stay in float32's range
#ifndef STORES_TERMS
#define STORES_TERMS 0
#endif
__device__ __forceinline__ float term(float cost, float value, float reference, float scale) {
    return fast_exp2(fmaf(cost, -scale, value) - reference);
}
__device__ __forceinline__ float forward_step(float cost, float value, float reference, float scale, float& sum) {
    const float result = term(cost, value, reference, scale);
    sum += result;
    return result;
}
__device__ __forceinline__ float backward_step(float cost, float value, float reference, float scale, float weight,
                                               float total) {
    return fmaf(weight, STORES_TERMS ? cost : term(cost, value, reference, scale), total);
}
__device__ __forceinline__ float column_factor(float value, float) { return value; }
#include "uot/iteration/iterate.cuh"

// F_i = power * (alpha - max_j (G_j - C_ij s)) + beta: a potential that makes every term of the first sweep at most 1.
// Grid: any. Block: a multiple of 32. Shared: none. Reads: cost, g. Writes: potential. Requires: nothing.
// Work: a row a warp, one read of the costs.
extern "C" __global__ void row_reference(const __grid_constant__ ReferenceOfCostsArgs args) {
    const int m = args.m, n = args.n, width = args.width;
    const int lane = threadIdx.x & 31;
    for (int i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; i < m; i += gridDim.x * (blockDim.x / 32)) {
        float most = -INFINITY;
        for (int j = lane; j < n; j += 32) {
            const float cost = args.cost[((size_t)(j / width) * m + i) * width + j % width];
            most = fmaxf(most, fmaf(cost, -args.scale, args.g[j]));
        }
        most = -warp_min(-most);
        const float alpha = args.product ? 0.f : args.log_a[i], beta = args.product ? args.log_a[i] : 0.f;
        if (lane == 0) args.potential[i] = args.power_a * (alpha - (most == -INFINITY ? 0.f : most)) + beta;
    }
}
