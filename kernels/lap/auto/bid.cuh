// Pieces of the Jacobi auction that start.cu and bid.cu share.
#define ROW_BITS 16
#include "lap/award.cuh"

#define THREADS BID_BLOCK
#define WARPS 32
#define LAST_ROUNDS 60
#define POLLED 16  // rounds between two looks at the caller's flag, which lies in host memory
#define OWNED 0x1000000u  // above every position: set in Best.at while the column has an owner

// Least and second least cost - v of a row, and the column of the least (in rotated order, until weigh returns).
struct Best {
    value_t first, second;
    u32 at;
};
// What a thread has seen of cost - v.
struct Range {
    value_t low, high;
};
// The matrix that bids are made from. Passed by value: by reference the compiler orders weigh's instructions otherwise.
struct Costs {
    const cost_t* __restrict__ cost;  // [n_rows, n_cols]
    int n_cols, negate;
};

__shared__ Best team_best[WARPS];
__shared__ int team_count[WARPS], team_ties[WARPS];

// The best of the lanes' bests, in every lane. Ties go to the lower position.
__device__ __forceinline__ Best warp_best(Best best) {
    const u64 mine = rank_of(best.first), least = warp_min_bits(mine);
    const u32 at = __reduce_min_sync(FULL_WARP, mine == least ? best.at : NONE);
    const bool won = mine == least && best.at == at;
    const u64 second = warp_min_bits(rank_of(won ? best.second : best.first));
    best.first = unordered<value_t>((long long)(least ^ 0x8000000000000000ull));
    best.second = unordered<value_t>((long long)(second ^ 0x8000000000000000ull));
    best.at = at;
    return best;
}

__device__ __forceinline__ bool is_owned(const u16* owner, int j) { return owner[j] != 0xffff; }
__device__ __forceinline__ bool is_owned(const int* col_row, int j) { return __ldcg(col_row + j) >= 0; }

// The column at position p of a row that begins at column `offset`.
__device__ __forceinline__ int rotated(int place, int offset, int n_cols) {
    return place + offset < n_cols ? place + offset : place + offset - n_cols;
}

// Where row i begins to be read.
__device__ __forceinline__ int first_column(int i, int n_cols) {
    return (int)(__umulhi((u32)i * 2654435761u, (u32)n_cols) & ~3u);
}

// Whether an auction has nothing to do: a plain one once the rows have seats, a scaled one that is not called for.
__device__ __forceinline__ bool is_idle(const ChainState* state, int stage, int scale) {
    const int mode = state->mode[stage];
    return scale ? mode != SCALE : mode == SEATED;
}

// Scan row i (-1: none) by teams of `team` warps; the answer is in the team's first warp. Every thread of the block
// must call. Each row starts at its own column, so that rows that tie choose different columns.
template <bool SHARED, bool TRACK, typename Owner>
__device__ __forceinline__ Best weigh(const Costs costs, const value_t* v, const Owner* owner, int i, int team,
                                      Range& range) {
    const int n_cols = costs.n_cols, negate = costs.negate;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    Best best = {TOP, TOP, NONE};
    const int offset = i < 0 ? 0 : first_column(i, n_cols);
    if (i >= 0) {
        constexpr int BATCH = SHARED ? 8 : 4;  // entries in flight per thread
        const cost_t* row = costs.cost + (long long)i * n_cols;
        for (int p0 = (warp % team) * 32 + lane; p0 < n_cols; p0 += team * 32 * BATCH) {
            cost_t entry[BATCH];
            value_t far[BATCH];
#pragma unroll
            for (int each = 0; each < BATCH; each++) {  // all loads before the first use
                const int place = p0 + each * team * 32;
                if (place >= n_cols) continue;
                const int j = rotated(place, offset, n_cols);
                entry[each] = __ldg(row + j);
                if (!SHARED) far[each] = __ldcg(v + j);
            }
#pragma unroll
            for (int each = 0; each < BATCH; each++) {
                const int place = p0 + each * team * 32;
                if (place >= n_cols) break;
                const int j = rotated(place, offset, n_cols);
                const value_t reduced =
                    (negate ? -(value_t)entry[each] : (value_t)entry[each]) - (SHARED ? v[j] : far[each]);
                if (reduced < best.first) best.second = best.first, best.first = reduced, best.at = place;
                else {
                    if (reduced < best.second) best.second = reduced;
                    if (reduced == best.first && reduced < TOP && is_owned(owner, rotated(best.at, offset, n_cols)) &&
                        !is_owned(owner, j))
                        best.at = place;
                }
                if (TRACK) {
                    if (reduced < range.low) range.low = reduced;
                    if (reduced > range.high && reduced < TOP) range.high = reduced;
                }
            }
        }
    }
    if (best.first < TOP && is_owned(owner, rotated(best.at, offset, n_cols)))
        best.at |= OWNED;  // ties: the free column first
    if (i >= 0) best = warp_best(best);
    if (team > 1) {
        __syncthreads();  // team_best of the previous row has been read
        if (lane == 0) team_best[warp] = best;
        __syncthreads();  // all warps' bests before the first warp merges them
        if (i >= 0 && warp % team == 0) {
            const Best none = {TOP, TOP, NONE};
            best = warp_best(lane < team ? team_best[warp + lane] : none);
        }
    }
    best.at = best.first < TOP ? rotated(best.at & (OWNED - 1), offset, n_cols) : NONE;
    return best;
}

