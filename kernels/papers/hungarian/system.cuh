// The classical Hungarian algorithm, its zeros distributed over the blocks: state, steps 1 to 3 and step 5.
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
// The file is the mirror image of the paper. The paper stores slack by columns and searches from unmatched columns. Here
// slack lies by rows, the search starts at unmatched rows, and rows and columns change places in every step. n_rows <=
// n_cols, and every row must be matched. Where columns may stay free, step 1 leaves the columns alone.
//
// What the papers change one after the other stands in v1_counter.cu to v7_traced.cu. Each is a whole program: it
// includes this file, then steps 4 and 6, then a kernel that runs the steps. README.md lists the versions.
//
// Invariant at a launch boundary or grid barrier: slack >= 0 wherever a row or column is uncovered, and slack = 0 at
// stars. A star's row or its column is covered, never both. prime_of_col[j] is a row that was open before j was covered.
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
// flags                      16               int32   see layout.py
//
// Row i belongs to bin i % blocks. Overflow: integers stay below 16 (n_rows + n_cols) max |cost| (checked by
// the problem).
//
// References: P. Lopes, S. Yadav, A. Ilic, S. Patra, "Fast block distributed CUDA implementation of the Hungarian
// algorithm", J. Parallel Distrib. Comput. 130 (2019), algorithms 1 to 4; S. Kawtikwar, Y. Chang, V. Govind,
// "Improvements to the Hungarian LAP Solver", section IV.
#include "device/uniform.cuh"
#include "papers/systems.cuh"
#include "papers/hungarian/layout.py"

#define COLUMN_BITS 20

namespace cg = cooperative_groups;

__device__ __forceinline__ unsigned* bin_zeros(const HungarianProblem& problem) {
    const long long rows = (problem.n_rows + gridDim.x - 1) / gridDim.x;
    return problem.zeros + (long long)blockIdx.x * rows * problem.n_cols;
}

// Minimum over the block, in every thread.
__device__ __forceinline__ dual_t block_minimum(dual_t value) {
    __shared__ dual_t partial[THREADS / 32];
    value = warp_min(value);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = value;
    __syncthreads();  // partial results written before they are read
    value = warp_min(threadIdx.x % 32 < THREADS / 32 ? partial[threadIdx.x % 32] : TOP);
    __syncthreads();  // and read before the next call writes them
    return value;
}

// Appends (row i, column j) to the bin's list. The atomic settles the race for a place among the block's threads.
__device__ __forceinline__ void append_zero(const HungarianProblem& problem, unsigned* zeros, long long i, long long j) {
    if (COUNTS_EACH_ZERO) atomicAdd((int*)problem.flags + ZEROS, 1);
    zeros[atomicAdd(problem.zeros_count + blockIdx.x, 1)] = (unsigned)(i / gridDim.x) << COLUMN_BITS | (unsigned)j;
}

// Step 1a. u_i = least entry of row i; slack = cost - u; no stars. Block: a row at a time. Reads cost; writes slack, u.
__device__ void reduce_rows(const HungarianProblem& problem) {
    for (long long i = blockIdx.x; i < problem.n_rows; i += gridDim.x) {
        const cost_t* row = problem.cost + i * problem.n_cols;
        dual_t least = TOP;
        for (long long j = threadIdx.x; j < problem.n_cols; j += THREADS) {
            const dual_t entry = problem.negate ? -(dual_t)row[j] : (dual_t)row[j];
            least = entry < least ? entry : least;
        }
        least = block_minimum(least);
        if (least == TOP) least = 0;  // no permitted entry: find_minimum will see it
        for (long long j = threadIdx.x; j < problem.n_cols; j += THREADS) {
            const dual_t entry = problem.negate ? -(dual_t)row[j] : (dual_t)row[j];
            problem.slack[i * problem.n_cols + j] = entry - least;
        }
        if (threadIdx.x == 0) problem.u[i] = least, problem.star_of_row[i] = -1, problem.row_covered[i] = 0;
    }
    for (long long j = blockIdx.x * THREADS + threadIdx.x; j < problem.n_cols; j += gridDim.x * THREADS)
        problem.v[j] = 0, problem.star_of_col[j] = -1, problem.col_covered[j] = 0;
}

// Step 1b, square problems. v_j = least slack of column j, then slack -= v. A block takes 32 columns at a time, its
// warps stride over the rows, so that every access is a whole 256-byte line. Requires a barrier after reduce_rows.
__device__ void reduce_columns(const HungarianProblem& problem) {
    __shared__ dual_t partial[THREADS / 32][33];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (long long tile = blockIdx.x; tile * 32 < problem.n_cols; tile += gridDim.x) {
        const long long j = tile * 32 + lane;
        dual_t least = TOP;
        if (j < problem.n_cols)
            for (long long i = warp; i < problem.n_rows; i += THREADS / 32) {
                const dual_t found = problem.slack[i * problem.n_cols + j];
                least = found < least ? found : least;
            }
        partial[warp][lane] = least;
        __syncthreads();  // every warp's minima before they are joined
        least = warp_min(partial[lane][warp]);
        __syncthreads();  // all read before the joined minima are written over them
        if (lane == 0) partial[0][warp] = least == TOP ? 0 : least;
        __syncthreads();  // joined minima before they are used
        least = partial[0][lane];
        if (j < problem.n_cols && least != 0) {
            if (warp == 0) problem.v[j] = least;
            for (long long i = warp; i < problem.n_rows; i += THREADS / 32)
                problem.slack[i * problem.n_cols + j] -= least;
        }
        __syncthreads();  // all read before the next tile's minima
    }
}

