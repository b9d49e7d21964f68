// Rows in their seats at old prices, before any auction: each takes back the column that it had, if it can.
//
//   look:   every row i finds its least c_ij - v_j, and lists the columns where c_ij - v_j is exactly its old dual, if that
//           is the least up to rounding. Any other row, as one that has changed, lists the columns at its least
//   repeat, until no row has a free column on its list
//     count:   how many rows without a seat list each free column
//     claim:   a row with one free column left, or with a free column that no other row lists, claims it (a leaf). Where
//              there is no leaf, every row claims the one that the fewest list
//     settle:  a column goes to one of those that claim it: to a row at its old dual, then to the lower row
//
// Leaves first is the rule of Karp and Sipser: on lists that form no cycle it seats as many rows as can be. Lists of an
// earlier answer nearly are so. A shortest path makes each of its arcs tight, so rows list more than their own column.
//
// If few enough rows are left, they are the free rows that forest.cu begins with, and bid.cu has nothing to do. Prices are
// not touched, so the start is right whatever the old duals are. u of a free row is its least; a pair lies above the
// row's least by at most what rounding may have left, half of what the certificate allows.
//
// buffer      shape          type     owner
// cost        n_rows, n_cols cost_t   -
// v_first, v  n_cols         value_t  the prices; as forest.cu takes them
// own         n_rows         value_t  old duals of rows
// u           n_rows         value_t  here: least of each row
// columns     n_rows, TIES   int32    lists, in the order of a row that is read from a column of its own (first_column)
// n_columns   n_rows         int32    their lengths; negative where they are not at the row's old dual
// wanted      n_cols         int32    how many rows list a free column; 0 between rounds
// claim       n_cols         uint32   least key of the rows that claim it
// counters    3, 2           int32    leaves, and rows with a free column, of three rounds in turn
//
// Overflow: old duals are only compared. See bid.cu for c - v.
//
// After R. Karp, M. Sipser, "Maximum matchings in sparse random graphs", FOCS (1981). The twin of cpu/seats.py, which leads
// rows along alternating paths where this claims. docs/notes/lap.md: figures.
#include "device/uniform.cuh"
#include "lap/auto/dense.cuh"
#include "lap/auto/bid.cuh"

#define ROUNDS 64
#define AT_ONCE (sizeof(cost_t) == 8 ? 6 : 8)  // entries in flight per thread: what registers have room for
#define NOBODY 0xffffffffu
#define NOT_ITS_OWN 0x80000000u  // in a key: the row has lost its old dual

namespace cg = cooperative_groups;

__device__ __forceinline__ long long in_grid() { return (long long)blockIdx.x * THREADS + threadIdx.x; }
__device__ __forceinline__ long long grid_size() { return (long long)gridDim.x * THREADS; }

// What c - v of a pair may be and still count as the row's least; `v` is the price at the least.
__device__ __forceinline__ double widened(double least, double v) {
    return __dadd_rn(least, __dmul_rn(0x1p-51, __dadd_rn(fabs(least), fabs(v))));
}
__device__ __forceinline__ long long widened(long long least, long long) { return least; }

// A warp's row, and how it is read.
struct Line {
    const cost_t* __restrict__ cost;  // [n_cols]
    const value_t* __restrict__ v;    // [n_cols]
    int n_cols, negate, offset;
};

// c - v at AT_ONCE places of a row, 32 apart; TOP beyond its end.
__device__ __forceinline__ void read_places(const Line& line, int first, value_t* reduced) {
    cost_t entry[AT_ONCE];
    value_t price[AT_ONCE];
#pragma unroll
    for (int each = 0; each < AT_ONCE; each++) {  // all loads before the first use
        const int place = first + each * 32;
        if (place >= line.n_cols) continue;
        const int j = rotated(place, line.offset, line.n_cols);
        entry[each] = __ldg(line.cost + j);
        price[each] = __ldg(line.v + j);
    }
#pragma unroll
    for (int each = 0; each < AT_ONCE; each++) {
        reduced[each] = TOP;
        if (first + each * 32 < line.n_cols)
            reduced[each] = (line.negate ? -(value_t)entry[each] : (value_t)entry[each]) - price[each];
    }
}

