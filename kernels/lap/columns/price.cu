// Pricing of a matrix in device memory: for each row the few columns of least reduced cost. The host has the lists.
//
//   least_of_columns:  a thread a column of some rows: the least cost and the first row that has it
//   join_pieces:       a thread a column: the least of its pieces
//   price_rows:        a warp TOGETHER rows: the `most` least c - v of each below its limit, in ascending order
//   gather:            costs of single entries, those that the lists hold
//   soft_minima_of_rows, soft_minima_of_columns:  m = min x and sum 2^(-scale (x - m)), of x = c - v or c - u
//
// All in min form: c = -entry when maximising. Lane k of a warp holds the k-th least that a row has found, so that one
// entry more is an insertion by one shift of the lanes. An entry must be below the last of them, so that of n entries
// in any order of values about most * ln(n / most) are inserted, some 110 of 131072; all others cost one comparison.
//
// Traffic: `cost` once. `v` has 8 bytes a column, twice those of a float32 cost, and lies in the L2: a warp reads it once
// for TOGETHER rows, so that it adds half of the matrix's bytes there and none to device memory.
//
// A warp begins to read at its own column and goes round. Of equal reduced costs the first that is read is kept, so that
// rows which are all alike do not list the same columns. Rows of one warp begin together, at a multiple of a load's
// entries: dense.py may list another column of the same reduced cost.
//
// Forbidden entries are +inf in min form, and so is their reduced cost: never below a limit. A column that is not to be
// found has v = -inf. Integers: |c| <= 2^40 and |v| below 2^62, checked by the host.
//
// buffer    shape     type      written by
// cost      held, n   cost_t    -
// v         n         value_t   -
// columns   k, most   int32     price_rows
// values    k, most   value_t   price_rows   beyond counts: TOP
#include "device/uniform.cuh"
#include "device/warp.cuh"

#ifndef COST
#define COST double
#define VALUE double
#endif
typedef COST cost_t;
typedef VALUE value_t;
#include "lap/columns/layout.py"

template <typename T>
__device__ __forceinline__ T top();
template <>
__device__ __forceinline__ double top() { return __longlong_as_double(0x7ff0000000000000ll); }
template <>
__device__ __forceinline__ long long top() { return 1ll << 61; }  // FARTHEST of level.py

// As many entries as one 16-byte load brings, or one.
template <int PER>
struct __align__(PER * sizeof(cost_t)) Several {
    cost_t entry[PER];
};
template <int PER>
struct __align__(PER > 1 ? 16 : 8) Prices {
    value_t of[PER];
};

// What a warp has found of one row: lane k the k-th least.
struct Found {
    value_t mine, limit;
    int column;

    // Take a reduced cost into the list. All lanes call it with the same arguments.
    __device__ __forceinline__ void insert(value_t reduced_here, int j, int most, int lane) {
        const int place = __popc(__ballot_sync(FULL_WARP, mine <= reduced_here));
        const value_t before = __shfl_up_sync(FULL_WARP, mine, 1);
        const int column_before = __shfl_up_sync(FULL_WARP, column, 1);
        if (lane > place) mine = before, column = column_before;
        else if (lane == place) mine = reduced_here, column = j;
        const value_t last = __shfl_sync(FULL_WARP, mine, most - 1);
        limit = last < limit ? last : limit;
    }
};

// One look of a warp: PER columns a lane, of TOGETHER rows. `first` is the lane's first column, -1 beyond the row's end.
template <int PER>
__device__ __forceinline__ void look(const PriceRowsArgs& args, const cost_t* const (&row)[TOGETHER],
                                     Found (&found)[TOGETHER], long long first, int most, int negate, int lane) {
    Several<PER> entries[TOGETHER];
    Prices<PER> price;
    if (first >= 0) {
        price = *(const Prices<PER>*)(args.v + first);
#pragma unroll
        for (int beside = 0; beside < TOGETHER; beside++) entries[beside] = *(const Several<PER>*)(row[beside] + first);
    }
#pragma unroll
    for (int beside = 0; beside < TOGETHER; beside++) {
        value_t reduced[PER];
        unsigned votes[PER], any = 0;
#pragma unroll
        for (int part = 0; part < PER; part++) {
            reduced[part] = top<value_t>();
            if (first >= 0) {
                const value_t entry = (value_t)entries[beside].entry[part];
                reduced[part] = (negate ? -entry : entry) - price.of[part];
            }
            any |= votes[part] = __ballot_sync(FULL_WARP, reduced[part] < found[beside].limit);
        }
        for (; any; any &= any - 1) {  // in the order of columns: else rows that are all alike list a PERth of them
            const int from = __ffs(any) - 1;
#pragma unroll
            for (int part = 0; part < PER; part++) {
                if (!(votes[part] >> from & 1)) continue;
                const value_t reduced_here = __shfl_sync(FULL_WARP, reduced[part], from);
                const int j = __shfl_sync(FULL_WARP, (int)first + part, from);
                if (reduced_here < found[beside].limit) found[beside].insert(reduced_here, j, most, lane);
            }
        }
    }
}

