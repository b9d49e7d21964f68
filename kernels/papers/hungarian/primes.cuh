// Steps 4 and 6 of versions 1 to 6, as the papers have them. Step 4 runs in rounds, with a barrier of the grid after each.
// Step 6 sweeps the whole slack matrix. system.cuh has the buffers and the invariant. A version says first:
//   COUNTS_EACH_ZERO      one global counter of zeros, an atomic addition each
//   LISTS_WHILE_SHIFTING  step 6 lists the new zeros in the pass that makes them
//   KEEPS_IN_REGISTER     it tests for a zero what it has just computed, and does not read it back
//   ABREAST               the warps of a block stay abreast in that pass
#include "papers/hungarian/system.cuh"

// Step 4. Primes the bin's uncovered zeros until the block finds no more. Primes form no cycle: a column is covered before
// the row of its star is uncovered, and a row is looked at before its column. So whoever sees the row uncovered also sees
// the column covered.
__device__ void prime_zeros(const HungarianProblem& problem, int turn) {
    const unsigned* zeros = bin_zeros(problem);
    const int count = problem.zeros_count[blockIdx.x];
    int found = 1;
    while (found) {
        found = 0;
        for (int k = threadIdx.x; k < count; k += THREADS) {
            const long long i = (long long)(zeros[k] >> COLUMN_BITS) * gridDim.x + blockIdx.x;
            const long long j = zeros[k] & ((1u << COLUMN_BITS) - 1);
            if (load_acquire(problem.row_covered + i)) continue;  // the row's state is read before the column's
            if (problem.col_covered[j]) continue;
            problem.prime_of_col[j] = (int)i;
            const int star = problem.star_of_col[j];
            if (star < 0) {
                problem.flags[PATHS + turn] = 1;
            } else {
                found = 1;
                problem.col_covered[j] = 1;
                store_release(problem.row_covered + star, 0);  // covered and primed before the star's row opens
            }
        }
        found = __syncthreads_or(found);  // the same in every thread; all primes before the flag of paths is read
        if (found && threadIdx.x == 0) problem.flags[REPEAT + turn] = 1;
        if (__syncthreads_or(problem.flags[PATHS + turn])) break;  // the same decision in every thread
    }
}

// Step 6a. Least slack among uncovered rows and columns of the bin, into block_min.
__device__ void find_minimum(const HungarianProblem& problem) {
    dual_t least = TOP;
    for (long long i = blockIdx.x; i < problem.n_rows; i += gridDim.x) {
        if (problem.row_covered[i]) continue;
#pragma unroll 4
        for (long long j = threadIdx.x; j < problem.n_cols; j += THREADS) {
            const dual_t found = problem.slack[i * problem.n_cols + j];
            if (found < least && !((const int*)problem.col_covered)[j]) least = found;
        }
    }
    least = block_minimum(least);
    if (threadIdx.x == 0) problem.block_min[blockIdx.x] = least;
}

// Step 6b, over the whole matrix.
__device__ void shift_slack(const HungarianProblem& problem, dual_t delta) {
    unsigned* zeros = bin_zeros(problem);
    if (LISTS_WHILE_SHIFTING && threadIdx.x == 0) problem.zeros_count[blockIdx.x] = 0;
    __syncthreads();  // the count is 0 before anyone appends
    for (long long i = blockIdx.x; i < problem.n_rows; i += gridDim.x) {
        const int row = problem.row_covered[i];
        for (long long base = 0; base < problem.n_cols; base += THREADS) {
            const long long j = base + threadIdx.x;
            dual_t* at = problem.slack + i * problem.n_cols + j;
            dual_t found = 1;
            if (j < problem.n_cols) {
                const int covers = row + ((const int*)problem.col_covered)[j];
                found = *at;
                if (covers == 0) *at = found = found - delta;
                if (covers == 2) *at = found = found + delta;
                if (!KEEPS_IN_REGISTER) found = *(volatile dual_t*)at;
            }
            if (ABREAST) __syncthreads();  // keeps the warps abreast, nothing else
            if (LISTS_WHILE_SHIFTING && found == 0) append_zero(problem, zeros, i, j);
        }
    }
    __syncthreads();  // the list is whole before the block reads it
}

// Step 4 in one launch: rounds of prime_zeros with a grid barrier after each, until a path is found (true) or nothing
// is new. The flags of three rounds take turns: one is set, one is read, one is cleared.
__device__ bool prime_in_rounds(const HungarianProblem& problem, cg::grid_group& grid, int& round) {
    for (;;) {
        if (grid.thread_rank() == 0)
            problem.flags[REPEAT + (round + 1) % 3] = problem.flags[PATHS + (round + 1) % 3] = 0,
                                                 problem.flags[ROUNDS]++;
        prime_zeros(problem, round % 3);
        grid.sync();  // every cover and every flag of this round
        const bool again = problem.flags[REPEAT + round % 3], paths = problem.flags[PATHS + round % 3];
        round++;
        if (paths || !again) return paths;
    }
}

// What one_launch.cuh asks of a version.
enum : bool { TRACES = false };
__device__ __forceinline__ void open_rows(const HungarianProblem&, unsigned char*) {}
__device__ __forceinline__ bool search(const HungarianProblem& problem, cg::grid_group& grid, int& round,
                                       unsigned char*) {
    return prime_in_rounds(problem, grid, round);
}
__device__ __forceinline__ void find_least(const HungarianProblem& problem, unsigned char*) { find_minimum(problem); }
__device__ __forceinline__ void shift(const HungarianProblem& problem, dual_t delta, unsigned char*) {
    shift_slack(problem, delta);
}
