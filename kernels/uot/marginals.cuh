// What a problem is besides its matrix, and what its column sums tell: next values, translation, certified gap.
//
// Everything is in log2 units: F_i = f_i log2(e) / eps + [product] log2 a_i, G_j alike, so that
// P_ij = 2^(F_i + G_j - C_ij log2(e) / eps).
#include "uot/ring.cuh"

struct Problem {
    int m, n, ld;            // rows, columns, columns with padding
    int product;             // reference measure a x b (1) or the all-ones matrix (0)
    int exact_rows;          // the rows' marginal is exact: their side of the dual value is added up
    int dimension;           // of point clouds, padded to a multiple of 4
    float scale;             // log2(e) / eps
    float power_a, power_b;  // rho / (rho + eps); 1 when balanced
};

struct Marginals {
    double eps, rho_a, rho_b;  // rho = infinity: that marginal is exact
    double mass_a, mass_b, mass_reference;
    double spread;             // at least max C - min C
    double tolerance, enough;  // on the relative gap, on the gap of a unit of the plan's mass
    float inverse;             // eps / rho_b: 0 where the columns' marginal is exact
    float lift;                // kappa / eps, kappa = rho_a rho_b / (rho_a + rho_b): how translations scale
};

__device__ __forceinline__ double kappa(double rho_a, double rho_b) {
    if (isinf(rho_a)) return isinf(rho_b) ? 0.0 : rho_b;
    return isinf(rho_b) ? rho_a : rho_a * rho_b / (rho_a + rho_b);
}

// status[]: what the host reads and a later launch goes on from.
enum { ITERATIONS, GAP, PRIMAL, DUAL, REASON, JUMP, TRANSLATION, REJECTED, STATUS };
enum { RUNNING = 0, CONVERGED = 1, JUMPED = 2, EMPTY_COLUMN = 3 };
enum { MASS, COLUMN_SIDE, LARGEST_JUMP, EMPTY, DIVERGENCE, DEFECT, VIOLATION, EXACT, SUMS };
constexpr int MEMORY = 5;                        // differences that Anderson acceleration keeps
constexpr int ALL_SUMS = SUMS + 2 + 2 * MEMORY;  // with its products

// x - 1 + e^-x >= 0 without cancellation near 0.
__device__ __forceinline__ float divergence(float x) {
    if (fabsf(x) < 0.03f) return x * x * (0.5f - x * (1.f / 6 - x * (1.f / 24)));
    return x + expm1f(-x);
}

// From the mass t of column j, at the value it had in the sweep, to its next value; adds to the thread's sums, to those
// that only the gap needs if `full`.
__device__ __forceinline__ float column_value(const Problem& p, const Marginals& w, float t, float value, float log_mass, bool full,
                                              float* sums) {
    if (log_mass == -INFINITY) return -INFINITY;
    const float alpha = p.product ? 0.f : log_mass, beta = p.product ? log_mass : 0.f;
    const float inverse = w.inverse;
    if (!(t > 1e-34f)) {
        sums[EMPTY] += 1;
        sums[COLUMN_SIDE] += fast_exp2(log_mass - inverse * (value - beta));
        return value;
    }
    const float log_t = __log2f(t);
    const float next = p.power_b * (alpha - log_t + value) + beta;
    sums[MASS] += t;
    sums[COLUMN_SIDE] += fast_exp2(log_mass - inverse * (next - beta));
    sums[LARGEST_JUMP] = fmaxf(sums[LARGEST_JUMP], fabsf(next - value));
    if (!full) return next;
    const float x = 0.693147181f * (log_t - log_mass + inverse * (value - beta));
    sums[DIVERGENCE] += isinf(w.rho_b) ? exp2f(log_mass) * divergence(-x) : t * divergence(x);
    sums[DEFECT] += -t * expm1f(-x);
    if (isinf(w.rho_b)) {
        sums[VIOLATION] += fabsf(t - exp2f(log_mass));
        sums[EXACT] += exp2f(log_mass) * (value - beta);
    }
    return next;
}

struct Decision {
    float shift;
    int reason;
    double dual, gap;
};

// What it costs at most to make balanced columns exact: scaling them costs (eps + rho_a) KL(b | t); where the rows are
// balanced too, a rank-one repair of the moved mass follows.
__device__ __forceinline__ double repair_cost(const Marginals& w, double divergence_of_b, double moved) {
    if (!isinf(w.rho_a)) return (w.eps + w.rho_a) * divergence_of_b;
    return w.eps * divergence_of_b + (moved > 0 ? moved * (3 * w.spread + w.eps * log1p(w.mass_b / moved)) : 0.0);
}

// The translation, in log2 units, that suits f with sum a e^(-f / rho_a) = mass and g with sum b e^(-g / rho_b) = side.
__device__ __forceinline__ float translation(const Marginals& w, double mass, double side) {
    const float ratio = (float)(isinf(w.rho_a) ? w.mass_a : mass) / (float)(isinf(w.rho_b) ? w.mass_b : side);
    return w.lift ? w.lift * log2f(ratio) : 0.f;
}

// The translation t that maximises the dual of the pair in hand, f + t and g - t, is kappa log(mass / column side) with
// kappa = rho_a rho_b / (rho_a + rho_b); with c = t / rho_b, phi(x) = e^-x - 1 + x and D = sum t_j phi(x_j) it leaves
//   gap = rho_a M phi(t / rho_a) + rho_b [D + M (e^c - 1 - c) - defect (e^c - 1)].
__device__ inline Decision judge(const Marginals& w, const double* total, double* status, int done, double jump_limit) {
    const double unit = w.eps * 0.6931471805599453;  // of a potential in log2 units
    const bool exact_a = isinf(w.rho_a), exact_b = isinf(w.rho_b);
    const double mass = total[MASS], side = mass - total[DEFECT], k = kappa(w.rho_a, w.rho_b);
    const double t = k ? k * log((exact_a ? w.mass_a : mass) / (exact_b ? w.mass_b : side)) : 0.0;
    const double c = exact_b ? 0.0 : t / w.rho_b, up = expm1(c), down = exact_a ? 0.0 : expm1(-t / w.rho_a);
    double gap = w.rho_b * (total[DIVERGENCE] + mass * (up - c) - total[DEFECT] * up);
    if (exact_b) gap = repair_cost(w, total[DIVERGENCE], total[VIOLATION] / 2);
    double dual = unit * total[EXACT] - w.eps * (mass - w.mass_reference);
    if (!exact_a && !exact_b) gap += w.rho_a * mass * (down + t / w.rho_a);
    dual += exact_a ? t * w.mass_a : w.rho_a * (w.mass_a - mass * (1 + down));
    dual += exact_b ? -t * w.mass_b : w.rho_b * (w.mass_b - side * (1 + up));
    const double primal = dual + gap;
    Decision d;
    d.dual = dual, d.gap = gap;
    d.shift = translation(w, mass, total[COLUMN_SIDE]);
    const double jump = total[LARGEST_JUMP] + fabs(d.shift);
    const bool small = gap <= w.tolerance * fmax(fabs(primal), fabs(dual)) || gap <= w.enough * mass;
    d.reason = total[EMPTY] > 0 ? EMPTY_COLUMN : small ? CONVERGED : jump > jump_limit ? JUMPED : RUNNING;
    if (status) {
        const double values[STATUS] = {(double)done, gap, primal, dual, (double)d.reason, jump, t / unit, 0.0};
        for (int s = 0; s < STATUS; ++s) status[s] = values[s];
    }
    return d;
}
