// Between two sweeps: column sums -> column values, translation, certified gap. Shared by fused.cu, log.cu and points.cu.
//
// Each team does all of it by itself, every team with the same bits: block `rank` posts its `width` column sums where the
// blocks of that rank in the other teams look for them (one way through the L2, no barrier of the grid), adds up all
// teams' in a fixed order, and works out the next values of its columns. What is a sum over all columns goes round the
// team's blocks through their shared memory. So one iteration waits once for the L2 and once for the cluster.
//
// Messages carry the number of their sweep and alternate between two places: a block posts number k + 2 only after it has
// seen all of k + 1, which were posted after their blocks had seen all of k.
#include "uot/sweep.cuh"

constexpr int FEW = EMPTY + 1;  // sums that every iteration needs; the others only where the gap is worked out

// What a block keeps of the launch besides its sweep.
struct Exchange {
    unsigned long long* words;  // [2][teams][CS][width + 2]
    float* partial;             // several devices: [teams][ld] of this one's sums, or [ld] of all devices'
    int part;
};

// Several devices share a problem by rows: each sweeps its own (SWEEP_ONLY), the column sums are added up between them,
// and each updates all columns alike (COLUMNS_ONLY, with those sums instead of the teams').
enum { WHOLE = 0, SWEEP_ONLY = 1, COLUMNS_ONLY = 2 };

// Leaves the sums of this thread's columns in b.fold, one line for each group of threads that shares columns.
__device__ __forceinline__ void fold_columns(const Block& b, float (&total)[COLUMNS]) {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
        for (int step = LANES; step < 32; step <<= 1) total[c] += __shfl_xor_sync(FULL_WARP, total[c], step);
    }
    if (LANES < 32 && (threadIdx.x & 31) >= LANES) return;
    float* line = b.fold + (LANES < 32 ? threadIdx.x / 32 : threadIdx.x / LANES) * b.width;
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        const int j = (q * LANES + threadIdx.x % LANES) * VEC;
        if (j >= b.width) continue;
#pragma unroll
        for (int e = 0; e < VEC; e += 4)
            *reinterpret_cast<float4*>(line + j + e) =
                make_float4(total[q * VEC + e], total[q * VEC + e + 1], total[q * VEC + e + 2], total[q * VEC + e + 3]);
    }
}

// This block's sums of its columns 2 p and 2 p + 1; behind the last columns, the rows' side of the dual value.
__device__ __forceinline__ float2 own_sums(const Block& b, const Problem& p, int pair) {
    if (2 * pair >= b.width) return make_float2(p.exact_rows ? *b.exact : 0.f, 0.f);
    float2 sum = make_float2(0.f, 0.f);
#pragma unroll
    for (int f = 0; f < FOLDS; ++f) {
        const float2 x = *reinterpret_cast<const float2*>(b.fold + f * b.width + 2 * pair);
        sum = make_float2(sum.x + x.x, sum.y + x.y);
    }
    return sum;
}

__device__ __forceinline__ unsigned long long* words_of(const Block& b, const Exchange& x, int team, unsigned sweep) {
    return x.words + ((size_t)((sweep & 1) * b.teams + team) * CS + b.rank) * (b.width + 2);
}

// The sums over all teams of the columns of a pair. Eight looks are under way at a time.
__device__ __forceinline__ float2 collect(const Block& b, const Problem& p, const Exchange& x, int pair, unsigned sweep) {
    float2 sum = make_float2(0.f, 0.f);
    if (x.part == COLUMNS_ONLY) {
        const float2* from = reinterpret_cast<const float2*>(x.partial + (size_t)b.rank * b.width);
        return 2 * pair < b.width ? __ldcg(from + pair) : sum;
    }
    for (int first = 0; first < b.teams; first += 8) {
        float2 value[8];
        bool there;
        do {
            there = true;
#pragma unroll
            for (int k = 0; k < 8; ++k)
                if (first + k < b.teams) there &= peek(words_of(b, x, first + k, sweep) + 2 * pair, sweep, value[k]);
        } while (!there);
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (first + k < b.teams) sum = make_float2(sum.x + value[k].x, sum.y + value[k].y);
    }
    return sum;
}

