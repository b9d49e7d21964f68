// Sinkhorn sweeps on costs between points, worked out on the fly in the same single pass.
//
//   as log.cu; a term is 2^(G_j - |x_i - y_j|^2 - reference_i) with coordinates scaled by sqrt(log2(e) / eps), expanded
//   so that a coordinate takes one FMA. Up to three coordinates of a thread's columns stay in registers (FLAT); more
//   come through the caches, RR rows by four columns at a time. Terms of LAG + 1 groups wait in shared memory for their
//   weights. No buffer of size m n.
//
// Buffers: as fused.cu; in place of the matrix, coordinates and norms as `Cloud` says.
// Counting: one exponential an entry bounds a sweep by m n / 4.2e12 s: 0.10 ms at n = 20480; 7.5 other operations an
// entry take the same time on 128 lanes.
// Precision: |x|^2 + |y|^2 - 2 x y about the common centre: exponents are rounded at the size of |x|^2 log2(e) / eps.
//
// docs/notes/uot.md: what was tried, with its figures.
#include "device/barriers.cuh"
#ifndef METRIC
#define METRIC 0  // 0 squared Euclidean, 1 Euclidean, 2 minus the inner product
#endif
#ifndef FLAT
#define FLAT 1  // at most three dimensions, in registers; else any number, column coordinates through the caches
#endif
#define POINTS 1
#define ROWS_KEEP_REFERENCE 1
#define STORES_TERMS 1
#define JUMP_LIMIT 60.f
__device__ __forceinline__ float backward_step(float kept, float, float, float, float weight, float total) {
    return fmaf(weight, kept, total);
}
#include "uot/iteration/sweep.cuh"

// Coordinates arrive scaled: by sqrt(s) (squared Euclidean, inner product) or s (Euclidean), s = log2(e) / eps. Squared
// distances are expanded, |x|^2 + |y|^2 - 2 x y, with |x|^2 in the reference, |y|^2 in the column's value and 2 x in
// the rows.
//   columns (d, ld), column norms (ld,), rows (m + R, d), row norms (m + R,), d a multiple of 4; norms are 0 but for
//   METRIC 0. With three dimensions at most, a row's norm is its fourth coordinate too (columns have 0 there).
struct Cloud {
    const float *rows, *columns, *row_norms;
    int lane, dimension;
#if FLAT
    float x[COLUMNS], y[COLUMNS], z[COLUMNS];  // of this thread's columns
#endif
};

__device__ __forceinline__ float norm_of(const Block& block, const Problem& problem, const unsigned char* points,
                                         int j) {
    const float* norms = reinterpret_cast<const float*>(points) + (size_t)problem.dimension * problem.ld;
    return norms[block.rank * block.width + j];
}

__device__ __forceinline__ Cloud load_cloud(const Block& block, const Problem& problem, const unsigned char* points) {
    Cloud cloud;
    cloud.columns = reinterpret_cast<const float*>(points) + (size_t)block.rank * block.width;
    cloud.rows = reinterpret_cast<const float*>(points) + (size_t)(problem.dimension + 1) * problem.ld;
    cloud.row_norms = cloud.rows + (size_t)problem.dimension * (problem.m + R);
    cloud.lane = threadIdx.x % LANES;
    cloud.dimension = problem.dimension;
#if FLAT
#pragma unroll
    for (int each = 0; each < COLUMNS; ++each) {
        const int j = (each / VEC * LANES + cloud.lane) * VEC + each % VEC;
        const bool inside = FILLS || j < block.width;
        cloud.x[each] = inside ? cloud.columns[j] : 0.f, cloud.y[each] = inside ? cloud.columns[problem.ld + j] : 0.f;
        cloud.z[each] = inside ? cloud.columns[2 * (size_t)problem.ld + j] : 0.f;
    }
#endif
    return cloud;
}

__device__ __forceinline__ float column_factor(float value, float norm) { return value - norm; }

// One more coordinate of a row and a column.
__device__ __forceinline__ float nearer(float x, float y, float so_far) {
    if (METRIC == 1) return fmaf(x - y, x - y, so_far);
    return fmaf(x, y, so_far);
}

// What a product starts from, where `rest` is the exponent without it: a distance is taken from `rest` at the end.
__device__ __forceinline__ float start_of(float rest) { return METRIC == 1 ? 0.f : rest; }

__device__ __forceinline__ float term_of(float rest, float product) {
    if (METRIC != 1) return fast_exp2(product);
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(product));
    return fast_exp2(rest - root);
}

// A thread's piece of a row: its number, and the column that it begins at.
struct Piece {
    int number, j;
};

