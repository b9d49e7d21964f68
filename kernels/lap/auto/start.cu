// The start of method `auto`: column minima, and the auction for matrices too wide for bid.cu.
//
//   reduce_columns:  v_j = min_i c_ij for square problems; 0 where columns may stay free, which have v_j = 0 then
//   bid_wide:        the rounds of bid.cu with prices, owners and the list of free rows in device memory:
//                    bids, barrier, awards, barrier
//
// Buffers as in bid.cu, and
// key            n_cols      uint64   best bid of a column, 0 between rounds
// raise, target  n_rows      value_t, int32   a row's bid
// list           2, n_rows   int32    free rows, two sides
// counters       3, 3        int32    length of the next list, ties, stop, of three rounds in turn
// The order of a list depends on atomics; nothing else does, and the free rows are listed in order at the end.
//
// Overflow: see bid.cu.
#include "device/uniform.cuh"
#include "lap/auto/dense.cuh"
#include "lap/auto/bid.cuh"

namespace cg = cooperative_groups;

// Grid: one block per multiprocessor, all resident (cooperative launch). Block: 1024. Shared: none.
// Reads: cost. Writes: v_first, proposal, boards, state. Requires: nothing. Work: the matrix once.
// Zero the state and the boards; v_first = column minima (minima == 1), 0 (0) or left alone (2).
extern "C" __global__ void __launch_bounds__(THREADS, 1)
reduce_columns(const __grid_constant__ ReduceColumnsArgs args) {
    const int n_rows = args.n_rows, n_cols = args.n_cols, negate = uniform(args.negate);
    value_t* v_first = args.v_first;
    const int tid = threadIdx.x, n_blocks = gridDim.x;
    const long long all = (long long)n_blocks * THREADS, me = (long long)blockIdx.x * THREADS + tid;
    long long* v_key = (long long*)v_first;
    for (long long j = me; j < n_cols; j += all) {
        if (args.minima == 1) v_key[j] = ordered(TOP);
        else if (args.minima == 0) v_first[j] = 0;
    }
    for (long long i = me; i < n_rows; i += all) args.proposal[i] = NO_PATH;
    for (long long k = me; k < args.n_words; k += all) args.boards[k] = make_ulonglong2(0, 0);
    if (me < (long long)(sizeof(ChainState) / 4)) ((int*)args.state)[me] = 0;
    if (args.minima != 1) return;
    cg::this_grid().sync();  // keys are TOP before anyone lowers them
    const int lo = (int)((long long)n_rows * blockIdx.x / n_blocks),
              hi = (int)((long long)n_rows * (blockIdx.x + 1) / n_blocks);
    for (int j = tid; j < n_cols && lo < hi; j += THREADS) {
        value_t least = TOP;
#pragma unroll 8
        for (int i = lo; i < hi; i++) {
            const value_t entry = read_cost(args.cost, (long long)i * n_cols + j, negate);
            least = entry < least ? entry : least;
        }
        atomicMin(v_key + j, ordered(least));  // blocks hold different rows of a column
    }
    cg::this_grid().sync();  // all rows are in
    for (long long j = me; j < n_cols; j += all) {
        const value_t least = unordered<value_t>(__ldcg(v_key + j));
        v_first[j] = least < TOP ? least : 0;  // a column without a permitted entry
    }
}

// The auction's books in device memory.
struct WideBook {
    value_t* v;
    int *col_row, *row_col;
    u64* key;
    value_t* raise;
    int *target, *list, *counters;

    __device__ __forceinline__ int owner_of(int j) const { return __ldcg(col_row + j); }
    __device__ __forceinline__ void take(int j, int i, int old, value_t up) const {
        if (old >= 0) row_col[old] = -1;
        col_row[j] = i, row_col[i] = j;
        v[j] = __ldcg(v + j) - up;
    }
};

__device__ __forceinline__ long long in_grid() { return (long long)blockIdx.x * THREADS + threadIdx.x; }
__device__ __forceinline__ long long grid_size() { return (long long)gridDim.x * THREADS; }

__device__ __forceinline__ void open_level(const WideBook& book, int n_rows, int n_cols, int side) {
    for (long long i = in_grid(); i < n_rows; i += grid_size()) {
        book.row_col[i] = -1;
        book.list[i + (long long)side * n_rows] = (int)i;
    }
    for (long long j = in_grid(); j < n_cols; j += grid_size()) book.col_row[j] = -1;
}

// The bids of this block's share of the free rows.
__device__ __forceinline__ void place_bids(const Costs costs, const WideBook& book, const int* now, int n_free,
                                           value_t eps, bool track, Range& range) {
    const int n_cols = costs.n_cols;
    const int tid = threadIdx.x, n_blocks = gridDim.x;
    const int team = team_for(n_free, n_blocks, n_cols), per_block = WARPS / team;
    for (long long at = 0; at < n_free; at += (long long)n_blocks * per_block) {
        const long long k = at + (long long)(tid / (32 * team)) * n_blocks + blockIdx.x;
        const int i = k < n_free ? __ldcg(now + k) : -1;
        const Best best = track ? weigh<false, true>(costs, book.v, book.col_row, i, team, range)
                                : weigh<false, false>(costs, book.v, book.col_row, i, team, range);
        if (i < 0 || tid % (32 * team)) continue;
        const value_t up = rise(best, best.at == NONE ? 0 : __ldcg(book.v + best.at), eps);
        if (best.at != NONE) atomicMax(book.key + best.at, bid_key(up, i));  // settles which row a column takes
        book.raise[i] = up;
        book.target[i] = (int)best.at;
    }
}

