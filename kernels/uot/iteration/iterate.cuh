// The persistent loop: sweep, add up columns, decide; no host and no barrier of the grid. Shared by fused.cu,
// log.cu, points.cu.
#include "uot/iteration/anderson.cuh"

#if CS > 1 && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
#define CLUSTER __cluster_dims__(CS, 1, 1)
#else
#define CLUSTER
#endif

#if !POINTS
__device__ __forceinline__ Cloud load_cloud(const Block&, const Problem&, const unsigned char*) { return {}; }
__device__ __forceinline__ float norm_of(const Block&, const Problem&, const unsigned char*, int) { return 0.f; }
#endif

// Barriers, columns and the rows' references, which come back from their potentials.
__device__ __forceinline__ void begin(const Block& block, const Problem& problem, const float* log_a, const float* g,
                                      const double* potential, int slots) {
    if (threadIdx.x == 0) {
        for (int each = 0; each < slots; ++each)
            barrier_init(block.full + each, 1), barrier_init(block.empty + each, THREADS);
        for (int each = 0; each < 4; ++each)
            barrier_init(block.shared + each, THREADS), barrier_init(block.weighed + each, RECEIVERS);
        for (int each = 0; each < DEPTH; ++each) barrier_init(block.exchanged + each, SENDERS + (CS > 1));
        for (int each = 0; each < 2; ++each) barrier_init(block.gathered + each, 1);
        barrier_init(block.settled, 2);
        fence_barrier_init();
    }
    uint4* slot = reinterpret_cast<uint4*>(block.slot);  // what no copy covers must be a number
    for (size_t k = threadIdx.x; k < (size_t)slots * R * block.width * BYTES / 16; k += blockDim.x)
        slot[k] = make_uint4(0, 0, 0, 0);
    fence_async();
    for (int j = threadIdx.x; j < block.width; j += blockDim.x) block.value[j] = g[block.rank * block.width + j];
    for (int k = threadIdx.x; k < block.count * R; k += blockDim.x) {
        const int i = first_row(block, k / R) + k % R;
        const float log_mass = i < problem.m ? log_a[i] : -INFINITY, beta = problem.product ? log_mass : 0.f;
        float reference = log_mass == -INFINITY ? INFINITY : 0.f;  // terms of no row: 0
        if (!POINTS) block.row_mass[k] = log_mass;
        if (ROWS_KEEP_REFERENCE && log_mass != -INFINITY && potential[i] > -INFINITY)
            reference = (problem.product ? 0.f : log_mass) - (float)((potential[i] - beta) / problem.power_a);
        block.reference[k] = reference;
    }
}

// Copies history lines between the block's own memory and where they stay between launches; `out` says which way.
__device__ __forceinline__ void keep_history(const Block& block, float* own, float* kept, bool out) {
    for (int j = threadIdx.x; j < LINES * block.width; j += blockDim.x) {
        if (out)
            kept[j] = own[j];
        else
            own[j] = kept[j];
    }
}

// With the gap: one thread of every block takes the sums in and says how to go on; that of block 0 also writes
// the status.
__device__ __forceinline__ Verdict conclude(const Marginals& marginals, const double* total, double* status,
                                            Mixing& mixing, int done, bool mixes) {
    double* place = blockIdx.x == 0 ? status : nullptr;
    const Decision decision = judge(marginals, total, place, done);
    Verdict verdict = {decision.shift, decision.reason, false};
    if (!mixes || decision.reason == CONVERGED) return verdict;
    verdict.rejected = reject(mixing, decision);
    if (verdict.rejected) verdict.reason = RUNNING;
    if (place) place[REASON] = verdict.reason, place[REJECTED] = mixing.rejected;
    return verdict;
}

