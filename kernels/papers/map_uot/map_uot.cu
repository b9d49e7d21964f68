// MAP-UOT on the GPU as published (parts 2 and 4), with its rule and with the corrected one.
//
//   repeat
//     row_factor    <- factors(a, row sums)            vectors
//     scale_rows    A <- diag(row_factor) A, and its column sums      (part 2, algorithm 2)
//     column_factor <- factors(b, column sums)         vectors
//     scale_columns A <- A diag(column_factor), and its row sums      (part 4, algorithm 3)
//
// Invariant between launches: A is the plan; the sums that the next `factors` reads belong to it, the others are zero.
// Two reads and two writes of A an iteration: four times the traffic of fused.cu (eight times that of its 16 bits).
//
// buffer        shape     dtype     owner
// plan          (m, ld)   float32   the solve; ld a multiple of 4, padding columns zero
// row_*         (m,)      float32   sums, factors, scaling so far
// column_*      (ld,)     float32   likewise
//
// Overflow: entries are at most max(a, b) once a row or column was scaled; sums below 1e-30 count as 1e-30.
// Not deterministic: partial sums meet in atomicAdd, as published.
// Source: Sun, Hu, Jiang, MAP-UOT, 2024, section 4.2, algorithms 2 and 3.
// CPU reference: cpu.py beside this file. Run: method "map-uot" of solver uot; python -m benchmarks.uot_gpu.

#include "papers/map_uot/layout.py"

constexpr int TX = 32;  // threads along a row, four columns each
constexpr int TY = 8;   // rows of threads in scale_rows
constexpr int NY = 8;   // rows of one thread
constexpr float SMALLEST = 1e-30f;

// Factors of one side. corrected: (mass old / sum)^power / old, else (mass / sum)^power; zeroes the sums it read.
// Grid: ceil(count / 256). Block: 256. Shared: none. Reads: mass, sum, scaling. Writes: factor, scaling, sum = 0.
// Requires: sum complete. Work: one element a thread.
extern "C" __global__ void factors(const __grid_constant__ FactorsArgs args) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= args.count) return;
    const float old = args.corrected ? args.scaling[i] : 1.f;
    const float mass = args.mass[i], ratio = mass * old / fmaxf(args.sum[i], SMALLEST);
    const float next = mass > 0.f ? powf(ratio, args.power) / old : 1.f;  // padding stays
    args.factor[i] = next;
    args.scaling[i] *= next;
    args.sum[i] = 0.f;
}

// Part 2. Grid: (ceil(ld / 128), ceil(m / 64)). Block: (32, 8). Shared: 4 KiB. Reads: plan, row_factor.
// Writes: plan, column_sum. Requires: column_sum zero before. Work: one read and one write of 64 x 128 entries.
extern "C" __global__ void scale_rows(const __grid_constant__ ScaleRowsArgs args) {
    __shared__ float4 share[TY][TX];
    const int j = (blockIdx.x * TX + threadIdx.x) * 4, first = (blockIdx.y * TY + threadIdx.y) * NY;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int k = 0; k < NY; ++k) {
        if (j >= args.ld || first + k >= args.m) continue;
        float4* place = reinterpret_cast<float4*>(args.plan + (size_t)(first + k) * args.ld + j);
        const float factor = args.row_factor[first + k];
        float4 entry = *place;
        entry = make_float4(entry.x * factor, entry.y * factor, entry.z * factor, entry.w * factor);
        *place = entry;
        sum = make_float4(sum.x + entry.x, sum.y + entry.y, sum.z + entry.z, sum.w + entry.w);
    }
    share[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();  // shares written above, read below
    if (threadIdx.y || j >= args.ld) return;
    for (int k = 1; k < TY; ++k) {
        const float4 entry = share[k][threadIdx.x];
        sum = make_float4(sum.x + entry.x, sum.y + entry.y, sum.z + entry.z, sum.w + entry.w);
    }
    atomicAdd(args.column_sum + j, sum.x);  // other blocks of this column strip add to the same sums
    atomicAdd(args.column_sum + j + 1, sum.y);
    atomicAdd(args.column_sum + j + 2, sum.z);
    atomicAdd(args.column_sum + j + 3, sum.w);
}

// Part 4. Grid: (ceil(ld / 1024), ceil(m / 8)). Block: 256. Shared: 32 floats. Reads: plan, column_factor.
// Writes: plan, row_sum. Requires: row_sum zero before. Work: one read and one write of 8 x 1024 entries.
extern "C" __global__ void scale_columns(const __grid_constant__ ScaleColumnsArgs args) {
    __shared__ float share[NY][8];
    const int j = (blockIdx.x * blockDim.x + threadIdx.x) * 4, first = blockIdx.y * NY, warp = threadIdx.x / 32;
    const float4 factor =
        j < args.ld ? *reinterpret_cast<const float4*>(args.column_factor + j) : make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int k = 0; k < NY; ++k) {
        float sum = 0.f;
        if (j < args.ld && first + k < args.m) {
            float4* place = reinterpret_cast<float4*>(args.plan + (size_t)(first + k) * args.ld + j);
            float4 entry = *place;
            entry = make_float4(entry.x * factor.x, entry.y * factor.y, entry.z * factor.z, entry.w * factor.w);
            *place = entry;
            sum = (entry.x + entry.y) + (entry.z + entry.w);
        }
        sum = warp_sum(sum);
        if ((threadIdx.x & 31) == 0) share[k][warp] = sum;
    }
    __syncthreads();  // shares written above, read below
    if (threadIdx.x >= NY || first + threadIdx.x >= args.m) return;
    float sum = 0.f;
    for (int k = 0; k < 8; ++k) sum += share[threadIdx.x][k];
    atomicAdd(args.row_sum + first + threadIdx.x, sum);  // other blocks of this row add to the same sum
}
