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

// Leaves the sums of this thread's columns in block.fold, one line for each group of threads that shares columns.
__device__ __forceinline__ void fold_columns(const Block& block, float (&total)[COLUMNS]) {
#pragma unroll
    for (int each = 0; each < COLUMNS; ++each) {
#pragma unroll
        for (int step = LANES; step < 32; step <<= 1) total[each] += __shfl_xor_sync(FULL_WARP, total[each], step);
    }
    if (LANES < 32 && (threadIdx.x & 31) >= LANES) return;
    float* line = block.fold + (LANES < 32 ? threadIdx.x / 32 : threadIdx.x / LANES) * block.width;
#pragma unroll
    for (int piece = 0; piece < Q; ++piece) {
        const int j = (piece * LANES + threadIdx.x % LANES) * VEC;
        if (!FILLS && j >= block.width) continue;
#pragma unroll
        for (int part = 0; part < VEC; part += 4)
            *reinterpret_cast<float4*>(line + j + part) =
                make_float4(total[piece * VEC + part], total[piece * VEC + part + 1], total[piece * VEC + part + 2],
                            total[piece * VEC + part + 3]);
    }
}

// This block's sums of the columns of a pair; behind the last columns, the rows' side of the dual value.
__device__ __forceinline__ float2 own_sums(const Block& block, const Problem& problem, int pair) {
    float2 sum = make_float2(0.f, 0.f);
    if (2 * pair >= block.width) {
        for (int warp = 0; warp < RECEIVERS / 32 && problem.exact_rows; ++warp) sum.x += block.exact[warp];
        return sum;
    }
#pragma unroll 4
    for (int fold = 0; fold < FOLDS; ++fold) {
        const float2 line = *reinterpret_cast<const float2*>(block.fold + fold * block.width + 2 * pair);
        sum = make_float2(sum.x + line.x, sum.y + line.y);
    }
    return sum;
}

__device__ __forceinline__ unsigned long long* words_of(const Block& block, const Exchange& exchange, int team,
                                                        unsigned sweep) {
    return exchange.words + ((size_t)((sweep & 1) * block.teams + team) * CS + block.rank) * (block.width + 2);
}

