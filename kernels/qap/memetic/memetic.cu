// A population of tabu searches that evolves on the device, one block per member; a generation is two launches.
//
//   evolve:  a fresh epoch: own <- the start given | the least visited places | chance                        (start)
//            the last of an era: own <- one of the best of its other epochs                                  (elder)
//            else           child <- own crossed with a partner | on the way to it | own, shaken             (child)
//            H, D, cost <- from it                                                                          (open)
//            repeat `length` times:                                                                         (search)
//                D[u,v] -= (x_u - x_v)(y_u - y_v) of the move before                                        (advance_d)
//                (r, q) <- the best move that is not tabu, or beats the best found                          (choose)
//                x, y of this move; D and until of the 2n - 3 pairs that hold r or q, read off H            (touch)
//                H[u][l] += x_u y_l, four moves at a time                                                   (advance_h)
//            own <- child's best, if it is better (or own has waited long enough)
//   judge:   record <- the best of all. The epoch ends after `quiet_limit` generations without a better one, or once few
//            costs differ. Then visits += where every member ended, elders <- the best of them, and another begins
//
// An era is ERA epochs. All but its last begin afresh and know nothing of each other. The last begins with the best
// members of each; its generations are twice as long, and it waits twice as long for a better one. Those of the next
// era are longer by `growth`. Drezner (2005) calls such populations compounded.
//
// The host only queues generations and reads the mailbox: neither waits for the other. A launch reads one half of the
// population and writes the other, member by member. So all depends on the seed alone, but for when the host stops.
//
// Buffers: population [2][members][N] short, cost [2][members] T64, stale [2][members] int, epoch 1 Epoch, record [N]
// short, elders [members][N] short, visits [N][N] int, relay and mailbox as in incumbent.cuh.
// Bound: T = float only where the host has shown that every |D| and |H| and every sum on the way is below 2^24, so that
// it is an exact integer; T = int where they are below 2^30 (parts.py).
//
// docs/notes/qap.md: how fast it is for each n, and what was tried, with its figures.
#include "qap/incumbent.cuh"
#include "qap/memetic/breed.cuh"

// The same answer for every thread. Not inlined: it is seldom called, and its registers are wanted elsewhere.
__device__ __noinline__ bool talk_for_all(T64 best, const News &news) {
    // thread 0's answer -> all
    return __syncthreads_or(threadIdx.x == 0 && talk(ordered(best), news));
}

// How long a facility stays tabu: from `low` on, less than `span` longer.
struct Tenure {
    int low, span;
};

// Tabu search from s.p; leaves the best permutation in shared.best, returns its moves. Two barriers an iteration.
__device__ __forceinline__ int search(Shared &shared, const Board &board, const Matrices &matrices, int iterations,
                                      const Tenure &tenure, const News &news, Random random) {
    T64 cost = shared.cost, best = shared.best_cost;
    bool improved = false;
    int iteration = 1, waiting = 0;
    for (; iteration <= iterations; ++iteration) {
        if ((iteration & 255) == 0 && talk_for_all(best, news)) break;
        const unsigned draw = random.next();
        const T64 lead = best - cost;
        const T aspiration = lead < (T64)(-LEAST) && sizeof(T) == 4 ? (T)(-LEAST) : (T)lead;
        int r, q;
        const T change = choose(shared, board, iteration, aspiration, draw, r, q);
        if (improved) keep_best(shared);  // the state before this move
        improved = false;
        if (change == Limit<T>::top()) {  // all tabu: wait for the first to expire
            still(shared);
            __syncthreads();  // pair -> advance_d
            continue;
        }
        const int until_r = iteration + tenure.low + (int)__umulhi(draw * 747796405u, (unsigned)tenure.span);
        const int until_q = iteration + tenure.low + (int)__umulhi(draw * 2891336453u, (unsigned)tenure.span);
        touch(shared, board, matrices, {r, q, until_r, until_q}, waiting);
        const int a = shared.p[r], b = shared.p[q];
        __syncthreads();  // pair, y, touched D -> advance; H, p and T were read by touch
        if (threadIdx.x == 0) {
            shared.p[r] = b, shared.p[q] = a;
            board.tabu[r * N + a] = until_r, board.tabu[q * N + b] = until_q;
        }
        if (++waiting == BATCH) {
            advance_h(shared, board);
            waiting = 0;
        }
        cost += (T64)change;
        if (cost < best) { best = cost; improved = true; }
    }
    __syncthreads();  // the last exchange of s.p
    if (improved) keep_best(shared);
    if (threadIdx.x == 0) shared.best_cost = best;
    __syncthreads();  // best -> all
    return iteration - 1;
}

