// The Hungarian algorithm with alternating trees, grown from all free rows at once, in one cooperative launch.
//
//   reduce_rows, reduce_columns   u_i, v_j: a zero of the reduced matrix in every line; greedy pairs of zeros
//   loop until no row is free, or none can be reached:
//     list_roots                  the free rows are the roots of this phase's trees
//     loop: scan_rows             every block lowers its columns' keys by the rows that joined the trees last
//           publish               its nearest column outside the trees; grid barrier
//           join                  all columns at the least distance enter the trees, with the rows paired to them,
//                                 until paths were found and nothing else lies at their distance
//     update_duals                once per phase, from the distances
//     mark_green, flip_paths      disjoint paths among those found, exchanged in parallel
//
// There is no slack matrix. D is the dual change of the phase so far, and d_i is what D was when row i joined a tree. A
// column keeps key_j, the minimum over tree rows of c_ij - u_i - v_j + d_i. Its slack to the trees is key_j - D. So a dual
// update is nothing but a larger D.
//
// Each block owns `width` columns, with price, key, parent and pair in shared memory, so a relaxation needs no atomics.
// A block puts at most one column a round into the trees: ties wait for the next round, which finds the same distance.
//
// Invariant at a grid barrier: u_i + v_j <= c_ij, with equality on pairs (up to rounding of D). When n_rows < n_cols,
// v <= 0, and 0 in free columns. Slots of round r are written before its barrier, and read before that of round r + 1.
//
// buffer             shape          type     written by
// u, v               n_rows; n_cols dual_t   reduce_*, update_duals
// col_of, row_of     n_rows; n_cols int32    greedy, flip_paths
// roots              n_rows         int32    list_roots (block 0)
// parent, green      n_cols; n_rows int32    join; mark_green
// slots              2, blocks      Slot     publish
// word               4              int32    outcome, roots, phases, rounds
//
// Overflow: integers stay below 16 (n_rows + n_cols) max |cost| < 2^62 (checked by the problem).
//
// Reference: K. Date, R. Nagi, "GPU-accelerated Hungarian algorithms for the linear assignment problem", Parallel
// Computing 57 (2016) 52-72, the alternating-tree variant; E. Lawler, Combinatorial Optimization (1976), section 5.
//
// What it changes against hungarian/: no slack matrix, and trees from all free rows at once.
// CPU reference: kernels/lap/cpu/solver.py. Run: method "tree" of solver lap; python -m benchmarks.lap_systems.
#include "papers/systems.cuh"
#include "papers/tree/layout.py"

namespace cg = cooperative_groups;

struct Columns {  // this block's, in shared memory
    dual_t *price, *key, *best;  // best: WARPS x width, what each warp found
    int *parent, *row, *from;    // row: the paired row or -1; from: WARPS x width
    int *joined;                 // 1 once the column is in a tree
    int first, count;
    dual_t* row_base;            // rows to scan: d_i - u_i
    int* row_index;
};

__device__ __forceinline__ dual_t entry(const TreeProblem& problem, long long i, long long j) {
    const dual_t cost = (dual_t)problem.cost[i * problem.n_cols + j];
    return problem.negate ? -cost : cost;
}

// u_i = least entry of row i, 0 when none is permitted. One warp a row.
__device__ void reduce_rows(const TreeProblem& problem) {
    const int lane = threadIdx.x & 31;
    for (long long i = blockIdx.x * WARPS + (threadIdx.x >> 5); i < problem.n_rows; i += gridDim.x * WARPS) {
        dual_t least = TOP;
#pragma unroll 8
        for (long long j = lane; j < problem.n_cols; j += 32) {
            const dual_t cost = entry(problem, i, j);
            least = cost < least ? cost : least;
        }
        least = warp_min(least);
        if (lane == 0) problem.u[i] = least == TOP ? 0 : least, problem.col_of[i] = -1;
    }
}