// Award all bids; the rows left over go to `next`. counted: length of next, ties.
__device__ __forceinline__ void settle(const WideBook& book, const int* now, int* next, int n_free, int* counted) {
    const int lane = threadIdx.x & 31;
    for (long long k = in_grid(); k - lane < n_free; k += grid_size()) {
        bool tied = false;
        const int i = k < n_free ? __ldcg(now + k) : -1;
        const int keep = k < n_free ? award(book, i, __ldcg(book.target + i), __ldcg(book.raise + i), &tied) : -1;
        const u32 votes = __ballot_sync(FULL_WARP, keep >= 0), ties = __ballot_sync(FULL_WARP, tied);
        int base = 0;
        if (lane == 0) {
            if (votes) base = atomicAdd(counted, __popc(votes));  // a place in the next list; any order will do
            if (ties) atomicAdd(counted + 1, __popc(ties));
        }
        base = __shfl_sync(FULL_WARP, base, 0);
        if (keep >= 0) next[base + __popc(votes & ((1u << lane) - 1))] = keep;
    }
}

// Grid: one block per multiprocessor, all resident (cooperative launch). Block: 1024. Shared: team_best, team_count.
// Reads: cost, v_first, state, mailbox. Writes: v, col_row, row_col, free_rows, free_u, proposal (reset), state; key,
// raise, target, list, counters. Requires: for scale, state->mode[stage] == SCALE, else not SEATED, or it does nothing.
// Work: n_cols entries per free row and round, two grid barriers a round.
// The auction with prices in device memory, for matrices too wide for bid_shared.
extern "C" __global__ void __launch_bounds__(THREADS, 1) bid_wide(const __grid_constant__ BidWideArgs args) {
    const int n_rows = args.n_rows, n_cols = args.n_cols, scale = args.scale;
    ChainState* state = args.state;
    cg::grid_group grid = cg::this_grid();
    if (is_idle(state, args.stage, scale)) {
        if (in_grid() == 0) state->mode[args.stage + 1] = state->mode[args.stage];
        return;
    }
    const WideBook book = {args.v,     args.col_row, args.row_col, args.key,
                           args.raise, args.target,  args.list,    args.counters};
    const double spread = scale ? spread_of(state) : 0;
    for (long long j = in_grid(); j < n_cols; j += grid_size()) args.v[j] = args.v_first[j], args.key[j] = 0;
    for (long long i = in_grid(); i < n_rows; i += grid_size()) args.proposal[i] = NO_PATH;
    if (in_grid() < 9) args.counters[in_grid()] = 0;
    const Rule rule = {args.first, args.end, args.levels, args.theta, args.stop, args.extra, args.most_rounds};
    Range range = {TOP, -TOP};
    int n_free = n_rows, rounds = 0, side = 0;
    bool tied_out = false, halted = false;
    long long scans = 0;
    double eps = 0;
    for (int level = rule.first; level < rule.end && !halted; level++) {
        eps = epsilon_of(rule, level, spread);
        open_level(book, n_rows, n_cols, side);
        n_free = n_rows;
        grid.sync();  // a fresh list, owners and prices before the first bids
        for (int round = 0, late = 0; round < rule.most_rounds && goes_on(rule, level == rule.levels, n_free, &late);
             round++) {
            const int* now = args.list + (long long)side * n_rows;
            int *next = args.list + (long long)(1 - side) * n_rows, *counted = args.counters + (rounds % 3) * 3;
            place_bids({args.cost, n_cols, args.negate}, book, now, n_free, (value_t)eps, !scale && rounds == 0, range);
            // free to clear: nobody has read these counters since the previous round's second barrier
            if (in_grid() < 3) args.counters[((rounds + 1) % 3) * 3 + in_grid()] = 0;
            if (in_grid() == 0 && rounds % POLLED == POLLED - 1) counted[2] = *args.mailbox;
            grid.sync();  // bids before awards
            settle(book, now, next, n_free, counted);
            grid.sync();  // awards and the next list before the next bids
            scans += n_free;
            const int ties = __ldcg(counted + 1), was = n_free;
            n_free = __ldcg(counted);
            side ^= 1;
            rounds++;
            if ((halted = __ldcg(counted + 2))) break;
            if (eps == 0 && ties * 2 > was && (was - n_free) * 4 < was) { tied_out = true; break; }
            if (!scale && is_hopeless(rule, rounds, n_free)) break;
        }
    }
    if (halted && eps > 0) {
        open_level(book, n_rows, n_cols, side);
        n_free = n_rows;
        grid.sync();  // no row has a column before the free ones are listed
    }
    if (blockIdx.x == 0) list_free(args.row_col, n_rows, args.free_rows);
    grid.sync();  // free_rows before their duals
    for (int k = blockIdx.x; k < n_free; k += gridDim.x) {
        const int i = __ldcg(args.free_rows + k);
        const Best best = weigh<false, false>({args.cost, n_cols, args.negate}, book.v, book.col_row, i, WARPS, range);
        if (threadIdx.x == 0) args.free_u[k] = best.at != NONE ? best.first : value_t(0);
    }
    if (!scale) widen_spread(state, range);
    if (in_grid() == 0) close_auction(state, args.stage, scale, rule, {n_free, rounds, scans, tied_out, halted});
}
