// What a transport certificate needs of the costs, the potentials and the plan: two sweeps over the entries.
//
// P(f, g)_ij = w_i v_j exp((f_i + g_j - c_ij) / reg) =: Q. The plan is an array P, or Q + rest_a rest_b' (rest null: Q).
//
//   lay_out_points:       coordinates as float64, one after the other for all points
//   sums_of_rows:         a warp a piece of ROWS rows: bounds of the sums of Q and P, and of sum phi(P, Q)
//   sums_of_columns:      a thread a piece of a column: bounds of the sums of Q, or of P where it is an array
//   join_parts:           a thread a line: the pieces' sums
//   settle:               a block a problem: the two values, and what is beside them (below)
//
// Every sum is made twice, rounded down and rounded up (exponents.cuh, directed.cuh). With Q's entries between bounds and
// the plan's sums between bounds,
//
//     dual      r_1 <a, 1 - exp(-f / r_1)> + r_2 <b, 1 - exp(-g / r_2)> - reg (sum Q - sum a sum b)          down
//     primal    <f, P 1> + <g, P' 1> + reg sum phi(P, Q) - reg (sum Q - sum a sum b) + r KL(marginals)       up
//
// with <a, f> and no KL where r is inf, and no sum a sum b for the uniform reference. f_i p + r KL(p | a_i) is convex in a
// line's sum p: its larger value at the bounds of p bounds it. LOSS is about what the primal value may be too high.
//
// The sweep of rows adds each word of a matrix of costs to its checksum (checksum.cuh).
//
// All is in units in which reg is near 1: `scale` is the power of two that a cost is multiplied with, coordinates have
// their own (gpu_units.py).
//
// buffer       shape                       type     written by
// cost         batch, m, n                 COST     -              matrices
// x, y         dim, m; dim, n              double   lay_out_points points
// plan         batch, m, n                 float32  -              or float64, or null
// f, w, log_w  batch, m                    double   -              g, v, log_v: batch, n
// row_parts    ROW_SUMS, batch, pieces, m  double   sums_of_rows
// col_parts    2, batch, pieces, n         double   sums_of_columns
// rows, cols   ROW_SUMS or 2, batch, lines double   join_parts
// bad          batch                       int32    sums_of_rows   0 before; 1 where the plan is none
// total        1                           uint64   sums_of_rows   0 before
// facts        batch, FACTS                double   settle
#include "certificates/gpu/directed.cuh"
#include "certificates/gpu/checksum.cuh"
#include "certificates/gpu/exponents.cuh"

#ifndef COST
#define COST double
#endif
#ifndef POINTS
#define POINTS 0
#endif
typedef COST cost_t;
#define PER_WORD ((int)(8 / sizeof(cost_t)))
#define BLOCK 256
#define COLUMNS 128
#define SETTLERS 512
#define INSIDE 32  // terms that a thread adds up before it adds them to the others
#define ROWS (POINTS ? 4 : 1)  // of a warp: each point y_j is read once for them

enum { Q_LOW, Q_HIGH, P_LOW, P_HIGH, PHI, ROW_SUMS };
enum { PRIMAL, DUAL, PRICE, RESIDUAL, APART_A, APART_B, MASS_A, MASS_B, MASS, LARGEST_F, LARGEST_G, LOSS,
       SHOWN_A, SHOWN_B, FACTS };

struct Problem {
    int batch, m, n, dim, metric, product, rests, plan, pieces, piece;  // plan: bytes of an entry, 0 for none
    double reg, unit_low, unit_high, r_a, r_b, scale;  // r: inf where the side is balanced
    const void* cost;
    const void* plan_array;
    const double *x, *y, *a, *b, *f, *g, *w, *v, *log_w, *log_v, *rest_a, *rest_b, *shown_a, *shown_b;
};

__device__ __forceinline__ double as_double(double x) { return x; }
__device__ __forceinline__ double as_double(float x) { return widened(__float_as_uint(x)); }

// Grid: any. Block: any. Reads: from (n, dim). Writes: into (dim, n), times a power of two. Work: n dim.
extern "C" __global__ void lay_out_points(const cost_t* __restrict__ from, double* into, int n, int dim, double scale) {
    const long long all = (long long)n * dim, step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += step)
        into[at % dim * n + at / dim] = as_double(from[at]) * scale;
}

