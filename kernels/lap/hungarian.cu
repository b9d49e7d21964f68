// The classical Hungarian algorithm, its zeros distributed over the blocks, in one cooperative launch.
//
//   reduce_rows, reduce_columns      step 1   slack = cost - u - v, at least one zero in every line
//   compress_zeros                            each block lists the zeros of its rows
//   star_zeros                       step 2   a first pairing of zeros
//   loop: cover_stars                step 3   rows with a star are covered; all of them: optimal
//     loop: prime_zeros              step 4   follow uncovered zeros, each block its own, until nothing is new
//           find_minimum             step 6   the least uncovered slack, when no path was found
//           shift_slack              step 6   uncovered -= minimum, twice covered += minimum; list the new zeros
//     mark_green, flip_paths         step 5   choose disjoint paths among the primes and exchange their stars
//
// The file is the mirror image of the paper, which stores slack by columns and searches from unmatched columns: here
// slack lies by rows, the search starts at unmatched rows, and rows and columns change places in every step. n_rows <=
// n_cols; rows must all be matched, columns may stay free: then step 1 leaves the columns alone.
//
// OPT chooses how much of Kawtikwar, Chang and Govind's tuning is in (the ablation of benchmarks/lap_systems.py):
//   -1 Lopes et al.: one global counter of zeros;      0 counts by reduction instead;
//    1 shift_slack and compress_zeros in one pass;     2 one cooperative launch, no host round trips (`hungarian`);
//    3 the slack held in a register;                   4 a barrier that keeps the block's warps abreast;
//    5 ours: step 4 runs to its end without grid barriers and finds as many paths as it can (`trace_zeros`); rows keep
//      their least slack; a dual update touches only entries that change, and the list of zeros is made anew once per
//      search.
//
// Invariant at a launch boundary or grid barrier: slack >= 0 wherever a row or column is uncovered, slack = 0 exactly
// at stars; a star's row or its column is covered, never both; prime_of_col[j] is a row that was uncovered before j
// was covered.
//
// buffer                     shape            type    written by
// slack                      n_rows, n_cols   dual_t  reduce_*, shift_slack
// zeros                      n_rows, n_cols   uint32  compress_zeros, shift_slack  (row of the bin << 20 | column)
// zeros_count                blocks           int32   compress_zeros, shift_slack
// u, v                       n_rows; n_cols   dual_t  reduce_*, shift_slack
// star_of_row, green_of_row  n_rows           int32   star_zeros, flip_paths; mark_green
// star_of_col, prime_of_col  n_cols           int32   star_zeros, flip_paths; prime_zeros
// row_covered, col_covered   n_rows; n_cols   int32   cover_stars, prime_zeros
// block_min                  blocks           dual_t  find_minimum
// flags                      16               int32   see the enum
//
// Row i belongs to bin i % blocks. Overflow: integers stay below 16 (n_rows + n_cols) max |cost| (checked by
// the problem).
//
// References: P. Lopes, S. Yadav, A. Ilic, S. Patra, "Fast block distributed CUDA implementation of the Hungarian
// algorithm", J. Parallel Distrib. Comput. 130 (2019), algorithms 1 to 4; S. Kawtikwar, Y. Chang, V. Govind,
// "Improvements to the Hungarian LAP Solver", section IV.
#include "lap/systems.cuh"
#ifndef OPT
#define OPT 5
#endif
#define THREADS 1024
#define COLUMN_BITS 20

namespace cg = cooperative_groups;

// REPEAT, PATHS: 3 each, in turn
enum { STARS, REPEAT, PATHS = 4, OUTCOME = 7, ZEROS, UPDATES, SEARCHES, ROUNDS, STALE };
enum { RUNNING, OPTIMAL, INFEASIBLE, STOPPED };

struct Problem {
    const cost_t* cost;
    dual_t* slack;
    unsigned* zeros;
    int* zeros_count;
    dual_t *u, *v;
    int *star_of_row, *star_of_col, *prime_of_col, *green_of_row;
    volatile int *row_covered, *col_covered;
    dual_t *row_min, *block_min;
    int* row_arg;
    unsigned long long* open;
    volatile int* flags;
    const volatile int* stop;  // host memory: nonzero once the caller wants what there is
    long long n_rows, n_cols, negate, search_limit;
};

__device__ __forceinline__ unsigned* bin_zeros(const Problem& p) {
    const long long rows = (p.n_rows + gridDim.x - 1) / gridDim.x;
    return p.zeros + (long long)blockIdx.x * rows * p.n_cols;
}

