// What an assignment's certificate needs of its weights, in one read of them: exact line minima, and the sums.
//
// All in min form: c = sign * weight. The lines of the shorter side (always the rows of an auction) must be paired;
// the lines of the other side have prices v. For any prices, v <= 0 where their lines may stay free,
//
//     sum over lines of min (c - v)  +  sum of v          is at most the cost of any assignment (weak duality).
//
//   cut_prices:        v = sign * given, 0 for what is no number or beyond use, at most 0 where the line may stay free
//   least_of_rows:     a warp a piece of a row: the smallest c - v of the piece, as high + low without error
//   least_of_columns:  a thread a piece of a column: the same for problems with fewer columns than rows
//   weigh:             a block a problem: the smallest of each line's pieces, and the sums
//
// Why high + low is exact: rounding to nearest never reverses an order, so that an exact minimum is among the entries
// whose rounded differences are smallest; of these the smallest error (TwoSum) is the minimum's. Integers: int64, where
// the problem keeps |c| below 2^58 and prices beyond 2^61 are dropped. Sums: see directed.cuh.
//
// Both sweeps add each word that they read to the checksum of the whole array, padding too (checksum.cuh). A word that
// holds entries of two lines counts with the line of its first.
//
// buffer     shape                      type      written by
// cost       batch, max_rows, max_cols  cost_t    -
// sizes      batch, 2                   int32     -                 or null: all are max_rows x max_cols
// u, v       batch, max_rows; max_cols  value_t   -                 in the sense of the problem
// price_u/v  as u, v                    value_t   cut_prices        both sides; the shorter side's is not used
// part_high  batch, pieces, longest     value_t   the sweeps        longest = max(max_rows, max_cols)
// part_low   as part_high               double    the sweeps        floats only
// taken      batch, max_cols            int32     weigh             0 before
// total      1                          uint64    the sweeps        0 before
// proof      batch, FACTS               int64     weigh             doubles by their bits
#include "certificates/gpu/directed.cuh"
#include "certificates/gpu/checksum.cuh"

#ifndef COST
#define COST double
#define VALUE double
#define FLOATS 1
#endif
typedef COST cost_t;
typedef VALUE value_t;
#define PER_WORD ((int)(8 / sizeof(cost_t)))
#define BLOCK 256
#define MOST_WEIGHERS 1024

#if FLOATS
#define NONE_YET __longlong_as_double(0x7ff0000000000000ll)
#define MOST_PRICE 0x1p1017
#else
#define NONE_YET 0x7fffffffffffffffll
#define MOST_PRICE (1ll << 61)
#endif

enum { OBJECTIVE, OBJECTIVE_LOW, BOUND, BOUND_LOW, SIZES, VIOLATION, OFF, MISSING, FAULT, WITHOUT, FACTS };
enum { FINE, NO_COLUMN, FORBIDDEN_PAIR };

// `auction`: rows are the lines whatever their number, columns may always stay free. `piece`: entries of a line.
struct Shape {
    int batch, max_rows, max_cols, sign, auction, pieces, piece;
    __device__ int longest() const { return max_rows > max_cols ? max_rows : max_cols; }
};

struct Member {
    int rows, cols;
    bool lines_are_rows, may_stay_free;  // may_stay_free: the lines that have prices
    __device__ int n_lines() const { return lines_are_rows ? rows : cols; }
    __device__ int n_prices() const { return lines_are_rows ? cols : rows; }
};

__device__ __forceinline__ Member member(const Shape& shape, const int* sizes, int k) {
    const int rows = sizes ? sizes[2 * k] : shape.max_rows, cols = sizes ? sizes[2 * k + 1] : shape.max_cols;
    return {rows, cols, shape.auction || rows <= cols, shape.auction || rows != cols};
}

// Entry `part` of a word, in min form; whether it is permitted.
__device__ __forceinline__ bool entry(word_t word, int part, int sign, value_t& c) {
#if FLOATS
    const double x = PER_WORD == 1 ? __longlong_as_double(word) : widened((unsigned int)(word >> (32 * part)));
    c = sign < 0 ? -x : x;
    return fabs(x) < NONE_YET;  // false for NaN
#else
    const long long x = PER_WORD == 1 ? (long long)word : (long long)(int)(unsigned int)(word >> (32 * part));
    if (PER_WORD == 1 && x == (long long)(1ull << 63)) return false;
    c = sign < 0 ? -x : x;
    return true;
#endif
}