// How far a bid lowers the dual v of its column. A row with one permitted entry c outbids anything near it, but not
// without end: two such rows that want one column would drive its price to where rounding eats the costs. Then the
// forest decides.
__device__ __forceinline__ value_t rise(const Best& best, value_t v, value_t eps) {
    if (best.at == NONE) return 0;
    if (best.second < TOP) return best.second - best.first + eps;
    const value_t cost = best.first + v, far = best.first < 0 ? -best.first : best.first;
    return far / 8 <= (cost < 0 ? -cost : cost) ? far + eps : 0;
}

// Warps per row that keep every block busy, each with at least 256 entries.
__device__ __forceinline__ int team_for(int n_free, int n_blocks, int n_cols) {
    int team = 1;
    while (team < WARPS && 512 * team <= n_cols && (long long)n_free * team < (long long)n_blocks * WARPS) team <<= 1;
    return team;
}

// Spread as two ordered keys in ChainState: the highest value seen, and the negated lowest.
__device__ __forceinline__ void widen_spread(ChainState* state, const Range& range) {
    const u64 high = warp_min_bits(~rank_of(range.high)), low = warp_min_bits(rank_of(range.low));
    if ((threadIdx.x & 31) == 0) {
        atomicMax((u64*)&state->highest, ~high);
        atomicMax((u64*)&state->lowest, ~low);
    }
}

// Which levels of epsilon a launch goes through, and when one ends. Level k < levels has epsilon = spread / theta^(k+1),
// of integers at least 1: rounded distances are full of ties, which would stall a level whose bids rise by 0. Level
// `levels` has epsilon 0.
struct Rule {
    int first, end, levels;
    double theta;
    int stop, extra, most_rounds;  // rows left, rounds after that, rounds in all
};

__device__ __forceinline__ double epsilon_of(const Rule& rule, int level, double spread) {
    for (int k = 0; k <= level; k++) spread /= rule.theta;
    const double least = Value::least_epsilon();
    return level == rule.levels ? 0 : spread > least ? spread : least;
}

// A level that is not the last goes on for `extra` rounds with at most `stop` rows free, since each row that is left
// moves the forest's duals far. In the last level epsilon is 0, and a war of bids may have no end. It therefore gets
// LAST_ROUNDS rounds once 2 stop rows are free.
__device__ __forceinline__ bool goes_on(const Rule& rule, bool last, int n_free, int* late) {
    *late += n_free <= (last ? 2 : 1) * rule.stop;
    return last ? n_free > rule.stop && *late <= LAST_ROUNDS : n_free > 0 && *late <= rule.extra;
}

// Whether a plain auction stalls and scaling will do better. That shows after 16 rounds: uniform costs have then left less
// than 3 stop rows, distances and costs of low rank more. Scaling begins anew, so further rounds are wasted.
__device__ __forceinline__ bool is_hopeless(const Rule& rule, int rounds, int n_free) {
    return rule.levels > 0 && rounds == 16 && n_free > 3 * rule.stop;
}

// How a launch ended.
struct Ending {
    int n_free, rounds;
    long long scans;
    bool tied_out, halted;
};

__device__ __forceinline__ void close_auction(ChainState* state, int stage, int scale, const Rule& rule,
                                              const Ending& end) {
    state->n_free = state->n_begun = end.n_free;
    state->bid_rounds += end.rounds;
    state->bid_scans += end.scans;
    state->halted = end.halted;
    const bool done = scale || end.n_free <= rule.stop || end.tied_out || rule.levels == 0;
    state->mode[stage + 1] = end.halted || done ? GROW : SCALE;
}

// Rows without a column, in order, by one block.
__device__ __forceinline__ void list_free(const int* row_col, int n_rows, int* free_rows) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int kept = 0;
    for (int at = 0; at < n_rows; at += THREADS) {
        const int i = at + threadIdx.x;
        const bool open = i < n_rows && __ldcg(row_col + i) < 0;
        const u32 votes = __ballot_sync(FULL_WARP, open);
        if (lane == 0) team_count[warp] = __popc(votes);
        __syncthreads();  // counts before they are summed
        const int mine = lane < WARPS ? team_count[lane] : 0,
                  before = __reduce_add_sync(FULL_WARP, lane < warp ? mine : 0);
        if (open) free_rows[kept + before + __popc(votes & ((1u << lane) - 1))] = i;
        kept += __reduce_add_sync(FULL_WARP, mine);
        __syncthreads();  // counts read before they are written again
    }
}