// s.p of this member for this generation, by the first warp.
__device__ __noinline__ void begin(
    Shared &shared, const Matrices &matrices, const Recipe &recipe, const Members &all, const Epoch &epoch) {
    const int member = blockIdx.x, members = gridDim.x;
    const short *from = all.population + (long long)all.parity * members * N, *own = from + (long long)member * N;
    const T64 *cost = all.cost + (long long)all.parity * members;
    Random random = {all.seed * 0x9e3779b97f4a7c15ULL + (unsigned long long)member * 0xd1342543de82ef95ULL};
    random.next();
    if (epoch.fresh && epoch.number == 0) {
        for (int i = threadIdx.x; i < N; i += 32) shared.p[i] = own[i];
    } else if (epoch.fresh) {
        const short *old =
            is_last_of_era(epoch.number, members) ? elder(all, epoch.number, member, members) : nullptr;
        if (old)
            for (int i = threadIdx.x; i < N; i += 32) shared.p[i] = old[i];
        else
            start(shared, all.n, all.visits, random);
    } else {
        const int away = 1 + random.below(recipe.reach);
        const int partner = (member + (random.next() & 1 ? away : members - away % members)) % members;
        const int waited = all.stale[(long long)all.parity * members + member];
        child(shared, matrices, recipe, {own, from + (long long)partner * N, cost[partner] == cost[member]}, all.n,
              waited, random);
    }
}

// Grid: members. Block: THREADS. Shared: sizeof(Shared), dynamic.
// Reads: half `parity` of population, cost, stale; epoch, record, elders, visits. Writes: the other half, own member
// only; news; moves of epoch.
// Requires: members >= 1; population holds permutations that leave facilities from n on where they are, see member.cuh.
// Work: length * (N^2 + 3 N^2 / 2) multiply-adds per member.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) evolve(const __grid_constant__ EvolveArgs args) {
    const Members &all = args.all;
    Epoch *state = args.state;
    extern __shared__ __align__(16) unsigned char raw[];
    Shared &shared = *reinterpret_cast<Shared *>(raw);
    const int member = blockIdx.x, members = gridDim.x, thread = threadIdx.x;
    const bool over = state->done;
    if (!over) {
        if (thread < 32) begin(shared, args.m, args.recipe, all, *state);
        __syncthreads();  // begin -> open
        const Board board = lay(shared, all.scratch + member * SCRATCH);
        open(shared, board, args.m, all.n);
        const Random random = {all.seed * 0x2545f4914f6cdd1dULL + (unsigned long long)member * 2 + 1};
        const int done =
            search(shared, board, args.m, state->length, {all.tenure_low, all.tenure_span}, args.news, random);
        if (thread == 0) atomicAdd(&state->moves, (unsigned long long)done);  // all blocks count
    }
    const long long here = (long long)all.parity * members + member, there = here + (1 - 2 * all.parity) * members;
    const T64 own_cost = all.cost[here];
    const int waited = all.stale[here];
    const bool accept = !over && (state->fresh || shared.best_cost < own_cost || waited >= args.recipe.patience);
    for (int i = thread; i < N; i += THREADS)
        all.population[there * N + i] = accept ? shared.best[i] : all.population[here * N + i];
    if (thread == 0) {
        all.cost[there] = accept ? shared.best_cost : own_cost;
        all.stale[there] = accept ? 0 : waited + 1;
    }
}

constexpr int MARKS = 65536;