// The sums over all teams of the columns of a pair. Eight looks are under way at a time.
__device__ __forceinline__ float2 collect(const Block& block, const Problem& problem, const Exchange& exchange, int pair,
                                          unsigned sweep) {
    float2 sum = make_float2(0.f, 0.f);
    if (exchange.part == COLUMNS_ONLY) {
        const float2* from = reinterpret_cast<const float2*>(exchange.partial + (size_t)block.rank * block.width);
        return 2 * pair < block.width ? __ldcg(from + pair) : sum;
    }
    const size_t apart = (size_t)CS * (block.width + 2);  // words between two teams
    const unsigned long long* at = words_of(block, exchange, 0, sweep) + 2 * pair;
    for (int first = 0; first < block.teams; first += 8, at += 8 * apart) {
        float2 value[8];
        bool there;
        do {
            there = true;
#pragma unroll
            for (int k = 0; k < 8; ++k)
                if (first + k < block.teams) there &= peek(at + k * apart, sweep, value[k]);
        } while (!there);
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (first + k < block.teams) sum = make_float2(sum.x + value[k].x, sum.y + value[k].y);
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

// Posts the block's column sums, collects all teams', leaves each column's image in block.next and adds to the thread's
// sums: to the first four, and to `more` where the gap is asked for.
__device__ __forceinline__ void update_columns(const Block& block, const Problem& problem, const Marginals& marginals,
                                               const Exchange& exchange, const Turn& turn, float (&first)[4],
                                               float* more) {
    const unsigned sweep = turn.done;
    const bool full = turn.full;
    const int pairs = block.width / 2 + 1;
    if (exchange.part == WHOLE)
#pragma unroll 1
        for (int k = threadIdx.x; k < pairs; k += THREADS)
            post(words_of(block, exchange, block.team, sweep) + 2 * k, own_sums(block, problem, k), sweep);
#pragma unroll 1
    for (int k = threadIdx.x; k < pairs; k += THREADS) {
        const bool inside = 2 * k < block.width;
        const float2 before = pair_of(block.value, inside ? k : 0), log_mass = pair_of(block.log_mass, inside ? k : 0);
        float2 sum = collect(block, problem, exchange, k, sweep);
        if (!inside) {
            if (full && problem.exact_rows && block.rank == 0) more[EXACT - DIVERGENCE] += sum.x;
            break;
        }
        if (!ROWS_KEEP_REFERENCE) sum = make_float2(sum.x * fast_exp2(before.x), sum.y * fast_exp2(before.y));
        if (full) {
            gap_terms(problem.product, marginals.inverse == 0.f, marginals.inverse, sum.x, before.x, log_mass.x, more);
            gap_terms(problem.product, marginals.inverse == 0.f, marginals.inverse, sum.y, before.y, log_mass.y, more);
        }
        reinterpret_cast<float2*>(block.next)[k] =
            make_float2(column_value(problem, marginals, sum.x, before.x, log_mass.x, first),
                        column_value(problem, marginals, sum.y, before.y, log_mass.y, first));
    }
}

// Warps that hold columns.
__device__ __forceinline__ int busy_warps(const Block& block) { return min(WARPS, (block.width / 2 + 1 + 31) / 32); }

// Sends each warp's first four sums round the team; `extra`: how many bytes of the others will follow.
__device__ __forceinline__ void send_first(const Block& block, float (&first)[4], unsigned sweep, int extra) {
    const int busy = busy_warps(block), warp = threadIdx.x / 32, lane = threadIdx.x & 31, side = sweep & 1;
    if (CS > 1 && threadIdx.x == 0) barrier_expect(block.gathered + side, CS * busy * 16 + extra);
    if (warp >= busy) return;
    const float sum = four_sums(first);
    const float4 all = make_float4(__shfl_sync(FULL_WARP, sum, 0), __shfl_sync(FULL_WARP, sum, 8),
                                   __shfl_sync(FULL_WARP, sum, 16), __shfl_sync(FULL_WARP, sum, 24));
    float4* place = block.quick + side * CS * WARPS + block.rank * busy + warp;
    if (lane < CS) send(reinterpret_cast<float*>(place), all, block.gathered + side, lane, CS == 1);
}

// Adds up the other sums over the block and sends them round the team.
__device__ __noinline__ void send_more(const float* sums, float4* place, unsigned long long* barrier, int busy) {
    __shared__ __align__(16) float scratch[WARPS][MORE];
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
#pragma unroll 1
    for (int at = 0; at < MORE && warp < busy; at += 4) {
        const float four[4] = {sums[at], sums[at + 1], sums[at + 2], sums[at + 3]};
        const float sum = four_sums(four);
        if ((lane & 7) == 0) scratch[warp][at + lane / 8] = sum;
    }
    compute_barrier();  // scratch written above, read below
#pragma unroll 1
    for (int i = threadIdx.x; i < MORE / 4 * CS; i += THREADS) {
        const int peer = i / (MORE / 4), at = i % (MORE / 4);
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        for (int k = 0; k < busy; ++k) {
            const float4 part = *reinterpret_cast<const float4*>(scratch[k] + 4 * at);
            sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
        }
        send(reinterpret_cast<float*>(place + at), sum, barrier, peer, CS == 1);
    }
}

// The team's first four sums, once they are there; one warp. Lane l gets sum number l / 8. `gathering` is how often
// this launch has done so before.
template <typename T>
__device__ __forceinline__ T add_first(const Block& block, unsigned sweep, unsigned gathering) {
    const int busy = busy_warps(block), lane = threadIdx.x & 31, side = sweep & 1;
    if (CS > 1) barrier_wait(block.gathered + side, (gathering >> 1) & 1);
    T four[4] = {};
#pragma unroll 1
    for (int i = lane; i < CS * busy; i += 32) {
        const float4 part = block.quick[side * CS * WARPS + i];
        four[0] += part.x, four[1] += part.y, four[2] += part.z, four[3] += part.w;
    }
    return four_sums(four);
}

// All four of them, in the warp's first lane.
__device__ __forceinline__ float4 receive_first(const Block& block, unsigned sweep, unsigned gathering) {
    const float sum = add_first<float>(block, sweep, gathering);
    return make_float4(sum, __shfl_sync(FULL_WARP, sum, 8), __shfl_sync(FULL_WARP, sum, 16),
                       __shfl_sync(FULL_WARP, sum, 24));
}

// All of the team's sums, in double; one warp.
__device__ __forceinline__ void receive_totals(const Block& block, unsigned sweep, unsigned gathering, double* total) {
    const int lane = threadIdx.x & 31, side = sweep & 1;
    const double sum = add_first<double>(block, sweep, gathering);
    if ((lane & 7) == 0) total[lane / 8] = sum;
    if (lane < MORE) {
        double value = 0;
#pragma unroll 4
        for (int peer = 0; peer < CS; ++peer)
            value += reinterpret_cast<const float*>(block.more + (side * CS + peer) * (MORE / 4))[lane];
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
__device__ __forceinline__ Verdict glance(const Marginals& marginals, float4 sums, double* status, int done) {
    Verdict verdict = {translation(marginals, sums.x, sums.y), RUNNING, false};
    if (sums.z > 0.f || fabsf(verdict.shift) > marginals.far) verdict.reason = JUMPED;
    if (sums.w > 0.f) verdict.reason = EMPTY_COLUMN;
    if (verdict.reason != RUNNING && status) status[ITERATIONS] = done, status[REASON] = verdict.reason;
    return verdict;
}