// Minimum over the block, in every thread. Two barriers: partial results written; read before they are written again.
__device__ __forceinline__ dual_t block_minimum(dual_t value) {
    __shared__ dual_t partial[THREADS / 32];
    value = warp_min(value);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = value;
    __syncthreads();
    value = warp_min(threadIdx.x % 32 < THREADS / 32 ? partial[threadIdx.x % 32] : TOP);
    __syncthreads();
    return value;
}

// Appends (row i, column j) to the bin's list. The atomic settles the race for a place among the block's threads.
__device__ __forceinline__ void append_zero(const Problem& p, unsigned* zeros, long long i, long long j) {
    if (OPT < 0) atomicAdd((int*)p.flags + ZEROS, 1);
    zeros[atomicAdd(p.zeros_count + blockIdx.x, 1)] = (unsigned)(i / gridDim.x) << COLUMN_BITS | (unsigned)j;
}

// Step 1a. u_i = least entry of row i; slack = cost - u; no stars. Block: a row at a time. Reads cost; writes slack, u.
__device__ void reduce_rows(const Problem& p) {
    for (long long i = blockIdx.x; i < p.n_rows; i += gridDim.x) {
        const cost_t* row = p.cost + i * p.n_cols;
        dual_t least = TOP;
        for (long long j = threadIdx.x; j < p.n_cols; j += THREADS) {
            const dual_t c = p.negate ? -(dual_t)row[j] : (dual_t)row[j];
            least = c < least ? c : least;
        }
        least = block_minimum(least);
        if (least == TOP) least = 0;  // no permitted entry: find_minimum will see it
        for (long long j = threadIdx.x; j < p.n_cols; j += THREADS) {
            const dual_t c = p.negate ? -(dual_t)row[j] : (dual_t)row[j];
            p.slack[i * p.n_cols + j] = c - least;
        }
        if (threadIdx.x == 0) p.u[i] = least, p.star_of_row[i] = -1, p.row_covered[i] = 0;
    }
    for (long long j = blockIdx.x * THREADS + threadIdx.x; j < p.n_cols; j += gridDim.x * THREADS)
        p.v[j] = 0, p.star_of_col[j] = -1, p.col_covered[j] = 0;
}

// Step 1b, square problems. v_j = least slack of column j, then slack -= v. A block takes 32 columns at a time, its
// warps stride over the rows, so that every access is a whole 256-byte line. Requires a barrier after reduce_rows.
__device__ void reduce_columns(const Problem& p) {
    __shared__ dual_t partial[THREADS / 32][33];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (long long tile = blockIdx.x; tile * 32 < p.n_cols; tile += gridDim.x) {
        const long long j = tile * 32 + lane;
        dual_t least = TOP;
        if (j < p.n_cols)
            for (long long i = warp; i < p.n_rows; i += THREADS / 32) {
                const dual_t x = p.slack[i * p.n_cols + j];
                least = x < least ? x : least;
            }
        partial[warp][lane] = least;
        __syncthreads();  // every warp's minima before they are joined
        least = warp_min(partial[lane][warp]);
        __syncthreads();  // all read before the joined minima are written over them
        if (lane == 0) partial[0][warp] = least == TOP ? 0 : least;
        __syncthreads();  // joined minima before they are used
        least = partial[0][lane];
        if (j < p.n_cols && least != 0) {
            if (warp == 0) p.v[j] = least;
            for (long long i = warp; i < p.n_rows; i += THREADS / 32) p.slack[i * p.n_cols + j] -= least;
        }
        __syncthreads();  // all read before the next tile's minima
    }
}

// Lists every zero of the bin's rows. Reads slack; writes zeros, zeros_count.
__device__ void compress_zeros(const Problem& p) {
    unsigned* zeros = bin_zeros(p);
    if (threadIdx.x == 0) p.zeros_count[blockIdx.x] = 0;
    __syncthreads();  // the count is 0 before anyone appends
    for (long long i = blockIdx.x; i < p.n_rows; i += gridDim.x)
        for (long long j = threadIdx.x; j < p.n_cols; j += THREADS)
            if (p.slack[i * p.n_cols + j] == 0) append_zero(p, zeros, i, j);
    __syncthreads();  // the list is whole before the block reads it
}