// Grid: any. Block: any. Lower bounds of the logarithms of weights; 0 for a weight of 0, which no entry uses.
extern "C" __global__ void log_weights(const double* __restrict__ weights, double* logs, long long count) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step)
        logs[at] = weights[at] > 0 ? wider_down(log(weights[at])) : 0;
}

// A cost as it was given, in the units of the sweep: exact where it stays a normal number.
__device__ __forceinline__ Bounds in_units(const Problem& s, double c) {
    return {__dmul_rd(c, s.scale), __dmul_ru(c, s.scale)};
}

struct RowSums {
    double q_low, q_high, p_low, p_high, phi;
    bool bad;

    __device__ RowSums() : q_low(0), q_high(0), p_low(0), p_high(0), phi(0), bad(false) {}
};

// Takes one entry into the sums of its row: row (f, w, log w, rest), column (g, v, log v, rest), cost, and the plan's p.
// The sums of Q leave out the factor w.
__device__ __forceinline__ void take(const Problem& s, RowSums& sums, long long i, long long j, Bounds c, double p) {
    const double w = s.w[i], v = __ldg(s.v + j);
    const bool none = w == 0 || v == 0;
    Exponential e = {0, 0, 0};
    if (!none) e = exponential(s.f[i], __ldg(s.g + j), c, {s.unit_low, s.unit_high});
    sums.q_low = __fma_rd(e.low, v, sums.q_low);
    sums.q_high = __fma_ru(e.high, v, sums.q_high);
    if (!s.plan && !s.rests) return;
    const bool barred = e.high == 0;  // forbidden, or without mass
    const double weight_low = __dmul_rd(w, v), weight_high = __dmul_ru(w, v);
    const Bounds q = {__dmul_rd(e.low, weight_low), __dmul_ru(e.high, weight_high)};
    if (s.plan) {
        sums.bad |= !(p >= 0 && p < __longlong_as_double(0x7ff0000000000000ll)) || (barred && p > 0);
        sums.p_low = __dadd_rd(sums.p_low, p);
        sums.p_high = __dadd_ru(sums.p_high, p);
    } else {
        const double more = __dmul_ru(s.rest_a[i], __ldg(s.rest_b + j));
        sums.bad |= !(more >= 0) || (barred && more > 0);
        p = __dadd_ru(q.high, more);  // phi grows with p from q on
    }
    if (!barred) {
        const double log_q = __dadd_rd(__dadd_rd(s.log_w[i], __ldg(s.log_v + j)), e.z_low);
        sums.phi = __dadd_ru(sums.phi, divergence_up(p, q, log_q));
    }
}

__device__ __forceinline__ double plan_at(const Problem& s, long long at) {
    if (s.plan == 8) return ((const double*)s.plan_array)[at];
    return s.plan ? as_double(((const float*)s.plan_array)[at]) : 0;
}

__device__ void write_row(const Problem& s, RowSums& sums, int k, int piece, int row, double* parts, int* bad) {
    double values[ROW_SUMS] = {sums.q_low, sums.q_high, sums.p_low, sums.p_high, sums.phi};
    for (int step = WARP / 2; step; step >>= 1)
        for (int q = 0; q < ROW_SUMS; q++) {
            const double other = __shfl_down_sync(ALL_LANES, values[q], step);
            values[q] = q == Q_LOW || q == P_LOW ? __dadd_rd(values[q], other) : __dadd_ru(values[q], other);
        }
    if (sums.bad) atomicOr(bad + k, 1);
    if (threadIdx.x % WARP || row >= s.m) return;
    const long long one = (long long)s.batch * s.pieces * s.m;
    for (int q = 0; q < ROW_SUMS; q++) parts[q * one + ((long long)k * s.pieces + piece) * s.m + row] = values[q];
}

