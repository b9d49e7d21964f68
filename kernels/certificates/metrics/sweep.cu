// Which pairs of points may attain the smallest cost less price of their row: two looks at all pairs, no matrix.
//
// In min form (c = sign * cost) a cost is worked out as a float64 c within e of the problem's, e from `relative`, a
// factor of the sum that makes the cost, and `off`, an error of the row; coarsely.py says what they are for each
// metric. A pair is left out where c - v - e lies above the smallest c - v + e of its row by more than rounding
// explains. So the pair that attains the row's minimum of the real numbers is never left out.
//
//   least_of_rows:  a block some rows and a piece of the columns: of each row the smallest c - v + e and c - v - e
//                   there, and the largest e
//   join:           a thread a row: the same over all pieces, and `limit`, up to which a pair is kept
//   near_least:     a block a row and a piece, of which next to none hold such a pair: columns with c - v - e <= limit,
//                   at most `most` of a row, and their number
//   gather:         a block a row: the kept columns of rows with not too many, one row after the other
//
// A tile is ROWS x THREADS * COLUMNS pairs. A piece is every `pieces`-th tile of some rows.
// Fused multiply-adds round once where two operations round twice: the errors of coarsely.py hold for either.
//
// buffer    shape           type    written by
// x         m, d            double  -
// turned    d, n            double  -              y turned, so that neighbouring threads read neighbouring numbers
// price     n               double  -              0 beyond use
// off       m               double  -
// part      3, pieces, m    double  least_of_rows  low, best, widest: c - v - e, c - v + e, e
// row       3, m            double  join           low, widest, limit
// count     m               int     near_least     0 before
// near      m, most         int     near_least     in any order
// start     m               long    -              where a row's columns go; -1: nowhere
// found     as start says   int     gather
//
// Overflow: coordinates are at most 1e100 in size, checked by the problem.
#ifndef KIND
#define KIND 0
#endif
#define SQUARES 0
#define ROOTS 1
#define SIZES 2
#define PRODUCTS 3
#define HALVES 4
#define OVERLAPS 5

#define WARP 32
#define ALL_LANES 0xffffffffu
#define THREADS 64
#define ROWS 8
#define COLUMNS 4
#define TILE (THREADS * COLUMNS)
#define NONE_YET __longlong_as_double(0x7ff0000000000000ll)
#define UNIT 0x1p-53
#define SLACK (1 + 0x1p-20)
#define WIDER 0x1p-50   // assignment.py
#define LEAST 0x1p-1000
#define TOO_SMALL 0x1p-900  // exactly.py
#define LARGE 0x1p-300
#define TINIEST 0x1p-1060

struct Sweep {
    const double *x, *turned, *price, *off;
    double *part, *row;
    int *count, *near;
    const long long* start;
    int* found;
    double relative;
    long long m, n;
    int d, sign, pieces, most;
};

// The sums over coordinates of N rows from `first` on, and of columns `column` and each THREADS further. Lines beyond
// the last are worked out as the last.
template <int N>
__device__ __forceinline__ void sums(const Sweep& given, long long first, long long column,
                                     double (&total)[N][COLUMNS]) {
    const double* from[N];
#pragma unroll
    for (int r = 0; r < N; r++) {
        from[r] = given.x + (first + r < given.m ? first + r : given.m - 1) * given.d;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) total[r][c] = 0;
    }
    long long at[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) at[c] = column + c * THREADS < given.n ? column + c * THREADS : given.n - 1;
#pragma unroll 2
    for (int k = 0; k < given.d; k++) {
        double other[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) other[c] = __ldg(given.turned + k * given.n + at[c]);
#pragma unroll
        for (int r = 0; r < N; r++) {
            const double own = __ldg(from[r] + k);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
#if KIND == PRODUCTS
                total[r][c] = __fma_rn(own, other[c], total[r][c]);
#else
                const double away = __dsub_rn(own, other[c]);
                total[r][c] = KIND == SIZES ? __dadd_rn(total[r][c], fabs(away)) : __fma_rn(away, away, total[r][c]);
#endif
            }
        }
    }
}

