// The exact finish of the dense assignment problem: shortest augmenting paths from all free rows at once.
//
//   sow:      every free row i is a source at distance 0 and offers D_i + max(0, c_ij - u_i - v_j) to every column
//   search:   repeat                                              (one round = one exchange between the blocks)
//     nearest:  each block publishes the nearest matched column of its slice whose label improved since it was last
//               published
//     collect:  every block reads all of them; m = the nearest of all; labels up to m can no longer change
//     relax, fold:  the matched rows of the published columns offer labels to the block's columns
//   until half of the sources have a free column within T, the m of the round before (any one, when there are more
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
__device__ __forceinline__ void relax(const Matrix& a, const Slice& s, int count, u32 offset, value_t* best,
                                      u32* giver) {
    const int lane = threadIdx.x & (a.lanes - 1), step = THREADS / a.lanes;
    for (int e0 = threadIdx.x / a.lanes; e0 < count; e0 += step * BATCH) {
        cost_t c[BATCH][STRIPS];
        int row[BATCH];
#pragma unroll
        for (int q = 0; q < BATCH; q++) {  // all loads before the first use
            const int e = e0 + q * step;
            row[q] = -1;
            if (e >= count) continue;
            row[q] = list_row[e];
            if (row[q] < 0) continue;
            const cost_t* at = a.cost + (long long)row[q] * a.n_cols + a.first + lane;
#pragma unroll
            for (int k = 0; k < STRIPS; k++)
                if (lane + 32 * k < a.width) c[q][k] = RESIDENT ? s.tile[row[q] * a.width + lane] : __ldg(at + 32 * k);
        }
#pragma unroll
        for (int q = 0; q < BATCH; q++)
            if (row[q] >= 0) {
                const Entry x = list[e0 + q * step];
#pragma unroll
                for (int k = 0; k < STRIPS; k++) {
                    const int j = lane + 32 * k;
                    if (j < a.width) {
                        const value_t cost = (value_t)c[q][k];
                        value_t r = (a.negate ? -cost : cost) - x.u - s.v[j];
                        r = r > 0 ? r : 0;
                        if (a.grain > 0) r = Value::floored(r, a.grain);
                        r += x.D;
                        if (r < best[k]) best[k] = r, giver[k] = offset + e0 + q * step;
                    }
                }
            }
    }
}

__device__ __forceinline__ void spill(const Matrix& a, const Slice& s, int line, const value_t* best,
                                      const u32* giver) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < STRIPS; k++)
        if (lane + 32 * k < a.width) {
            s.least[line * a.width + lane + 32 * k] = best[k];
            s.giver[line * a.width + lane + 32 * k] = giver[k];
        }
}

// Fold the threads' offers into the labels of the slice. Begins and ends with a barrier.
__device__ __forceinline__ void fold(const Matrix& a, const Slice& s, value_t* best, u32* giver, const u32* live,
                                     const int* free_rows) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, j = threadIdx.x;
    for (int step = a.lanes; step < 32; step <<= 1) {  // several rows in a warp: then STRIPS is 1
        const value_t o = __shfl_xor_sync(FULL_WARP, best[0], step);
        const u32 e = __shfl_xor_sync(FULL_WARP, giver[0], step);
        if (o < best[0] || (o == best[0] && e < giver[0])) best[0] = o, giver[0] = e;
    }
    if (FOLDED < WARPS && warp >= FOLDED) spill(a, s, warp - FOLDED, best, giver);
    if (FOLDED < WARPS) {
        __syncthreads();  // the upper warps' minima before the lower warps take them in
        if (warp < FOLDED)
#pragma unroll
            for (int k = 0; k < STRIPS; k++)
                if (lane + 32 * k < a.width) {
                    const value_t o = s.least[warp * a.width + lane + 32 * k];
                    const u32 f = s.giver[warp * a.width + lane + 32 * k];
                    if (o < best[k] || (o == best[k] && f < giver[k])) best[k] = o, giver[k] = f;
                }
    }
    if (warp < FOLDED && lane < a.lanes) spill(a, s, warp, best, giver);
    __syncthreads();  // partial minima before a column's thread folds them
    if (j < a.width) {
        value_t part[4];
        u32 from[4];
#pragma unroll
        for (int k = 0; k < FOLDED; k++) {  // four chains of comparisons instead of one long one
            const value_t o = s.least[k * a.width + j];
            const u32 f = s.giver[k * a.width + j];
            if (k < 4 || o < part[k & 3] || (o == part[k & 3] && f < from[k & 3])) part[k & 3] = o, from[k & 3] = f;
        }
#pragma unroll
        for (int k = 2; k; k >>= 1)
#pragma unroll
            for (int q = 0; q < k; q++)
                if (part[q + k] < part[q] || (part[q + k] == part[q] && from[q + k] < from[q]))
                    part[q] = part[q + k], from[q] = from[q + k];
        const value_t b = part[0];
        const u32 e = from[0];
        if (b < s.d[j]) {
            s.d[j] = b;
            s.active[j] = 1;
            s.pred[j] = live ? free_rows[live[e]] : list_row[e];
            s.root[j] = live ? e : list_root[e];
        }
    }
    __syncthreads();  // labels before nearest, and list before it is written again
}