// Takes c - v into a minimum high + low.
__device__ __forceinline__ void take(value_t c, value_t v, value_t& high, double& low) {
#if FLOATS
    const double d = __dsub_rn(c, v);
    if (d <= high) {
        const double error = lost_by(d, c, -v);
        if (d < high || error < low) low = error;
        high = d;
    }
#else
    const long long d = c - v;
    high = d < high ? d : high;
#endif
}

__device__ __forceinline__ void smaller_of(value_t other_high, double other_low, value_t& high, double& low) {
    if (other_high < high || (other_high == high && other_low < low)) {
        high = other_high;
        low = other_low;
    }
}

// Grid: any. Block: any. Reads: given (batch, extent). Writes: price. Requires: -. Work: batch * extent.
// `side` 0 for u (rows), 1 for v (columns).
extern "C" __global__ void cut_prices(Shape shape, const int* __restrict__ sizes, const value_t* __restrict__ given,
                                      value_t* price, int side) {
    const int extent = side ? shape.max_cols : shape.max_rows;
    const long long all = (long long)shape.batch * extent, step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += step) {
        const Member m = member(shape, sizes, (int)(at / extent));
        const value_t x = given[at];
        value_t p = x >= -MOST_PRICE && x <= MOST_PRICE ? (shape.sign < 0 ? -x : x) : 0;  // 0 for NaN
        if (m.may_stay_free && p > 0) p = 0;
        price[at] = p;
    }
}

