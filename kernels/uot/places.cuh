// Points in place of a matrix: what sweep.cuh asks of points.cu.
#include "uot/sweep.cuh"

// Coordinates arrive scaled: by sqrt(s) (squared Euclidean, inner product) or s (Euclidean), s = log2(e) / eps. Squared
// distances are expanded, |x|^2 + |y|^2 - 2 x y, with |x|^2 in the reference, |y|^2 in the column's value and 2 x in
// the rows.
//   rows (m, d), columns (d, ld), row norms (m,), column norms (ld,), d a multiple of 4; norms are 0 but for METRIC 0
struct Cloud {
    const float *rows, *columns, *row_norms;
    int lane, dimension;
#if FLAT
    float x[COLUMNS], y[COLUMNS], z[COLUMNS];  // of this thread's columns
#endif
};

__device__ __forceinline__ float norm_of(const Block& b, const Problem& p, const unsigned char* points, int j) {
    const float* norms = reinterpret_cast<const float*>(points) + (size_t)p.dimension * (p.m + p.ld) + p.m;
    return norms[b.rank * b.width + j];
}

__device__ __forceinline__ Cloud load_cloud(const Block& b, const Problem& p, const unsigned char* points) {
    Cloud cloud;
    cloud.rows = reinterpret_cast<const float*>(points);
    cloud.columns = cloud.rows + (size_t)p.dimension * p.m + (size_t)b.rank * b.width;
    cloud.row_norms = cloud.rows + (size_t)p.dimension * (p.m + p.ld);
    cloud.lane = threadIdx.x % LANES;
    cloud.dimension = p.dimension;
#if FLAT
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        const int j = (c / VEC * LANES + cloud.lane) * VEC + c % VEC;
        const bool inside = j < b.width;
        cloud.x[c] = inside ? cloud.columns[j] : 0.f, cloud.y[c] = inside ? cloud.columns[p.ld + j] : 0.f;
        cloud.z[c] = inside ? cloud.columns[2 * (size_t)p.ld + j] : 0.f;
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

__device__ __forceinline__ float term_of(float value, float above, float product) {
    if (METRIC != 1) return fast_exp2(product + (value - above));
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(product));
    return fast_exp2(value - above - root);
}

// Products of RR rows with four columns, `d` coordinates of each.
__device__ __forceinline__ void multiply(const Cloud& cloud, const Problem& p, const int (&row)[RR], int q, int j,
                                         float (&product)[RR][VEC]) {
#if FLAT
#pragma unroll
    for (int i = 0; i < RR; ++i) {
        const float4 at = __ldg(reinterpret_cast<const float4*>(cloud.rows) + row[i]);
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            const int c = q * VEC + e;
            product[i][e] = nearer(at.z, cloud.z[c], nearer(at.y, cloud.y[c], nearer(at.x, cloud.x[c], 0.f)));
        }
    }
#else
    for (int d = 0; d < cloud.dimension; d += 4) {
        float4 y[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            y[k] = __ldg(reinterpret_cast<const float4*>(cloud.columns + (size_t)(d + k) * p.ld + j));
#pragma unroll
        for (int i = 0; i < RR; ++i) {
            const float4 at = __ldg(reinterpret_cast<const float4*>(cloud.rows + (size_t)row[i] * cloud.dimension + d));
            const float x[4] = {at.x, at.y, at.z, at.w};
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                product[i][0] = nearer(x[k], y[k].x, product[i][0]),
                product[i][1] = nearer(x[k], y[k].y, product[i][1]);
                product[i][2] = nearer(x[k], y[k].z, product[i][2]),
                product[i][3] = nearer(x[k], y[k].w, product[i][3]);
            }
        }
    }
#endif
}

// forward without a matrix: the terms of group k, left in its slot, and their row sums.
__device__ __forceinline__ void point_terms(const Block& b, const Problem& p, const Cloud& cloud, int k,
                                            const float (&column)[COLUMNS], float (&sum)[RR2], unsigned char* slot) {
    const int first = threadIdx.x / LANES * RR;
    int row[RR];
    float above[RR];
#pragma unroll
    for (int i = 0; i < RR; ++i) {
        row[i] = min(first_row(b, k) + first + i, p.m - 1);
        above[i] = b.reference[k * R + first + i] + __ldg(cloud.row_norms + row[i]);
    }
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        const int j = (q * LANES + cloud.lane) * VEC;
        if (q == Q - 1 && j >= b.width) continue;
        float product[RR][VEC] = {};
        multiply(cloud, p, row, q, j, product);
#pragma unroll
        for (int i = 0; i < RR; ++i) {
            float e[VEC];
#pragma unroll
            for (int c = 0; c < VEC; ++c) e[c] = term_of(column[q * VEC + c], above[i], product[i][c]), sum[i] += e[c];
            *reinterpret_cast<float4*>(slot + ((size_t)(first + i) * b.width + j) * BYTES) =
                make_float4(e[0], e[1], e[2], e[3]);
        }
    }
}
#include "uot/iterate.cuh"

// F_i = power * (alpha - max_j (exponent without reference)) + beta, as in log.cu, one warp a row.
// Grid: any. Block: a multiple of 32. Shared: none. Reads: points, g. Writes: potential. Requires: nothing.
// Work: m n products of `dimension` coordinates.
extern "C" __global__ void row_reference(const float* points, const float* log_a, const float* g, double* potential,
                                         int m, int n, int ld, int product, int dimension, float power_a) {
    const int lane = threadIdx.x & 31;
    const float *columns = points + (size_t)dimension * m, *norms = columns + (size_t)dimension * ld;
    for (int i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; i < m; i += gridDim.x * (blockDim.x / 32)) {
        const float* row = points + (size_t)i * dimension;
        float most = -INFINITY;
        for (int j = lane; j < n; j += 32) {
            float near = 0.f;
            for (int d = 0; d < dimension; ++d) near = nearer(row[d], columns[(size_t)d * ld + j], near);
            near = METRIC == 1 ? -sqrtf(near) : near - norms[i] - norms[m + j];
            most = fmaxf(most, g[j] + near);
        }
        most = -warp_min(-most);
        const float alpha = product ? 0.f : log_a[i], beta = product ? log_a[i] : 0.f;
        if (lane == 0) potential[i] = power_a * (alpha - (most == -INFINITY ? 0.f : most)) + beta;
    }
}