// What happens between two sweeps, in the threads that compute and weigh.
__device__ __forceinline__ Verdict settle(const Block& block, const Problem& problem, const Marginals& marginals,
                                          const Exchange& exchange, Mixing& mixing, float* history, const Turn& turn) {
    double* status = turn.status;
    const int done = turn.done, it = turn.here;
    const bool full = turn.full, mixes = turn.mixes;
    __shared__ Verdict verdict;
    __shared__ double total[2][ALL_SUMS];
    if (computes()) {
        float first[4] = {}, more[MORE];
        const int warp = threadIdx.x / 32, side = done & 1;
        for (int each = 0; each < MORE && full; ++each) more[each] = 0.f;
        update_columns(block, problem, marginals, exchange, turn, first, more);
        send_first(block, first, done, full ? CS * MORE * 4 : 0);
        if (mixes) difference(block.width, block.log_mass, block.value, block.next, mixing, history, more);
        if (full)
            send_more(more, block.more + (side * CS + block.rank) * (MORE / 4), block.gathered + side,
                      busy_warps(block));
        if (CS == 1) compute_barrier();  // sums written above, read below
        if (!full && warp == 0) {
            const float4 sums = receive_first(block, done, it);
            if (threadIdx.x == 0) verdict = glance(marginals, sums, blockIdx.x == 0 ? status : nullptr, done);
        } else if (warp == 0 || (warp == 1 && mixes)) {
            receive_totals(block, done, it, total[warp]);
            if (threadIdx.x == 0) verdict = conclude(marginals, total[0], status, mixing, done, mixes);
            if (threadIdx.x == 32)
                learn(mixing, total[1], translation(marginals, total[1][MASS], total[1][COLUMN_SIDE]));
        }
        if (threadIdx.x == 0 || threadIdx.x == 32) barrier_arrive(block.settled);
    }
    barrier_wait(block.settled, it & 1);  // verdict and mixing written above, read below
    return verdict;
}

// Sets the columns' next values. `g`, where the launch ends: those that no row has seen yet, then those the last
// sweep saw.
__device__ __forceinline__ void set_columns(const Block& block, const Problem& problem, const Mixing& mixing,
                                            float* history, const Verdict& verdict, bool mixes, float* g) {
#pragma unroll 1
    for (int j = 2 * threadIdx.x; j < block.width; j += j & 1 ? 2 * THREADS - 1 : 1) {
        const float seen = block.value[j],
                    next = mixes ? mixed(block, mixing, history, verdict.rejected, verdict.shift, j)
                                 : block.next[j] - verdict.shift;
        block.value[j] = next;
        if (g) g[block.rank * block.width + j] = next, g[problem.ld + block.rank * block.width + j] = seen;
    }
}

// All sweeps of a launch, in the threads that compute and weigh.
__device__ __forceinline__ void iterate_block(const Block& block, const Problem& problem, const Marginals& marginals,
                                              const Exchange& exchange, Mixing& mixing, float* history,
                                              const IterateArgs& args) {
    const unsigned char* matrix = args.matrix;
    const float* log_a = args.log_a;
    double* potential = args.potential;
    float* g = args.g;
    double* status = args.status;
    const int before = exchange.before, iterations = args.iterations, every = args.every;
    const bool mixes = args.mixes;
    Place now;
    unsigned groups = 0;
    int look = every;  // at the gap, after so many sweeps
    const Cloud cloud = load_cloud(block, problem, matrix);
    for (int it = 0; it < iterations; ++it) {
        const bool full = mixes || --look == 0 || it + 1 == iterations;
        if (look == 0) look = every;
        const bool back = it & 1;
        if (exchange.part != COLUMNS_ONLY && !computes())
            weigh_groups(block, problem, log_a, potential, full, back, groups);
        if (exchange.part != COLUMNS_ONLY && computes()) {
            float column[COLUMNS], total[COLUMNS];
#pragma unroll
            for (int each = 0; each < COLUMNS; ++each) {
                const int j = (each / VEC * LANES + threadIdx.x % LANES) * VEC + each % VEC;
                const bool inside = FILLS || j < block.width;
                column[each] = column_factor(inside ? block.value[j] : -INFINITY,
                                             inside ? norm_of(block, problem, matrix, j) : 0.f);
                total[each] = 0.f;
            }
            compute(block, problem, {cloud, column, total}, groups, back, now);
            fold_columns(block, total);
        }
        groups += block.count;
        sweep_barrier();  // folds and the rows' side written above, read below
        if (exchange.part == SWEEP_ONLY) {
            float2* line = reinterpret_cast<float2*>(exchange.partial + (size_t)block.team * problem.ld +
                                                     (size_t)block.rank * block.width);
            for (int k = threadIdx.x; computes() && 2 * k < block.width; k += THREADS)
                line[k] = own_sums(block, problem, k);
            return;
        }
        const Verdict verdict =
            settle(block, problem, marginals, exchange, mixing, history, {before + it + 1, it, full, mixes, status});
        const bool last = verdict.reason != RUNNING || it + 1 == iterations;
        if (computes())
            set_columns(block, problem, mixing, history, verdict, mixes && verdict.reason != CONVERGED,
                        last && block.team == 0 ? g : nullptr);
        if (mixes && threadIdx.x == 0) remember(mixing, verdict.rejected);
        if (last) return;
        if (computes()) compute_barrier();  // values written above, read below
    }
}

