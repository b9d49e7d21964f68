// The persistent loop: sweep, add up columns, decide; two grid barriers an iteration, no host. Shared by fused.cu and log.cu.
#include "uot/anderson.cuh"

#if CS > 1 && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
#define CLUSTER __cluster_dims__(CS, 1, 1)
#else
#define CLUSTER
#endif

// Fills every free slot of the ring.
__device__ __forceinline__ void fill(const Block& b, const Problem& p, const unsigned char* matrix, const Progress& now,
                                     Loader& loader) {
    while (loader.issued < min(now.last, now.streamed + b.ring)) loader.next(b, p, matrix);
}

// Barriers, row facts, and the first copies. The rows' references come back from their potentials.
__device__ __forceinline__ void begin(const Block& b, const Problem& p, const unsigned char* matrix, const float* log_a,
                                      const double* potential, int slots, const Progress& now, Loader& loader) {
    if (threadIdx.x == 0) {
        for (int s = 0; s < slots; ++s) barrier_init(b.full + s, 1);
        for (int s = 0; s < 4; ++s) barrier_init(b.exchanged + s, 1);
        fence_barrier_init();
    }
    for (int k = threadIdx.x; k < b.count * R; k += THREADS) {
        const int i = first_row(b, k / R) + k % R;
        const float log_mass = i < p.m ? log_a[i] : -INFINITY;
        float reference = 0.f;
        if (ROWS_KEEP_REFERENCE && log_mass != -INFINITY && potential[i] > -INFINITY)
            reference = (p.product ? 0.f : log_mass) - (float)((potential[i] - (p.product ? log_mass : 0.f)) / p.power_a);
        b.row[k].log_mass = log_mass, b.row[k].reference = reference;
#if POINTS
        b.row[k].at = {0.f, 0.f, 0.f}, b.row[k].norm = 0.f;
        if (i < p.m) set_point(b.row[k], reinterpret_cast<const float*>(matrix) + (size_t)i * 3);
#endif
    }
    cooperative_groups::this_grid().sync();  // barriers are ready in every block of the cluster; potentials were read
    if (threadIdx.x == THREADS && !POINTS) {
        Cursor cursor;
        for (int k = 0; k < b.count; ++k)
            if (!cursor.streams(b)) load(b, p, matrix, k, cursor.next_kept++);
        fill(b, p, matrix, now, loader);
    }
}

// The values of this thread's columns, raw: called right after the barrier, so that the loads overlap with `decide`.
__device__ __forceinline__ void load_columns(const Block& b, const float* value, float (&column)[COLUMNS]) {
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        const int j = (q * THREADS + threadIdx.x) * VEC;
#pragma unroll
        for (int e = 0; e < VEC; e += 4) {
            const bool inside = threadIdx.x < THREADS && j < b.width;
            const float4 raw = inside ? __ldcg(reinterpret_cast<const float4*>(value + (size_t)b.rank * b.width + j + e))
                                      : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
            column[q * VEC + e] = raw.x, column[q * VEC + e + 1] = raw.y;
            column[q * VEC + e + 2] = raw.z, column[q * VEC + e + 3] = raw.w;
        }
    }
}

__device__ __forceinline__ void store_columns(const Block& b, const Problem& p, const float (&total)[COLUMNS], float* partial) {
    float* place = partial + (size_t)b.team * p.ld + (size_t)b.rank * b.width;
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        const int j = (q * THREADS + threadIdx.x) * VEC;
        if (threadIdx.x < THREADS && j < b.width) {
#pragma unroll
            for (int e = 0; e < VEC; e += 4)
                __stcg(reinterpret_cast<float4*>(place + j + e), make_float4(total[q * VEC + e], total[q * VEC + e + 1],
                                                                             total[q * VEC + e + 2], total[q * VEC + e + 3]));
        }
    }
}

// Several devices share a problem by rows: each sweeps its own (SWEEP_ONLY), the column sums are added up between them,
// and each updates all columns alike (COLUMNS_ONLY, with those sums as the only partial ones).
enum { WHOLE = 0, SWEEP_ONLY = 1, COLUMNS_ONLY = 2 };

// The sum over teams of each column, in the order of the teams. Grid: ceil(n / 256). Block: 256.
extern "C" __global__ void add_teams(const float* partial, float* sums, int teams, int n, int ld) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n) return;
    float sum = 0.f;
#pragma unroll 8
    for (int k = 0; k < teams; ++k) sum += partial[(size_t)k * ld + j];
    sums[j] = sum;
}

// Between two sweeps: one thread of every block takes the sums in and says how to go on.
struct Verdict {
    float shift;
    int reason;
    bool rejected;
};

__device__ __forceinline__ Verdict conclude(const Marginals& w, const double* total, double* status, Mixing& mixing, float shift,
                                            int done, int parity, bool full, bool mixes) {
    __shared__ Verdict verdict;
    const Decision d = decide(w, total, status, shift, done, parity, full);
    if (!mixes) return {d.shift, d.reason, false};
    if (threadIdx.x == 0) {
        verdict = {d.shift, d.reason, false};
        if (d.reason != CONVERGED) {
            verdict.rejected = reject(mixing, d);
            if (verdict.rejected) verdict.reason = RUNNING;
            else if (d.reason != EMPTY_COLUMN) learn(mixing, total, d.shift);
        }
        if (blockIdx.x == 0) status[SHIFT] = 0, status[REASON] = verdict.reason, status[REJECTED] = mixing.rejected;
    }
    __syncthreads();  // verdict and mixing written above, read below
    return verdict;
}