// Put the lanes' hits, a bit for each of AT_ONCE places from `first` on, behind `listed` columns, in the order of places.
// Returns how many there are now.
__device__ __forceinline__ int list_hits(const Line& line, u32 hits, int first, int* columns, int listed) {
    if (!__any_sync(FULL_WARP, hits)) return listed;
#pragma unroll 1  // few places have hits
    for (int each = 0; each < AT_ONCE; each++) {
        const bool has = hits >> each & 1;
        const u32 votes = __ballot_sync(FULL_WARP, has);
        const int at = listed + __popc(votes & ((1u << (threadIdx.x & 31)) - 1));
        if (has && at < TIES) columns[at] = rotated(first + each * 32, line.offset, line.n_cols);
        listed += __popc(votes);
    }
    return listed;
}

// List the columns of row i, by one warp: those at its old dual, or else those at its least, which `u` takes.
__device__ __forceinline__ void look(const TakeSeatsArgs& args, int negate, int i, Range& range) {
    const int n_cols = args.n_cols, lane = threadIdx.x & 31;
    const Line line = {args.cost + (long long)i * n_cols, args.v_first, n_cols, negate, first_column(i, n_cols)};
    int* columns = args.columns + (long long)i * TIES;
    const value_t own = __ldg(args.own + i);
    value_t least = TOP, reduced[AT_ONCE];
    u32 at = NONE;
    int listed = 0;
    for (int base = 0; base < n_cols; base += 32 * AT_ONCE) {
        u32 hits = 0;
        read_places(line, base + lane, reduced);
#pragma unroll
        for (int each = 0; each < AT_ONCE; each++) {
            if (reduced[each] < least) least = reduced[each], at = base + lane + each * 32;
            if (reduced[each] > range.high && reduced[each] < TOP) range.high = reduced[each];
            if (reduced[each] == own && reduced[each] < TOP) hits |= 1u << each;
        }
        listed = list_hits(line, hits, base + lane, columns, listed);
    }
    if (least < range.low) range.low = least;
    const u64 mine = rank_of(least), lowest = warp_min_bits(mine);
    at = __reduce_min_sync(FULL_WARP, mine == lowest ? at : NONE);
    least = unordered<value_t>((long long)(lowest ^ 0x8000000000000000ull));
    value_t limit = least;
    if (least < TOP) limit = widened(least, __ldg(args.v_first + rotated(at, line.offset, n_cols)));
    const bool is_own = listed > 0 && least < TOP && own <= limit;
    if (!is_own) {
        listed = 0;
        __syncwarp();  // what was listed before, and other lanes write over now
        for (int base = 0; base < n_cols && listed < TIES && least < TOP; base += 32 * AT_ONCE) {
            u32 hits = 0;
            read_places(line, base + lane, reduced);
#pragma unroll
            for (int each = 0; each < AT_ONCE; each++)
                if (reduced[each] <= limit && reduced[each] < TOP) hits |= 1u << each;
            listed = list_hits(line, hits, base + lane, columns, listed);
        }
    }
    listed = min(listed, TIES);
    if (lane == 0) args.n_columns[i] = is_own ? listed : -listed, args.u[i] = least, args.row_col[i] = -1;
}

// How many columns row i may still choose from: none, once it has a seat.
__device__ __forceinline__ int length_of(const TakeSeatsArgs& args, int i) {
    return __ldcg(args.row_col + i) >= 0 ? 0 : abs(__ldcg(args.n_columns + i));
}

__device__ __forceinline__ void count_wanted(const TakeSeatsArgs& args) {
    for (long long i = in_grid(); i < args.n_rows; i += grid_size()) {
        const int* columns = args.columns + i * TIES;
        for (int k = 0, length = length_of(args, (int)i); k < length; k++) {
            const int j = __ldcg(columns + k);
            if (__ldcg(args.col_row + j) < 0) atomicAdd(args.wanted + j, 1);  // rows share columns; any order will do
        }
    }
}

