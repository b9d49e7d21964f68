// Between two sweeps: column sums -> column values, translation, certified gap. Shared by fused.cu, log.cu, points.cu.
//
// Each team does all of it by itself, and every team gets the same bits. Block `rank` posts its `width` column sums where
// the blocks of that rank in the other teams look for them. That is one way through the L2, and no barrier of the grid.
// It adds up all teams' sums in a fixed order, and works out the next values of its columns. A sum over all columns goes
// round the team's blocks through their shared memory. So one iteration waits once for the L2 and once for the cluster.
//
// Messages carry the number of their sweep and alternate between two places. Two are enough: a block posts number k + 2
// only after it has seen all of k + 1, and those were posted after their blocks had seen all of k.
#include "uot/iteration/sweep.cuh"

// What a block keeps of the launch besides its sweep.
struct Exchange {
    unsigned long long* words;  // [2][teams][CS][width + 2]
    float* partial;             // several devices: [teams][ld] of this one's sums, or [ld] of all devices'
    int part;
    int before;  // iterations of the launches before
};

// Several devices share a problem by rows. Each sweeps its own rows (SWEEP_ONLY). The column sums are added up between
// the devices, and each device updates all columns alike (COLUMNS_ONLY, with those sums in place of the teams').

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
        if (!FILLS && j >= b.width) continue;
#pragma unroll
        for (int e = 0; e < VEC; e += 4)
            *reinterpret_cast<float4*>(line + j + e) =
                make_float4(total[q * VEC + e], total[q * VEC + e + 1], total[q * VEC + e + 2], total[q * VEC + e + 3]);
    }
}

