// The exact finish of the dense assignment problem: shortest augmenting paths from all free rows at once.
//
//   sow:      every free row i is a source at distance 0 and offers D_i + max(0, c_ij - u_i - v_j) to every column
//   search:   repeat                                              (one round = one exchange between the blocks)
//     nearest:  each block publishes the nearest matched column of its slice whose label improved since it was last
//               published
//     collect:  every block reads all of them; m = the nearest of all; labels up to m can no longer change
//     relax, fold:  the matched rows of the published columns offer labels to the block's columns
//   until half of the sources have a free column within T, the m of the round before (an eighth after seats.cu, whose few
//   sources are far from free columns, so that paths are in each other's way; any one, when there are more
//   columns than rows). README.md proves that any such T will do
//   threshold: when nothing was left to publish, T is the farthest free column reached (square), none: infeasible.
//              With n_rows < n_cols, T is the nearest free column: a column that stays free must keep v_j = 0
//   propose:  every free column within T proposes its path to its source; a source takes the lowest column
//   accept, augment:  v_j -= max(0, T - d_j), u_i += max(0, T - D_i), which makes those paths tight; flip them
//
// With `share` > 0 this is a coarse search among the levels of bid.cu's scaling. Lengths are rounded down to multiples of
// a power of two at or below share * spread, the level's epsilon. So many ties leave short paths. Duals stay feasible
// within epsilon, pairs tight within two epsilons; the next level keeps only v. Clustered points need it. There the rows
// that an auction leaves belong to one region and the free columns to another. One tree takes all of them, so each exact
// phase would match one row.
//
// Between launches and between phases: u_i + v_j <= c_ij up to rounding. Matched pairs are tight, as u_i of a matched row
// is defined as c_ij - v_j. u_i of a free row was tight when the auction ended. Trees with different sources share no
// node, so the flipped paths are disjoint. Labels never fall below the label they came from (the 0 in max), so rounding
// makes no cycle of predecessors. A block owns `width` columns (label, dual, predecessor in shared memory), so labels
// need no atomics. Every block keeps the parent of every row scanned, so that it can walk any path by itself.
//
// buffer     shape             type     owner
// cost       n_rows, n_cols    cost_t   -
// v, u       n_cols; n_rows    value_t  duals; a block reads and writes its slice
// col_row    n_cols            int32    matched row or -1; a block its slice
// free_rows  n_free            int32    sources, with free_u; from the auction, constant
// live       blocks, n_rows    uint32   each block its own list of positions in free_rows still unmatched
// proposal   n_rows            uint64   column << 32 | its predecessor row, by source; all ones before
// board      2, blocks, 2      2 x u64  words of the exchange; a block writes its own two
// mailbox    4                 int32    mapped host memory: [0] stop, [1] phases, [2] rows still free
//
// Overflow: a label is at most the length of a simple path, n_rows * spread; the problem's check keeps 32 (n_rows +
// n_cols) max |c| below 2^63 or 1.8e308. Rows are 16 bits on the board: n_rows <= 65536.
//
// After K. Date, R. Nagi, "GPU-accelerated Hungarian algorithms for the linear assignment problem", Parallel
// Computing 57 (2016), for the forest; E. Moore (1957) and D. Bertsekas for label correcting.
//
// A round costs one trip through L2 and back (the exchange), and as much again in all other steps. A grid barrier beside
// the exchange would make it longer still. README.md has the cycles, docs/notes/lap.md what was tried and its figures.
#include "device/uniform.cuh"
#include "lap/auto/dense.cuh"
#include "lap/auto/slice.cuh"
#include "lap/auto/paths.cuh"

// The labels that `count` listed rows offer to this thread's columns.
__device__ __forceinline__ void relax(const Matrix& matrix, const Slice& slice, int count, u32 offset, value_t* best,
                                      u32* giver) {
    const int lane = threadIdx.x & (matrix.lanes - 1), step = THREADS / matrix.lanes;
    for (int e0 = threadIdx.x / matrix.lanes; e0 < count; e0 += step * BATCH) {
        cost_t loaded[BATCH][STRIPS];
        int row[BATCH];
#pragma unroll
        for (int each = 0; each < BATCH; each++) {  // all loads before the first use
            const int place = e0 + each * step;
            row[each] = -1;
            if (place >= count) continue;
            row[each] = list_row[place];
            if (row[each] < 0) continue;
            const cost_t* at = matrix.cost + (long long)row[each] * matrix.n_cols + matrix.first + lane;
#pragma unroll
            for (int k = 0; k < STRIPS; k++)
                if (lane + 32 * k < matrix.width)
                    loaded[each][k] = RESIDENT ? slice.tile[row[each] * matrix.width + lane] : __ldg(at + 32 * k);
        }
#pragma unroll
        for (int each = 0; each < BATCH; each++)
            if (row[each] >= 0) {
                const Entry entry = list[e0 + each * step];
#pragma unroll
                for (int k = 0; k < STRIPS; k++) {
                    const int j = lane + 32 * k;
                    if (j < matrix.width) {
                        const value_t cost = (value_t)loaded[each][k];
                        value_t label = (matrix.negate ? -cost : cost) - entry.u - slice.v[j];
                        label = label > 0 ? label : 0;
                        if (matrix.grain > 0) label = Value::floored(label, matrix.grain);
                        label += entry.D;
                        if (label < best[k]) best[k] = label, giver[k] = offset + e0 + each * step;
                    }
                }
            }
    }
}