// Lists every zero of the bin's rows. Reads slack; writes zeros, zeros_count.
__device__ void compress_zeros(const HungarianProblem& problem) {
    unsigned* zeros = bin_zeros(problem);
    if (threadIdx.x == 0) problem.zeros_count[blockIdx.x] = 0;
    __syncthreads();  // the count is 0 before anyone appends
    for (long long i = blockIdx.x; i < problem.n_rows; i += gridDim.x)
        for (long long j = threadIdx.x; j < problem.n_cols; j += THREADS)
            if (problem.slack[i * problem.n_cols + j] == 0) append_zero(problem, zeros, i, j);
    __syncthreads();  // the list is whole before the block reads it
}

// Step 2. Each block stars zeros of its rows. row_covered and col_covered serve as locks: whoever gets both keeps
// the star.
__device__ void star_zeros(const HungarianProblem& problem) {
    const unsigned* zeros = bin_zeros(problem);
    const int count = problem.zeros_count[blockIdx.x];
    int again = 1;
    while (again) {
        again = 0;
        for (int k = threadIdx.x; k < count; k += THREADS) {
            const long long i = (long long)(zeros[k] >> COLUMN_BITS) * gridDim.x + blockIdx.x;
            const long long j = zeros[k] & ((1u << COLUMN_BITS) - 1);
            if (problem.row_covered[i] || problem.col_covered[j]) continue;
            if (atomicExch((int*)problem.row_covered + i, 1)) continue;  // races within the row
            if (atomicExch((int*)problem.col_covered + j, 1)) {          // races within the column
                problem.row_covered[i] = 0;
                again = 1;
            } else {
                problem.star_of_row[i] = (int)j;
                problem.star_of_col[j] = (int)i;
            }
        }
        again = __syncthreads_or(again);  // the same in every thread; this pass's covers before the next reads them
    }
}

// Step 3. Covers the rows with a star and forgets primes and greens. Adds up the stars in flags[STARS], which is
// 0 before.
__device__ void cover_stars(const HungarianProblem& problem) {
    const long long first = blockIdx.x * THREADS + threadIdx.x, step = (long long)gridDim.x * THREADS;
    int stars = 0;
    for (long long i = first; i < problem.n_rows; i += step) {
        const int starred = problem.star_of_row[i] >= 0;
        problem.row_covered[i] = starred;
        problem.green_of_row[i] = -1;
        problem.row_arg[i] = -1;
        stars += starred;
    }
    for (long long j = first; j < problem.n_cols; j += step) problem.col_covered[j] = 0, problem.prime_of_col[j] = -1;
    stars = __reduce_add_sync(FULL_WARP, stars);
    if ((threadIdx.x & 31) == 0 && stars) atomicAdd((int*)problem.flags + STARS, stars);
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
__device__ __forceinline__ dual_t grid_minimum(const HungarianProblem& problem) {
    dual_t least = TOP;
    for (int k = threadIdx.x; k < gridDim.x; k += THREADS) least = ((volatile dual_t*)problem.block_min)[k];
    return block_minimum(least);
}

// The dual side of step 6: u of uncovered rows rises, v of covered columns falls.
__device__ void shift_duals(const HungarianProblem& problem, dual_t delta) {
    const long long first = blockIdx.x * THREADS + threadIdx.x, step = (long long)gridDim.x * THREADS;
    for (long long i = first; i < problem.n_rows; i += step)
        if (!problem.row_covered[i]) problem.u[i] += delta;
    for (long long j = first; j < problem.n_cols; j += step)
        if (problem.col_covered[j]) problem.v[j] -= delta;
}

// Step 5a. From each free column with a prime back to a free row, marking for each row the column it shall take. Where
// paths join, the last mark wins, and every mark leads on to some free column.
__device__ void mark_green(const HungarianProblem& problem) {
    for (long long j = blockIdx.x * THREADS + threadIdx.x; j < problem.n_cols; j += (long long)gridDim.x * THREADS) {
        if (problem.prime_of_col[j] < 0 || problem.star_of_col[j] >= 0) continue;
        int col = (int)j;
        while (col >= 0) {
            const int row = problem.prime_of_col[col];
            problem.green_of_row[row] = col;
            col = problem.star_of_row[row];
        }
    }
}

// Step 5b. From each free row along the greens, giving every row its new star. Greens are one per row and one
// per column.
__device__ void flip_paths(const HungarianProblem& problem) {
    for (long long i = blockIdx.x * THREADS + threadIdx.x; i < problem.n_rows; i += (long long)gridDim.x * THREADS) {
        if (problem.green_of_row[i] < 0 || problem.star_of_row[i] >= 0) continue;
        int row = (int)i;
        while (row >= 0) {
            const int col = problem.green_of_row[row], next = problem.star_of_col[col];
            problem.star_of_row[row] = col;
            problem.star_of_col[col] = row;
            row = next;
        }
    }
}