// Terms of RR rows, `row` the first, with the four columns of a piece.
__device__ __forceinline__ void terms(const Cloud& cloud, const Problem& problem, size_t row, const Piece piece,
                                      const float (&column)[COLUMNS], const float* reference, float (&entry)[RR][VEC]) {
    const int j = piece.j;
    float rest[RR][VEC];
#pragma unroll
    for (int i = 0; i < RR; ++i) {
#if FLAT
        const float4 at = __ldg(reinterpret_cast<const float4*>(cloud.rows) + row + i);
        const float above = reference[i] + at.w;
#else
        const float above = reference[i] + __ldg(cloud.row_norms + row + i);
#endif
#pragma unroll
        for (int each = 0; each < VEC; ++each) {
            const int k = piece.number * VEC + each;
            rest[i][each] = column[k] - above, entry[i][each] = start_of(rest[i][each]);
#if FLAT
            entry[i][each] =
                nearer(at.z, cloud.z[k], nearer(at.y, cloud.y[k], nearer(at.x, cloud.x[k], entry[i][each])));
#endif
        }
    }
#if !FLAT
    for (int axis = 0; axis < cloud.dimension; axis += 4) {
        float4 y[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            y[k] = __ldg(reinterpret_cast<const float4*>(cloud.columns + (size_t)(axis + k) * problem.ld + j));
#pragma unroll
        for (int i = 0; i < RR; ++i) {
            const float4 at = __ldg(reinterpret_cast<const float4*>(cloud.rows + (row + i) * cloud.dimension + axis));
            const float x[4] = {at.x, at.y, at.z, at.w};
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                entry[i][0] = nearer(x[k], y[k].x, entry[i][0]), entry[i][1] = nearer(x[k], y[k].y, entry[i][1]);
                entry[i][2] = nearer(x[k], y[k].z, entry[i][2]), entry[i][3] = nearer(x[k], y[k].w, entry[i][3]);
            }
        }
    }
#endif
#pragma unroll
    for (int i = 0; i < RR; ++i)
#pragma unroll
        for (int each = 0; each < VEC; ++each) entry[i][each] = term_of(rest[i][each], entry[i][each]);
}

// forward without a matrix: the terms of group k, left in its slot, and their row sums.
__device__ __forceinline__ void point_terms(const Block& block, const Problem& problem, const Cloud& cloud, int k,
                                            const float (&column)[COLUMNS], float (&sum)[RR2], unsigned char* slot) {
    const int first = threadIdx.x / LANES * RR;
    float4* line = reinterpret_cast<float4*>(slot) + (first * block.width) / VEC + cloud.lane;
#pragma unroll
    for (int piece = 0; piece < Q; ++piece, line += LANES) {
        const int j = (piece * LANES + cloud.lane) * VEC;
        if (!FILLS && piece == Q - 1 && j >= block.width) continue;
        float entry[RR][VEC];
        terms(cloud, problem, (size_t)first_row(block, k) + first, {piece, j}, column, block.reference + k * R + first,
              entry);
#pragma unroll
        for (int i = 0; i < RR; ++i) {
            sum[i] += (entry[i][0] + entry[i][1]) + (entry[i][2] + entry[i][3]);
            line[i * block.width / VEC] = make_float4(entry[i][0], entry[i][1], entry[i][2], entry[i][3]);
        }
    }
}
#include "uot/iteration/iterate.cuh"

// F_i = power * (alpha - max_j (exponent without reference)) + beta, as in log.cu, one warp a row.
// Grid: any. Block: a multiple of 32. Shared: none. Reads: points, g. Writes: potential. Requires: nothing.
// Work: m n products of `dimension` coordinates.
extern "C" __global__ void row_reference(const __grid_constant__ ReferenceOfPointsArgs args) {
    const int lane = threadIdx.x & 31;
    const float *column_norms = args.points + (size_t)args.dimension * args.ld, *rows = column_norms + args.ld;
    const float* row_norms = rows + (size_t)args.dimension * (args.m + R);
    for (int i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; i < args.m; i += gridDim.x * (blockDim.x / 32)) {
        const float* row = rows + (size_t)i * args.dimension;
        float most = -INFINITY;
        for (int j = lane; j < args.n; j += 32) {
            float near = 0.f;
            for (int axis = 0; axis < args.dimension; ++axis)
                near = nearer(row[axis], args.points[(size_t)axis * args.ld + j], near);
            near = METRIC == 1 ? -sqrtf(near) : near - row_norms[i] - column_norms[j];
            most = fmaxf(most, args.g[j] + near);
        }
        most = -warp_min(-most);
        const float alpha = args.product ? 0.f : args.log_a[i], beta = args.product ? args.log_a[i] : 0.f;
        if (lane == 0) args.potential[i] = args.power_a * (alpha - (most == -INFINITY ? 0.f : most)) + beta;
    }
}
