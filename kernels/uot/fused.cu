// Sinkhorn sweeps on a stored kernel K = exp(-C / eps): one read of K an iteration, nothing of its size written.
//
//   for each iteration, in one persistent cooperative launch
//     sweep            u_i = (a_i / sum_j K_ij v_j)^fi;  t_j = sum_i u_i K_ij        sweep.cuh, K read once
//     grid barrier     partial sums of all teams are there
//     update_columns   v_j = (b_j / t_j)^fi; mass, translation and (every few iterations) the gap       columns.cuh
//     grid barrier     all blocks' sums are there
//     decide           translation; end at the gap; mix (anderson.cuh) and a third barrier when it accelerates
//
// Invariant between launches: g[PARITY] - SHIFT are column values that no row has seen yet, g[1 - PARITY] -
// SHIFT_CERTIFIED with `potential` is the pair whose gap stands in `status`.
//
// buffer       shape                 dtype            owner
// matrix       (padded m, ld)        f32, f16, bf16   the solve; padding zero; ld a multiple of 16 CS bytes
// log_a, log_b (m,), (ld,)           f32, log2        the solve; -inf where there is no mass, and as padding
// potential    (m,)                  f64, log2 units  team of the row
// g, mapped    (2, ld) each          f32, log2 units  block that owns the column
// partial      (teams, ld)           f32              block that summed
// sums         (2, blocks, ALL_SUMS) f32              block
// history      (2 MEMORY + 1, ld)    f32              block that owns the column
//
// Bytes: m n sizeof(K) an iteration from memory; partial sums (at most 132 n floats) come back from the L2. On paper, at
// 4.6 TB/s: n = 10240 91 us in float32, 46 us in 16 bits. Arithmetic: two FMA and two reads of shared memory an entry,
// under half of what 132 multiprocessors issue in that time.
// Overflow: row or column sums that leave float32's range end as NaN, then as reason EMPTY_COLUMN; the caller turns to
// log.cu. References: Chizat, Peyre, Schmitzer, Vialard (2018), algorithm 1; Sun, Hu, Jiang (2024) for the idea of one
// pass.
//
// Tried and dropped (n = 10240, float32, us an iteration, roofline 91):
//   weights worked out by one of the computing warps, refills by thread 0                        114
//   a 64-bit division to find the next row to fetch, on the path of every step                   116
//   waiting at cluster scope for a bulk copy: it invalidates the first-level cache every step    116
//   filling the whole ring while columns are added up: the small loads queue behind 26 MB        +15
#define ROWS_KEEP_REFERENCE 0
#define STORES_TERMS 0
#define JUMP_LIMIT INFINITY  // row sums are not relative to anything
__device__ __forceinline__ float forward_step(float k, float v, float, float, float& sum) {
    sum = fmaf(k, v, sum);
    return k;
}
__device__ __forceinline__ float backward_step(float k, float, float, float, float u, float total) { return fmaf(u, k, total); }
__device__ __forceinline__ float column_factor(float value, float) { return exp2f(value); }
#include "uot/iterate.cuh"