// Publish this block's nearest active matched column, and which sampled sources have a free column within m, the least
// label of the round before.
__device__ __forceinline__ void nearest(const Matrix& a, const Slice& s, value_t m, int shift, ulonglong2* board,
                                        u32 tag, bool halt) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, n_warps = (a.width + 32 * NEAR - 1) / (32 * NEAR);
    if (warp >= n_warps) return;
    u64 x = ~0ull, mask = 0;
    int at = 0;
#pragma unroll
    for (int k = 0; k < NEAR; k++) {
        const int j = (warp * NEAR + k) * 32 + lane;
        if (j >= a.width) break;
        const value_t d = s.d[j];
        if (s.row[j] >= 0) {
            if (s.active[j] && Value::bits(d) < x) x = Value::bits(d), at = j;
        } else if (d <= m && d < TOP) {
            const u32 r = s.root[j];
            if ((r & ((1u << shift) - 1)) == 0) mask |= 1ull << (r >> shift);
        }
    }
    u64 least = warp_min_bits(x);
    mask = warp_or(mask);
    int winner = __ffs(__ballot_sync(FULL_WARP, x == least)) - 1;
    if (n_warps > 1) {
        if (lane == winner) near_bits[warp] = least, near_mask[warp] = mask, near_at[warp] = at;
        asm volatile("bar.sync 1, %0;" ::"r"(32 * n_warps) : "memory");  // the warps that hold columns
        if (warp > 0) return;
        x = lane < n_warps ? near_bits[lane] : ~0ull;
        at = lane < n_warps ? (int)near_at[lane] : 0;
        mask = warp_or(lane < n_warps ? near_mask[lane] : 0);
        least = warp_min_bits(x);
        winner = __ffs(__ballot_sync(FULL_WARP, x == least)) - 1;
    }
    if (lane == winner) {
        if (halt) mask |= HALT;
        if (least == ~0ull) publish(board, tag, {Value::bits(TOP), 0, 0, 0, 0}, mask);
        else {
            const int i = s.row[at];
            publish(board, tag, {least, Value::bits(s.pair[at] - s.v[at]), (u32)i, s.pred[at], s.root[at]}, mask);
            s.active[at] = 0;
            if (a.prefetches) prefetch_row(a.cost + (long long)i * a.n_cols, a.n_cols);
        }
    }
}

// Labels from every live source at distance 0.
__device__ __forceinline__ void sow(const Matrix& a, const Slice& s, const u32* live, int n_live, const int* free_rows,
                                    const value_t* free_u, value_t lifted) {
    value_t best[STRIPS];
    u32 giver[STRIPS];
#pragma unroll
    for (int k = 0; k < STRIPS; k++) best[k] = TOP, giver[k] = NONE;
    Entry next = {0, 0};
    int next_row = -1;
    for (int at = -MOST_BLOCKS; at < n_live; at += MOST_BLOCKS) {
        const int e = threadIdx.x, count = min(MOST_BLOCKS, n_live - at);
        __syncthreads();  // the previous list has been relaxed
        if (at >= 0 && e < count) {
            list[e] = next;
            list_row[e] = next_row;
            s.parent[next_row] = (u16)next_row;
        }
        if (e < MOST_BLOCKS && at + MOST_BLOCKS + e < n_live) {  // on its way while this list is relaxed
            const u32 k = live[at + MOST_BLOCKS + e];
            next_row = free_rows[k];
            next.u = free_u[k] + lifted;
        }
        __syncthreads();  // the list before it is relaxed
        if (at >= 0) relax(a, s, count, at, best, giver);
    }
    fold(a, s, best, giver, live, free_rows);
}

// What a block counts over all phases of a launch.
struct Counts {
    u32 tag;  // of the last exchange
    int rounds, n_entries;
};

