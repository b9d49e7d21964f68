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
        for (int each = 0; each < MEMORY; ++each) {
            const float other = each < kept ? history[(MEMORY + each) * width + j] : 0.f;
            product[each] += mass * now * other;
            right[each] += mass * other * rho;
        }
    }
    for (int each = 0; each < MEMORY; ++each) sums[GRAM_NEW + each] = product[each], sums[RIGHT + each] = right[each];
}

// Solves (gram + ridge) gamma = right for `size` unknowns by Cholesky's method, in registers: unknowns past `size` have
// the identity's rows. One thread.
__device__ __forceinline__ void solve_normal(const double (*gram)[MEMORY], double* right, int size) {
    double factor[MEMORY][MEMORY], solution[MEMORY], trace = 0;
#pragma unroll
    for (int k = 0; k < MEMORY; ++k) trace += k < size ? gram[k][k] : 0.0;
    const double ridge = 1e-7 * trace / max(size, 1) + 1e-300;  // products carry float32 noise
#pragma unroll
    for (int k = 0; k < MEMORY; ++k) {
        solution[k] = k < size ? right[k] : 0.0;
#pragma unroll
        for (int i = 0; i <= k; ++i) factor[k][i] = k < size ? gram[k][i] + (i == k ? ridge : 0.0) : i == k ? 1.0 : 0.0;
    }
#pragma unroll
    for (int k = 0; k < MEMORY; ++k) {
#pragma unroll
        for (int i = 0; i < k; ++i) factor[k][k] -= factor[k][i] * factor[k][i];
        factor[k][k] = rsqrt(factor[k][k] > 0 ? factor[k][k] : 1e300);
#pragma unroll
        for (int j = k + 1; j < MEMORY; ++j) {
#pragma unroll
            for (int i = 0; i < k; ++i) factor[j][k] -= factor[j][i] * factor[k][i];
            factor[j][k] *= factor[k][k];
        }
#pragma unroll
        for (int i = 0; i < k; ++i) solution[k] -= factor[k][i] * solution[i];
        solution[k] *= factor[k][k];
    }
#pragma unroll
    for (int k = MEMORY - 1; k >= 0; --k) {
#pragma unroll
        for (int j = k + 1; j < MEMORY; ++j) solution[k] -= factor[j][k] * solution[j];
        solution[k] *= factor[k][k];
        if (k < size) right[k] = solution[k];
    }
}

// Takes the newest products in, corrects for the translations, and finds gamma. One thread of each block.
__device__ __noinline__ void learn(Mixing& mixing, const double* total, double shift) {
    if (mixing.has_last) {
        const int slot = mixing.count++ % MEMORY;
        mixing.delta[slot] = shift - mixing.last_shift;
        mixing.first[slot] = total[FIRST_NEW];
        for (int row = 0; row < min(mixing.count, MEMORY); ++row)
            mixing.gram[slot][row] = mixing.gram[row][slot] = total[GRAM_NEW + row];
    }
    const int kept = min(mixing.count, MEMORY);
    for (int row = 0; row < kept; ++row) {
        mixing.gamma[row] = total[RIGHT + row] - mixing.delta[row] * total[FIRST] - shift * mixing.first[row] +
                            mixing.delta[row] * shift * mixing.mass;
        for (int column = 0; column <= row; ++column)
            mixing.normal[row][column] = mixing.gram[row][column] - mixing.delta[column] * mixing.first[row] -
                                         mixing.delta[row] * mixing.first[column] +
                                         mixing.delta[row] * mixing.delta[column] * mixing.mass;
    }
    solve_normal(mixing.normal, mixing.gamma, kept);
    mixing.shift_before = mixing.last_shift, mixing.last_shift = shift;
}

// Decides whether the step in hand is undone; true when it is. One thread, while another one learns.
__device__ __forceinline__ bool reject(Mixing& mixing, const Decision& decision) {
    const bool lost = mixing.has_fallback && !(decision.dual >= mixing.best - decision.gap);
    mixing.best = lost ? -1e300 : decision.dual;
    mixing.rejected += lost;
    return lost;
}

// After both: what was learnt from a step that is undone is forgotten.
__device__ __forceinline__ void remember(Mixing& mixing, bool rejected) {
    mixing.has_last = mixing.has_fallback = !rejected;
    if (rejected) mixing.count = 0;
}

// The next value of column j.
__device__ __forceinline__ float mixed(const Block& block, const Mixing& mixing, float* history, bool rejected,
                                       float shift, int j) {
    float& last = history[(2 * MEMORY + 1) * block.width + j];
    if (rejected) return (float)(last - mixing.shift_before);
    double value = (double)block.next[j] - shift;
    for (int each = 0; each < min(mixing.count, MEMORY); ++each)
        value -= mixing.gamma[each] * (history[each * block.width + j] - mixing.delta[each]);
    last = block.next[j];
    return (float)value;
}