__device__ __forceinline__ void spill(const Matrix& matrix, const Slice& slice, int line, const value_t* best,
                                      const u32* giver) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < STRIPS; k++)
        if (lane + 32 * k < matrix.width) {
            slice.least[line * matrix.width + lane + 32 * k] = best[k];
            slice.giver[line * matrix.width + lane + 32 * k] = giver[k];
        }
}

// Fold the threads' offers into the labels of the slice. Begins and ends with a barrier.
__device__ __forceinline__ void fold(const Matrix& matrix, const Slice& slice, value_t* best, u32* giver,
                                     const u32* live, const int* free_rows) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, j = threadIdx.x;
    for (int step = matrix.lanes; step < 32; step <<= 1) {  // several rows in a warp: then STRIPS is 1
        const value_t offer = __shfl_xor_sync(FULL_WARP, best[0], step);
        const u32 who = __shfl_xor_sync(FULL_WARP, giver[0], step);
        if (offer < best[0] || (offer == best[0] && who < giver[0])) best[0] = offer, giver[0] = who;
    }
    if (FOLDED < WARPS && warp >= FOLDED) spill(matrix, slice, warp - FOLDED, best, giver);
    if (FOLDED < WARPS) {
        __syncthreads();  // the upper warps' minima before the lower warps take them in
        if (warp < FOLDED)
#pragma unroll
            for (int k = 0; k < STRIPS; k++)
                if (lane + 32 * k < matrix.width) {
                    const value_t offer = slice.least[warp * matrix.width + lane + 32 * k];
                    const u32 whose = slice.giver[warp * matrix.width + lane + 32 * k];
                    if (offer < best[k] || (offer == best[k] && whose < giver[k])) best[k] = offer, giver[k] = whose;
                }
    }
    if (warp < FOLDED && lane < matrix.lanes) spill(matrix, slice, warp, best, giver);
    __syncthreads();  // partial minima before a column's thread folds them
    if (j < matrix.width) {
        value_t part[4];
        u32 from[4];
#pragma unroll
        for (int k = 0; k < FOLDED; k++) {  // four chains of comparisons instead of one long one
            const value_t offer = slice.least[k * matrix.width + j];
            const u32 whose = slice.giver[k * matrix.width + j];
            if (k < 4 || offer < part[k & 3] || (offer == part[k & 3] && whose < from[k & 3]))
                part[k & 3] = offer, from[k & 3] = whose;
        }
#pragma unroll
        for (int k = 2; k; k >>= 1)
#pragma unroll
            for (int each = 0; each < k; each++)
                if (part[each + k] < part[each] || (part[each + k] == part[each] && from[each + k] < from[each]))
                    part[each] = part[each + k], from[each] = from[each + k];
        const value_t low = part[0];
        const u32 who = from[0];
        if (low < slice.d[j]) {
            slice.d[j] = low;
            slice.active[j] = 1;
            slice.pred[j] = live ? free_rows[live[who]] : list_row[who];
            slice.root[j] = live ? who : list_root[who];
        }
    }
    __syncthreads();  // labels before nearest, and list before it is written again
}

// Publish this block's nearest active matched column, and which sampled sources have a free column within m, the least
// label of the round before.
__device__ __forceinline__ void nearest(const Matrix& matrix, const Slice& slice, value_t m, int shift,
                                        ulonglong2* board, u32 tag, bool halt) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, n_warps = (matrix.width + 32 * NEAR - 1) / (32 * NEAR);
    if (warp >= n_warps) return;
    u64 bits = ~0ull, mask = 0;
    int at = 0;
