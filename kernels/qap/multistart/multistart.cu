// Independent searches for the quadratic assignment, one block each: 2-opt to a local optimum, or robust tabu search.
// The two systems of Novoa and Qasem (2019), with O(1) deltas in the place of their O(n) ones.
//
//   search:                                             one launch, one block per start
//     start               the host's permutation | in later rounds, the least visited places (frequency memory)
//     fill_partial        partial[u, l] = linear[u, l] + sum_k flow[u, k] distance[l, p[k]] (+ transposed products)
//     repeat:
//       update_deltas     delta[u, v] += (a_u - a_v)(h_u - h_v) in registers; the least that is allowed
//       post, choose      (r, t): least over the block; 2-opt ends when it is not below 0
//       oldest            now and then (tabu): an exchange long unused instead, Taillard's second rule
//       differences       vectors a, b, h of exchange (r, t)
//       refresh           the 2n deltas and tabu limits of r and t, read off `partial`
//       add_product       partial += a b'
//     settle              the best permutation met, its cost, its visits
//
// Invariant at the head of an iteration: p and cost are exact for integers; delta and partial are up to the pending
// product a b'. A thread owns a TU x TD tile of exchanges (u, u + d mod n), 1 <= d <= n / 2, for the whole search:
// deltas and tabu limits never leave its registers. Exchanges beyond n / 2 repeat others and stay tabu.
//
// Recency is kept by facility and location (until[u, l]: u must not return to l before). That is stricter than the matrix
// of exchanged pairs of Novoa and Qasem (2019), and finds better answers. Their matrix is RECENCY_PAIRS: recency above
// the diagonal, frequency below it. They left the use of frequency for later; here, of the exchanges long unused, the
// rarest is forced now and then.
//
// buffer                             shape      type            where
// partial                            n, stride  value_t         shared; global where it does not fit (`streamed` 2)
// until                              n, n       int32           shared; global where it does not fit (`streamed` 1, 2)
// ah                                 3n/2+      Pair            shared: differences of flow and distance
// b; of_r, of_s                      stride; n  value_t         shared: differences of distance; fresh deltas
// p, best                            n          int32           shared
// flow, distance, transposes, linear n, n       value_t         global
// starts, hall; hall_costs           B, n; B    int32; wide_t   global
// visits                             n, n       int32           global; what is told the host: incumbent.cuh
//
// Overflow: value_t is int only when form.py proved that every delta fits; sums wrap modulo 2^32 on the way.
// Sources: Taillard 1991 (deltas, random tenure, aspiration); Novoa and Qasem 2019, sections 4.2 to 4.4, 5.1, 5.2.
// docs/notes/qap.md: what was tried, with its figures.
#include "qap/multistart/exchange.cuh"

// Long-term memory. Facilities take turns in the order of the problem, from a random one on. Each goes to the free location
// where it was found least often, of equals to the first from a random location on.
__device__ void unvisited(int *p, const int *visits, int *used, int n, unsigned long long &state) {
    for (int i = 0; i < n; ++i) used[i] = 0;
    const int from = below(state, n), step = 1;
    for (int k = 0; k < n; ++k) {
        const int i = (from + k * step) % n;
        int at = -1, fewest = 0x7fffffff;
        const int start = below(state, n);
        for (int tried = 0; tried < n; ++tried) {
            const int l = (start + tried) % n;
            const int seen = visits[size_t(i) * n + l];
            if (!used[l] && seen < fewest) { fewest = seen; at = l; }
        }
        p[i] = at;
        used[at] = 1;
    }
}

// The permutation that this block starts from, by thread 0.
__device__ void start(const QapProblem &problem, const Shared &shared, const Plan &plan, const Found &found, int slot,
                      unsigned long long state) {
    if (!plan.given) {
        unvisited(shared.p, found.visits, shared.scratch, problem.n, state);
        return;
    }
    for (int i = 0; i < problem.n; ++i) shared.p[i] = found.starts[size_t(slot) * problem.n + i];
}

// Flow, distance and their transposes into shared memory behind everything else (MATRICES).
__device__ QapProblem near(QapProblem problem, const Shared &shared) {
    value_t *at = reinterpret_cast<value_t *>((reinterpret_cast<size_t>(shared.scratch + 2 * problem.n) + 15) / 16 * 16);
    const value_t **matrices[4] = {&problem.flow, &problem.distance, &problem.flow_t, &problem.distance_t};
    const int cells = problem.n * problem.n, copies = SYMMETRIC ? 2 : 4;
    for (int which = 0; which < copies; ++which) {
        for (int i = threadIdx.x; i < cells; i += blockDim.x) at[which * cells + i] = (*matrices[which])[i];
        *matrices[which] = at + which * cells;
    }
    if (SYMMETRIC) problem.flow_t = problem.flow, problem.distance_t = problem.distance;
    __syncthreads();  // copied -> read by all
    return problem;
}

// Keep the search's best where it beats what this slot met in earlier rounds, and tell the host.
__device__ void settle(const QapProblem &problem, const Shared &shared, const Plan &plan, const Found &found, int slot,
                       wide_t cost, int it) {
    const int n = problem.n;
    const bool record = cost < found.hall_costs[slot];
    __syncthreads();  // every thread has read hall_costs
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        if (record) found.hall[size_t(slot) * n + i] = shared.best[i];
        atomicAdd(&found.visits[size_t(i) * n + shared.best[i]], 1);  // searches end at the same time
    }
    if (threadIdx.x != 0) return;
    if (record) found.hall_costs[slot] = cost;
    atomicAdd(found.iterations, (unsigned long long)it);
    tell(ordered(cost), found.news);
}