// Posts the block's column sums, collects all teams', leaves each column's image in b.next and adds to the thread's sums.
__device__ __forceinline__ void update_columns(const Block& b, const Problem& p, const Marginals& w, const Exchange& x, unsigned sweep,
                                               bool full, float (&sums)[ALL_SUMS]) {
    const int pairs = b.width / 2 + 1;
    if (x.part == WHOLE)
        for (int k = threadIdx.x; k < pairs; k += THREADS) post(words_of(b, x, b.team, sweep) + 2 * k, own_sums(b, p, k), sweep);
    for (int k = threadIdx.x; k < pairs; k += THREADS) {
        const float2 both = collect(b, p, x, k, sweep);
        if (2 * k >= b.width) {
            if (p.exact_rows && b.rank == 0) sums[EXACT] += both.x;
            continue;
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int j = 2 * k + e;
            const float before = b.value[j], t = (e ? both.y : both.x) * (ROWS_KEEP_REFERENCE ? 1.f : fast_exp2(before));
            b.next[j] = column_value(p, w, t, before, b.log_mass[j], full, sums);
        }
    }
}

__device__ __forceinline__ void add_four(float4& sum, const float4& x, bool first) {
    sum = make_float4(sum.x + x.x, sum.y + x.y, first ? fmaxf(sum.z, x.z) : sum.z + x.z, sum.w + x.w);  // z: LARGEST_JUMP
}

// Adds up `count` of the threads' sums over the block and sends all of them round the team.
__device__ __forceinline__ void send_totals(const Block& b, float (&sums)[ALL_SUMS], int count, unsigned sweep) {
    __shared__ __align__(16) float scratch[WARPS][ALL_SUMS];
    const int busy = min(WARPS, (b.width / 2 + 1 + 31) / 32);  // warps that hold columns
#pragma unroll
    for (int s = 0; s < ALL_SUMS; ++s) {
        if (threadIdx.x / 32 < busy && s < count) {
            const float value = s == LARGEST_JUMP ? -warp_min(-sums[s]) : warp_sum(sums[s]);
            if ((threadIdx.x & 31) == 0) scratch[threadIdx.x / 32][s] = value;
        }
    }
    if (CS > 1 && threadIdx.x == 0) barrier_expect(b.gathered + (sweep & 1), CS * ALL_SUMS * 4);
    compute_barrier();  // scratch written above, read below
    for (int i = threadIdx.x; i < ALL_SUMS / 4 * CS; i += THREADS) {
        const int peer = i / (ALL_SUMS / 4), s = i % (ALL_SUMS / 4);
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        for (int k = 0; k < busy && 4 * s < count; ++k) add_four(sum, *reinterpret_cast<const float4*>(scratch[k] + 4 * s), s == 0);
        send(b.gather + ((sweep & 1) * CS + b.rank) * ALL_SUMS + 4 * s, sum, b.gathered + (sweep & 1), peer, CS == 1);
    }
    if (CS == 1) compute_barrier();  // gather written above, read by receive_totals
}

// The team's sums, in double; one warp. `gathering` is how often this launch has done so before.
__device__ __forceinline__ void receive_totals(const Block& b, unsigned sweep, unsigned gathering, double* total) {
    if (CS > 1) barrier_wait(b.gathered + (sweep & 1), (gathering >> 1) & 1);
    const int s = threadIdx.x & 31;
    if (s < ALL_SUMS) {
        double value = 0;
#pragma unroll
        for (int peer = 0; peer < CS; ++peer) {
            const float x = b.gather[((sweep & 1) * CS + peer) * ALL_SUMS + s];
            value = s == LARGEST_JUMP ? fmax(value, (double)x) : value + x;
        }
        total[s] = value;
    }
    __syncwarp();  // total written above, read by the first lane
}

// What follows from the sums of an iteration whose gap is not asked for.
__device__ __forceinline__ Decision glance(const Marginals& w, const double* total, double* status, int done) {
    Decision d = {};
    d.shift = translation(w, total[MASS], total[COLUMN_SIDE]);
    const float jump = (float)total[LARGEST_JUMP] + fabsf(d.shift);
    d.reason = total[EMPTY] > 0 ? EMPTY_COLUMN : jump > JUMP_LIMIT ? JUMPED : RUNNING;
    if (d.reason != RUNNING && status) status[ITERATIONS] = done, status[REASON] = d.reason, status[JUMP] = jump;
    return d;
}
