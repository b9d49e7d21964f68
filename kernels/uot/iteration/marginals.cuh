// What a problem is besides its matrix, and what its column sums tell: next values, translation, certified gap.
//
// Everything is in log2 units: F_i = f_i log2(e) / eps + [product] log2 a_i, G_j alike, so that P_ij = 2^(F_i + G_j -
// C_ij log2(e) / eps).
#include "device/barriers.cuh"

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
    float far;                 // a column's value and the translation may each move by so much in one iteration
    float lift;                // kappa / eps, kappa = rho_a rho_b / (rho_a + rho_b): how translations scale
    float fixed_a, fixed_b;    // the mass of a marginal that is exact, else 0
};

__device__ __forceinline__ double kappa(double rho_a, double rho_b) {
    if (isinf(rho_a)) return isinf(rho_b) ? 0.0 : rho_b;
    return isinf(rho_b) ? rho_a : rho_a * rho_b / (rho_a + rho_b);
}

// The words of status[], which the host reads and a later launch goes on from; sums over columns; arguments of kernels.
// Of the sums, MASS is of masses t, COLUMN_SIDE of b e^(-g / rho_b); FAR and EMPTY count columns whose values moved too far
// and columns without mass.
#include "uot/iteration/layout.py"

constexpr int MORE = ALL_SUMS - DIVERGENCE;  // all but the first four

// x - 1 + e^-x >= 0 without cancellation near 0.
__device__ __forceinline__ float divergence(float exponent) {
    if (fabsf(exponent) < 0.03f) return exponent * exponent * (0.5f - exponent * (1.f / 6 - exponent * (1.f / 24)));
    return exponent + expm1f(-exponent);
}

// Lane l gets the sum over the warp of value[(l >> 3) & 3]: 6 exchanges for 4 sums.
template <typename T>
__device__ __forceinline__ T four_sums(const T (&value)[4]) {
    const bool high = threadIdx.x & 16, odd = threadIdx.x & 8;
    T upper = (high ? value[2] : value[0]) + __shfl_xor_sync(FULL_WARP, high ? value[0] : value[2], 16);
    T lower = (high ? value[3] : value[1]) + __shfl_xor_sync(FULL_WARP, high ? value[1] : value[3], 16);
    T sum = (odd ? lower : upper) + __shfl_xor_sync(FULL_WARP, odd ? upper : lower, 8);
#pragma unroll
    for (int step = 4; step; step >>= 1) sum += __shfl_xor_sync(FULL_WARP, sum, step);
    return sum;
}

// From the mass of column j, `sum`, at the value it had in the sweep, to its next value; adds to the thread's first
// four sums.
__device__ __forceinline__ float column_value(const Problem& problem, const Marginals& marginals, float sum, float value,
                                              float log_mass, float (&sums)[4]) {
    if (log_mass == -INFINITY) return -INFINITY;
    const float alpha = problem.product ? 0.f : log_mass, beta = problem.product ? log_mass : 0.f;
    const bool empty = !(sum > 1e-34f);
    const float next = empty ? value : problem.power_b * (alpha - __log2f(sum) + value) + beta;
    sums[MASS] += empty ? 0.f : sum;
    sums[COLUMN_SIDE] += fast_exp2(log_mass - marginals.inverse * (next - beta));
    sums[FAR] += fabsf(next - value) > marginals.far ? 1.f : 0.f;
    sums[EMPTY] += empty ? 1.f : 0.f;
    return next;
}

// What column j adds to the sums that only the gap needs, MORE of them. Out of line: few iterations come here, and code
// that stands in their way costs all others time to fetch.
__device__ __noinline__ void gap_terms(int product, int exact, float inverse, float sum, float value, float log_mass,
                                       float* more) {
    if (log_mass == -INFINITY || !(sum > 1e-34f)) return;
    const float free = value - (product ? log_mass : 0.f);
    const float exponent = 0.693147181f * (__log2f(sum) - log_mass + inverse * free),
                mass = exact ? exp2f(log_mass) : 0.f;
    more[0] += exact ? mass * divergence(-exponent) : sum * divergence(exponent);
    more[DEFECT - DIVERGENCE] += -sum * expm1f(-exponent);
    if (!exact) return;
    more[VIOLATION - DIVERGENCE] += fabsf(sum - mass);
    more[EXACT - DIVERGENCE] += mass * free;
}

struct Decision {
    float shift;
    int reason;
    double dual, gap;
};