// v_j = least of c_ij - u_i over the rows (square problems), and a greedy pair: the column takes the smallest row that
// gives it, unless that row is taken. Requires a barrier after reduce_rows. The exchange settles the race of columns
// for a row.
__device__ void reduce_columns(const TreeProblem& problem, Columns& own) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int k = lane; k < own.count; k += 32) {
        dual_t least = TOP;
        int from = -1;
        for (long long i = warp; i < problem.n_rows; i += WARPS) {
            const dual_t found = entry(problem, i, own.first + k) - problem.u[i];
            if (found < least) least = found, from = (int)i;
        }
        own.best[warp * problem.width + k] = least;
        own.from[warp * problem.width + k] = from;
    }
    __syncthreads();  // every warp's minima before they are joined
    const bool square = problem.n_rows == problem.n_cols;
    for (int k = threadIdx.x; k < own.count; k += THREADS) {
        dual_t least = TOP;
        int from = -1;
        for (int other = 0; other < WARPS; other++) {
            const dual_t found = own.best[other * problem.width + k];
            if (found < least || (found == least && own.from[other * problem.width + k] < from))
                least = found, from = own.from[other * problem.width + k];
        }
        own.price[k] = square && from >= 0 ? least : 0;
        const bool zero = from >= 0 && (square || least == 0);
        const bool won = zero && atomicCAS(problem.col_of + from, -1, own.first + k) == -1;
        problem.row_of[own.first + k] = won ? from : -1;
    }
}

// Block 0 lists the free rows in order; word[ROOTS] is their number.
__device__ void list_roots(const TreeProblem& problem) {
    __shared__ int warp_count[WARPS];
    if (blockIdx.x) return;
    int total = 0;
    for (long long base = 0; base < problem.n_rows; base += THREADS) {
        const long long i = base + threadIdx.x;
        const bool is_free = i < problem.n_rows && problem.col_of[i] < 0;
        const unsigned ballot = __ballot_sync(FULL_WARP, is_free);
        if ((threadIdx.x & 31) == 0) warp_count[threadIdx.x >> 5] = __popc(ballot);
        __syncthreads();  // counts of all warps before offsets are added up
        int at = total + __popc(ballot & ((1u << (threadIdx.x & 31)) - 1));
        for (int other = 0; other < WARPS; other++) {
            if (other < (threadIdx.x >> 5)) at += warp_count[other];
            total += warp_count[other];
        }
        if (is_free) problem.roots[at] = (int)i;
        __syncthreads();  // counts read before they are written again
    }
    if (threadIdx.x == 0) problem.word[ROOTS] = total;
}

// Relaxes the block's columns with `count` rows: each warp takes every WARPS-th, a lane a column. `roots`: the phase's
// roots (d = 0) instead of the listed rows.
__device__ void scan_rows(const TreeProblem& problem, Columns& own, int count, bool roots) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, used = count < WARPS ? count : WARPS;
    for (int k = lane; k < own.count && warp < count; k += 32) {
        dual_t least = TOP;
        int from = -1;
#pragma unroll 4
        for (int which = warp; which < count; which += WARPS) {
            const int i = roots ? problem.roots[which] : own.row_index[which];
            const dual_t found = entry(problem, i, own.first + k) + (roots ? -problem.u[i] : own.row_base[which]);
            if (found < least) least = found, from = i;
        }
        own.best[warp * problem.width + k] = least;
        own.from[warp * problem.width + k] = from;
    }
    __syncthreads();  // every warp's minima before they are joined
    for (int k = threadIdx.x; k < own.count; k += THREADS) {
        if (own.joined[k]) continue;
        dual_t key = own.key[k];
        for (int other = 0; other < used; other++) {
            const dual_t best = own.best[other * problem.width + k], found = best == TOP ? TOP : best - own.price[k];
            if (found < key) key = found, own.parent[k] = own.from[other * problem.width + k];
        }
        own.key[k] = key;
    }
    __syncthreads();  // keys before the nearest is sought
}

// The first warp finds the block's nearest column outside the trees (ties: a free one, then the smallest) and puts it
// into the slot.
__device__ void publish(const TreeProblem& problem, const Columns& own, int round, dual_t floor) {
    if (threadIdx.x >= 32) return;
    dual_t least = TOP;
    for (int k = threadIdx.x; k < own.count; k += 32)
        if (!own.joined[k] && own.key[k] < least) least = own.key[k];
    least = warp_min(least);
    unsigned code = 0xffffffffu;
    for (int k = threadIdx.x; k < own.count; k += 32)
        if (!own.joined[k] && own.key[k] == least) code = min(code, (unsigned)(own.row[k] >= 0) << 31 | (unsigned)k);
    code = __reduce_min_sync(FULL_WARP, code);
    if (threadIdx.x) return;
    Slot* slot = problem.slots + (long long)(round & 1) * gridDim.x + blockIdx.x;
    const int k = code & 0x7fffffffu, row = least == TOP ? -1 : own.row[k];
    slot->row_u = row >= 0 ? problem.u[row] : (dual_t)0;
    slot->row = row;
    slot->col = least == TOP ? -1 : own.first + k;
    slot->key = least < floor ? floor : least;  // rounding must not lead backwards
    if (blockIdx.x == 0) slot->stop = *problem.stop;
}

