// Sinkhorn sweeps on costs between points, worked out on the fly in the same single pass.
//
//   as log.cu; a term is 2^(G_j - |x_i - y_j|^2 - reference_i) with coordinates scaled by sqrt(log2(e) / eps), expanded
//   so that a coordinate takes one FMA. Up to three coordinates of a thread's columns stay in registers (FLAT); more
//   come through the caches, RR rows by four columns at a time. Terms of LAG + 1 groups wait in shared memory for their
//   weights. No buffer of size m n.
//
// Buffers: as fused.cu; in place of the matrix, coordinates and norms as places.cuh says.
// Counting: one exponential an entry bounds a sweep by m n / 4.2e12 s: 0.10 ms at n = 20480; 7.5 other operations an
// entry take the same time on 128 lanes.
// Precision: |x|^2 + |y|^2 - 2 x y about the common centre: exponents are rounded at the size of |x|^2 log2(e) / eps.
//
// Tried and dropped (n = 20480, now 0.35 ms): two passes, rows then columns, 2 x 0.18 ms; some exponentials as
// polynomials on the FMA pipe: slower, the issue slots are as scarce as the exponentials; terms of four groups waiting,
// and so groups of 8 rows, 0.44 to 0.60; threads with 12 columns in 96 registers, which spill, 0.51.
#include "uot/ring.cuh"
#ifndef METRIC
#define METRIC 0  // 0 squared Euclidean, 1 Euclidean, 2 minus the inner product
#endif
#ifndef FLAT
#define FLAT 1  // at most three dimensions, in registers; else any number, column coordinates through the caches
#endif
#define POINTS 1
#define ROWS_KEEP_REFERENCE 1
#define STORES_TERMS 1
#define JUMP_LIMIT 60.f
__device__ __forceinline__ float backward_step(float e, float, float, float, float weight, float total) {
    return fmaf(weight, e, total);
}
#include "uot/places.cuh"
