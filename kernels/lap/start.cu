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
// counters       3, 2        int32    length of the next list and ties, of three rounds in turn
// The order of a list depends on atomics; nothing else does, and the free rows are listed in order at the end.
//
// Overflow: see bid.cu.
#include "lap/dense.cuh"
#include "lap/bid.cuh"

namespace cg = cooperative_groups;

// Grid: one block per multiprocessor, all resident (cooperative launch). Block: 1024. Shared: none.
// Reads: cost. Writes: v_first, proposal, boards, state. Requires: nothing. Work: the matrix once.
// Zero the state and the boards; v_first = column minima (minima == 1), 0 (0) or left alone (2).
extern "C" __global__ void __launch_bounds__(THREADS, 1)
reduce_columns(const cost_t* __restrict__ cost, int n_rows, int n_cols, int negate, value_t* v_first, u64* proposal,
               ulonglong2* boards, int n_words, State* state, int minima) {
    const int tid = threadIdx.x, n_blocks = gridDim.x;
    const long long all = (long long)n_blocks * THREADS, me = (long long)blockIdx.x * THREADS + tid;
    long long* v_key = (long long*)v_first;
    for (long long j = me; j < n_cols; j += all) {
        if (minima == 1) v_key[j] = Value::ordered(TOP);
        else if (minima == 0) v_first[j] = 0;
    }
    for (long long i = me; i < n_rows; i += all) proposal[i] = NO_PATH;
    for (long long k = me; k < n_words; k += all) boards[k] = make_ulonglong2(0, 0);
    if (me < (long long)(sizeof(State) / 4)) ((int*)state)[me] = 0;
    if (minima != 1) return;
    cg::this_grid().sync();  // keys are TOP before anyone lowers them
    const int lo = (int)((long long)n_rows * blockIdx.x / n_blocks), hi = (int)((long long)n_rows * (blockIdx.x + 1) / n_blocks);
    for (int j = tid; j < n_cols && lo < hi; j += THREADS) {
        value_t least = TOP;
#pragma unroll 8
        for (int i = lo; i < hi; i++) {
            const value_t c = read_cost(cost, (long long)i * n_cols + j, negate);
            least = c < least ? c : least;
        }
        atomicMin(v_key + j, Value::ordered(least));  // blocks hold different rows of a column
    }
    cg::this_grid().sync();  // all rows are in
    for (long long j = me; j < n_cols; j += all) {
        const value_t least = Value::unordered(__ldcg(v_key + j));
        v_first[j] = least < TOP ? least : 0;  // a column without a permitted entry
    }
}