// Reads all slots after the barrier. Columns at the least key enter the trees: their owner marks them, and every block
// lists the paired rows to scan next, in the order of the slots. Returns the least key, and in `count` how many rows
// are listed. `paths` is set when a free column was among them; once it is, columns beyond `floor` stay out.
__device__ dual_t join(const TreeProblem& problem, Columns& own, int round, dual_t floor, bool& paths, int& count) {
    __shared__ dual_t keys[MAX_BLOCKS];
    __shared__ int rows[MAX_BLOCKS];
    __shared__ dual_t least_of;
    const volatile Slot* slots = problem.slots + (long long)(round & 1) * gridDim.x;
    for (int block = threadIdx.x; block < gridDim.x; block += THREADS)
        keys[block] = slots[block].key, rows[block] = slots[block].row;
    __syncthreads();  // all slots read before they are compared
    if (threadIdx.x < 32) {
        dual_t least = TOP;
        for (int block = threadIdx.x; block < gridDim.x; block += 32) least = keys[block] < least ? keys[block] : least;
        least = warp_min(least);
        if (threadIdx.x == 0) least_of = least;
    }
    __syncthreads();  // the least key before it is compared with
    const dual_t least = least_of;
    const bool enter = least != TOP && !(paths && least > floor),
               mine = enter && threadIdx.x < gridDim.x && keys[threadIdx.x] == least;
    if (mine) {
        const int row = rows[threadIdx.x], col = slots[threadIdx.x].col;
        if (threadIdx.x == blockIdx.x) {
            const int k = col - own.first;
            own.joined[k] = 1, own.key[k] = least, problem.parent[col] = own.parent[k];
        }
        int at = 0;
        for (int block = 0; block < threadIdx.x; block++) at += keys[block] == least && rows[block] >= 0;
        if (row >= 0) own.row_index[at] = row, own.row_base[at] = least - slots[threadIdx.x].row_u;
    }
    paths = __syncthreads_or(mine && rows[threadIdx.x] < 0) || paths;  // the same in every thread
    count = __syncthreads_count(mine && rows[threadIdx.x] >= 0);  // also: the list is whole
    return least;
}

// Duals after a phase that ended at distance `end`: each column that joined at key k loses end - k, its row and every
// root gain it.
__device__ void update_duals(const TreeProblem& problem, Columns& own, dual_t end) {
    for (int k = threadIdx.x; k < own.count; k += THREADS) {
        if (!own.joined[k]) continue;
        own.price[k] -= end - own.key[k];
        problem.v[own.first + k] = own.price[k];
        if (own.row[k] >= 0) problem.u[own.row[k]] += end - own.key[k];
    }
    for (int which = blockIdx.x * THREADS + threadIdx.x; which < problem.word[ROOTS]; which += gridDim.x * THREADS)
        problem.u[problem.roots[which]] += end;
}

// From each free column that joined back to a root, marking for every row the column it shall take. Where paths meet
// the last mark wins; every mark leads on to some free column.
__device__ void mark_green(const TreeProblem& problem, const Columns& own) {
    for (int k = threadIdx.x; k < own.count; k += THREADS) {
        if (!own.joined[k] || own.row[k] >= 0) continue;
        for (int col = own.first + k; col >= 0;) {
            const int row = problem.parent[col];
            problem.green[row] = col;
            col = problem.col_of[row];
        }
    }
}

// From each root along the greens, giving every row its new column. Greens are one per row and, as every column has one
// parent, one per column: paths of different roots never meet.
__device__ void flip_paths(const TreeProblem& problem) {
    for (int which = blockIdx.x * THREADS + threadIdx.x; which < problem.word[ROOTS]; which += gridDim.x * THREADS) {
        if (problem.green[problem.roots[which]] < 0) continue;
        for (int row = problem.roots[which]; row >= 0;) {
            const int col = problem.green[row], next = problem.row_of[col];
            problem.col_of[row] = col;
            problem.row_of[col] = row;
            row = next;
        }
    }
}