// 1 less intersection over union of as many boxes; -1 where they are too small to tell.
template <int N>
__device__ __forceinline__ void shares(const Sweep& given, long long first, long long column,
                                       double (&total)[N][COLUMNS]) {
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        const long long at = column + c * THREADS < given.n ? column + c * THREADS : given.n - 1;
        const double *y = given.turned + at, left = y[0], low = y[given.n], right = y[2 * given.n];
        const double high = y[3 * given.n], area = __dmul_rn(__dsub_rn(right, left), __dsub_rn(high, low));
#pragma unroll
        for (int r = 0; r < N; r++) {
            const double* box = given.x + (first + r < given.m ? first + r : given.m - 1) * 4;
            const double width = fmax(__dsub_rn(fmin(box[2], right), fmax(box[0], left)), 0.0);
            const double height = fmax(__dsub_rn(fmin(box[3], high), fmax(box[1], low)), 0.0);
            const double inside = __dmul_rn(width, height);
            const double own = __dmul_rn(__dsub_rn(box[2], box[0]), __dsub_rn(box[3], box[1]));
            const double both = __dsub_rn(__dadd_rn(own, area), inside);
            const bool tiny = width > 0 && height > 0 && inside < TOO_SMALL && both < LARGE;
            const bool known = inside > 0 && both >= TINIEST;
            total[r][c] = tiny ? -1.0 : __dsub_rn(1.0, known ? __ddiv_rn(inside, both) : 0.0);
        }
    }
}

// The cost whose sum is `total`, and what it is off by.
__device__ __forceinline__ double cost_of(double total, double relative, double off, double& error) {
#if KIND == ROOTS
    const double squared = SLACK * (relative * total + off), root = __dsqrt_rn(total);
    const double floor = __dsqrt_rn(squared);  // above 0, as `off` is
    error = SLACK * (squared / fmax(root, floor) + 2 * UNIT * root);
    return root;
#elif KIND == PRODUCTS
    error = off;
    return -total;
#elif KIND == OVERLAPS
    error = total < 0 ? 1.0 : relative;
    return total < 0 ? 1.0 : total;
#else
    error = SLACK * (relative * total + off);
    return KIND == HALVES ? 0.5 * total : total;
#endif
}

template <int N>
__device__ __forceinline__ void add_up(const Sweep& given, long long first, long long column,
                                       double (&total)[N][COLUMNS]) {
#if KIND == OVERLAPS
    shares(given, first, column, total);
#else
    sums(given, first, column, total);
#endif
}

// Cost less price of a pair, in min form.
__device__ __forceinline__ double net_of(const Sweep& given, long long row, long long column, double total,
                                         double& error) {
    const double cost = cost_of(total, given.relative, given.off[row], error);
    return __dsub_rn(given.sign < 0 ? -cost : cost, given.price[column]);
}

__device__ __forceinline__ double smaller(double x, double y) { return y < x ? y : x; }

// The smallest of a block's, in thread 0. `room` holds a number a warp. Every thread of the block calls it.
__device__ double least_of_block(double value, double* room) {
    for (int step = WARP / 2; step; step >>= 1)
        value = smaller(value, __shfl_down_sync(ALL_LANES, value, step));
    __syncthreads();  // nobody reads `room` from the call before
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = value;
    __syncthreads();  // the warps' are in `room`
    for (int w = 1; w < THREADS / WARP && threadIdx.x == 0; w++) value = smaller(value, room[w]);
    return value;
}