// Grid: one block per multiprocessor, all resident (cooperative launch). Block: 1024. Shared: team_best.
// Reads: cost, v_first, state. Writes: v, col_row, row_col, free_rows, free_u, proposal (reset), state; key, raise,
// target, list, counters. Requires: for scale, state->mode[stage] == SCALE, or it does nothing.
// Work: n_cols entries per free row and round, two grid barriers a round.
// The auction with prices in device memory, for matrices too wide for bid_shared.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
bid_wide(const cost_t* __restrict__ cost, int n_rows, int n_cols, int negate, const value_t* v_first, value_t* v, int* col_row,
         int* row_col, u64* proposal, u64* key, value_t* raise, int* target, int* list, int* counters, int* free_rows,
         value_t* free_u, State* state, int stage, int scale, int levels, double theta, int stop, int most_rounds) {
    cg::grid_group grid = cg::this_grid();
    const int tid = threadIdx.x, n_blocks = gridDim.x, lane = tid & 31;
    const long long all = (long long)n_blocks * THREADS, me = (long long)blockIdx.x * THREADS + tid;
    if (scale && state->mode[stage] != SCALE) {
        if (me == 0) state->mode[stage + 1] = state->mode[stage];
        return;
    }
    const double spread = scale ? spread_of(state) : 0;
    for (long long j = me; j < n_cols; j += all) v[j] = v_first[j], key[j] = 0;
    for (long long i = me; i < n_rows; i += all) proposal[i] = NO_PATH;
    if (me < 6) counters[me] = 0;
    Range range = {TOP, -TOP};
    int n_free = n_rows, rounds = 0, side = 0;
    bool tied_out = false;
    long long scans = 0;
    double eps_now = spread;
    for (int level = scale ? 0 : levels; level <= levels; level++) {
        eps_now = level == levels ? 0 : eps_now / theta;
        for (long long i = me; i < n_rows; i += all) row_col[i] = -1, list[i + (long long)side * n_rows] = (int)i;
        for (long long j = me; j < n_cols; j += all) col_row[j] = -1;
        n_free = n_rows;
        grid.sync();  // a fresh list, owners and prices before the first bids
        for (int r = 0; r < most_rounds && n_free > stop; r++) {
            const int *now = list + (long long)side * n_rows;
            int* next = list + (long long)(1 - side) * n_rows;
            const int team = team_for(n_free, n_blocks, n_cols), per_block = WARPS / team;
            for (long long at = 0; at < n_free; at += (long long)n_blocks * per_block) {
                const long long k = at + (long long)(tid / (32 * team)) * n_blocks + blockIdx.x;
                const int i = k < n_free ? __ldcg(now + k) : -1;
                const Best b = scale || rounds > 0 ? weigh<false, false>(cost, v, col_row, i, n_cols, negate, team, range)
                                                   : weigh<false, true>(cost, v, col_row, i, n_cols, negate, team, range);
                if (i >= 0 && tid % (32 * team) == 0) {
                    const value_t up = rise(b, (value_t)eps_now);
                    if (b.at != NONE) atomicMax(key + b.at, bid_key(up, i));  // settles which row a column takes
                    raise[i] = up;
                    target[i] = (int)b.at;
                }
            }
            const int c = (rounds % 3) * 2;
            if (me < 2) counters[((rounds + 1) % 3) * 2 + me] = 0;  // last read before the previous round's second sync
            grid.sync();  // bids before awards
            for (long long k = me; k - lane < n_free; k += all) {
                int keep = -1;
                bool tied = false;
                if (k < n_free) {
                    const int i = __ldcg(now + k), j = __ldcg(target + i);
                    const value_t up = __ldcg(raise + i);
                    keep = i;
                    tied = j >= 0 && up <= 0;
                    if (j >= 0 && __ldcg(key + j) == bid_key(up, i)) {
                        const int old = __ldcg(col_row + j);
                        if (old < 0 || up > 0) {
                            if (old >= 0) row_col[old] = -1;
                            keep = old, col_row[j] = i, row_col[i] = j;
                            v[j] = __ldcg(v + j) - up;
                        }
                        key[j] = 0;  // equal to no bid: losers that look later still lose
                    }
                }
                const u32 votes = __ballot_sync(FULL_WARP, keep >= 0), ties = __ballot_sync(FULL_WARP, tied);
                int base = 0;
                if (lane == 0) {
                    if (votes) base = atomicAdd(counters + c, __popc(votes));  // a place in the next list; any order will do
                    if (ties) atomicAdd(counters + c + 1, __popc(ties));
                }
                base = __shfl_sync(FULL_WARP, base, 0);
                if (keep >= 0) next[base + __popc(votes & ((1u << lane) - 1))] = keep;
            }
            grid.sync();  // awards and the next list before the next bids
            scans += n_free;
            const int ties = __ldcg(counters + c + 1), was = n_free;
            n_free = __ldcg(counters + c);
            side ^= 1;
            rounds++;
            if (eps_now == 0 && ties * 2 > was && (was - n_free) * 4 < was) { tied_out = true; break; }
        }
    }
    if (blockIdx.x == 0) list_free(row_col, n_rows, free_rows);
    grid.sync();  // free_rows before their duals
    for (int k = blockIdx.x; k < n_free; k += n_blocks) {
        const Best b = weigh<false, false>(cost, v, col_row, __ldcg(free_rows + k), n_cols, negate, WARPS, range);
        if (tid == 0) free_u[k] = b.at != NONE ? b.first : value_t(0);
    }
    if (!scale) widen_spread(state, range);
    if (me == 0) close_auction(state, stage, scale, levels, n_free, stop, tied_out, rounds, scans);
}