// p, best, partial, until and the tile of one search, ready for its first iteration; returns the cost of p.
__device__ __forceinline__ wide_t open(const QapProblem &problem, const Shared &shared, Tile &tile) {
    const int n = problem.n, reach = n + n / 2 + TU + 2 * TD + 2;
    fill_partial(problem, shared);
    for (int i = threadIdx.x; i < n; i += blockDim.x) shared.best[i] = shared.p[i];
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) shared.until[i] = RECENCY_PAIRS ? 0 : -(i % n) - 1;
    for (int i = threadIdx.x; i < reach; i += blockDim.x) {
        shared.ah[i] = Pair{0, 0};
        if (!SYMMETRIC) shared.ah2[i] = Pair{0, 0};
    }
    __syncthreads();  // partial -> cost, tile
    open_tile(tile, problem, shared);
    return block_cost(problem, shared);
}

// Search number `slot`, from its start to its end.
__device__ void one_search(const QapProblem &problem, const Shared &shared, const Plan &plan, const Found &found,
                           int slot) {
    const int n = problem.n;
    // the same stream in every thread; thread 0 makes the start from another one
    unsigned long long state = plan.seed ^ (0x632be59bd9b4e019ULL * (plan.round * 1048573ULL + slot + 1));
    if (threadIdx.x == 0) start(problem, shared, plan, found, slot, ~state);
    __syncthreads();  // p -> partial
    Tile tile;
    wide_t cost = open(problem, shared, tile), best = cost;
    int r = -2 * n, t = -2 * n, it = 1;
    for (; it <= plan.iterations; ++it) {
        const wide_t room = best - cost;
        const value_t aspire = !plan.tabu ? huge_value() : value_t(room < -wide_t(huge_value()) ? -huge_value() : room);
        const unsigned turn = draw(state);
        const value_t least = tile.live ? update_deltas(tile, shared, n, it, aspire, r, t) : huge_value();
        post(tile, shared, n, least, it, aspire, turn);
        __syncthreads();  // slots, partial -> choose
        Slot move = choose(shared, turn >> 8);
        if (!plan.tabu && !(move.delta < 0)) break;
        if (plan.age > 0 && it % plan.every == 0 && !(move.delta < aspire))
            oldest(problem, shared, below(state, n), it - plan.age, turn, move);
        if (move.delta == huge_value()) {  // everything is tabu: any exchange will do
            move.r = below(state, n);
            move.s = (move.r + 1 + below(state, n - 1)) % n;
            move.delta = exchange(problem, shared, move.r, move.s);
        }
        r = move.r, t = move.s;
        const int from_r = shared.p[r], from_t = shared.p[t];
        cost += move.delta;
        const int first = below(state, plan.tenure_span), second = below(state, plan.tenure_span);
        differences(problem, shared, r, t, from_t, from_r);
        if (cost < best) {
            best = cost;
            for (int i = threadIdx.x; i < n; i += blockDim.x)
                shared.best[i] = i == r ? from_t : i == t ? from_r : shared.p[i];
        }
        if (threadIdx.x == 0)
            forbid(shared, n, r, t, {from_r, it + plan.tenure_least + first}, {from_t, it + plan.tenure_least + second});
        __syncthreads();  // differences, until -> refresh; s.p read by all -> swapped
        refresh(problem, shared, r, t, from_t, from_r);
        // fresh deltas -> update_deltas; old partial read -> add_product
        if (__syncthreads_or((it & 255) == 0 && threadIdx.x == 0 && talk(ordered(best), found.news))) break;
        if (threadIdx.x == 0) {
            shared.p[r] = from_t;
            shared.p[t] = from_r;
        }
        add_product(shared, n);
    }
    __syncthreads();  // best, p -> settle
    settle(problem, shared, plan, found, slot, best, it);
}

// Grid: as many blocks as the device holds at once, each takes every gridDim.x-th start. Block: <= THREADS. Shared:
// dynamic, carve(). Reads: problem, starts, visits. Writes: hall, hall_costs, visits, news. Requires: n >= 2 TD,
// tiles of the block cover n (n / 2) exchanges. Work: 2 n^2 products an iteration, n^3 to start.
extern "C" __global__ void __launch_bounds__(THREADS, 1) search(const __grid_constant__ SearchArgs args) {
    const Plan &plan = args.plan;
    const Found &found = args.found;
    QapProblem problem = args.problem;
    extern __shared__ __align__(16) unsigned char memory[];
    const Shared shared = carve(memory, problem.n, found.stream + blockIdx.x * found.stream_bytes, plan.streamed);
#if MATRICES
    problem = near(problem, shared);
#endif
    for (int slot = blockIdx.x; slot < plan.starts; slot += gridDim.x) {
        // thread 0's answer -> all
        if (slot >= gridDim.x && __syncthreads_or(threadIdx.x == 0 && stopped(found.news))) break;
        one_search(problem, shared, plan, found, slot);
        __syncthreads();  // best, p -> the next start
    }
}