// Grid: one warp for each problem, piece of the columns and group of ROWS rows, groups running fastest. Block: BLOCK.
// Reads: cost or x, y; plan; vectors. Writes: parts, bad, total. Work: one read of cost and plan, m n exponentials.
extern "C" __global__ void __launch_bounds__(BLOCK)
sums_of_rows(Problem s, double* parts, int* bad, word_t* total) {
    const long long warp = ((long long)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    const int lane = threadIdx.x % WARP, groups = (s.m + ROWS - 1) / ROWS;
    const int group = (int)(warp % groups), piece = (int)(warp / groups % s.pieces);
    const int k = (int)(warp / groups / s.pieces);
    word_t sum = 0;
    if (k < s.batch) {
        const long long i0 = (long long)k * s.m + (long long)group * ROWS, j0 = (long long)k * s.n;
        const int first = piece * s.piece, last = first + s.piece < s.n ? first + s.piece : s.n;
        RowSums sums[ROWS];
#if !POINTS
        const long long begin = i0 * s.n, from = begin + first, to = begin + last;
        const word_t n_bytes = (word_t)s.batch * s.m * s.n * sizeof(cost_t);
        for (long long at = from / PER_WORD + lane; at * PER_WORD < to; at += WARP) {
            const word_t word = word_at(s.cost, n_bytes, at);
            if (at * PER_WORD >= from) sum += mixed(word, at);
            for (int part = 0; part < PER_WORD; part++) {
                const long long entry = at * PER_WORD + part;
                if (entry < from || entry >= to) continue;
                const double c = PER_WORD == 1 ? __longlong_as_double(word) : widened((unsigned int)(word >> (32 * part)));
                take(s, sums[0], i0, j0 + entry - begin, in_units(s, c), plan_at(s, entry));
            }
        }
#else
        for (int j = first + lane; j < last; j += WARP)
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const long long row = (long long)group * ROWS + r;
                if (row >= s.m) continue;
                const Bounds c = cost_between(s.metric, s.x + row, s.m, s.y + j, s.n, s.dim);
                take(s, sums[r], row, j, c, plan_at(s, row * s.n + j));
            }
#endif
        for (int r = 0; r < ROWS; r++) write_row(s, sums[r], k, piece, group * ROWS + r, parts, bad);
    }
    add_to_checksum(sum, total);
}

// Grid: (blocks of columns, pieces of `piece` rows, batch or fewer). Block: COLUMNS.
// Reads: as sums_of_rows, or the plan alone. Writes: parts. The sums of Q leave out the factor v.
extern "C" __global__ void __launch_bounds__(COLUMNS)
sums_of_columns(Problem s, double* parts) {
    const int j = blockIdx.x * COLUMNS + threadIdx.x, piece = blockIdx.y;
    if (j >= s.n) return;
    const int first = piece * s.piece, last = first + s.piece < s.m ? first + s.piece : s.m;
    for (int k = blockIdx.z; k < s.batch; k += gridDim.z) {
        const long long i0 = (long long)k * s.m, j0 = (long long)k * s.n;
        const double g = s.g[j0 + j], v = s.v[j0 + j];
        double low = 0, high = 0;
        for (int start = first; start < last; start += INSIDE) {
            double inner_low = 0, inner_high = 0;
            for (int i = start; i < last && i < start + INSIDE; i++) {
                const long long at = (i0 + i) * s.n + j;
                if (s.plan) {
                    const double p = plan_at(s, at);
                    inner_low = __dadd_rd(inner_low, p);
                    inner_high = __dadd_ru(inner_high, p);
                    continue;
                }
                const double w = __ldg(s.w + i0 + i);
                if (w == 0 || v == 0) continue;
#if !POINTS
                const Bounds c = in_units(s, as_double(__ldg((const cost_t*)s.cost + at)));
#else
                const Bounds c = cost_between(s.metric, s.x + i, s.m, s.y + j, s.n, s.dim);
#endif
                const Exponential e = exponential(__ldg(s.f + i0 + i), g, c, {s.unit_low, s.unit_high});
                inner_low = __fma_rd(e.low, w, inner_low);
                inner_high = __fma_ru(e.high, w, inner_high);
            }
            low = __dadd_rd(low, inner_low);
            high = __dadd_ru(high, inner_high);
        }
        const long long one = (long long)s.batch * s.pieces * s.n;
        const long long out = ((long long)k * s.pieces + piece) * s.n + j;
        parts[out] = low;
        parts[one + out] = high;
    }
}