// This block's sums of its columns 2 p and 2 p + 1; behind the last columns, the rows' side of the dual value.
__device__ __forceinline__ float2 own_sums(const Block& b, const Problem& p, int pair) {
    float2 sum = make_float2(0.f, 0.f);
    if (2 * pair >= b.width) {
        for (int w = 0; w < RECEIVERS / 32 && p.exact_rows; ++w) sum.x += b.exact[w];
        return sum;
    }
#pragma unroll 4
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
__device__ __forceinline__ float2 collect(const Block& b, const Problem& p, const Exchange& x, int pair,
                                          unsigned sweep) {
    float2 sum = make_float2(0.f, 0.f);
    if (x.part == COLUMNS_ONLY) {
        const float2* from = reinterpret_cast<const float2*>(x.partial + (size_t)b.rank * b.width);
        return 2 * pair < b.width ? __ldcg(from + pair) : sum;
    }
    const size_t apart = (size_t)CS * (b.width + 2);  // words between two teams
    const unsigned long long* at = words_of(b, x, 0, sweep) + 2 * pair;
    for (int first = 0; first < b.teams; first += 8, at += 8 * apart) {
        float2 value[8];
        bool there;
        do {
            there = true;
#pragma unroll
            for (int k = 0; k < 8; ++k)
                if (first + k < b.teams) there &= peek(at + k * apart, sweep, value[k]);
        } while (!there);
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (first + k < b.teams) sum = make_float2(sum.x + value[k].x, sum.y + value[k].y);
    }
    return sum;
}

__device__ __forceinline__ float2 pair_of(const float* line, int pair) {
    return reinterpret_cast<const float2*>(line)[pair];
}

// Which sweep was the last, and where the outcome is told.
struct Turn {
    int done, here;  // of the solve, its number in words and status; of this launch, from 0
    bool full;       // the gap is asked for
    bool mixes;
    double* status;  // [STATUS]
};

// Posts the block's column sums, collects all teams', leaves each column's image in b.next and adds to the thread's
// sums: to the first four, and to `more` where the gap is asked for.
__device__ __forceinline__ void update_columns(const Block& b, const Problem& p, const Marginals& w, const Exchange& x,
                                               const Turn& turn, float (&first)[4], float* more) {
    const unsigned sweep = turn.done;
    const bool full = turn.full;
    const int pairs = b.width / 2 + 1;
    if (x.part == WHOLE)
#pragma unroll 1
        for (int k = threadIdx.x; k < pairs; k += THREADS)
            post(words_of(b, x, b.team, sweep) + 2 * k, own_sums(b, p, k), sweep);
#pragma unroll 1
    for (int k = threadIdx.x; k < pairs; k += THREADS) {
        const bool inside = 2 * k < b.width;
        const float2 before = pair_of(b.value, inside ? k : 0), log_mass = pair_of(b.log_mass, inside ? k : 0);
        float2 t = collect(b, p, x, k, sweep);
        if (!inside) {
            if (full && p.exact_rows && b.rank == 0) more[EXACT - DIVERGENCE] += t.x;
            break;
        }
        if (!ROWS_KEEP_REFERENCE) t = make_float2(t.x * fast_exp2(before.x), t.y * fast_exp2(before.y));
        if (full) {
            gap_terms(p.product, w.inverse == 0.f, w.inverse, t.x, before.x, log_mass.x, more);
            gap_terms(p.product, w.inverse == 0.f, w.inverse, t.y, before.y, log_mass.y, more);
        }
        reinterpret_cast<float2*>(b.next)[k] = make_float2(column_value(p, w, t.x, before.x, log_mass.x, first),
                                                           column_value(p, w, t.y, before.y, log_mass.y, first));
    }
}

// Warps that hold columns.
__device__ __forceinline__ int busy_warps(const Block& b) { return min(WARPS, (b.width / 2 + 1 + 31) / 32); }

// Sends each warp's first four sums round the team; `extra`: how many bytes of the others will follow.
__device__ __forceinline__ void send_first(const Block& b, float (&first)[4], unsigned sweep, int extra) {
    const int busy = busy_warps(b), warp = threadIdx.x / 32, lane = threadIdx.x & 31, side = sweep & 1;
    if (CS > 1 && threadIdx.x == 0) barrier_expect(b.gathered + side, CS * busy * 16 + extra);
    if (warp >= busy) return;
    const float sum = four_sums(first);
    const float4 all = make_float4(__shfl_sync(FULL_WARP, sum, 0), __shfl_sync(FULL_WARP, sum, 8),
                                   __shfl_sync(FULL_WARP, sum, 16), __shfl_sync(FULL_WARP, sum, 24));
    float4* place = b.quick + side * CS * WARPS + b.rank * busy + warp;
    if (lane < CS) send(reinterpret_cast<float*>(place), all, b.gathered + side, lane, CS == 1);
}

// Adds up the other sums over the block and sends them round the team.
__device__ __noinline__ void send_more(const float* sums, float4* place, unsigned long long* barrier, int busy) {
    __shared__ __align__(16) float scratch[WARPS][MORE];
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
#pragma unroll 1
    for (int s = 0; s < MORE && warp < busy; s += 4) {
        const float four[4] = {sums[s], sums[s + 1], sums[s + 2], sums[s + 3]};
        const float sum = four_sums(four);
        if ((lane & 7) == 0) scratch[warp][s + lane / 8] = sum;
    }
    compute_barrier();  // scratch written above, read below
#pragma unroll 1
    for (int i = threadIdx.x; i < MORE / 4 * CS; i += THREADS) {
        const int peer = i / (MORE / 4), s = i % (MORE / 4);
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        for (int k = 0; k < busy; ++k) {
            const float4 x = *reinterpret_cast<const float4*>(scratch[k] + 4 * s);
            sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
        }
        send(reinterpret_cast<float*>(place + s), sum, barrier, peer, CS == 1);
    }
}

// The team's first four sums, once they are there; one warp. Lane l gets sum number l / 8. `gathering` is how often
// this launch has done so before.
template <typename T>
__device__ __forceinline__ T add_first(const Block& b, unsigned sweep, unsigned gathering) {
    const int busy = busy_warps(b), lane = threadIdx.x & 31, side = sweep & 1;
    if (CS > 1) barrier_wait(b.gathered + side, (gathering >> 1) & 1);
    T four[4] = {};
#pragma unroll 1
    for (int i = lane; i < CS * busy; i += 32) {
        const float4 x = b.quick[side * CS * WARPS + i];
        four[0] += x.x, four[1] += x.y, four[2] += x.z, four[3] += x.w;
    }
    return four_sums(four);
}

// All four of them, in the warp's first lane.
__device__ __forceinline__ float4 receive_first(const Block& b, unsigned sweep, unsigned gathering) {
    const float sum = add_first<float>(b, sweep, gathering);
    return make_float4(sum, __shfl_sync(FULL_WARP, sum, 8), __shfl_sync(FULL_WARP, sum, 16),
                       __shfl_sync(FULL_WARP, sum, 24));
}

// All of the team's sums, in double; one warp.
__device__ __forceinline__ void receive_totals(const Block& b, unsigned sweep, unsigned gathering, double* total) {
    const int lane = threadIdx.x & 31, side = sweep & 1;
    const double sum = add_first<double>(b, sweep, gathering);
    if ((lane & 7) == 0) total[lane / 8] = sum;
    if (lane < MORE) {
        double value = 0;
#pragma unroll 4
        for (int peer = 0; peer < CS; ++peer)
            value += reinterpret_cast<const float*>(b.more + (side * CS + peer) * (MORE / 4))[lane];
        total[DIVERGENCE + lane] = value;
    }
    __syncwarp();  // total written above, read by the first lane
}

struct Verdict {
    float shift;
    int reason;
    bool rejected;
};

// What follows from the first sums (in their order) of an iteration whose gap is not asked for.
__device__ __forceinline__ Verdict glance(const Marginals& w, float4 sums, double* status, int done) {
    Verdict v = {translation(w, sums.x, sums.y), RUNNING, false};
    if (sums.z > 0.f || fabsf(v.shift) > w.far) v.reason = JUMPED;
    if (sums.w > 0.f) v.reason = EMPTY_COLUMN;
    if (v.reason != RUNNING && status) status[ITERATIONS] = done, status[REASON] = v.reason;
    return v;
}
