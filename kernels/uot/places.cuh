// Points in place of a matrix: what sweep.cuh asks of points.cu, and its launch without a matrix.
#include "uot/sweep.cuh"

// Coordinates of a row arrive scaled: by sqrt(s) (squared Euclidean, inner product) or s (Euclidean), s = log2(e) / eps.
// Squared distances are expanded, |x|^2 + |y|^2 - 2 x y, with |x|^2 in the reference and |y|^2 in the column's value.
__device__ __forceinline__ void set_point(Row& row, const float* from) {
    const float factor = METRIC == 0 ? 2.f : 1.f;
    row.norm = METRIC == 0 ? from[0] * from[0] + from[1] * from[1] + from[2] * from[2] : 0.f;
    row.at = {factor * from[0], factor * from[1], factor * from[2]};
}

__device__ __forceinline__ float column_factor(float value, const Place& at) {
    return METRIC == 0 ? value - (at.x * at.x + at.y * at.y + at.z * at.z) : value;
}

__device__ __forceinline__ float point_term(const Row& row, const Place& place, float value, float& sum) {
    float e = value - (row.reference + row.norm);
#if METRIC == 1
    const float dx = row.at.x - place.x, dy = row.at.y - place.y, dz = row.at.z - place.z;
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(fmaf(dx, dx, fmaf(dy, dy, dz * dz))));
    e -= root;
#else
    e = fmaf(row.at.x, place.x, fmaf(row.at.y, place.y, fmaf(row.at.z, place.z, e)));
#endif
    e = fast_exp2(e);
    sum += e;
    return e;
}

// This thread's columns' points, from coordinates (3, ld).
__device__ __forceinline__ void load_points(const Block& b, const float* from, int ld, Place (&place)[COLUMNS]) {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        const int j = (c / VEC * THREADS + threadIdx.x) * VEC + c % VEC, at = b.rank * b.width + j;
        const bool inside = threadIdx.x < THREADS && j < b.width;
        place[c] = inside ? Place{from[at], from[ld + at], from[2 * (size_t)ld + at]} : Place{0.f, 0.f, 0.f};
    }
}
#include "uot/iterate.cuh"

// F_i = power * (alpha - max_j (exponent without reference)) + beta, as in log.cu, one warp a row.
extern "C" __global__ void row_reference(const float* points, const float* log_a, const float* g, const double* status,
                                         double* potential, int m, int n, int ld, int product, float, float power_a) {
    const int lane = threadIdx.x & 31;
    const float *value = g + (size_t)status[PARITY] * ld, *of = points + (size_t)3 * m;
    const float shift = (float)status[SHIFT];
    for (int i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; i < m; i += gridDim.x * (blockDim.x / 32)) {
        const float x = points[3 * (size_t)i], y = points[3 * (size_t)i + 1], z = points[3 * (size_t)i + 2];
        float most = -INFINITY;
        for (int j = lane; j < n; j += 32) {
            const float u = of[j], v = of[ld + j], w = of[2 * (size_t)ld + j];
            const float squares = (x - u) * (x - u) + (y - v) * (y - v) + (z - w) * (z - w);
            const float cost = METRIC == 0 ? squares : METRIC == 1 ? sqrtf(squares) : -(x * u + y * v + z * w);
            most = fmaxf(most, value[j] - shift - cost);
        }
        most = -warp_min(-most);
        const float alpha = product ? 0.f : log_a[i], beta = product ? log_a[i] : 0.f;
        if (lane == 0) potential[i] = power_a * (alpha - (most == -INFINITY ? 0.f : most)) + beta;
    }
}
