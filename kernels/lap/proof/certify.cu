// The proof of an assignment, on the device, in one sweep of the matrix.
//
//   weigh_rows:  for every row i: least_i = min_j (s c_ij - v_j);  dual += least_i;  primal += s c_i,p(i);
//                violation = max(violation, u_i - least_i);  slack = max(slack, |s c_i,p(i) - u_i - v_p(i)|)
//   add_up:      partial sums of the blocks, then sum of v; one block, a fixed order
//
// s = -1 when maximising. u_i - least_i > 0 is the amount by which the claimed (u, v) is infeasible; the bound
// sum least + sum v is valid whatever v is (v_j <= 0 where columns may stay free: the caller passes it so).
// The sums are in the value type: float64, or int64, where the problem's range check keeps 32 (n_rows + n_cols) max |c|
// below 2^63. Nothing is shared with the solver but v, u and the assignment.
//
// buffer    shape           type     written by
// cost      n_rows, n_cols  cost_t   -
// u, v      n_rows; n_cols  value_t  -
// row_col   n_rows          int32    -            -1 for a row without a column
// partial   blocks, 4       value_t  weigh_rows   primal, dual, violation, slack
// proof     5               value_t  add_up       primal, dual, violation, slack, rows without a column
//
//   weigh_problems:  the same for every problem of a batch, a block each, with `sizes` and answers as batched.cu leaves
//                    them: in the sense asked for, dual = sum u + sum v, and rows without a column counted beyond
//                    max(0, n_rows - n_cols)
#include "lap/auto/dense.cuh"
#include "lap/proof/layout.py"

// Grid: any; a block takes every gridDim.x-th row. Block: 256.
// Shared: 8 partial minima. Reads: cost, u, v, row_col. Writes: partial.
// Requires: v finite. Work: n_rows * n_cols subtractions, the matrix read once.
extern "C" __global__ void __launch_bounds__(THREADS) weigh_rows(const __grid_constant__ WeighRowsArgs args) {
    __shared__ value_t warp_least[THREADS / 32];
    value_t primal = 0, dual = 0, violation = 0, slack = 0;
    for (int i = blockIdx.x; i < args.n_rows; i += gridDim.x) {
        const cost_t* row = args.cost + (long long)i * args.n_cols;
        value_t least = TOP;
#pragma unroll 8
        for (int j = threadIdx.x; j < args.n_cols; j += THREADS) {
            const value_t entry = (value_t)__ldg(row + j), reduced = (args.negate ? -entry : entry) - __ldg(args.v + j);
            least = reduced < least ? reduced : least;
        }
        least = warp_min(least);
        if ((threadIdx.x & 31) == 0) warp_least[threadIdx.x >> 5] = least;
        __syncthreads();  // the eight minima before thread 0 reads them
        if (threadIdx.x == 0) {
            for (int k = 1; k < THREADS / 32; k++) least = warp_least[k] < least ? warp_least[k] : least;
            dual += least;
            violation = args.u[i] - least > violation ? args.u[i] - least : violation;
            const int j = args.row_col[i];
            if (j >= 0) {
                const value_t entry = args.negate ? -(value_t)row[j] : (value_t)row[j],
                              gap = entry - args.u[i] - args.v[j];
                primal += entry;
                slack = gap > slack ? gap : -gap > slack ? -gap : slack;
            }
        }
        __syncthreads();  // thread 0 has read warp_least before the next row rewrites it
    }
    if (threadIdx.x == 0) {
        value_t* mine = args.partial + 4 * blockIdx.x;
        mine[0] = primal; mine[1] = dual; mine[2] = violation; mine[3] = slack;
    }
}