// The sum over teams of each column, in the order of the teams. Grid: ceil(n / 256). Block: 256. Shared: none.
// Reads: partial. Writes: sums. Requires: partial of all teams. Work: teams reads a column.
extern "C" __global__ void add_teams(const __grid_constant__ AddTeamsArgs args) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= args.n) return;
    float sum = 0.f;
#pragma unroll 8
    for (int k = 0; k < args.teams; ++k) sum += args.partial[(size_t)k * args.ld + j];
    args.sums[j] = sum;
}

// Up to `iterations` sweeps. `every`: how many of them lie between two looks at the gap when nothing is mixed. part: see
// columns.cuh. own_history: whether Anderson's vectors lie in shared memory (1), or in `history`, one set a team (0).
// Grid: teams * CS, all at once. Block: THREADS + WEIGHERS + 32. Shared: lay_out, then the history.
// Reads: matrix, log_a, log_b. Writes: potential, g, history, memory, words or partial, status.
// Requires: words without the numbers of later sweeps; status[REASON] RUNNING. Work: iterations reads of the matrix.
extern "C" __global__ void CLUSTER __launch_bounds__(THREADS + WEIGHERS + 32, 1)
iterate(const __grid_constant__ IterateArgs args) {
    const double eps = args.eps, rho_a = args.rho_a, rho_b = args.rho_b;
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ Mixing mixing;
    __shared__ Marginals marginals;
    __shared__ unsigned long long stop;  // a barrier that completes when no sweep will follow
    const Problem problem = {args.m,
                             args.n,
                             args.ld,
                             args.product,
                             isinf(rho_a) ? 1 : 0,
                             args.dimension,
                             (float)(1.4426950408889634 / eps),
                             (float)(isinf(rho_a) ? 1.0 : rho_a / (rho_a + eps)),
                             (float)(isinf(rho_b) ? 1.0 : rho_b / (rho_b + eps))};
    if (args.status[REASON] != RUNNING) return;  // a launch queued behind one that has ended the matter
    Block block = lay_out(shared, problem, args.slots, args.flight);
    block.log_mass = args.log_b + block.rank * block.width;
    const Exchange exchange = {args.words, args.partial, args.part, (int)args.status[ITERATIONS]};
    if (args.part == COLUMNS_ONLY && block.team) return;  // one team is enough where nothing is exchanged
    float* kept_history = args.history + (size_t)(args.own_history ? block.rank : blockIdx.x) * LINES * block.width;
    float* lines = args.own_history ? block.reference + (POINTS ? 1 : 2) * block.count * R : kept_history;
    if (threadIdx.x == 0) {
        mixing = *args.memory;
        barrier_init(&stop, 1);
        marginals = marginals_of(eps, rho_a, rho_b, args.mass_a, args.mass_b,
                      {args.mass_reference, args.spread, args.tolerance, args.enough, JUMP_LIMIT / 2});
    }
    begin(block, problem, args.log_a, args.g, args.potential, args.slots);
    if (args.mixes && args.own_history) keep_history(block, lines, kept_history, false);
    cluster_barrier(CS == 1);  // barriers and values are ready in all blocks of the team; potentials were read
    if (threadIdx.x < THREADS + WEIGHERS) {
        iterate_block(block, problem, marginals, exchange, mixing, lines, args);
        if (threadIdx.x == 0) barrier_arrive(&stop);
    } else if (!POINTS && args.part != COLUMNS_ONLY) {
        feed(block, problem, args.matrix, args.iterations, &stop);
    }
    cluster_barrier(CS == 1);  // no block of the team leaves before what was sent to it has landed
    if (args.mixes && args.own_history && block.team == 0) keep_history(block, lines, kept_history, true);
    if (args.mixes && blockIdx.x == 0 && threadIdx.x == 0) *args.memory = mixing;
}