// Shared memory of a block: 2 + WARPS values and 4 + WARPS ints a column, and the list of rows.
__device__ Columns lay_out(const TreeProblem& problem, dual_t* memory) {
    const int width = (int)problem.width;
    Columns own;
    own.price = memory;
    own.key = own.price + width;
    own.best = own.key + width;
    own.row_base = own.best + WARPS * width;
    own.parent = (int*)(own.row_base + MAX_BLOCKS);
    own.row = own.parent + width;
    own.joined = own.row + width;
    own.from = own.joined + width;
    own.row_index = own.from + WARPS * width;
    own.first = blockIdx.x * width;
    own.count = max(0, min(width, (int)problem.n_cols - own.first));
    return own;
}

// Empty trees: no column joined, nothing reached, no green.
__device__ void clear_trees(const TreeProblem& problem, Columns& own) {
    for (int k = threadIdx.x; k < own.count; k += THREADS)
        own.key[k] = TOP, own.joined[k] = 0, own.row[k] = problem.row_of[own.first + k];
    for (long long i = blockIdx.x * THREADS + threadIdx.x; i < problem.n_rows; i += gridDim.x * THREADS)
        problem.green[i] = -1;
}

// One phase's growth. Sets `stop` when the caller wants to. Returns the distance at which it ended, TOP when nothing
// more can be reached and no path was found.
__device__ dual_t grow(const TreeProblem& problem, Columns& own, cg::grid_group& grid, int& round, bool& stop) {
    dual_t floor = 0;
    bool paths = false;
    scan_rows(problem, own, problem.word[ROOTS], true);
    for (;;) {
        publish(problem, own, round, floor);
        grid.sync();  // every block's slot
        const bool had_paths = paths;
        int count;
        const dual_t least = join(problem, own, round++, floor, paths, count);
        stop =
            problem.slots[(long long)((round - 1) & 1) * gridDim.x].stop;  // not written again before the next barrier
        if (stop || (had_paths && least > floor)) return floor;
        if (least == TOP) return TOP;
        floor = least;
        scan_rows(problem, own, count, false);
    }
}

// All steps. Grid: ceil(n_cols / width) blocks, cooperative. Block: 512. Shared: see lay_out. Reads: cost.
// Writes: everything else. Requires: word all 0. Work: two sweeps to begin with, then one row of the matrix for each row
// that joins a tree.
extern "C" __global__ void __launch_bounds__(THREADS, 1) tree(const TreeProblem* given) {
    extern __shared__ dual_t memory[];
    const TreeProblem problem = *given;
    cg::grid_group grid = cg::this_grid();
    const bool leader = grid.thread_rank() == 0;
    Columns own = lay_out(problem, memory);
    int round = 0;
    reduce_rows(problem);
    grid.sync();  // u before columns are reduced
    reduce_columns(problem, own);
    for (int k = threadIdx.x; k < own.count; k += THREADS) problem.v[own.first + k] = own.price[k];
    for (;;) {
        grid.sync();  // pairs before free rows are listed
        list_roots(problem);
        clear_trees(problem, own);
        grid.sync();  // roots and greens before the trees grow
        if (!problem.word[ROOTS] || problem.word[PHASES] >= problem.phase_limit) {
            if (leader) problem.word[OUTCOME] = problem.word[ROOTS] ? STOPPED : OPTIMAL, problem.word[ROUNDS] = round;
            return;
        }
        bool stop = false;
        const dual_t end = grow(problem, own, grid, round, stop);
        if (stop) {
            if (leader) problem.word[OUTCOME] = STOPPED;
            return;
        }
        if (end == TOP) {
            if (leader) problem.word[OUTCOME] = INFEASIBLE;
            for (int k = threadIdx.x; k < own.count; k += THREADS) problem.in_tree[own.first + k] = own.joined[k];
            return;
        }
        update_duals(problem, own, end);
        mark_green(problem, own);
        grid.sync();  // all greens before a path is followed
        if (leader) problem.word[PHASES]++;
        flip_paths(problem);
    }
}
