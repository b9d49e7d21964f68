// Anderson acceleration of the map x -> y = (next column values, translated), safeguarded by the dual value.
//
//   r = y - x;   gamma = argmin | r - sum_b gamma_b dr_b |_b;   x <- y - sum_b gamma_b dy_b
// over the last MEMORY differences dr, dy, weighted by the masses b. A step that lost more dual value than its gap
// explains is undone: x <- the last y, and the differences are forgotten.
//
// The translation s of this iteration is known when all columns' images are summed up, and with them the products. So
// y = next - s and r = rho - s, rho = next - x, are kept as vectors without s and the scalars ds; the products are
// corrected for it afterwards. Every block of a team, and every team, comes to the same gamma by itself.
#include "uot/iteration/columns.cuh"

// Behind the SUMS of columns.cuh: sum b rho, sum b drho_new, products of drho_new with every drho, of every drho
// with rho.
constexpr int FIRST = SUMS, FIRST_NEW = SUMS + 1, GRAM_NEW = SUMS + 2, RIGHT = GRAM_NEW + MEMORY;

// The LINES vectors are a line of `width` each. Thread j of the columns' owners touches the same entries every time.

// Appends the newest difference and adds to the thread's products, in `more` (behind the sums of the gap).
__device__ __noinline__ void difference(int width, const float* log_masses, const float* values, const float* images,
                                        const Mixing& mixing, float* history, float* more) {
    const int slot = mixing.count % MEMORY, kept = min(mixing.count + mixing.has_last, MEMORY);
    float* sums = more - DIVERGENCE;
    float product[MEMORY] = {}, right[MEMORY] = {};
#pragma unroll 1
    for (int j = 2 * threadIdx.x; j < width; j += j & 1 ? 2 * THREADS - 1 : 1) {
        const float log_mass = log_masses[j], next = images[j], rho = next - values[j], mass = fast_exp2(log_mass);
        if (log_mass == -INFINITY) continue;
        float now = 0.f;
        sums[FIRST] += mass * rho;
        if (mixing.has_last) {
            now = rho - history[2 * MEMORY * width + j];
            history[(MEMORY + slot) * width + j] = now;
            history[slot * width + j] = next - history[(2 * MEMORY + 1) * width + j];
            sums[FIRST_NEW] += mass * now;
        }
        history[2 * MEMORY * width + j] = rho;
#pragma unroll
        for (int c = 0; c < MEMORY; ++c) {
            const float other = c < kept ? history[(MEMORY + c) * width + j] : 0.f;
            product[c] += mass * now * other;
            right[c] += mass * other * rho;
        }
    }
    for (int c = 0; c < MEMORY; ++c) sums[GRAM_NEW + c] = product[c], sums[RIGHT + c] = right[c];
}

// Solves (gram + ridge) gamma = right for `size` unknowns by Cholesky's method, in registers: unknowns past `size` have
// the identity's rows. One thread.
__device__ __forceinline__ void solve_normal(const double (*gram)[MEMORY], double* right, int size) {
    double a[MEMORY][MEMORY], x[MEMORY], trace = 0;
#pragma unroll
    for (int k = 0; k < MEMORY; ++k) trace += k < size ? gram[k][k] : 0.0;
    const double ridge = 1e-7 * trace / max(size, 1) + 1e-300;  // products carry float32 noise
#pragma unroll
    for (int k = 0; k < MEMORY; ++k) {
        x[k] = k < size ? right[k] : 0.0;
#pragma unroll
        for (int i = 0; i <= k; ++i) a[k][i] = k < size ? gram[k][i] + (i == k ? ridge : 0.0) : i == k ? 1.0 : 0.0;
    }
#pragma unroll
    for (int k = 0; k < MEMORY; ++k) {
#pragma unroll
        for (int i = 0; i < k; ++i) a[k][k] -= a[k][i] * a[k][i];
        a[k][k] = rsqrt(a[k][k] > 0 ? a[k][k] : 1e300);
#pragma unroll
        for (int j = k + 1; j < MEMORY; ++j) {
#pragma unroll
            for (int i = 0; i < k; ++i) a[j][k] -= a[j][i] * a[k][i];
            a[j][k] *= a[k][k];
        }
#pragma unroll
        for (int i = 0; i < k; ++i) x[k] -= a[k][i] * x[i];
        x[k] *= a[k][k];
    }
#pragma unroll
    for (int k = MEMORY - 1; k >= 0; --k) {
#pragma unroll
        for (int j = k + 1; j < MEMORY; ++j) x[k] -= a[j][k] * x[j];
        x[k] *= a[k][k];
        if (k < size) right[k] = x[k];
    }
}

// Takes the newest products in, corrects for the translations, and finds gamma. One thread of each block.
__device__ __noinline__ void learn(Mixing& m, const double* total, double shift) {
    if (m.has_last) {
        const int slot = m.count++ % MEMORY;
        m.delta[slot] = shift - m.last_shift;
        m.first[slot] = total[FIRST_NEW];
        for (int b = 0; b < min(m.count, MEMORY); ++b) m.gram[slot][b] = m.gram[b][slot] = total[GRAM_NEW + b];
    }
    const int kept = min(m.count, MEMORY);
    for (int b = 0; b < kept; ++b) {
        m.gamma[b] = total[RIGHT + b] - m.delta[b] * total[FIRST] - shift * m.first[b] + m.delta[b] * shift * m.mass;
        for (int c = 0; c <= b; ++c)
            m.normal[b][c] =
                m.gram[b][c] - m.delta[c] * m.first[b] - m.delta[b] * m.first[c] + m.delta[b] * m.delta[c] * m.mass;
    }
    solve_normal(m.normal, m.gamma, kept);
    m.shift_before = m.last_shift, m.last_shift = shift;
}

// Decides whether the step in hand is undone; true when it is. One thread, while another one learns.
__device__ __forceinline__ bool reject(Mixing& m, const Decision& d) {
    const bool lost = m.has_fallback && !(d.dual >= m.best - d.gap);
    m.best = lost ? -1e300 : d.dual;
    m.rejected += lost;
    return lost;
}

// After both: what was learnt from a step that is undone is forgotten.
__device__ __forceinline__ void remember(Mixing& m, bool rejected) {
    m.has_last = m.has_fallback = !rejected;
    if (rejected) m.count = 0;
}

// The next value of column j.
__device__ __forceinline__ float mixed(const Block& b, const Mixing& m, float* history, bool rejected, float shift,
                                       int j) {
    float& last = history[(2 * MEMORY + 1) * b.width + j];
    if (rejected) return (float)(last - m.shift_before);
    double y = (double)b.next[j] - shift;
    for (int c = 0; c < min(m.count, MEMORY); ++c) y -= m.gamma[c] * (history[c * b.width + j] - m.delta[c]);
    last = b.next[j];
    return (float)y;
}
