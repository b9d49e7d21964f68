// Soft maxima over the lines of a sparse matrix: half a sweep of transport on its entries, for rows and columns alike.
//
//   soft_maxima:  out_i = log2 sum_k 2^(value[end_k] - scale cost_k) over the entries k of line i
//
// `soft_maxima` of loops.py is the same on a CPU. Each warp takes the next line, reads its entries once for their largest
// term and once more, from the cache, for the sum of what they are beside it.
//
// buffer   shape   type        written by
// starts   n + 1   long long   -             where each line begins
// ends     nnz     int         -             the line of the other side that an entry leads to
// cost     nnz     double      -
// value    other   double      -             of each line of the other side
// out      n       double      soft_maxima
//
// Overflow: the largest term of a line is 1, so that its sum lies between 1 and the number of its entries.
// A line of very many entries keeps one warp busy; the others do not wait for it but at the end of the launch.
#include "uot/sparse/layout.py"

#define UNDER_ALL (-1.7976931348623157e308)  // below every term: these are finite

__device__ __forceinline__ double warp_top(double value) {
#pragma unroll
    for (int step = 16; step; step >>= 1) value = fmax(value, __shfl_xor_sync(FULL_WARP, value, step));
    return value;
}

// Grid: as many blocks as are worth it. Block: THREADS, a warp a line at a time. Shared: none.
// Reads: starts, ends, cost, value. Writes: out. Requires: every line has an entry; all numbers are finite.
// Work: nnz entries twice, one exponential each.
extern "C" __global__ void __launch_bounds__(THREADS) soft_maxima(const __grid_constant__ SoftMaximaArgs args) {
    const long long count = args.count, warps = (long long)gridDim.x * (THREADS / 32);
    const double scale = args.scale;
    const int lane = threadIdx.x % 32;
    for (long long line = (long long)blockIdx.x * (THREADS / 32) + threadIdx.x / 32; line < count; line += warps) {
        const long long first = args.starts[line], last = args.starts[line + 1];
        double top = UNDER_ALL;
        for (long long k = first + lane; k < last; k += 32)
            top = fmax(top, __ldg(args.value + args.ends[k]) - scale * args.cost[k]);
        top = warp_top(top);
        double total = 0;
        for (long long k = first + lane; k < last; k += 32)
            total += exp2((__ldg(args.value + args.ends[k]) - scale * args.cost[k]) - top);
        total = warp_sum(total);
        if (lane == 0) args.out[line] = log2(total) + top;
    }
}
