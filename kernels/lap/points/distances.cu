// Costs of points, a matrix of float64 from coordinates: one launch, no cost is ever sent.
//
//   distances:  c_ij = sum_k (x_ik - y_jk)^2, its root, half of it for points of length 1, sum_k |x_ik - y_jk|, or
//               1 - intersection over union of boxes
//
// Differences are taken before they are squared, so a cost is within (d + 3) 2^-53 of itself. What rounding is left goes
// into the gap: the certificate works out costs by code of its own.
//
// buffer    shape   type     written by
// x         m, d    double   -
// turned    d, n    double   -            y turned, so that neighbouring threads read neighbouring numbers
// cost      m, n    double   distances
//
// Overflow: coordinates are at most 1e100 in size, checked by the problem.
#include "device/uniform.cuh"
#include "lap/points/layout.py"

// Grid: columns over THREADS, rows over ROWS. Block: THREADS, a column each. Shared: none. Reads: x, turned. Writes: cost.
// Requires: kind as METRICS of problems/metrics.py counts them.
// Work: m * n * d differences. y is read m / ROWS times, from the cache.
extern "C" __global__ void __launch_bounds__(THREADS) distances(const __grid_constant__ DistancesArgs args) {
    const int kind = uniform(args.kind), halved = uniform(args.halved);
    const double *points = args.x, *turned = args.turned;
    const long long n_rows = args.m, n_cols = args.n;
    const int dimension = args.d;
    const long long j = (long long)blockIdx.x * THREADS + threadIdx.x, first = (long long)blockIdx.y * ROWS;
    if (j >= n_cols) return;
    double total[ROWS] = {};
    for (int k = 0; k < dimension; k++) {
        const double other = __ldg(turned + k * n_cols + j);
#pragma unroll
        for (int each = 0; each < ROWS; each++) {
            const long long i =
                first + each < n_rows ? first + each : n_rows - 1;  // rows beyond the last are worked out and not kept
            const double away = __ldg(points + i * dimension + k) - other;
            total[each] += kind == CITYBLOCK ? fabs(away) : away * away;
        }
    }
#pragma unroll
    for (int each = 0; each < ROWS; each++) {
        const double found = kind == EUCLIDEAN ? sqrt(total[each]) : halved ? 0.5 * total[each] : total[each];
        if (first + each < n_rows) args.cost[(first + each) * n_cols + j] = found;
    }
}

// Grid, Block, Shared, Reads, Writes: as `distances`. Requires: d 4, x1 <= x2 and y1 <= y2.
// Work: m * n overlaps. Boxes that share no area cost 1, also where neither has any.
extern "C" __global__ void __launch_bounds__(THREADS) overlaps(const __grid_constant__ OverlapsArgs args) {
    const double* turned = args.turned;
    const long long n_rows = args.m, n_cols = args.n;
    const long long j = (long long)blockIdx.x * THREADS + threadIdx.x, first = (long long)blockIdx.y * ROWS;
    if (j >= n_cols) return;
    const double x1 = turned[j], y1 = turned[n_cols + j], x2 = turned[2 * n_cols + j], y2 = turned[3 * n_cols + j];
    const double area = (x2 - x1) * (y2 - y1);
    for (int each = 0; each < ROWS && first + each < n_rows; each++) {
        const double* box = args.x + (first + each) * 4;
        const double width = fmin(x2, box[2]) - fmax(x1, box[0]), height = fmin(y2, box[3]) - fmax(y1, box[1]);
        const double both = width > 0 && height > 0 ? width * height : 0;
        const double alone = fmax(0.0, area + (box[2] - box[0]) * (box[3] - box[1]) - 2 * both);
        args.cost[(first + each) * n_cols + j] = both > 0 ? alone / (alone + both) : 1.0;
    }
}