// What the reference measure and the costs add to a gap, and when a launch ends: the fields of Marginals.
struct Gauge {
    double mass_reference, spread, tolerance, enough;
    float far;
};

__device__ __forceinline__ Marginals marginals_of(double eps, double rho_a, double rho_b, double mass_a, double mass_b,
                                               const Gauge gauge) {
    return {eps,
            rho_a,
            rho_b,
            mass_a,
            mass_b,
            gauge.mass_reference,
            gauge.spread,
            gauge.tolerance,
            gauge.enough,
            (float)(eps / rho_b),
            gauge.far,
            (float)(kappa(rho_a, rho_b) / eps),
            isinf(rho_a) ? (float)mass_a : 0.f,
            isinf(rho_b) ? (float)mass_b : 0.f};
}

// What it costs at most to make balanced columns exact: scaling them costs (eps + rho_a) KL(b | t); where the rows are
// balanced too, a rank-one repair of the moved mass follows.
__device__ __forceinline__ double repair_cost(const Marginals& marginals, double divergence_of_b, double moved) {
    if (!isinf(marginals.rho_a)) return (marginals.eps + marginals.rho_a) * divergence_of_b;
    return marginals.eps * divergence_of_b +
           (moved > 0 ? moved * (3 * marginals.spread + marginals.eps * log1p(marginals.mass_b / moved)) : 0.0);
}

// The translation, in log2 units, that suits f with sum a e^(-f / rho_a) = mass and g with sum b e^(-g / rho_b) = side.
__device__ __forceinline__ float translation(const Marginals& marginals, float mass, float side) {
    const float ratio = (marginals.fixed_a ? marginals.fixed_a : mass) / (marginals.fixed_b ? marginals.fixed_b : side);
    return marginals.lift ? marginals.lift * log2f(ratio) : 0.f;
}

// The translation t that maximises the dual of the pair in hand, f + t and g - t, is kappa log(mass / column side) with
// kappa = rho_a rho_b / (rho_a + rho_b); with c = t / rho_b (`rise`), phi(x) = e^-x - 1 + x and D = sum t_j phi(x_j) it leaves
//   gap = rho_a M phi(t / rho_a) + rho_b [D + M (e^c - 1 - c) - defect (e^c - 1)].
__device__ __noinline__ Decision judge(const Marginals& marginals, const double* total, double* status, int done) {
    const double unit = marginals.eps * 0.6931471805599453;  // of a potential in log2 units
    const bool exact_a = isinf(marginals.rho_a), exact_b = isinf(marginals.rho_b);
    const double mass = total[MASS], side = mass - total[DEFECT], k = kappa(marginals.rho_a, marginals.rho_b);
    const double t = k ? k * log((exact_a ? marginals.mass_a : mass) / (exact_b ? marginals.mass_b : side)) : 0.0;
    const double rise = exact_b ? 0.0 : t / marginals.rho_b, up = expm1(rise),
                 down = exact_a ? 0.0 : expm1(-t / marginals.rho_a);
    double gap = marginals.rho_b * (total[DIVERGENCE] + mass * (up - rise) - total[DEFECT] * up);
    if (exact_b) gap = repair_cost(marginals, total[DIVERGENCE], total[VIOLATION] / 2);
    double dual = unit * total[EXACT] - marginals.eps * (mass - marginals.mass_reference);
    if (!exact_a && !exact_b) gap += marginals.rho_a * mass * (down + t / marginals.rho_a);
    dual += exact_a ? t * marginals.mass_a : marginals.rho_a * (marginals.mass_a - mass * (1 + down));
    dual += exact_b ? -t * marginals.mass_b : marginals.rho_b * (marginals.mass_b - side * (1 + up));
    const double primal = dual + gap;
    Decision decision;
    decision.dual = dual, decision.gap = gap;
    decision.shift = translation(marginals, mass, total[COLUMN_SIDE]);
    const bool far = total[FAR] > 0 || fabsf(decision.shift) > marginals.far;
    const bool small = gap <= marginals.tolerance * fmax(fabs(primal), fabs(dual)) || gap <= marginals.enough * mass;
    decision.reason = total[EMPTY] > 0 ? EMPTY_COLUMN : small ? CONVERGED : far ? JUMPED : RUNNING;
    if (status) {
        const double values[STATUS] = {(double)done, gap, primal, dual, (double)decision.reason, t / unit, 0.0};
        for (int word = 0; word < STATUS; ++word) status[word] = values[word];
    }
    return decision;
}
