// Many small problems, ragged, one block each, each stopping by itself.
//
//   repeat
//     sweep_rows      terms from costs in registers and shared memory, row sums four at a time, weights, column sums
//     quick_value     next column values, translation
//     every few sweeps: judge, and end when the gap is small enough
//     refer           when a row sum strayed from its reference by 2^40: new references into the costs
//
// Invariant: c_ij is cost_ij * log2(e) / eps + the reference of row i; a term is 2^(value_j - c_ij).
//
// buffer        shape          dtype   owner
// cost          ragged         f32     the solve
// log_a, log_b  ragged         f32     log2 of the masses
// items         (problems,)    Item    where each problem's parts begin
// potential, g  ragged         f64/f32 the block; certified pair when a problem has ended
// status        (problems, STATUS) f64 the block
//
// Underflow: a row whose terms are all 0 weighs nothing in that sweep and gets a new reference. A column whose terms are
// all 0 has its value raised by 20 (a factor of 2^20) a sweep. A problem with such a row or column does not end yet.
// Bound: the exponentials, one an entry and sweep.
//
// docs/notes/uot.md: what was tried, with its figures.
#include "device/uniform.cuh"
#include "uot/iteration/marginals.cuh"
#ifndef WARPS
#define WARPS 4         // of a block
#define ROWS 16         // of a warp, a multiple of 4
#define COLS 2          // of a lane
#define HELD 16         // rows of a warp whose costs are in registers, a multiple of 4; the others' are in shared memory
#define BLOCKS 6        // of a multiprocessor
#endif
constexpr int THREADS = WARPS * 32;
constexpr int WIDTH = COLS * 32;
constexpr int SHARED_ROWS = ROWS - HELD;          // of a warp
constexpr int HELD_COSTS = HELD ? HELD * COLS : 1;  // of a lane
constexpr float STRAYED = 40.f;  // a row sum that strays from its reference by 2^40 asks for a new one

// Costs in log2 units plus the row's reference, so that a term is 2^(value - cost); +inf outside of the problem.
__device__ __forceinline__ void refer(const float* cost, const Item& item, float scale, const float* value,
                                      float (&held)[HELD_COSTS], float* shared_cost,
                                      float* reference) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        const int i = warp * ROWS + row;
        float line[COLS], most = -INFINITY;
#pragma unroll
        for (int k = 0; k < COLS; ++k) {
            const int j = k * 32 + lane;
            line[k] = i < item.m && j < item.n ? cost[item.cost + (long long)i * item.n + j] * scale : INFINITY;
            most = fmaxf(most, value[j] - line[k]);
        }
        most = -warp_min(-most);
        if (most == -INFINITY) most = 0.f;
        if (lane == 0) reference[i] = most;
#pragma unroll
        for (int k = 0; k < COLS; ++k) {
            if (row < HELD)
                held[row * COLS + k] = line[k] + most;
            else
                shared_cost[(warp * SHARED_ROWS + row - HELD) * WIDTH + k * 32 + lane] = line[k] + most;
        }
    }
    __syncwarp();  // references written above by lane 0, read by this warp alone
}

// Sums over the block's threads, into total[SUMS].
__device__ __forceinline__ void add_threads(const float (&sums)[SUMS], float (*scratch)[SUMS], double* total) {
#pragma unroll
    for (int each = 0; each < SUMS; ++each) {
        const float value = warp_sum(sums[each]);
        if ((threadIdx.x & 31) == 0) scratch[threadIdx.x / 32][each] = value;
    }
    __syncthreads();  // scratch written above, read below
    if (threadIdx.x < SUMS) {
        double value = 0;
        for (int k = 0; k < WARPS; ++k) value += scratch[k][threadIdx.x];
        total[threadIdx.x] = value;
    }
    __syncthreads();  // total written above, read below
}

// What a block's rows are besides the costs in registers.
struct Rows {
    const float* shared_cost;       // [WARPS * SHARED_ROWS][WIDTH]
    const float *mass, *reference;  // [WARPS * ROWS] log2 of the masses, of the last row sums
};