// Grid: one warp for each problem, row and piece of a row, rows running fastest. Block: BLOCK.
// Reads: cost, price_v. Writes: part_*, total. Requires: cost aligned to 8. Work: one read of cost.
extern "C" __global__ void __launch_bounds__(BLOCK)
least_of_rows(Shape shape, const int* __restrict__ sizes, const cost_t* __restrict__ cost,
              const value_t* __restrict__ price_v, value_t* part_high, double* part_low, word_t* total) {
    const long long warp = ((long long)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    const int lane = threadIdx.x % WARP, row = (int)(warp % shape.max_rows);
    const int piece = (int)(warp / shape.max_rows % shape.pieces);
    const int k = (int)(warp / shape.max_rows / shape.pieces);
    word_t sum = 0;
    if (k < shape.batch) {
        const Member m = member(shape, sizes, k);
        if (m.lines_are_rows) {
            const long long begin = ((long long)k * shape.max_rows + row) * shape.max_cols;
            const long long first = begin + (long long)piece * shape.piece;
            long long last = first + shape.piece;
            if (last > begin + shape.max_cols) last = begin + shape.max_cols;
            const word_t n_bytes = (word_t)shape.batch * shape.max_rows * shape.max_cols * sizeof(cost_t);
            const int n_cols = row < m.rows ? m.cols : 0;
            const value_t* v = price_v + (long long)k * shape.max_cols;
            value_t high = NONE_YET;
            double low = 0;
#pragma unroll 4
            for (long long w = first / PER_WORD + lane; w * PER_WORD < last; w += WARP) {
                const word_t word = word_at(cost, n_bytes, w);
                if (w * PER_WORD >= first) sum += mixed(word, w);
                for (int part = 0; part < PER_WORD; part++) {
                    const long long at = w * PER_WORD + part;
                    value_t c;
                    const long long column = at - begin;
                    if (at < first || at >= last || column >= n_cols) continue;
                    if (entry(word, part, shape.sign, c)) take(c, __ldg(v + column), high, low);
                }
            }
            for (int step = WARP / 2; step; step >>= 1) {
                const value_t other_high = __shfl_down_sync(ALL_LANES, high, step);
                const double other_low = __shfl_down_sync(ALL_LANES, low, step);
                smaller_of(other_high, other_low, high, low);
            }
            if (lane == 0) {
                const long long out = ((long long)k * shape.pieces + piece) * shape.longest() + row;
                part_high[out] = high;
                if (FLOATS) part_low[out] = low;
            }
        }
    }
    add_to_checksum(sum, total);
}

// Grid: (blocks of columns, pieces of `piece` rows, batch). Block: BLOCK. Otherwise as least_of_rows, of price_u.
extern "C" __global__ void __launch_bounds__(BLOCK)
least_of_columns(Shape shape, const int* __restrict__ sizes, const cost_t* __restrict__ cost,
                 const value_t* __restrict__ price_u, value_t* part_high, double* part_low, word_t* total) {
    const int column = blockIdx.x * BLOCK + threadIdx.x, piece = blockIdx.y;
    word_t sum = 0;
    for (int k = blockIdx.z; k < shape.batch; k += gridDim.z) {
        const Member m = member(shape, sizes, k);
        if (m.lines_are_rows || column >= shape.max_cols) continue;
        const word_t n_bytes = (word_t)shape.batch * shape.max_rows * shape.max_cols * sizeof(cost_t);
        const int first = piece * shape.piece;
        const int last = first + shape.piece < shape.max_rows ? first + shape.piece : shape.max_rows;
        value_t high = NONE_YET;
        double low = 0;
#pragma unroll 4
        for (int row = first; row < last; row++) {
            const long long at = ((long long)k * shape.max_rows + row) * shape.max_cols + column;
            const word_t word = word_at(cost, n_bytes, at / PER_WORD);
            if (at % PER_WORD == 0) sum += mixed(word, at / PER_WORD);
            value_t c;
            if (row < m.rows && column < m.cols && entry(word, (int)(at % PER_WORD), shape.sign, c))
                take(c, __ldg(price_u + (long long)k * shape.max_rows + row), high, low);
        }
        const long long out = ((long long)k * shape.pieces + piece) * shape.longest() + column;
        part_high[out] = high;
        if (FLOATS) part_low[out] = low;
    }
    add_to_checksum(sum, total);
}

// The pair of a row: its weight in min form, FINE; or what is wrong. Marks the column as taken.
__device__ int pair_of(const Shape& shape, const Member& m, const cost_t* cost, int k, int row, long long column,
                       int* taken, value_t& c) {
    if (column < 0 || column >= m.cols) return NO_COLUMN;
    // Which of two rows comes first does not matter: one of them finds the other's mark.
    if (atomicAdd(taken + (long long)k * shape.max_cols + column, 1)) return NO_COLUMN;
    const long long at = ((long long)k * shape.max_rows + row) * shape.max_cols + column;
    word_t word = 0;
    if (PER_WORD == 1) word = ((const word_t*)cost)[at];
    else word = ((const unsigned int*)cost)[at];
    return entry(word, 0, shape.sign, c) ? FINE : FORBIDDEN_PAIR;
}

struct Answer {
    const value_t *u, *v, *price_u, *price_v, *part_high;
    const double* part_low;
    const cost_t* cost;
    const long long* assignment;
    const value_t* reject;  // or null: what a row without a column costs, in min form
};

// The smallest c - v of a line: of its pieces, and of what leaving it out costs. It may still be NONE_YET.
__device__ __forceinline__ void least_of(const Shape& shape, const Answer& x, int k, int line, value_t& high,
                                         double& low) {
    high = NONE_YET;
    low = 0;
    for (int piece = 0; piece < shape.pieces; piece++) {
        const long long at = ((long long)k * shape.pieces + piece) * shape.longest() + line;
        smaller_of(x.part_high[at], FLOATS ? x.part_low[at] : 0.0, high, low);
    }
    if (x.reject) smaller_of(x.reject[line], 0.0, high, low);
}

#if FLOATS
typedef Sum<1> sum_up_t;
typedef Sum<-1> sum_down_t;
#else
typedef WholeSum sum_up_t;
typedef WholeSum sum_down_t;
#endif

__device__ __forceinline__ value_t size_of(value_t x) { return x < 0 ? -x : x; }

// How far a claimed dual is above its line's minimum, the largest number where it is none; 0 for a line without entries.
__device__ __forceinline__ value_t excess_of(const Shape& shape, value_t claimed, value_t high) {
    const bool sane = claimed >= -MOST_PRICE && claimed <= MOST_PRICE;
    if (!sane) return NONE_YET;
    return high == NONE_YET ? 0 : (shape.sign < 0 ? -claimed : claimed) - high;
}

// Grid: one block for each problem. Block: up to MOST_WEIGHERS, a multiple of 32.
// Reads: all but total. Writes: taken, proof. Work: pieces * lines, and a few operations a row and a column.
//
// proof: OBJECTIVE at least that of the pairs (and of rejected rows), BOUND as above, SIZES at most the sum of |c| +
// |u| + |v| over the pairs (auctions: see below), VIOLATION by how much claimed duals break c - v, or prices 0, OFF the
// largest difference of claimed duals, MISSING pairs, FAULT, WITHOUT lines without a permitted entry.
// Integers: OBJECTIVE and BOUND are 2^32 times the first word plus the second.
extern "C" __global__ void __launch_bounds__(MOST_WEIGHERS)
weigh(Shape shape, const int* __restrict__ sizes, Answer x, int* taken, long long* proof) {
    __shared__ value_t room[2 * 32];
    const int k = blockIdx.x, step = blockDim.x;
    const Member m = member(shape, sizes, k);
    const bool rows = m.lines_are_rows;
    const long long u_at = (long long)k * shape.max_rows, v_at = (long long)k * shape.max_cols;
    const value_t* price = rows ? x.price_v + v_at : x.price_u + u_at;
    const value_t* claimed = rows ? x.u + u_at : x.v + v_at;
    const value_t* given = rows ? x.v + v_at : x.u + u_at;
    sum_up_t objective;
    sum_down_t bound, sizes_sum;
    value_t violation = 0, off = 0, wrong = 0, without = 0, missing = 0;
    value_t high;
    double low;
    for (int line = threadIdx.x; line < m.n_lines(); line += step) {
        least_of(shape, x, k, line, high, low);
        const value_t excess = excess_of(shape, claimed[line], high);
        violation = excess > violation ? excess : violation;
        off = size_of(excess) > off ? size_of(excess) : off;
        if (high == NONE_YET) {
            without = 1;
            continue;
        }
        bound.add(high);
#if FLOATS
        bound.add(low);
        // An auction's sizes hold the smaller of a row's profit as worked out and as told, for every row.
        if (shape.auction) sizes_sum.add(fmin(fabs(high), fabs(claimed[line])));
#endif
    }
    for (int other = threadIdx.x; other < m.n_prices(); other += step) {
        bound.add(price[other]);
        const value_t told = shape.sign < 0 ? -given[other] : given[other];
        if (m.may_stay_free && told > violation) violation = told;
    }
    for (int row = threadIdx.x; row < m.rows; row += step) {
        const long long column = x.assignment[u_at + row];
        value_t c = 0;
        if (column == -1) {
            if (x.reject) {
                objective.add(x.reject[row]);
#if FLOATS
                sizes_sum.add(fabs(x.reject[row]));
#endif
            } else {
                missing += 1;
            }
            continue;
        }
        const int fault = pair_of(shape, m, x.cost, k, row, column, taken, c);
        if (fault != FINE) {
            wrong = fault > wrong ? fault : wrong;
            continue;
        }
        objective.add(c);
#if FLOATS
        sizes_sum.add(fabs(c));
        sizes_sum.add(fabs(price[rows ? column : row]));
        if (!shape.auction) {
            least_of(shape, x, k, rows ? row : (int)column, high, low);
            if (high < NONE_YET) sizes_sum.add(fabs(high));
        }
#endif
    }
    objective.over_block(room);
    bound.over_block(room);
    sizes_sum.over_block(room);
    violation = largest_of_block(violation, room);
    off = largest_of_block(off, room);
    wrong = largest_of_block(wrong, room);
    without = largest_of_block(without, room);
    WholeSum missing_sum;
    missing_sum.add((long long)missing);
    missing_sum.over_block((long long*)room);
    if (threadIdx.x) return;
    long long* out = proof + (long long)k * FACTS;
#if FLOATS
    out[OBJECTIVE] = __double_as_longlong(objective.value());
    out[BOUND] = __double_as_longlong(bound.value());
    out[SIZES] = __double_as_longlong(sizes_sum.value());
    out[VIOLATION] = __double_as_longlong(violation);
    out[OFF] = __double_as_longlong(off);
    out[OBJECTIVE_LOW] = out[BOUND_LOW] = 0;
#else
    out[OBJECTIVE] = objective.high;
    out[OBJECTIVE_LOW] = objective.low;
    out[BOUND] = bound.high;
    out[BOUND_LOW] = bound.low;
    out[SIZES] = 0;
    out[VIOLATION] = violation;
    out[OFF] = off;
#endif
    const int spare = m.rows > m.cols && !shape.auction ? m.rows - m.cols : 0;  // rows that no pair is left for
    out[MISSING] = missing_sum.low - spare;
    out[FAULT] = (long long)wrong;
    out[WITHOUT] = (long long)without;
}