#pragma unroll
    for (int k = 0; k < NEAR; k++) {
        const int j = (warp * NEAR + k) * 32 + lane;
        if (j >= matrix.width) break;
        const value_t label = slice.d[j];
        if (slice.row[j] >= 0) {
            if (slice.active[j] && Value::bits(label) < bits) bits = Value::bits(label), at = j;
        } else if (label <= m && label < TOP) {
            const u32 root = slice.root[j];
            if ((root & ((1u << shift) - 1)) == 0) mask |= 1ull << (root >> shift);
        }
    }
    u64 least = warp_min_bits(bits);
    mask = warp_or(mask);
    int winner = __ffs(__ballot_sync(FULL_WARP, bits == least)) - 1;
    if (n_warps > 1) {
        if (lane == winner) near_bits[warp] = least, near_mask[warp] = mask, near_at[warp] = at;
        asm volatile("bar.sync 1, %0;" ::"r"(32 * n_warps) : "memory");  // the warps that hold columns
        if (warp > 0) return;
        bits = lane < n_warps ? near_bits[lane] : ~0ull;
        at = lane < n_warps ? (int)near_at[lane] : 0;
        mask = warp_or(lane < n_warps ? near_mask[lane] : 0);
        least = warp_min_bits(bits);
        winner = __ffs(__ballot_sync(FULL_WARP, bits == least)) - 1;
    }
    if (lane == winner) {
        if (halt) mask |= HALT;
        if (least == ~0ull) publish(board, tag, {Value::bits(TOP), 0, 0, 0, 0}, mask);
        else {
            const int i = slice.row[at];
            publish(board, tag,
                    {least, Value::bits(slice.pair[at] - slice.v[at]), (u32)i, slice.pred[at], slice.root[at]}, mask);
            slice.active[at] = 0;
            if (matrix.prefetches) prefetch_row(matrix.cost + (long long)i * matrix.n_cols, matrix.n_cols);
        }
    }
}

// Labels from every live source at distance 0.
__device__ __forceinline__ void sow(const Matrix& matrix, const Slice& slice, const u32* live, int n_live,
                                    const int* free_rows, const value_t* free_u, value_t lifted) {
    value_t best[STRIPS];
    u32 giver[STRIPS];
#pragma unroll
    for (int k = 0; k < STRIPS; k++) best[k] = TOP, giver[k] = NONE;
    Entry next = {0, 0};
    int next_row = -1;
    for (int at = -MOST_BLOCKS; at < n_live; at += MOST_BLOCKS) {
        const int place = threadIdx.x, count = min(MOST_BLOCKS, n_live - at);
        __syncthreads();  // the previous list has been relaxed
        if (at >= 0 && place < count) {
            list[place] = next;
            list_row[place] = next_row;
            slice.parent[next_row] = (u16)next_row;
        }
        if (place < MOST_BLOCKS && at + MOST_BLOCKS + place < n_live) {  // on its way while this list is relaxed
            const u32 k = live[at + MOST_BLOCKS + place];
            next_row = free_rows[k];
            next.u = free_u[k] + lifted;
        }
        __syncthreads();  // the list before it is relaxed
        if (at >= 0) relax(matrix, slice, count, at, best, giver);
    }
    fold(matrix, slice, best, giver, live, free_rows);
}

// What a block counts over all phases of a launch.
struct Counts {
    u32 tag;  // of the last exchange
    int rounds, n_entries;
};

// Rounds of one search: publish, collect, relax, until enough sources reached a free column. Returns the mode.
__device__ __forceinline__ int search(const Matrix& matrix, const Slice& slice, int n_live, ulonglong2* board,
                                      const volatile int* flag, Counts& counts, value_t* T) {
    int shift = 0;
    while (n_live > SAMPLES << shift) shift++;
    const int samples = ((n_live - 1) >> shift) + 1;
    const int goal = matrix.n_rows < matrix.n_cols ? 1 : max(1, (samples + 1) / matrix.part);
    value_t m = -1;
    for (;;) {
        counts.tag += 1;
        const bool halt = blockIdx.x == 0 && (counts.tag & 63) == 0 && threadIdx.x < 32 && *flag;
        nearest(matrix, slice, m, shift, board, counts.tag, halt);
        u64 least, mask;
        collect(board, counts.tag, slice, true, &least, &mask, &counts.n_entries);
        *T = m;
        if (mask & HALT) return STOPPED;
        m = Value::from(least);
        if (least == Value::bits(TOP)) { *T = TOP; return GROW; }
        if (__popcll(mask) >= goal) return GROW;
        value_t best[STRIPS];
        u32 giver[STRIPS];
#pragma unroll
        for (int k = 0; k < STRIPS; k++) best[k] = TOP, giver[k] = NONE;
        relax(matrix, slice, gridDim.x, 0, best, giver);
        fold(matrix, slice, best, giver, nullptr, nullptr);
        counts.rounds += 1;
    }
}

