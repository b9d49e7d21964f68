// Version 7 of the Hungarian system, our own and the one that method "hungarian" runs: no grid barrier while zeros are
// followed, and no entry touched that does not change.
//
//   trace_zeros        step 4    runs to its end without grid barriers and finds as many paths as it can
//   find_kept_minimum  step 6a   rows keep their least slack; only those that lost it are read
//   shift_lines        step 6b   touches the entries that change; zeros are listed anew once per search
//
// Paper: after Lopes et al. (2019) and Kawtikwar et al.; the three steps above are not theirs.
// CPU reference: kernels/lap/cpu/solver.py. Run: python -m benchmarks.lap_systems --parts ablation; its rows of opt 5.
//
// buffer            shape            type            beside those of system.cuh
// row_min, row_arg  n_rows           dual_t, int32   least slack of an open row over uncovered columns, and its column
// open              1                uint64          rows opened in the low word, rows scanned in the high word
// seen              rows of the bin  shared bytes    0 covered, 1 open, 2 open and scanned
//
// docs/notes/lap.md: what was tried, with its figures.
enum : bool { COUNTS_EACH_ZERO = false, TRACES = true };
#include "papers/hungarian/system.cuh"

// Step 4, without grid barriers and to the end, so that one search finds as many paths as it can. A block scans the
// zeros of its rows as they open, and counts both in problem.open. Each count begins with one token per block, for the first
// pass. When the two are equal, nothing is under way anywhere.
__device__ void trace_zeros(const HungarianProblem& problem, unsigned char* seen) {
    const unsigned* zeros = bin_zeros(problem);
    const int count = problem.zeros_count[blockIdx.x],
              rows = (int)((problem.n_rows - blockIdx.x + gridDim.x - 1) / gridDim.x);
    for (int first = 1;; first = 0) {
        int fresh = 0;
        for (int k = threadIdx.x; k - threadIdx.x < rows; k += THREADS) {
            const bool opened =
                k < rows && !seen[k] && !load_acquire(problem.row_covered + k * (long long)gridDim.x + blockIdx.x);
            if (opened) seen[k] = 1;
            fresh += __syncthreads_count(opened);  // also: `seen` is whole before zeros are tested
        }
        if (!first && !fresh) {
            int done = 0;
            if (threadIdx.x == 0) {
                const unsigned long long word = load_acquire(problem.open);
                done = (unsigned)word == (unsigned)(word >> 32);
            }
            if (__syncthreads_or(done)) return;  // the same decision in every thread
            continue;
        }
        for (int k = threadIdx.x; k < count; k += THREADS) {
            const int at = zeros[k] >> COLUMN_BITS, j = zeros[k] & ((1u << COLUMN_BITS) - 1);
            if (seen[at] != 1 && !(first && seen[at])) continue;
            if (problem.col_covered[j] || atomicExch((int*)problem.col_covered + j, 1))
                continue;  // one prime per column
            problem.prime_of_col[j] = at * (int)gridDim.x + (int)blockIdx.x;
            const int star = problem.star_of_col[j];
            if (star < 0) {
                problem.flags[PATHS] = 1;
            } else {
                atomicAdd(problem.open, 1ull);
                store_release(problem.row_covered + star, 0);  // covered and primed before the star's row opens
            }
        }
        __syncthreads();  // all of this block's openings are counted before its scans are
        for (int k = threadIdx.x; k < rows; k += THREADS) seen[k] = seen[k] ? 2 : 0;
        __threadfence();  // primes before the count that others wait for
        __syncthreads();  // every thread has fenced
        if (threadIdx.x == 0) atomicAdd(problem.open, (unsigned long long)(fresh + first) << 32);
    }
}

// Least slack of row i over uncovered columns, and a column that has it, into row_min and row_arg. Returns the least.
__device__ dual_t rescan_row(const HungarianProblem& problem, long long i) {
    const int* col_covered = (const int*)problem.col_covered;
    dual_t mine = TOP;
    int arg = -1;
#pragma unroll 4
    for (int j = threadIdx.x; j < problem.n_cols; j += THREADS) {
        const dual_t found = problem.slack[i * problem.n_cols + j];
        if (found < mine && !col_covered[j]) mine = found, arg = j;
    }
    const dual_t low = block_minimum(mine);
    if (mine == low && arg >= 0) problem.row_min[i] = low, problem.row_arg[i] = arg;  // any thread that has it may write
    return low;
}