// Grid: teams of CS blocks, all on the device at once. Block: THREADS + 32. Shared: slots of row groups and what Block
// lists. Reads: matrix once an iteration. Writes: vectors. Requires: status[REASON] == RUNNING, else it returns at once.
// Work: `iterations` iterations at most; ends early at the gap, a jump, or an empty column.
extern "C" __global__ void CLUSTER __launch_bounds__(THREADS + 32, 1)
iterate(const unsigned char* matrix, const float* log_a, const float* log_b, double* potential, float* g, float* mapped,
        float* history, Mixing* memory, float* partial, float* sums, double* status, int m, int n, int ld, int product, double eps,
        double rho_a, double rho_b, double mass_a, double mass_b, double mass_reference, double spread, double tolerance,
        int iterations, int every, int mixes, int part, int kept, int ring, int ahead, int lanes) {
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ Mixing mixing;
    __shared__ double total_sums[ALL_SUMS];
    const Problem p = {m, n, ld, product, (float)(1.4426950408889634 / eps),
                       (float)(isinf(rho_a) ? 1.0 : rho_a / (rho_a + eps)), (float)(isinf(rho_b) ? 1.0 : rho_b / (rho_b + eps))};
    const Marginals w = {eps, rho_a, rho_b, mass_a, mass_b, mass_reference, spread, tolerance,
                         (float)(kappa(rho_a, rho_b) / eps)};
    const History h = {history, history + (size_t)MEMORY * ld, history + (size_t)2 * MEMORY * ld};
    const auto grid = cooperative_groups::this_grid();
    const Block b = lay_out(shared, p, kept, ring);
    const Owned own = owned(n, lanes);
    int parity = (int)status[PARITY], reason = (int)status[REASON];
    const int before = (int)status[ITERATIONS];
    float shift = (float)status[SHIFT];
    if (reason != RUNNING) return;  // a launch queued behind one that has ended the matter
    if (threadIdx.x == 0) mixing = *memory;
    Progress now;
    Loader loader;
    now.last = (unsigned)iterations * b.streamed;
    if (part != COLUMNS_ONLY) begin(b, p, matrix, log_a, potential, kept + ring, now, loader);
    float column[COLUMNS], total[COLUMNS];
    Place place[COLUMNS];
#if POINTS
    load_points(b, reinterpret_cast<const float*>(matrix) + (size_t)3 * m, ld, place);
#endif
    load_columns(b, g + (size_t)parity * ld, column);
    for (int it = 0; it < iterations && reason == RUNNING; ++it) {
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) column[c] = column_factor(column[c] - shift, place[c]), total[c] = 0.f;
        if (part != COLUMNS_ONLY) {
            sweep(b, p, matrix, potential, column, place, total, now, loader, ahead);
            store_columns(b, p, total, partial);
            grid.sync();  // partial sums and potentials of all blocks are written
            if (part == SWEEP_ONLY) break;
        }
        const bool full = mixes || (it + 1) % every == 0 || it + 1 == iterations;
        float *at = g + (size_t)parity * ld, *other = g + (size_t)(1 - parity) * ld;
        float *next = mixes ? mapped + (size_t)parity * ld : other, *last_next = mapped + (size_t)(1 - parity) * ld;
        float* all = sums + (size_t)(it & 1) * gridDim.x * ALL_SUMS;
        float* mine = all + (size_t)blockIdx.x * ALL_SUMS;
        update_columns(p, w, partial, part == COLUMNS_ONLY ? 1 : b.teams, own, log_b, at, shift, next, full, log_a, potential, mine);
        if (mixes) difference(p, own, mixing, h, log_b, at, next, last_next, mine);
        grid.sync();  // the next column values and all blocks' sums are written
        parity = 1 - parity;
        if (!mixes) load_columns(b, g + (size_t)parity * ld, column);
        add_blocks(all, mixes ? ALL_SUMS : full ? SUMS : FEW, total_sums);
        if (threadIdx.x == THREADS && !POINTS && part == WHOLE) fill(b, p, matrix, now, loader);
        const Verdict v = conclude(w, total_sums, status, mixing, shift, before + it + 1, parity, full, mixes);
        shift = v.shift;
        reason = v.reason;
        if (!mixes || reason == CONVERGED) continue;
        mix(p, own, mixing, h, v.rejected, shift, next, last_next, other);
        shift = 0.f;
        grid.sync();  // the mixed column values are written
        load_columns(b, other, column);
    }
    if (threadIdx.x == THREADS && !POINTS && part == WHOLE)  // copies under way land before we leave
        for (unsigned z = now.streamed; z < loader.issued; ++z) barrier_wait(b.full + b.kept + z % b.ring, (z / b.ring) & 1);
    if (blockIdx.x == 0 && threadIdx.x == 0) *memory = mixing;
}