// Grid: 1. Block: 256. Shared: 256 * 5 values. Reads: partial, v, row_col. Writes: proof.
// Requires: weigh_rows has ended. Work: n_rows + n_cols + 4 * blocks.
extern "C" __global__ void __launch_bounds__(THREADS) add_up(const __grid_constant__ AddUpArgs args) {
    __shared__ value_t lane_sum[5][THREADS];
    value_t sum[5] = {0, 0, 0, 0, 0};
    for (int k = threadIdx.x; k < args.n_partial; k += THREADS) {
        const value_t* part = args.partial + 4 * k;
        sum[0] += part[0];
        sum[1] += part[1];
        sum[2] = part[2] > sum[2] ? part[2] : sum[2];
        sum[3] = part[3] > sum[3] ? part[3] : sum[3];
    }
    for (int j = threadIdx.x; j < args.n_cols; j += THREADS) sum[1] += args.v[j];
    for (int i = threadIdx.x; i < args.n_rows; i += THREADS) sum[4] += args.row_col[i] < 0;
    for (int each = 0; each < 5; each++) lane_sum[each][threadIdx.x] = sum[each];
    __syncthreads();  // all lanes' sums before the five final ones
    if (threadIdx.x < 5) {
        value_t total = 0;
        for (int k = 0; k < THREADS; k++) {
            const value_t reduced = lane_sum[threadIdx.x][k];
            if (threadIdx.x == 2 || threadIdx.x == 3) total = reduced > total ? reduced : total;
            else total += reduced;
        }
        args.proof[threadIdx.x] = total;
    }
}

// Grid: one block per problem. Block: 256. Shared: 6 values a warp. Reads: cost, sizes, u, v, assignment.
// Writes: proof (batch, 5). Requires: v finite. Work: n_rows * n_cols subtractions, the matrix read once.
extern "C" __global__ void __launch_bounds__(THREADS) weigh_problems(const __grid_constant__ WeighProblemsArgs args) {
    const int max_rows = args.max_rows, max_cols = args.max_cols, *sizes = args.sizes;
    __shared__ value_t warp_part[5][THREADS / 32];
    const long long problem = blockIdx.x;
    const int n_rows = sizes ? sizes[2 * problem] : max_rows, n_cols = sizes ? sizes[2 * problem + 1] : max_cols;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const value_t sign = args.negate ? -1 : 1;
    const value_t* v_of = args.v + problem * max_cols;
    value_t primal = 0, dual = 0, violation = 0, slack = 0, unassigned = 0;
    for (int i = warp; i < n_rows; i += THREADS / 32) {
        const cost_t* row = args.cost + (problem * max_rows + i) * max_cols;
        value_t least = TOP;
#pragma unroll 4
        for (int j = lane; j < n_cols; j += 32) {
            const value_t reduced = sign * ((value_t)__ldg(row + j) - __ldg(v_of + j));
            least = reduced < least ? reduced : least;
        }
        least = warp_min(least);
        const value_t mine = args.u[problem * max_rows + i];
        const int j = (int)args.assignment[problem * max_rows + i];
        dual += mine;
        violation = sign * mine - least > violation ? sign * mine - least : violation;
        unassigned += j < 0;
        if (j < 0) continue;
        const value_t entry = (value_t)row[j], gap = entry - mine - v_of[j];
        primal += entry;
        slack = gap > slack ? gap : -gap > slack ? -gap : slack;
    }
    value_t columns = 0;
    for (int j = threadIdx.x; j < n_cols; j += THREADS) columns += v_of[j];
    dual += warp_sum(columns);
    const value_t part[5] = {primal, dual, violation, slack, unassigned};
    for (int each = 0; each < 5; each++)
        if (lane == 0) warp_part[each][warp] = part[each];
    __syncthreads();  // every warp's part before they are joined
    if (threadIdx.x >= 5) return;
    value_t total = 0;
    for (int k = 0; k < THREADS / 32; k++) {
        const value_t reduced = warp_part[threadIdx.x][k];
        if (threadIdx.x == 2 || threadIdx.x == 3) total = reduced > total ? reduced : total;
        else total += reduced;
    }
    if (threadIdx.x == 4 && n_rows > n_cols) total -= n_rows - n_cols;
    args.proof[5 * problem + threadIdx.x] = total;
}