// Step 6a. An open row's least slack is kept, and found anew only when the row has just opened or its column
// was covered since.
__device__ void find_kept_minimum(const HungarianProblem& problem, const unsigned char* seen) {
    __shared__ int stale[THREADS];
    __shared__ int n_stale;
    const int rows = (int)((problem.n_rows - blockIdx.x + gridDim.x - 1) / gridDim.x);
    dual_t least = TOP;
    for (int base = 0; base < rows; base += THREADS) {
        if (threadIdx.x == 0) n_stale = 0;
        __syncthreads();  // the list is empty before anyone adds; the last one was used
        const int k = base + threadIdx.x;
        if (k < rows && seen[k]) {
            const long long i = (long long)k * gridDim.x + blockIdx.x;
            const int kept = problem.row_arg[i];
            if (kept < 0 || problem.col_covered[kept]) stale[atomicAdd(&n_stale, 1)] = k;
            else least = problem.row_min[i] < least ? problem.row_min[i] : least;
        }
        __syncthreads();  // the list is whole before it is used
        for (int which = 0; which < n_stale; which++) {
            const dual_t low = rescan_row(problem, (long long)stale[which] * gridDim.x + blockIdx.x);
            least = low < least ? low : least;
        }
    }
    least = block_minimum(least);
    if (threadIdx.x == 0) problem.block_min[blockIdx.x] = least;
}

// Step 6b. Reads and writes only what changes, LINES rows at a time so that enough loads are under way. A
// thread keeps the covers of its columns as bits, 32 columns a strip. Appends the new zeros, which lie in rows whose
// least slack is delta. Zeros that are covered twice stay listed: their rows open in this search only with their
// columns covered, and the next search lists anew.
#define LINES 4
__device__ void shift_lines(const HungarianProblem& problem, dual_t delta, const unsigned char* seen) {
    unsigned* zeros = bin_zeros(problem);
    const int rows = (int)((problem.n_rows - blockIdx.x + gridDim.x - 1) / gridDim.x), n_cols = (int)problem.n_cols;
    const long long pitch = (long long)gridDim.x * n_cols;  // from one row of the bin to the next
    for (int strip = 0; strip < n_cols; strip += 32 * THREADS) {
        unsigned covered = 0;
        const int mine = strip + threadIdx.x, tiles = min(32, (n_cols - mine + THREADS - 1) / THREADS);
        for (int tile = 0; tile < tiles; tile++)
            covered |= (unsigned)(((const int*)problem.col_covered)[mine + tile * THREADS] != 0) << tile;
        for (int k = 0; k < rows; k += LINES) {
            dual_t* lines = problem.slack + ((long long)k * gridDim.x + blockIdx.x) * n_cols + mine;
            for (int tile = 0; tile < tiles; tile++, lines += THREADS) {
                dual_t before[LINES];
                const int column_open = !(covered >> tile & 1);
#pragma unroll
                for (int line = 0; line < LINES; line++)
                    if (k + line < rows && column_open == (seen[k + line] != 0)) before[line] = lines[line * pitch];
#pragma unroll
                for (int line = 0; line < LINES; line++) {
                    if (k + line >= rows || column_open != (seen[k + line] != 0)) continue;
                    const dual_t after = column_open ? before[line] - delta : before[line] + delta;
                    lines[line * pitch] = after;
                    if (after == 0 && column_open)
                        append_zero(problem, zeros, (long long)(k + line) * gridDim.x + blockIdx.x,
                                    mine + tile * THREADS);
                }
            }
        }
    }
    for (int k = threadIdx.x; k < rows; k += THREADS)
        if (seen[k]) problem.row_min[(long long)k * gridDim.x + blockIdx.x] -= delta;
    __syncthreads();  // the list is whole before the block reads it
}

// What one_launch.cuh asks of a version. `seen` of a free row is 1: every search begins there.
__device__ __forceinline__ void open_rows(const HungarianProblem& problem, unsigned char* seen) {
    for (long long i = blockIdx.x + (long long)threadIdx.x * gridDim.x, k = threadIdx.x; i < problem.n_rows;
         i += (long long)THREADS * gridDim.x, k += THREADS)
        seen[k] = problem.star_of_row[i] < 0;
    if (problem.flags[STALE]) compress_zeros(problem);
}
__device__ __forceinline__ bool search(const HungarianProblem& problem, cg::grid_group&, int&, unsigned char* seen) {
    trace_zeros(problem, seen);
    return problem.flags[PATHS];
}
__device__ __forceinline__ void find_least(const HungarianProblem& problem, unsigned char* seen) {
    find_kept_minimum(problem, seen);
}
__device__ __forceinline__ void shift(const HungarianProblem& problem, dual_t delta, unsigned char* seen) {
    shift_lines(problem, delta, seen);
}

#include "papers/hungarian/one_launch.cuh"
