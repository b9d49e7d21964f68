// Anderson acceleration of the map x -> y = (next column values, translated), safeguarded by the dual value.
//
//   r = y - x;   gamma = argmin | r - sum_b gamma_b dr_b |_b;   x <- y - sum_b gamma_b dy_b
// over the last MEMORY differences dr, dy, weighted by the masses b. A step that lost more dual value than its gap
// explains is undone: x <- the last y, and the differences are forgotten.
//
// The translation s of this iteration is known one grid barrier after `next` is, so that y = next - s and r = rho - s,
// rho = next - x, are kept as vectors without it and the scalars ds; the products are corrected for it afterwards.
#include "uot/columns.cuh"

// Behind the SUMS of columns.cuh: sum b rho, sum b drho_new, products of drho_new with every drho, of every drho with rho.
constexpr int FIRST = SUMS, FIRST_NEW = SUMS + 1, GRAM_NEW = SUMS + 2, RIGHT = GRAM_NEW + MEMORY;

// Alike in every block; block 0 keeps it in global memory between launches.
struct Mixing {
    double gram[MEMORY][MEMORY], first[MEMORY], delta[MEMORY];  // sums of drho drho, of drho, and ds
    double gamma[MEMORY];
    double last_shift, best, mass;
    int count, has_last, has_fallback, rejected;
};

// The vectors, (MEMORY, ld) and (ld,); each block touches its own columns only.
struct History {
    float *steps, *residuals, *last_residual;
};

// Appends the newest difference and leaves the block's share of the products in place[SUMS...].
__device__ __forceinline__ void difference(const Problem& p, Owned own, const Mixing& mixing, const History& h, const float* log_mass,
                                           const float* value, const float* next, const float* last_next, float* place) {
    __shared__ float scratch[WARPS][2 + 2 * MEMORY];
    float sums[2 + 2 * MEMORY] = {};
    const int slot = mixing.count % MEMORY, kept = min(mixing.count + mixing.has_last, MEMORY);
    for (int j = own.begin + threadIdx.x; j < own.end && threadIdx.x < own.lanes; j += own.lanes) {
        const float rho = next[j] - __ldcg(value + j), mass = exp2f(log_mass[j]);
        if (log_mass[j] == -INFINITY) continue;
        float now = 0.f;
        sums[0] += mass * rho;
        if (mixing.has_last) {
            now = rho - h.last_residual[j];
            h.residuals[(size_t)slot * p.ld + j] = now;
            h.steps[(size_t)slot * p.ld + j] = next[j] - last_next[j];
            sums[1] += mass * now;
        }
        h.last_residual[j] = rho;
#pragma unroll
        for (int b = 0; b < MEMORY; ++b) {
            if (b >= kept) continue;
            const float other = h.residuals[(size_t)b * p.ld + j];
            sums[2 + b] += mass * now * other;
            sums[2 + MEMORY + b] += mass * other * rho;
        }
    }
    const int busy = (own.lanes + 31) / 32;
#pragma unroll
    for (int s = 0; s < 2 + 2 * MEMORY; ++s) {
        if (threadIdx.x / 32 >= busy) continue;
        const float sum = warp_sum(sums[s]);
        if ((threadIdx.x & 31) == 0) scratch[threadIdx.x / 32][s] = sum;
    }
    __syncthreads();  // scratch written above, read below
    if (threadIdx.x >= 2 + 2 * MEMORY) return;
    float sum = 0.f;
    for (int k = 0; k < busy; ++k) sum += scratch[k][threadIdx.x];
    place[SUMS + threadIdx.x] = sum;
}

// Solves (gram + ridge) gamma = right for `size` unknowns by Cholesky's method; gram is overwritten. One thread.
__device__ inline void solve_normal(double (*gram)[MEMORY], double* right, int size) {
    double trace = 0;
    for (int k = 0; k < size; ++k) trace += gram[k][k];
    for (int k = 0; k < size; ++k) gram[k][k] += 1e-7 * trace / size + 1e-300;  // products carry float32 noise
    for (int k = 0; k < size; ++k) {
        for (int i = 0; i < k; ++i) gram[k][k] -= gram[k][i] * gram[k][i];
        const double inverse = rsqrt(gram[k][k] > 0 ? gram[k][k] : 1e300);
        gram[k][k] = inverse;
        for (int j = k + 1; j < size; ++j) {
            for (int i = 0; i < k; ++i) gram[j][k] -= gram[j][i] * gram[k][i];
            gram[j][k] *= inverse;
        }
    }
    for (int k = 0; k < size; ++k) {
        for (int i = 0; i < k; ++i) right[k] -= gram[k][i] * right[i];
        right[k] *= gram[k][k];
    }
    for (int k = size - 1; k >= 0; --k) {
        for (int j = k + 1; j < size; ++j) right[k] -= gram[j][k] * right[j];
        right[k] *= gram[k][k];
    }
}

// Takes the newest products in, corrects for the translations, and finds gamma. One thread of each block.
__device__ inline void learn(Mixing& m, const double* total, double shift) {
    if (m.has_last) {
        const int slot = m.count++ % MEMORY;
        m.delta[slot] = shift - m.last_shift;
        m.first[slot] = total[FIRST_NEW];
        for (int b = 0; b < min(m.count, MEMORY); ++b) m.gram[slot][b] = m.gram[b][slot] = total[GRAM_NEW + b];
    }
    const int kept = min(m.count, MEMORY);
    double normal[MEMORY][MEMORY];
    for (int b = 0; b < kept; ++b) {
        m.gamma[b] = total[RIGHT + b] - m.delta[b] * total[FIRST] - shift * m.first[b] + m.delta[b] * shift * m.mass;
        for (int c = 0; c <= b; ++c)
            normal[b][c] = m.gram[b][c] - m.delta[c] * m.first[b] - m.delta[b] * m.first[c] + m.delta[b] * m.delta[c] * m.mass;
    }
    solve_normal(normal, m.gamma, kept);
    m.last_shift = shift, m.has_last = 1, m.has_fallback = 1;
}

// Decides whether the step in hand is undone; true when it is.
__device__ inline bool reject(Mixing& m, const Decision& d) {
    if (m.has_fallback && !(d.dual >= m.best - d.gap)) {
        m.count = m.has_last = m.has_fallback = 0;
        m.best = -1e300;
        ++m.rejected;
        return true;
    }
    m.best = d.dual;
    return false;
}

// The next x in the block's own columns.
__device__ __forceinline__ void mix(const Problem& p, Owned own, const Mixing& m, const History& h, bool rejected, float shift,
                                    const float* next, const float* last_next, float* x) {
    const int kept = min(m.count, MEMORY);
    for (int j = own.begin + threadIdx.x; j < own.end; j += blockDim.x) {
        double y = rejected ? last_next[j] - m.last_shift : (double)next[j] - shift;
        for (int b = 0; b < kept && !rejected; ++b) y -= m.gamma[b] * (h.steps[(size_t)b * p.ld + j] - m.delta[b]);
        x[j] = (float)y;
    }
}