// The least cost, the first member that has it, and how many costs differ (up to collisions), to every thread.
__device__ int survey(const T64 *cost, int members, unsigned *marks, T64 &least, int &different) {
    __shared__ T64 of_warp[32];
    __shared__ int first, count;
    T64 mine = cost[0];
    for (int k = threadIdx.x; k < MARKS / 32; k += JUDGES) marks[k] = 0;
    for (int k = threadIdx.x; k < members; k += JUDGES) mine = cost[k] < mine ? cost[k] : mine;
    mine = warp_min(mine);
    if (threadIdx.x == 0) first = members, count = 0;
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();  // of_warp, marks, first, count -> all
    least = warp_min(of_warp[threadIdx.x % 32]);
    for (int k = threadIdx.x; k < members; k += JUDGES) {
        const unsigned slot = (unsigned)((unsigned long long)ordered(cost[k]) * 0x9e3779b97f4a7c15ULL >> 48);
        // atomics: whose mark is first; how many marks; of several members the first
        if (!(atomicOr(&marks[slot / 32], 1u << slot % 32) >> slot % 32 & 1)) atomicAdd(&count, 1);
        if (cost[k] == least) atomicMin(&first, k);
    }
    __syncthreads();  // first, count -> all
    different = count;
    return first;
}

// The best members of an epoch go on, the place in an era of which is given. Of equal costs the first members.
__device__ void keep_elders(const Members &all, int place, int members) {
    const int count = elders_of_one(members);
    const T64 *cost = all.cost + (long long)all.parity * members;
    const short *here = all.population + (long long)all.parity * members * N;
    for (int k = threadIdx.x; k < members; k += JUDGES) {
        int better = 0;
        for (int j = 0; j < members; ++j) better += cost[j] < cost[k] || (cost[j] == cost[k] && j < k);
        if (better >= count) continue;
        short *there = all.elders + ((long long)place * count + better) * N;
        for (int i = 0; i < N; ++i) there[i] = here[(long long)k * N + i];
    }
}

// The next epoch after one that is over. One thread.
__device__ void go_on(Epoch &epoch, int members) {
    const bool ends_era = members < LEAST_MEMBERS || is_last_of_era(epoch.number, members);
    if (ends_era) epoch.base = (int)fminf((float)epoch.longest, epoch.growth * (float)epoch.base);
    ++epoch.number;
    epoch.length = is_last_of_era(epoch.number, members) ? min(epoch.longest, 2 * epoch.base) : epoch.base;
}

// Grid: 1. Block: JUDGES. Shared: marks and words, static. Reads: half `parity` of population and cost. Writes: epoch,
// record, elders, visits, mailbox.
// Requires: runs alone, after `evolve`.
// Work: members comparisons; at the end of an epoch their square, and members * N increments.
extern "C" __global__ void __launch_bounds__(JUDGES) judge(const __grid_constant__ JudgeArgs args) {
    const Members &all = args.all;
    const int members = args.members;
    __shared__ unsigned marks[MARKS / 32];
    __shared__ bool over;
    Epoch epoch = *args.state;
    if (epoch.done) return;
    const int number = epoch.number;
    const bool is_last = is_last_of_era(number, members);
    const short *here = all.population + (long long)all.parity * members * N;
    T64 least;
    int different;
    const int first = survey(all.cost + (long long)all.parity * members, members, marks, least, different);
    if (least < epoch.best)
        for (int i = threadIdx.x; i < N; i += JUDGES) all.record[i] = here[(long long)first * N + i];
    if (threadIdx.x == 0) {
        const bool better = epoch.fresh || least < epoch.least;
        epoch.quiet = better ? 0 : epoch.quiet + 1;
        epoch.least = better ? least : epoch.least;
        if (least < epoch.best) {
            epoch.best = least;
            tell(ordered(least), args.news);
        }
        over = epoch.quiet >= epoch.quiet_limit * (is_last ? 2 : 1) ||
               different < min(members, max(2, min(members, MARKS) / 8));
        epoch.fresh = over;
        epoch.done = epoch.best <= epoch.goal;
        if (over) go_on(epoch, members);
        ++epoch.generation;
        *args.state = epoch;
    }
    __syncthreads();  // over -> all
    if (!over) return;
    if (members >= LEAST_MEMBERS && !is_last) keep_elders(all, number % ERA, members);
    for (long long k = threadIdx.x; k < (long long)members * N; k += JUDGES)
        atomicAdd(&all.visits[k % N * N + here[k]], 1);  // many members end at one place
}

// Grid: 1. Block: 1. Shared: none. Reads: nothing. Writes: out[0] = bytes of Shared, out[1] = SCRATCH. Requires: nothing.
// Work: none.
extern "C" __global__ void layout(long long *out) {
    out[0] = sizeof(Shared);
    out[1] = SCRATCH;
}