// Rounds of one search: publish, collect, relax, until enough sources reached a free column. Returns the mode.
__device__ __forceinline__ int search(const Matrix& a, const Slice& s, int n_live, ulonglong2* board,
                                      const volatile int* flag, Counts& counts, value_t* T) {
    int shift = 0;
    while (n_live > SAMPLES << shift) shift++;
    const int samples = ((n_live - 1) >> shift) + 1, goal = a.n_rows < a.n_cols ? 1 : (samples + 1) / 2;
    value_t m = -1;
    for (;;) {
        counts.tag += 1;
        const bool halt = blockIdx.x == 0 && (counts.tag & 63) == 0 && threadIdx.x < 32 && *flag;
        nearest(a, s, m, shift, board, counts.tag, halt);
        u64 least, mask;
        collect(board, counts.tag, s, true, &least, &mask, &counts.n_entries);
        *T = m;
        if (mask & HALT) return STOPPED;
        m = Value::from(least);
        if (least == Value::bits(TOP)) { *T = TOP; return GROW; }
        if (__popcll(mask) >= goal) return GROW;
        value_t best[STRIPS];
        u32 giver[STRIPS];
#pragma unroll
        for (int k = 0; k < STRIPS; k++) best[k] = TOP, giver[k] = NONE;
        relax(a, s, gridDim.x, 0, best, giver);
        fold(a, s, best, giver, nullptr, nullptr);
        counts.rounds += 1;
    }
}

// Grid: as many blocks as slices, all resident (cooperative launch). Block: 512.
// Shared: 40 width + 12 width FOLDED + n_rows / 8 + 2 n_rows bytes, and with RESIDENT n_rows * width entries.
// Reads: cost, v, col_row, free_rows, free_u, mailbox[0]. Writes: v, u, col_row, row_col, reached, state, mailbox[1, 2];
// board, live, proposal.
// Requires: state->mode[stage] == GROW, or it does nothing; board and proposal as reduce_columns or bid left them.
// Work: per round one entry of a column's slice per listed row; per phase n_live more, and the walks of the paths.
extern "C" __global__ void __launch_bounds__(THREADS, 1) grow(const __grid_constant__ GrowArgs args) {
    const int n_rows = args.n_rows, n_cols = args.n_cols, negate = uniform(args.negate);
    ChainState* state = args.state;
    extern __shared__ __align__(16) unsigned char shared[];
    if (state->mode[args.stage] != GROW) {
        if (blockIdx.x == 0 && threadIdx.x == 0) state->mode[args.stage + 1] = state->mode[args.stage];
        return;
    }
    const int first = (int)blockIdx.x * args.width;
    Matrix a = {args.cost, n_rows, n_cols, negate, first, 0, 1, args.prefetches != 0};
    a.grain = args.share > 0 ? Value::grain(args.share * spread_of(state)) : 0;
    a.width = min(args.width, n_cols - a.first);
    while (a.lanes < a.width && a.lanes < 32) a.lanes <<= 1;
    const Slice s = carve(shared, args.width, n_rows);
    u32* live = args.live_all + (size_t)blockIdx.x * n_rows;
    const int n_begun = state->n_free;
    int n_live = n_begun, phases = 0, mode = SOLVED;
    Counts counts = {state->grow_tag, 0, 0};
    long long sown = 0;
    value_t lifted = 0, T;
    for (int k = threadIdx.x; k < n_live; k += THREADS) live[k] = k;
    load_slice(a, s, args.v, args.col_row);
    if (RESIDENT) load_tile(a, s);
    __syncthreads();  // the slice before the first search
    while (n_live > 0) {
        if (state->halted) { mode = STOPPED; break; }
        if (phases == args.phase_limit) { mode = PHASE_LIMIT; break; }
        sow(a, s, live, n_live, args.free_rows, args.free_u, lifted);
        sown += n_live;
        mode = search(a, s, n_live, args.board, args.mailbox, counts, &T);
        if (mode != GROW) break;
        if (T == TOP || n_rows < n_cols) {
            T = threshold(a, s, args.board, ++counts.tag, n_rows == n_cols);
            if (T == TOP) { mode = INFEASIBLE; break; }
        }
        propose(a, s, T, args.proposal, args.board, ++counts.tag);
        n_live = accept(a, s, live, n_live, args.free_rows, args.proposal);
        augment(a, s, T);
        lifted += T;
        phases++;
        mode = SOLVED;
        // posted, nobody waits
        if (blockIdx.x == 0 && threadIdx.x == 0) args.mailbox[1] = phases, args.mailbox[2] = n_live;
        if (args.give_up && phases == 3 && n_live > 16 && n_live > n_begun - n_begun / 8) { mode = SCALE; break; }
    }
    __syncthreads();  // the slice before it is stored
    store_slice(a, s, args.v, args.u, args.col_row, args.row_col, args.reached);
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
