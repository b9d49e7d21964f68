// Sinkhorn sweeps on a stored kernel K = exp(-C / eps): one read of K an iteration, nothing of its size written.
//
//   for each iteration, in one persistent launch of teams of CS blocks (clusters)
//     compute          u_i = (a_i / sum_j K_ij v_j)^fi;  t_j = sum_i u_i K_ij over its rows    sweep.cuh, K read once
//     update_columns   post t_j, collect all teams'; v_j = (b_j / t_j)^fi                             columns.cuh
//     conclude         mass, translation, (every few iterations) the gap; end at the gap; mix         anderson.cuh
//
// No barrier of the grid: a team meets in its shared memory, teams meet in numbered messages (columns.cuh). Each team
// works out the same columns by itself, each block of it its own.
//
// Invariant between launches: g[0] are column values that no row has seen yet, g[1] with `potential` is the pair whose
// gap stands in `status`; words hold no number of a later sweep.
//
// buffer        shape                    dtype            owner
// matrix        (CS, m, width)           f32, f16, bf16   the solve; what a block reads lies together
// log_a, log_b  (m,), (ld,)              f32, log2        the solve; -inf where there is no mass, and as padding
// potential     (m,)                     f64, log2 units  the team of the row, its blocks in turn
// g             (2, ld)                  f32, log2 units  team 0 when a launch ends; in shared memory before
// words         (2, teams, CS, width+2)  f32 + number     the block that posts
// history       (1 or teams, 12, ld)     f32              the block; in shared memory where it fits
//
// Bytes: m n sizeof(K) an iteration from memory, and 112 n of messages through the L2. The L2 still holds a part of the
// sweep before, which went through the groups the other way round. On paper, at 4.6 TB/s and n = 10240: 91 us in float32,
// 46 us in 16 bits. Arithmetic: two FMA and two reads of shared memory an entry. That is under half of what 112
// multiprocessors issue in that time (7 clusters of 16 are what the GPCs of an H200 hold).
// Overflow: row or column sums that leave float32's range end as NaN, then as reason EMPTY_COLUMN; the caller turns to
// log.cu.
// References: Chizat, Peyre, Schmitzer, Vialard (2018), algorithm 1; Sun, Hu, Jiang (2024) for the idea of one pass.
//
// What bounds it: the memory, for large n. At n = 1024 it is the waiting for messages, and code that runs once an
// iteration waits for its own instructions. docs/notes/uot.md: what was tried, with its figures.
#define ROWS_KEEP_REFERENCE 0
#define STORES_TERMS 0
#define JUMP_LIMIT INFINITY  // row sums are not relative to anything
__device__ __forceinline__ float forward_step(float entry, float value, float, float, float& sum) {
    sum = fmaf(entry, value, sum);
    return entry;
}
__device__ __forceinline__ float backward_step(float entry, float, float, float, float weight, float total) {
    return fmaf(weight, entry, total);
}
__device__ __forceinline__ float column_factor(float value, float) { return exp2f(value); }
#include "uot/iteration/iterate.cuh"