// The warp's rows: terms, row sums four at a time, weights, and their share of the column sums. Writes the rows'
// potentials if `store`. True in the lanes whose row strayed from its reference.
__device__ __forceinline__ bool sweep_rows(const Problem& problem, const float (&held)[HELD_COSTS], const Rows& rows,
                                           const float (&column)[COLS], float (&sum_column)[COLS], double* potential,
                                           bool store) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    bool far = false;
#pragma unroll
    for (int first = 0; first < ROWS; first += 4) {
        float term[4][COLS], row[4];
#pragma unroll
        for (int each = 0; each < 4; ++each) {
            row[each] = 0.f;
#pragma unroll
            for (int k = 0; k < COLS; ++k) {
                const int place = (warp * SHARED_ROWS + first + each - HELD) * WIDTH + k * 32 + lane;
                const float at = first < HELD ? held[(first + each) * COLS + k] : rows.shared_cost[place];
                term[each][k] = fast_exp2(column[k] - at);
                row[each] += term[each][k];
            }
        }
        const float sum = four_sums(row);
        const int i = warp * ROWS + first + (lane >> 3);
        const float log_mass = rows.mass[i], ref = rows.reference[i], log_sum = __log2f(sum);
        const bool empty = log_mass == -INFINITY;
        far |= !empty && !(fabsf(log_sum) < STRAYED);
        const float alpha = problem.product ? 0.f : log_mass, beta = problem.product ? log_mass : 0.f;
        const float log_weight = (1.f - problem.power_a) * ref + problem.power_a * (alpha - log_sum) + beta;
        const float weight = empty || !(sum > 0.f) ? 0.f : fast_exp2(log_weight);
        if (store && (lane & 7) == 0 && i < problem.m)
            potential[i] = empty ? -INFINITY : (double)problem.power_a * (alpha - ((double)ref + log_sum)) + beta;
#pragma unroll
        for (int each = 0; each < 4; ++each) {
            const float of_row = __shfl_sync(FULL_WARP, weight, each * 8);
#pragma unroll
            for (int k = 0; k < COLS; ++k) sum_column[k] = fmaf(of_row, term[each][k], sum_column[k]);
        }
    }
    return far;
}

// The next value of the thread's column from its mass, without the gap's sums.
__device__ __forceinline__ float quick_value(const Problem& problem, float inverse, float sum, float at, float log_mass,
                                             float& side) {
    if (log_mass == -INFINITY) return -INFINITY;
    const float alpha = problem.product ? 0.f : log_mass, beta = problem.product ? log_mass : 0.f;
    const float next =
        sum > 1e-34f ? problem.power_b * (alpha - __log2f(sum) + at) + beta : at + 20.f;  // lift what underflowed
    side = fast_exp2(log_mass - inverse * (next - beta));
    return next;
}

