// Costs of points, a matrix of float64 from coordinates: one launch, no cost is ever sent.
//
//   distances:  c_ij = sum_k (x_ik - y_jk)^2, its root, half of it for points of length 1, sum_k |x_ik - y_jk|, or
//               1 - intersection over union of boxes
//
// Differences are taken before they are squared, so a cost is within (d + 3) 2^-53 of itself. What rounding is left
// goes into the gap: the certificate works out costs by code of its own.
//
// buffer    shape   type     written by
// x         m, d    double   -
// turned    d, n    double   -            y turned, so that neighbouring threads read neighbouring numbers
// cost      m, n    double   distances
//
// Overflow: coordinates are at most 1e100 in size, checked by the problem.
#include "device/uniform.cuh"
#include "lap/points/layout.py"

// The costs of ROWS rows from `first` on, and of columns `column` and each THREADS further. Lines beyond the last are
// worked out as the last and not kept.
template <bool SQUARED>
__device__ __forceinline__ void write_tile(const DistancesArgs& args, long long first, long long column) {
    const int kind = uniform(args.kind), halved = uniform(args.halved), dimension = uniform(args.d);
    const long long n_rows = args.m, n_cols = args.n;
    const double* points[ROWS];
    const double* other[ACROSS];
#pragma unroll
    for (int each = 0; each < ROWS; each++) points[each] = args.x + min(first + each, n_rows - 1) * dimension;
#pragma unroll
    for (int beside = 0; beside < ACROSS; beside++)
        other[beside] = args.turned + min(column + beside * THREADS, n_cols - 1);
    double total[ROWS][ACROSS] = {};
#pragma unroll 2
    for (int k = 0; k < dimension; k++) {
        double own[ACROSS];
#pragma unroll
        for (int beside = 0; beside < ACROSS; beside++) own[beside] = __ldg(other[beside] + k * n_cols);
#pragma unroll
        for (int each = 0; each < ROWS; each++) {
            const double point = __ldg(points[each] + k);
#pragma unroll
            for (int beside = 0; beside < ACROSS; beside++) {
                const double away = point - own[beside];
                total[each][beside] += SQUARED ? away * away : fabs(away);
            }
        }
    }
#pragma unroll
    for (int each = 0; each < ROWS; each++) {
#pragma unroll
        for (int beside = 0; beside < ACROSS; beside++) {
            const long long at = column + beside * THREADS;
            const double sum = total[each][beside], found = kind == EUCLIDEAN ? sqrt(sum) : halved ? 0.5 * sum : sum;
            if (first + each < n_rows && at < n_cols) args.cost[(first + each) * n_cols + at] = found;
        }
    }
}

// Grid: rows over ROWS, columns over THREADS * ACROSS. Block: THREADS, ACROSS columns each. Shared: none. Reads: x,
// turned. Writes: cost. Requires: kind as METRICS of problems/metrics.py counts them.
// Work: m * n * d differences. y is read m / ROWS times, from the cache.
extern "C" __global__ void __launch_bounds__(THREADS) distances(const __grid_constant__ DistancesArgs args) {
    const long long first = (long long)blockIdx.x * ROWS;
    const long long column = (long long)blockIdx.y * THREADS * ACROSS + threadIdx.x;
    if (uniform(args.kind) == CITYBLOCK) write_tile<false>(args, first, column);
    else write_tile<true>(args, first, column);
}

// The costs of ROWS boxes from `first` on with the box of a column.
__device__ __forceinline__ void write_overlaps(const OverlapsArgs& args, long long first, long long column) {
    const double* box = args.turned + column;
    const long long n_rows = args.m, n_cols = args.n;
    const double x1 = box[0], y1 = box[n_cols], x2 = box[2 * n_cols], y2 = box[3 * n_cols];
    const double area = (x2 - x1) * (y2 - y1);
    for (int each = 0; each < ROWS && first + each < n_rows; each++) {
        const double* own = args.x + (first + each) * 4;
        const double width = fmin(x2, own[2]) - fmax(x1, own[0]), height = fmin(y2, own[3]) - fmax(y1, own[1]);
        const double both = width > 0 && height > 0 ? width * height : 0;
        const double alone = fmax(0.0, area + (own[2] - own[0]) * (own[3] - own[1]) - 2 * both);
        args.cost[(first + each) * n_cols + column] = both > 0 ? alone / (alone + both) : 1.0;
    }
}

// Grid, Block, Shared, Reads, Writes: as `distances`. Requires: d 4, x1 <= x2 and y1 <= y2.
// Work: m * n overlaps. Boxes that share no area cost 1, also where neither has any.
extern "C" __global__ void __launch_bounds__(THREADS) overlaps(const __grid_constant__ OverlapsArgs args) {
    const long long first = (long long)blockIdx.x * ROWS;
    const long long column = (long long)blockIdx.y * THREADS * ACROSS + threadIdx.x;
    for (int each = 0; each < ACROSS && column + each * THREADS < args.n; each++)
        write_overlaps(args, first, column + each * THREADS);
}