// Grid: any. Block: any. parts (count, batch, pieces, lines) -> sums (count, batch, lines); even ones are lower bounds
// but for PHI, the fifth of the rows. Work: one read.
extern "C" __global__ void join_parts(const double* __restrict__ parts, double* sums, int count, int batch, int pieces,
                                      int lines) {
    const long long all = (long long)count * batch * lines, step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += step) {
        const long long problem = at / lines;  // count and batch
        const bool down = problem / batch % 2 == 0 && problem / batch != PHI;
        double sum = 0;
        for (int piece = 0; piece < pieces; piece++) {
            const double x = parts[(problem * pieces + piece) * lines + at % lines];
            sum = down ? __dadd_rd(sum, x) : __dadd_ru(sum, x);
        }
        sums[at] = sum;
    }
}

// What one side of a problem adds up to.
struct Side {
    Sum<-1> dual;
    Sum<1> primal, price, residual, apart, shown, loss;
    double largest;

    __device__ Side() : largest(0) {}
};

// A line whose plan sums to p, of mass a, at potential f and strength r (inf: balanced).
__device__ void take_line(Side& side, Bounds p, double a, double f, double r, double shown, bool is_shown) {
    side.largest = fmax(side.largest, fabs(f));
    side.loss.add(__dmul_ru(fabs(f), __dsub_ru(p.high, p.low)));
    if (is_shown) side.shown.add(fmax(fabs(__dsub_ru(shown, p.low)), fabs(__dsub_rd(shown, p.high))));
    if (r == __longlong_as_double(0x7ff0000000000000ll)) {
        const double away = fmax(__dsub_ru(a, p.low), __dsub_ru(p.high, a));
        side.dual.add(__dmul_rd(a, f));
        side.primal.add(fmax(__dmul_ru(f, p.low), __dmul_ru(f, p.high)));
        side.price.add(__dmul_ru(fabs(f), away));
        side.residual.add(away);
        side.apart.add(fmax(fmax(__dsub_ru(p.low, a), __dsub_ru(a, p.high)), 0.0));
        return;
    }
    if (f != 0 && a > 0) {
        const double lost = __dadd_ru(wider_up(expm1(-__ddiv_rd(f, r))), TINY);
        side.dual.add(-__dmul_ru(r, __dmul_ru(a, lost)));
    }
    const double low = __fma_ru(r, lost_up(p.low, a), __dmul_ru(f, p.low));
    const double high = __fma_ru(r, lost_up(p.high, a), __dmul_ru(f, p.high));
    side.primal.add(fmax(low, high));
}

__device__ double broadcast(double value, double* room) {
    __syncthreads();  // nobody reads the room any more
    if (threadIdx.x == 0) room[0] = value;
    __syncthreads();  // thread 0 has written
    return room[0];
}

// Bounds of a sum of a vector, in every thread of the block.
__device__ Bounds sum_of(const double* values, int count, double* room) {
    Sum<-1> low;
    Sum<1> high;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        low.add(values[i]);
        high.add(values[i]);
    }
    low.over_block(room);
    high.over_block(room);
    const double bottom = broadcast(low.value(), room), top = broadcast(high.value(), room);
    return {bottom, top};
}