template <int PER>
__device__ __forceinline__ void read_round(const PriceRowsArgs& args, const cost_t* const (&row)[TOGETHER],
                                           Found (&found)[TOGETHER], long long begin, int most, int negate, int lane) {
    const long long looks = args.n / PER;
    for (long long at = 0; at < looks; at += 32) {
        long long here = begin / PER + at + lane;
        if (here >= looks) here -= looks;
        look<PER>(args, row, found, at + lane < looks ? here * PER : -1, most, negate, lane);
    }
}

// Grid: a warp for TOGETHER of the k rows. Block: THREADS. Shared: none. Reads: cost, v, rows, limits.
// Writes: columns, values, counts. Requires: most <= MOST; v aligned to 16 bytes; `wide`: cost and rows of n entries too.
// Work: k * n comparisons, and some most * ln(n / most) insertions a row.
extern "C" __global__ void __launch_bounds__(THREADS) price_rows(const __grid_constant__ PriceRowsArgs args) {
    const int lane = threadIdx.x & 31, most = uniform(args.most), k = uniform(args.k), negate = uniform(args.negate);
    const long long group = (long long)blockIdx.x * WARPS + threadIdx.x / 32, first = group * TOGETHER;
    if (first >= k) return;
    const cost_t* row[TOGETHER];
    Found found[TOGETHER];
#pragma unroll
    for (int beside = 0; beside < TOGETHER; beside++) {
        // rows beyond the last are read and not kept
        const long long asked = first + beside < k ? first + beside : k - 1;
        row[beside] = args.cost + args.rows[asked] * args.n;
        found[beside] = {top<value_t>(), first + beside < k ? args.limits[asked] : -top<value_t>(), 0};
    }
    const long long begin = args.turn * (args.rows[first] / TOGETHER) % args.n;
    if (uniform(args.wide)) read_round<16 / sizeof(cost_t)>(args, row, found, begin, most, negate, lane);
    else read_round<1>(args, row, found, begin, most, negate, lane);
#pragma unroll
    for (int beside = 0; beside < TOGETHER; beside++) {
        if (first + beside >= k) return;
        const unsigned some = __ballot_sync(FULL_WARP, found[beside].mine < top<value_t>() && lane < most);
        if (lane == 0) args.counts[first + beside] = __popc(some);
        if (lane >= most) continue;
        args.columns[(first + beside) * most + lane] = found[beside].column;
        args.values[(first + beside) * most + lane] = found[beside].mine;
    }
}

// Grid: (n over THREADS, pieces). Block: THREADS, a column each. Shared: none. Reads: cost. Writes: values, rows.
// Requires: -. Work: the matrix once. A column without a permitted entry keeps TOP.
extern "C" __global__ void __launch_bounds__(THREADS)
least_of_columns(const __grid_constant__ LeastOfColumnsArgs args) {
    const long long j = (long long)blockIdx.x * THREADS + threadIdx.x, n_cols = args.n;
    const int negate = uniform(args.negate), begin = blockIdx.y * args.piece;
    const int end = begin + args.piece < args.held ? begin + args.piece : args.held;
    if (j >= n_cols) return;
    value_t least = top<value_t>();
    int at = 0;
    const cost_t* here = args.cost + (long long)begin * n_cols + j;
#pragma unroll 8
    for (int i = begin; i < end; i++, here += n_cols) {
        const value_t entry = (value_t)__ldg(here), in_min_form = negate ? -entry : entry;
        if (in_min_form < least) least = in_min_form, at = i;
    }
    args.values[(long long)blockIdx.y * n_cols + j] = least;
    args.rows[(long long)blockIdx.y * n_cols + j] = at;
}

// Grid: n over THREADS. Block: THREADS, a column each. Shared: none. Reads: values, rows. Writes: values, rows.
// Requires: least_of_columns has ended. Work: pieces * n.
extern "C" __global__ void __launch_bounds__(THREADS) join_pieces(const __grid_constant__ JoinPiecesArgs args) {
    const long long j = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (j >= args.n) return;
    for (int piece = 1; piece < args.pieces; piece++) {
        const long long at = piece * args.n + j;
        if (args.values[at] < args.values[j]) args.values[j] = args.values[at], args.rows[j] = args.rows[at];
    }
}

// Grid: k over THREADS. Block: THREADS, an entry each. Shared: none. Reads: cost, places. Writes: found.
// Requires: -. Work: k entries.
extern "C" __global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ GatherArgs args) {
    const long long at = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (at < args.k) args.found[at] = args.cost[args.places[at]];
}