// Grid: (ROWS rows each, pieces). Block: THREADS. Shared: static. Reads: x, turned, price, off. Writes: part.
// Requires: m, n, d > 0; OVERLAPS: d 4. Work: m * n * d differences; y is read m / ROWS times, from the cache.
extern "C" __global__ void __launch_bounds__(THREADS) least_of_rows(const Sweep given) {
    __shared__ double room[THREADS / WARP];
    const long long first = (long long)blockIdx.x * ROWS;
    double low[ROWS], best[ROWS], widest[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        low[r] = best[r] = NONE_YET;
        widest[r] = 0;
    }
    for (long long tile = blockIdx.y; tile * TILE < given.n; tile += given.pieces) {
        const long long column = tile * TILE + threadIdx.x;
        double total[ROWS][COLUMNS];
        add_up(given, first, column, total);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                const long long at = column + c * THREADS;
                if (first + r >= given.m || at >= given.n) continue;
                double error;
                const double net = net_of(given, first + r, at, total[r][c], error);
                low[r] = smaller(low[r], __dsub_rn(net, error));
                best[r] = smaller(best[r], __dadd_rn(net, error));
                widest[r] = fmax(widest[r], error);
            }
        }
    }
    const long long all = given.pieces * given.m;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const double of_low = least_of_block(low[r], room), of_best = least_of_block(best[r], room);
        const double of_widest = -least_of_block(-widest[r], room);
        if (threadIdx.x == 0 && first + r < given.m) {
            double* to = given.part + blockIdx.y * given.m + first + r;
            to[0] = of_low;
            to[all] = of_best;
            to[2 * all] = of_widest;
        }
    }
}

// Grid: rows over THREADS. Block: THREADS, a row each. Shared: none. Reads: part. Writes: row. Requires: -.
// Work: pieces * m.
extern "C" __global__ void __launch_bounds__(THREADS) join(const Sweep given) {
    const long long row = (long long)blockIdx.x * THREADS + threadIdx.x, all = given.pieces * given.m;
    if (row >= given.m) return;
    double low = NONE_YET, best = NONE_YET, widest = 0;
    for (int piece = 0; piece < given.pieces; piece++) {
        const double* from = given.part + piece * given.m + row;
        low = smaller(low, from[0]);
        best = smaller(best, from[all]);
        widest = fmax(widest, from[2 * all]);
    }
    given.row[row] = low;
    given.row[given.m + row] = widest;
    given.row[2 * given.m + row] = best + WIDER * (fabs(best) + 2 * widest + LEAST);
}

// Grid: (rows, pieces). Block: THREADS. Requires: as least_of_rows. Shared: none. Reads: x, turned, price, off, part,
// row. Writes: count, near. Work: pieces * m, and a piece's for each that has a pair to keep.
extern "C" __global__ void __launch_bounds__(THREADS) near_least(const Sweep given) {
    const long long row = blockIdx.x;
    const double limit = given.row[2 * given.m + row];
    if (given.part[blockIdx.y * given.m + row] > limit) return;  // the whole block
    for (long long tile = blockIdx.y; tile * TILE < given.n; tile += given.pieces) {
        const long long column = tile * TILE + threadIdx.x;
        double total[1][COLUMNS];
        add_up(given, row, column, total);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const long long at = column + c * THREADS;
            if (at >= given.n) continue;
            double error;
            const double net = net_of(given, row, at, total[0][c], error);
            if (__dsub_rn(net, error) <= limit) {
                // Which column comes first does not matter: whoever reads them looks for a minimum.
                const int place = atomicAdd(given.count + row, 1);
                if (place < given.most) given.near[row * given.most + place] = (int)at;
            }
        }
    }
}

// Grid: rows. Block: THREADS. Shared: none. Reads: count, near, start. Writes: found. Requires: start -1 where count is
// above `most`. Work: what is kept.
extern "C" __global__ void __launch_bounds__(THREADS) gather(const Sweep given) {
    const long long row = blockIdx.x, to = given.start[row];
    if (to < 0) return;
    for (int k = threadIdx.x; k < given.count[row]; k += THREADS)
        given.found[to + k] = given.near[row * given.most + k];
}