// Step 2. Each block stars zeros of its rows. row_covered and col_covered serve as locks: whoever gets both keeps
// the star.
__device__ void star_zeros(const Problem& p) {
    const unsigned* zeros = bin_zeros(p);
    const int count = p.zeros_count[blockIdx.x];
    int again = 1;
    while (again) {
        again = 0;
        for (int k = threadIdx.x; k < count; k += THREADS) {
            const long long i = (long long)(zeros[k] >> COLUMN_BITS) * gridDim.x + blockIdx.x;
            const long long j = zeros[k] & ((1u << COLUMN_BITS) - 1);
            if (p.row_covered[i] || p.col_covered[j]) continue;
            if (atomicExch((int*)p.row_covered + i, 1)) continue;  // races within the row
            if (atomicExch((int*)p.col_covered + j, 1)) {          // races within the column
                p.row_covered[i] = 0;
                again = 1;
            } else {
                p.star_of_row[i] = (int)j;
                p.star_of_col[j] = (int)i;
            }
        }
        again = __syncthreads_or(again);
    }
}

// Step 3. Covers the rows with a star and forgets primes and greens. Adds up the stars in flags[STARS], which is
// 0 before.
__device__ void cover_stars(const Problem& p) {
    const long long first = blockIdx.x * THREADS + threadIdx.x, step = (long long)gridDim.x * THREADS;
    int stars = 0;
    for (long long i = first; i < p.n_rows; i += step) {
        const int starred = p.star_of_row[i] >= 0;
        p.row_covered[i] = starred;
        p.green_of_row[i] = -1;
        p.row_arg[i] = -1;
        stars += starred;
    }
    for (long long j = first; j < p.n_cols; j += step) p.col_covered[j] = 0, p.prime_of_col[j] = -1;
    stars = __reduce_add_sync(FULL_WARP, stars);
    if ((threadIdx.x & 31) == 0 && stars) atomicAdd((int*)p.flags + STARS, stars);
}