// Grid: as many blocks as slices, all resident (cooperative launch). Block: 512.
// Shared: 40 width + 12 width FOLDED + n_rows / 8 + 2 n_rows bytes, and with RESIDENT n_rows * width entries.
// Reads: cost, v, col_row, free_rows, free_u, mailbox[0]. Writes: v, u, col_row, row_col, reached, state, mailbox[1, 2];
// board, live, proposal.
// Requires: state->mode[stage] is GROW or SEATED, or it does nothing; board, proposal as reduce_columns or bid left them.
// Work: per round one entry of a column's slice per listed row; per phase n_live more, and the walks of the paths.
extern "C" __global__ void __launch_bounds__(THREADS, 1) grow(const __grid_constant__ GrowArgs args) {
    const int n_rows = args.n_rows, n_cols = args.n_cols, negate = uniform(args.negate);
    ChainState* state = args.state;
    extern __shared__ __align__(16) unsigned char shared[];
    const int called = state->mode[args.stage], n_begun = state->n_free, first = (int)blockIdx.x * args.width;
    if (called != GROW && called != SEATED) {
        if (blockIdx.x == 0 && threadIdx.x == 0) state->mode[args.stage + 1] = called;
        return;
    }
    const bool gives_up = args.give_up && called == GROW;  // from seats it would begin from old prices
    Matrix matrix = {args.cost, n_rows, n_cols, negate, first, 0, 1, called == SEATED ? 8 : 2, args.prefetches != 0};
    matrix.grain = args.share > 0 ? Value::grain(args.share * spread_of(state)) : 0;
    matrix.width = min(args.width, n_cols - matrix.first);
    while (matrix.lanes < matrix.width && matrix.lanes < 32) matrix.lanes <<= 1;
    const Slice slice = carve(shared, args.width, n_rows);
    u32* live = args.live_all + (size_t)blockIdx.x * n_rows;
    int n_live = n_begun, phases = 0, mode = SOLVED;
    Counts counts = {state->grow_tag, 0, 0};
    long long sown = 0;
    value_t lifted = 0, T;
    for (int k = threadIdx.x; k < n_live; k += THREADS) live[k] = k;
    load_slice(matrix, slice, args.v, args.col_row);
    if (RESIDENT) load_tile(matrix, slice);
    __syncthreads();  // the slice before the first search
    while (n_live > 0) {
        if (state->halted) { mode = STOPPED; break; }
        if (phases == args.phase_limit) { mode = PHASE_LIMIT; break; }
        sow(matrix, slice, live, n_live, args.free_rows, args.free_u, lifted);
        sown += n_live;
        mode = search(matrix, slice, n_live, args.board, args.mailbox, counts, &T);
        if (mode != GROW) break;
        if (T == TOP || n_rows < n_cols) {
            T = threshold(matrix, slice, args.board, ++counts.tag, n_rows == n_cols);
            if (T == TOP) { mode = INFEASIBLE; break; }
        }
        propose(matrix, slice, T, args.proposal, args.board, ++counts.tag);
        n_live = accept(matrix, slice, live, n_live, args.free_rows, args.proposal);
        augment(matrix, slice, T);
        lifted += T;
        phases++;
        mode = SOLVED;
        // posted, nobody waits
        if (blockIdx.x == 0 && threadIdx.x == 0) args.mailbox[1] = phases, args.mailbox[2] = n_live;
        if (gives_up && phases == 3 && n_live > 16 && n_live > n_begun - n_begun / 8) { mode = SCALE; break; }
    }
    __syncthreads();  // the slice before it is stored
    store_slice(matrix, slice, args.v, args.u, args.col_row, args.row_col, args.reached);
    if (blockIdx.x > 0) return;
    for (int k = threadIdx.x; k < n_live; k += THREADS) {
        const int i = args.free_rows[live[k]];
        args.row_col[i] = -1;
        args.u[i] = args.free_u[live[k]] + lifted;
    }
    atomicAdd((u64*)&state->scans, (u64)counts.n_entries + (threadIdx.x ? 0 : sown));
    if (threadIdx.x == 0) {
        state->phases += phases;
        state->rounds += counts.rounds + phases;
        state->grow_tag = counts.tag;
        state->mode[args.stage + 1] = args.share > 0 ? (state->halted ? GROW : SCALE) : mode;
    }
}