// A soft minimum under way: the least so far, and the sum of 2^(-scale (x - least)).
struct Soft {
    double least;
    float sum;

    __device__ __forceinline__ void take(double reduced_here, float scale) {
        if (!(reduced_here < top<double>())) return;  // forbidden
        const float away = (float)(reduced_here - least), share = exp2f(-scale * fabsf(away));
        if (away < 0) sum = sum * share + 1, least = reduced_here;
        else sum += share;
    }
    __device__ __forceinline__ void join(double other, float its, float scale) {
        if (!(other < top<double>())) return;
        const float away = (float)(other - least), share = exp2f(-scale * fabsf(away));
        if (away < 0) sum = sum * share + its, least = other;
        else sum += its * share;
    }
};

template <int PER>
__device__ __forceinline__ void soften(const SoftMinimaOfRowsArgs& args, const cost_t* const (&row)[TOGETHER],
                                       Soft (&soft)[TOGETHER], float scale, int negate, int lane) {
    for (long long first = (long long)lane * PER; first < args.n; first += 32 * PER) {
        double price[PER];
        Several<PER> entries[TOGETHER];
#pragma unroll
        for (int part = 0; part < PER; part++) price[part] = __ldg(args.v + first + part);
#pragma unroll
        for (int beside = 0; beside < TOGETHER; beside++) entries[beside] = *(const Several<PER>*)(row[beside] + first);
#pragma unroll
        for (int beside = 0; beside < TOGETHER; beside++)
#pragma unroll
            for (int part = 0; part < PER; part++) {
                const double entry = (double)entries[beside].entry[part];
                soft[beside].take((negate ? -entry : entry) - price[part], scale);
            }
    }
}

// Grid: a warp for TOGETHER rows. Block: THREADS. Shared: none. Reads: cost, v. Writes: least, sums.
// Requires: v finite. Work: the matrix once, an exponential an entry. What comes out is a hint: sums are in float32.
extern "C" __global__ void __launch_bounds__(THREADS)
soft_minima_of_rows(const __grid_constant__ SoftMinimaOfRowsArgs args) {
    const int lane = threadIdx.x & 31, negate = uniform(args.negate);
    const long long first = ((long long)blockIdx.x * WARPS + threadIdx.x / 32) * TOGETHER;
    if (first >= args.held) return;
    const float scale = (float)args.scale;
    const cost_t* row[TOGETHER];
    Soft soft[TOGETHER];
#pragma unroll
    for (int beside = 0; beside < TOGETHER; beside++) {
        const long long i = first + beside < args.held ? first + beside : args.held - 1;
        row[beside] = args.cost + i * args.n;
        soft[beside] = {top<double>(), 0};
    }
    if (uniform(args.wide)) soften<16 / sizeof(cost_t)>(args, row, soft, scale, negate, lane);
    else soften<1>(args, row, soft, scale, negate, lane);
#pragma unroll
    for (int beside = 0; beside < TOGETHER; beside++) {
        for (int step = 16; step; step >>= 1) {
            const double other = __shfl_xor_sync(FULL_WARP, soft[beside].least, step);
            const float its = __shfl_xor_sync(FULL_WARP, soft[beside].sum, step);
            soft[beside].join(other, its, scale);
        }
        if (lane == 0 && first + beside < args.held) {
            args.least[first + beside] = soft[beside].least;
            args.sums[first + beside] = soft[beside].sum;
        }
    }
}

// Grid: (n over THREADS, pieces). Block: THREADS, a column each. Shared: none. Reads: cost, u. Writes: least, sums.
// Requires: u finite. Work: as soft_minima_of_rows. The host joins the pieces.
extern "C" __global__ void __launch_bounds__(THREADS)
soft_minima_of_columns(const __grid_constant__ SoftMinimaOfColumnsArgs args) {
    const long long j = (long long)blockIdx.x * THREADS + threadIdx.x, n_cols = args.n;
    const int negate = uniform(args.negate), begin = blockIdx.y * args.piece;
    const int end = begin + args.piece < args.held ? begin + args.piece : args.held;
    if (j >= n_cols) return;
    const float scale = (float)args.scale;
    Soft soft = {top<double>(), 0};
    const cost_t* here = args.cost + (long long)begin * n_cols + j;
#pragma unroll 8
    for (int i = begin; i < end; i++, here += n_cols) {
        const double entry = (double)__ldg(here);
        soft.take((negate ? -entry : entry) - __ldg(args.u + i), scale);
    }
    args.least[(long long)blockIdx.y * n_cols + j] = soft.least;
    args.sums[(long long)blockIdx.y * n_cols + j] = soft.sum;
}