// One problem a block, for at most `iterations` sweeps or until its gap is small enough, which is looked at every `every`
// sweeps. g: column values (in: to start from; out: of the last sweep, or certified); potential: of the rows.
// Grid: problems. Block: 32 WARPS. Shared: vectors and sums (static); costs where they do not fit registers (dynamic).
// Reads: cost, log_a, log_b, items, g, status. Writes: g, potential, status.
// Requires: status all 0 before the first launch of a problem, then as the last launch left it; m <= WARPS * ROWS and n
// <= WIDTH. A problem whose status says that it has ended is left alone.
// Work: one exponential and four float32 operations an entry and sweep.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) solve_batch(const __grid_constant__ SolveBatchArgs args) {
    const int product = uniform(args.product);
    double* potential = args.potential;
    const double eps = args.eps, rho_a = args.rho_a, rho_b = args.rho_b;
    const float* cost = args.cost;
    __shared__ float value[WIDTH], part[WARPS][WIDTH], mass_row[WARPS * ROWS], reference[WARPS * ROWS], sums[2][WARPS];
    __shared__ float scratch[WARPS][SUMS];
    __shared__ double total[SUMS];
    __shared__ int reason;
    extern __shared__ float shared_cost[];
    const Item item = args.items[blockIdx.x];
    double* status = args.status + (size_t)blockIdx.x * STATUS;
    if (status[REASON] != RUNNING) return;
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, mine = threadIdx.x, before = (int)status[ITERATIONS];
    const Problem problem = {item.m,
                             item.n,
                             item.n,
                             product,
                             0,
                             0,
                             (float)(1.4426950408889634 / eps),
                             (float)(isinf(rho_a) ? 1.0 : rho_a / (rho_a + eps)),
                             (float)(isinf(rho_b) ? 1.0 : rho_b / (rho_b + eps))};
    const Marginals marginals = marginals_of(eps, rho_a, rho_b, item.mass_a, item.mass_b,
                                  {item.mass_reference, item.spread, args.tolerance, 0.0, INFINITY});
    for (int j = threadIdx.x; j < WIDTH; j += THREADS) value[j] = j < item.n ? args.g[item.column + j] : -INFINITY;
    for (int i = threadIdx.x; i < WARPS * ROWS; i += THREADS)
        mass_row[i] = i < item.m ? args.log_a[item.row + i] : -INFINITY;
    __syncthreads();  // values and masses written above, read below
    float held[HELD_COSTS];
    refer(cost, item, problem.scale, value, held, shared_cost, reference);
    const float log_mass = mine < item.n ? args.log_b[item.column + mine] : -INFINITY;
    const float inverse = (float)(eps / rho_b);
    float shift = 0.f;
    for (int it = 0; it < args.iterations; ++it) {
        const bool full = (it + 1) % args.every == 0 || it + 1 == args.iterations;
        float column[COLS], sum_column[COLS];
#pragma unroll
        for (int k = 0; k < COLS; ++k) column[k] = value[k * 32 + lane] - shift, sum_column[k] = 0.f;
        const bool far = sweep_rows(problem, held, {shared_cost, mass_row, reference}, column, sum_column,
                                    potential + item.row, full);
#pragma unroll
        for (int k = 0; k < COLS; ++k) part[warp][k * 32 + lane] = sum_column[k];
        const bool refer_again = __syncthreads_or(far);  // shares written above, read below
        float mass = 0.f, side = 0.f, at = 0.f, many[SUMS] = {}, first[4] = {};
        if (mine < item.n) {
            for (int k = 0; k < WARPS; ++k) mass += part[k][mine];
            at = value[mine] - shift;
            value[mine] = quick_value(problem, inverse, mass, at, log_mass, side);
            if (full) {
                column_value(problem, marginals, mass, at, log_mass, first);
                gap_terms(product, isinf(rho_b), inverse, mass, at, log_mass, many + DIVERGENCE);
                many[MASS] = first[MASS], many[COLUMN_SIDE] = first[COLUMN_SIDE], many[EMPTY] = first[EMPTY];
            }
        }
        mass = warp_sum(mass), side = warp_sum(side);
        if (lane == 0) sums[0][warp] = mass, sums[1][warp] = side;
        if (full) {
            if (isinf(rho_a))
                for (int i = mine; i < item.m; i += THREADS)
                    if (mass_row[i] > -INFINITY)
                        many[EXACT] +=
                            exp2f(mass_row[i]) * (float)(potential[item.row + i] - (product ? mass_row[i] : 0.f));
            add_threads(many, scratch, total);
            if (mine == 0) reason = judge(marginals, total, status, before + it + 1).reason;
        }
        __syncthreads();  // values, sums and reason written above, read below
        if (full && reason == CONVERGED && !refer_again) {
            if (mine < item.n) args.g[item.column + mine] = at;
            return;
        }
        float all_mass = 0.f, all_side = 0.f;
#pragma unroll
        for (int k = 0; k < WARPS; ++k) all_mass += sums[0][k], all_side += sums[1][k];
        shift = translation(marginals, all_mass, all_side);
        if (refer_again) refer(cost, item, problem.scale, value, held, shared_cost, reference);
        if (full && mine == 0) status[REASON] = RUNNING;
        if (it + 1 == args.iterations && mine < item.n) args.g[item.column + mine] = at;
    }
}