// Grid: one block for each problem. Block: SETTLERS or fewer, a multiple of 32. Reads: rows, cols, vectors. Writes: facts.
// Requires: potentials finite, 0 on lines without weight. Work: some 500 operations a line.
extern "C" __global__ void __launch_bounds__(SETTLERS)
settle(Problem s, const double* __restrict__ rows, const double* __restrict__ cols, double* facts) {
    __shared__ double room[2 * 32];
    const int k = blockIdx.x;
    const long long i0 = (long long)k * s.m, j0 = (long long)k * s.n;
    const long long all_rows = (long long)s.batch * s.m, all_cols = (long long)s.batch * s.n;
    const Bounds of_a = sum_of(s.a + i0, s.m, room), of_b = sum_of(s.b + j0, s.n, room);
    Bounds rest_a = {0, 0}, rest_b = {0, 0};
    if (s.rests) {
        rest_a = sum_of(s.rest_a + i0, s.m, room);
        rest_b = sum_of(s.rest_b + j0, s.n, room);
    }
    Side side_a, side_b;
    Sum<-1> q_low;
    Sum<1> q_high, phi;
    double mass = 0;
    for (int i = threadIdx.x; i < s.m; i += blockDim.x) {
        const double* of = rows + i0 + i;
        const double w = s.w[i0 + i];
        const Bounds q = {__dmul_rd(w, of[Q_LOW * all_rows]), __dmul_ru(w, of[Q_HIGH * all_rows])};
        q_low.add(q.low);
        q_high.add(q.high);
        phi.add(of[PHI * all_rows]);
        Bounds p = q;
        if (s.plan) p = {of[P_LOW * all_rows], of[P_HIGH * all_rows]};
        if (s.rests) p = {__fma_rd(s.rest_a[i0 + i], rest_b.low, q.low), __fma_ru(s.rest_a[i0 + i], rest_b.high, q.high)};
        mass += (p.low + p.high) / 2;
        take_line(side_a, p, s.a[i0 + i], s.f[i0 + i], s.r_a, s.shown_a ? s.shown_a[i0 + i] : 0, s.shown_a);
    }
    for (int j = threadIdx.x; j < s.n; j += blockDim.x) {
        const double v = s.plan ? 1 : s.v[j0 + j], low = cols[j0 + j], high = cols[all_cols + j0 + j];
        Bounds p = {__dmul_rd(v, low), __dmul_ru(v, high)};
        if (s.rests) p = {__fma_rd(s.rest_b[j0 + j], rest_a.low, p.low), __fma_ru(s.rest_b[j0 + j], rest_a.high, p.high)};
        take_line(side_b, p, s.b[j0 + j], s.g[j0 + j], s.r_b, s.shown_b ? s.shown_b[j0 + j] : 0, s.shown_b);
    }
    q_low.over_block(room);
    q_high.over_block(room);
    phi.over_block(room);
    Sum<1> plan_mass;
    plan_mass.add(mass);
    plan_mass.over_block(room);
    double* out = facts + (long long)k * FACTS;
    for (int which = 0; which < 2; which++) {
        Side& side = which ? side_b : side_a;
        side.dual.over_block(room);
        side.primal.over_block(room);
        side.price.over_block(room);
        side.residual.over_block(room);
        side.apart.over_block(room);
        side.shown.over_block(room);
        side.loss.over_block(room);
        side.largest = largest_of_block(side.largest, room);
        if (threadIdx.x) continue;
        out[which ? APART_B : APART_A] = side.apart.value();
        out[which ? LARGEST_G : LARGEST_F] = side.largest;
        out[which ? SHOWN_B : SHOWN_A] = side.shown.value();
    }
    if (threadIdx.x) return;
    // sum Q - sum R: R is a x b for the product reference, and left out for the uniform one
    double excess_low = q_low.value(), excess_high = q_high.value();
    if (s.product) {
        excess_low = __dsub_rd(excess_low, __dmul_ru(of_a.high, of_b.high));
        excess_high = __dsub_ru(excess_high, __dmul_rd(of_a.low, of_b.low));
    }
    Sum<-1> dual = side_a.dual;
    dual.join(side_b.dual.high, side_b.dual.rest);
    dual.add(-__dmul_ru(s.reg, excess_high));
    Sum<1> primal = side_a.primal;
    primal.join(side_b.primal.high, side_b.primal.rest);
    primal.add(-__dmul_rd(s.reg, excess_low));
    primal.add(__dmul_ru(s.reg, phi.value()));
    Sum<1> loss = side_a.loss;
    loss.join(side_b.loss.high, side_b.loss.rest);
    loss.add(__dmul_ru(s.reg, __dsub_ru(excess_high, excess_low)));
    loss.add(__dmul_ru(s.reg, __dmul_ru(phi.value(), 0x1p-48)));
    out[LOSS] = loss.value();
    out[PRIMAL] = primal.value();
    out[DUAL] = dual.value();
    out[PRICE] = __dadd_ru(side_a.price.value(), side_b.price.value());
    out[RESIDUAL] = __dadd_ru(side_a.residual.value(), side_b.residual.value());
    out[MASS_A] = of_a.low;
    out[MASS_B] = of_b.low;
    out[MASS] = plan_mass.value();
}