__device__ __forceinline__ int load_acquire(const volatile int* at) {
    int value;
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ unsigned long long load_acquire(const unsigned long long* at) {
    unsigned long long value;
    asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ void store_release(volatile int* at, int value) {
    asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// The minimum over all blocks, the same in every thread. Requires a grid barrier after find_minimum.
__device__ __forceinline__ dual_t grid_minimum(const Problem& p) {
    dual_t least = TOP;
    for (int k = threadIdx.x; k < gridDim.x; k += THREADS) least = ((volatile dual_t*)p.block_min)[k];
    return block_minimum(least);
}

// The dual side of step 6: u of uncovered rows rises, v of covered columns falls.
__device__ void shift_duals(const Problem& p, dual_t delta) {
    const long long first = blockIdx.x * THREADS + threadIdx.x, step = (long long)gridDim.x * THREADS;
    for (long long i = first; i < p.n_rows; i += step)
        if (!p.row_covered[i]) p.u[i] += delta;
    for (long long j = first; j < p.n_cols; j += step)
        if (p.col_covered[j]) p.v[j] -= delta;
}

// Step 5a. From each free column with a prime back to a free row, marking for each row the column it shall take. Where
// paths join, the last mark wins, and every mark leads on to some free column.
__device__ void mark_green(const Problem& p) {
    for (long long j = blockIdx.x * THREADS + threadIdx.x; j < p.n_cols; j += (long long)gridDim.x * THREADS) {
        if (p.prime_of_col[j] < 0 || p.star_of_col[j] >= 0) continue;
        int col = (int)j;
        while (col >= 0) {
            const int row = p.prime_of_col[col];
            p.green_of_row[row] = col;
            col = p.star_of_row[row];
        }
    }
}

// Step 5b. From each free row along the greens, giving every row its new star. Greens are one per row and one
// per column.
__device__ void flip_paths(const Problem& p) {
    for (long long i = blockIdx.x * THREADS + threadIdx.x; i < p.n_rows; i += (long long)gridDim.x * THREADS) {
        if (p.green_of_row[i] < 0 || p.star_of_row[i] >= 0) continue;
        int row = (int)i;
        while (row >= 0) {
            const int col = p.green_of_row[row], next = p.star_of_col[col];
            p.star_of_row[row] = col;
            p.star_of_col[col] = row;
            row = next;
        }
    }
}

#include "lap/hungarian_lines.cuh"
#include "lap/hungarian_sweeps.cuh"

// Step 6, between two grid barriers of its own. False when the problem is infeasible or the caller wants to stop.
__device__ bool update_duals(const Problem& p, cg::grid_group& grid, unsigned char* seen) {
    const bool leader = grid.thread_rank() == 0;
    if (leader && *p.stop) p.flags[OUTCOME] = STOPPED;
    OPT >= 5 ? find_kept_minimum(p, seen) : find_minimum(p);
    grid.sync();  // every block's minimum; every block has left step 4
    const dual_t delta = grid_minimum(p);
    if (p.flags[OUTCOME] == STOPPED) return false;
    if (delta == TOP) {
        if (leader) p.flags[OUTCOME] = INFEASIBLE;
        return false;
    }
    shift_duals(p, delta);
    OPT >= 5 ? shift_lines(p, delta, seen) : shift_slack(p, delta);
    if (leader) p.flags[UPDATES]++, p.flags[STALE] = OPT >= 5, *p.open = gridDim.x;
    grid.sync();  // the new slack and duals before zeros are primed
    return true;
}

// All steps. Grid: one block per SM, cooperative. Block: 1024. Shared: 13 KB static, and a byte per row of a bin. Reads
// cost; writes everything else. Requires: flags all 0. Work: three sweeps for step 1, then per dual update (OPT < 5)
// two to three sweeps of slack, (OPT 5) one pass over what changes and over rows whose minimum is not known, and a
// sweep per search.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hungarian(const Problem* problem) {
    extern __shared__ unsigned char seen[];
    __shared__ Problem p;  // twenty pointers would take forty registers
    if (threadIdx.x == 0) p = *problem;
    __syncthreads();  // p before anyone reads it
    cg::grid_group grid = cg::this_grid();
    const bool leader = grid.thread_rank() == 0;
    reduce_rows(p);
    grid.sync();  // slack by rows before it is read by columns
    if (p.n_rows == p.n_cols) reduce_columns(p);
    grid.sync();  // slack final before zeros are listed
    compress_zeros(p);
    star_zeros(p);
    for (int round = 0;;) {
        if (leader) *p.open = gridDim.x;
        grid.sync();  // stars settled before they are counted
        cover_stars(p);
        if (OPT >= 5) {
            for (long long i = blockIdx.x + (long long)threadIdx.x * gridDim.x, k = threadIdx.x; i < p.n_rows;
                 i += (long long)THREADS * gridDim.x, k += THREADS)
                seen[k] = p.star_of_row[i] < 0;
            if (p.flags[STALE]) compress_zeros(p);
        }
        grid.sync();  // covers and the count before anyone decides
        if (leader) p.flags[STALE] = 0;
        const bool done = p.flags[STARS] == p.n_rows;
        if (done || p.flags[SEARCHES] >= p.search_limit) {
            if (leader) p.flags[OUTCOME] = done ? OPTIMAL : STOPPED;
            return;
        }
        for (;;) {
            if (OPT >= 5) trace_zeros(p, seen);
            if (OPT >= 5 ? p.flags[PATHS] : prime_in_rounds(p, grid, round)) break;
            if (!update_duals(p, grid, seen)) return;
        }
        mark_green(p);
        grid.sync();  // all greens before a path is followed
        if (leader) p.flags[STARS] = 0, p.flags[SEARCHES]++;
        if (OPT >= 5 && leader) p.flags[PATHS] = 0;
        flip_paths(p);
    }
}

// The same steps as launches of their own, for the host loop of OPT -1, 0 and 1. `step` picks one.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hungarian_step(const Problem* problem, int step) {
    const Problem p = *problem;
    if (step == 0) reduce_rows(p);
    if (step == 1 && p.n_rows == p.n_cols) reduce_columns(p);
    if (step == 2) compress_zeros(p);
    if (step == 3) star_zeros(p);
    if (step == 4) cover_stars(p);
    if (step == 5) prime_zeros(p, 0);
    if (step == 6) find_minimum(p);
    if (step == 7) {
        const dual_t delta = grid_minimum(p);
        if (delta == TOP) p.flags[OUTCOME] = INFEASIBLE;
        if (delta != TOP) shift_duals(p, delta), shift_slack(p, delta);
    }
    if (step == 8) mark_green(p);
    if (step == 9) flip_paths(p);
    if (step == 10 && blockIdx.x == 0) {  // count the zeros by reduction (OPT 0 and up)
        int count = 0;
        for (int k = threadIdx.x; k < gridDim.x; k += THREADS) count += p.zeros_count[k];
        count = __reduce_add_sync(FULL_WARP, count);
        if ((threadIdx.x & 31) == 0) atomicAdd((int*)p.flags + ZEROS, count);
    }
}