// Leaves claim, or without `leaves` every row does. counted: leaves, and rows that have a free column.
__device__ __forceinline__ void place_claims(const TakeSeatsArgs& args, bool leaves, int* counted) {
    int n_leaves = 0, n_open = 0;
    for (long long i = in_grid(); i < args.n_rows; i += grid_size()) {
        const int* columns = args.columns + i * TIES;
        int options = 0, best = -1, fewest = 0;
        for (int k = 0, length = length_of(args, (int)i); k < length; k++) {
            const int j = __ldcg(columns + k);
            if (__ldcg(args.col_row + j) >= 0) continue;
            const int count = __ldcg(args.wanted + j);
            if (options++ == 0 || count < fewest) best = j, fewest = count;
        }
        if (options == 0) continue;
        const bool leaf = options == 1 || fewest == 1;
        n_open++, n_leaves += leaf;
        const u32 key = (__ldcg(args.n_columns + i) < 0 ? NOT_ITS_OWN : 0) | (u32)i;
        if (leaf || !leaves) atomicMin(args.claim + best, key);  // settles which row a column takes
    }
    n_leaves = __reduce_add_sync(FULL_WARP, n_leaves), n_open = __reduce_add_sync(FULL_WARP, n_open);
    if ((threadIdx.x & 31) || !leaves) return;
    if (n_leaves) atomicAdd(counted, n_leaves);  // sums, in any order
    if (n_open) atomicAdd(counted + 1, n_open);
}

// Columns go to those that claim them.
__device__ __forceinline__ void settle(const TakeSeatsArgs& args) {
    int n_taken = 0;
    for (long long j = in_grid(); j < args.n_cols; j += grid_size()) {
        args.wanted[j] = 0;
        const u32 key = __ldcg(args.claim + j);
        if (key == NOBODY || __ldcg(args.col_row + j) >= 0) continue;
        const int i = (int)(key & ~NOT_ITS_OWN);
        args.col_row[j] = i, args.row_col[i] = (int)j;
        n_taken++;
    }
    n_taken = __reduce_add_sync(FULL_WARP, n_taken);
    if ((threadIdx.x & 31) == 0 && n_taken) atomicAdd(&args.state->n_seated, n_taken);  // a sum, in any order
}

// Grid: one block per multiprocessor, all resident (cooperative launch). Block: 1024. Shared: what bid.cuh declares.
// Reads: cost, v_first, own. Writes: v, u, col_row, row_col, free_rows, free_u, state; columns, n_columns, wanted, claim,
// counters. Requires: n_rows == n_cols; state, proposal and boards as reduce_columns left them.
// Work: the matrix once, rows without a column at their old dual twice; a round reads the lists, by three grid barriers.
// Seats at old prices; mode[0] is SEATED if all but `few` rows have one.
extern "C" __global__ void __launch_bounds__(THREADS, 1) take_seats(const __grid_constant__ TakeSeatsArgs args) {
    const int n_rows = args.n_rows, n_cols = args.n_cols, negate = uniform(args.negate);
    ChainState* state = args.state;
    cg::grid_group grid = cg::this_grid();
    Range range = {TOP, -TOP};
    for (long long j = in_grid(); j < n_cols; j += grid_size()) {
        args.v[j] = args.v_first[j];
        args.col_row[j] = -1, args.wanted[j] = 0, args.claim[j] = NOBODY;
    }
    if (in_grid() < 6) args.counters[in_grid()] = 0;
    for (long long i = (threadIdx.x >> 5) * (long long)gridDim.x + blockIdx.x; i < n_rows; i += gridDim.x * WARPS)
        look(args, negate, (int)i, range);
    widen_spread(state, range);
    grid.sync();  // lists and empty seats before the first count
    for (int round = 0; round < ROUNDS; round++) {
        int* counted = args.counters + 2 * (round % 3);
        count_wanted(args);
        grid.sync();  // counts before claims
        place_claims(args, true, counted);
        // free to clear: these counters were read in the last round but one, before its settle
        if (in_grid() < 2) args.counters[2 * ((round + 1) % 3) + in_grid()] = 0;
        grid.sync();  // claims, and how many there are, before seats
        if (__ldcg(counted + 1) == 0) break;
        if (__ldcg(counted) == 0) {
            place_claims(args, false, counted);
            grid.sync();  // claims before seats
        }
        settle(args);
        grid.sync();  // seats before the next count, and before the list of free rows
    }
    const int n_free = n_rows - __ldcg(&state->n_seated);
    if (blockIdx.x > 0 || n_free > args.few) return;
    list_free(args.row_col, n_rows, args.free_rows);  // ends with a barrier
    for (int k = threadIdx.x; k < n_free; k += THREADS) {
        const value_t least = __ldcg(args.u + args.free_rows[k]);
        args.free_u[k] = least < TOP ? least : value_t(0);
    }
    if (threadIdx.x == 0) state->n_free = state->n_begun = n_free, state->mode[0] = SEATED;
}
