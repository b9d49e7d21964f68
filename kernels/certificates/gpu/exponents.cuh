// Bounds of costs, of z = (f + g - c) / reg, of exp(z), and of phi(p, q) = p log(p / q) - p + q.
//
// Every operation is rounded to the side on which the bound stays one (__dadd_ru and so on); only exp, log, log1p and
// expm1 are not. Their largest errors in float64 are 1 ulp over the whole range (NVIDIA, "CUDA C++ Programming Guide",
// mathematical functions, table of the maximum errors of double-precision functions). An ulp is at most 2^-52 of a
// normal number, or of the one beside it twice that: OFF widens by 2^-51, TINY by two of the smallest subnormals.
//
// Distances of points are worked out from differences of coordinates, as the reals that the coordinates stand for. With
// u = 2^-53: a difference is off by u, its square by 2 u more, and d fused additions of one sign by d u (N. J. Higham,
// "Accuracy and Stability of Numerical Algorithms", 2002, section 4.2): (d + 2) u in all, taken as (d + 4) u. Inner
// products are added up twice, rounded down and up.
#define OFF 0x1p-51
#define TINY 0x1p-1073
#define TINY_COST 0x1p-1060  // more than what underflow takes from 1024 squares
#define SERIES 0.125

#ifndef METRIC
#define METRIC 0
#endif
enum { MATRIX, SQEUCLIDEAN, EUCLIDEAN, INNER };

struct Bounds {
    double low, high;
};

// 1 / reg from below and from above.
struct Unit {
    double low, high;
};

__device__ __forceinline__ double wider_up(double x) { return __fma_ru(fabs(x), OFF, x); }
__device__ __forceinline__ double wider_down(double x) { return __fma_rd(fabs(x), -OFF, x); }

// The cost between two points, from d coordinates: x[k * x_step], y[k * y_step].
__device__ __forceinline__ Bounds cost_between(const double* __restrict__ x, long long x_step,
                                               const double* __restrict__ y, long long y_step, int d) {
    if (METRIC == INNER) {
        double low = 0, high = 0;
        for (int k = 0; k < d; k++) {
            const double a = -__ldg(x + k * x_step), b = __ldg(y + k * y_step);
            low = __fma_rd(a, b, low);
            high = __fma_ru(a, b, high);
        }
        return {low, high};
    }
    double sum = 0;
    for (int k = 0; k < d; k++) {
        const double away = __dsub_rn(__ldg(x + k * x_step), __ldg(y + k * y_step));
        sum = __fma_rn(away, away, sum);
    }
    const double part = (d + 4) * 0x1p-53;
    const double high = __dadd_ru(__fma_ru(sum, part, sum), TINY_COST);
    const double low = fmax(__dsub_rd(__fma_rd(sum, -part, sum), TINY_COST), 0.0);
    if (METRIC == EUCLIDEAN) return {__dsqrt_rd(low), __dsqrt_ru(high)};
    return {low, high};
}

// exp(z), and a lower bound of z. Both ends are 0 where the cost forbids the entry.
struct Exponential {
    double low, high, z_low;
};

__device__ __forceinline__ Exponential exponential(double f, double g, Bounds c, Unit unit) {
    const double above = __dsub_ru(__dadd_ru(f, g), c.low), below = __dsub_rd(__dadd_rd(f, g), c.high);
    const double z_high = __dmul_ru(above, above >= 0 ? unit.high : unit.low);
    const double z_low = __dmul_rd(below, below >= 0 ? unit.low : unit.high);
    if (c.low == __longlong_as_double(0x7ff0000000000000ll)) return {0, 0, z_low};
    const double e = exp(z_high);
    const double high = __dadd_ru(__fma_ru(e, OFF, e), TINY);
    // exp(z_low) >= exp(z_high) (1 - (z_high - z_low))
    const double left = __dsub_rd(1, __dsub_ru(z_high, z_low));
    const double low = left > 0 ? __dmul_rd(fmax(__dsub_rd(__fma_rd(e, -OFF, e), TINY), 0.0), left) : 0;
    return {low, high, z_low};
}

// At least phi(p, q) / (q delta^2), delta = p / q - 1, for |delta| at most `delta` <= 1/8 and of one sign:
//     1/2 - delta / 6 + delta^2 / 12 - delta^3 / 20 + delta^4 / 30 - delta^5 / 42 + ...
// Where delta > 0 the terms alternate and fall, so that the sum is below what it is up to delta^4 / 30. Where delta < 0
// all are positive, and from delta^5 on they add up to less than |delta|^5 / 42 / (1 - 1/8) < 0.028 |delta|^5. Times
// delta^2 both grow with |delta|. The last sum is 2^-50 larger for the rounding of the coefficients.
__device__ __forceinline__ double series_up(double delta, bool above) {
    const double sign = above ? -1 : 1;
    double sum = above ? 1. / 30 : __fma_ru(delta, 0.028, 1. / 30);
    sum = __fma_ru(delta, sum, sign / 20);
    sum = __fma_ru(delta, sum, 1. / 12);
    sum = __fma_ru(delta, sum, sign / 6);
    return __fma_ru(delta, sum, 0.5 + 0x1p-50);
}

// At least phi(p, q), q within bounds, for p >= 0. `log_q` is at most log q: it is used where p is not near q.
__device__ __forceinline__ double divergence_up(double p, Bounds q, double log_q) {
    if (p == 0) return q.high;
    const double away = fmax(fabs(__dsub_ru(p, q.low)), fabs(__dsub_rd(p, q.high)));
    if (q.low > 0 && away <= __dmul_rd(SERIES, q.low)) {
        const double delta = __ddiv_ru(away, q.low);
        return __dmul_ru(__dmul_ru(__dmul_ru(q.high, delta), delta), series_up(delta, p >= q.high));
    }
    const double ratio = __dsub_ru(wider_up(log(p)), log_q);
    return __dadd_ru(__dsub_ru(__dmul_ru(p, ratio), p), q.high);
}

// At least phi(p, a) of a marginal p and its mass a: without cancellation where they are near each other.
__device__ __forceinline__ double lost_up(double p, double a) {
    if (p == 0 || a == 0) return p == 0 ? a : __longlong_as_double(0x7ff0000000000000ll);
    const double log_up = wider_up(log1p(__ddiv_ru(__dsub_ru(p, a), a)));
    return __dsub_ru(__dmul_ru(p, log_up), __dsub_rd(p, a));
}
