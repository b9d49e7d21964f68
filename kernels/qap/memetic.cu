// A population of tabu searches that evolves on the device, one block per member; a generation is two launches.
//
//   evolve:  a fresh epoch: own <- the start given | the best so far | the least visited places | chance      (start)
//            else           child <- own crossed with a partner | on the way to it | own, shaken             (child)
//            H, D, cost <- from it                                                                          (open)
//            repeat `length` times:                                                                         (search)
//                (r, s) <- the best move that is not tabu, or beats the best found                          (choose)
//                stage    x_u = A[r][u] - A[s][u],  y_u = B[ps][pu] - B[pr][pu], old rows and columns r, s of H
//                touch    D and expiry of the 2n - 3 pairs that hold r or s, from the staged rows and columns
//                advance  H[u][v] += x_u y_v  (columns r and s change places);  D[u,v] -= (x_u - x_v)(y_u - y_v)
//            own <- child's best, if it is better (or own has waited long enough)
//   judge:   record <- the best of all; the epoch ends after `quiet_limit` generations without a better one, or once
//            few costs are left that differ: then visits += where everybody ended, and longer generations begin afresh
//
// The host only queues generations and reads the mailbox: neither waits for the other. Everything depends on the seed
// alone: a launch reads one half of the population and writes the other, member by member; `stop` is the exception.
//
// Buffers: population [2][members][N] short, cost [2][members] T64, stale [2][members] int, epoch 1 Epoch, record [N]
// short, visits [N][N] int, least 1 int64 (ordered), mailbox [4] int64 of the host: stop, least, generations, epochs.
// Bound: T = float only where the host has shown that every |D| and |H| < 2^24, so that every sum is an exact integer
// (the chip adds floats twice as fast as integers); T = int where every |D| < 2^30 (H may wrap: only sums that fit
// leave it).
//
// Measured on an H200, tai100a, 264 members: 3.5 to 4 us a move, 3.2 to 3.7e11 moves a second. A warp issues some 650
// instructions a move, 250 of them the arithmetic above; barriers are a fifth of the samples, global memory nothing
// (L1 hits 99.9%). Tried and dropped: one or two threads a column at n = 100 (2.6e11 and 3.2e11: too few warps to hide
// latency), 8 to 10 (2.5e11: the fixed part of every warp); float is no faster than int, as issue slots are the limit.
#include "qap/incumbent.cuh"
#include "qap/breed.cuh"

enum Mail { MAIL_STOP, MAIL_LEAST, MAIL_GENERATIONS, MAIL_EPOCHS };

// How the whole population stands; written by `judge`, and at first by the host.
struct Epoch {
    T64 best, least, goal;  // of all epochs, of this one; the goal ends everything
    unsigned long long moves;
    float growth;
    int length, longest, quiet, quiet_limit, number, generation, fresh, done;
};

// Where a better cost is told.
struct News {
    long long *least;
    volatile long long *mailbox;
};

struct Members {
    short *population, *record;
    T64 *cost;
    int *stale, *visits, *tabu;
    int parity, tenure_low, tenure_span;
    unsigned long long seed;
};

// Now and then: tell a better cost, and ask whether to stop.
__device__ __noinline__ bool talk(T64 best, const News &news) {
    if (threadIdx.x == 0 && ordered(best) < *(volatile long long *)news.least)
        tell(ordered(best), news.least, news.mailbox + MAIL_LEAST);
    return __syncthreads_or(threadIdx.x == 0 && news.mailbox[MAIL_STOP] != 0);
}

// Tabu search from s.p; leaves the best permutation in s.best, returns its moves. Three barriers an iteration.
__device__ __forceinline__ int search(Shared &s, Mine &mine, const Matrices &m, int *tabu, int iterations,
                                      int tenure_low, int tenure_span, const News &news, Random random) {
    T64 cost = s.cost, best = s.best_cost;
    bool improved = false;
    int iteration = 1;
    for (; iteration <= iterations; ++iteration) {
        if ((iteration & 255) == 0 && talk(best, news)) break;
        const unsigned draw = random.next();
        const T64 lead = best - cost;
        const T aspiration = lead < (T64)(-LEAST) && sizeof(T) == 4 ? (T)(-LEAST) : (T)lead;
        int r, q;
        const T change = choose(s, mine, iteration, aspiration, draw, r, q);
        if (improved && threadIdx.x < N) s.best[threadIdx.x] = s.p[threadIdx.x];  // the state before this move
        improved = false;
        if (change == Limit<T>::top()) {  // all tabu: wait for the first to expire
            __syncthreads();              // candidates were read before they are written again
            continue;
        }
        stage(s, mine, m, r, q);
        if (threadIdx.x == 0) {  // read by touch after the barrier
            tabu[r * N + s.p[r]] = iteration + tenure_low + (int)__umulhi(draw * 747796405u, (unsigned)tenure_span);
            tabu[q * N + s.p[q]] = iteration + tenure_low + (int)__umulhi(draw * 2891336453u, (unsigned)tenure_span);
        }
        __syncthreads();  // stage -> touch, advance_h
        touch(s, m, tabu, r, q);
        advance_h(s, mine, r, q);
        __syncthreads();  // touch -> advance_d; s.p was read by touch
        if (threadIdx.x == 0) { const short keep = s.p[r]; s.p[r] = s.p[q]; s.p[q] = keep; }
        advance_d(s, mine, r, q);
        cost += (T64)change;
        if (cost < best) { best = cost; improved = true; }
    }
    __syncthreads();  // the last exchange of s.p
    if (improved && threadIdx.x < N) s.best[threadIdx.x] = s.p[threadIdx.x];
    if (threadIdx.x == 0) s.best_cost = best;
    __syncthreads();
    return iteration - 1;
}

// s.p of this member for this generation, by the first warp.
__device__ __noinline__ void begin(
    Shared &s, const Matrices &m, const Recipe &recipe, const Members &all, const Epoch &epoch) {
    const int member = blockIdx.x, members = gridDim.x;
    const short *from = all.population + (long long)all.parity * members * N, *own = from + (long long)member * N;
    const T64 *cost = all.cost + (long long)all.parity * members;
    Random random = {all.seed * 0x9e3779b97f4a7c15ULL + (unsigned long long)member * 0xd1342543de82ef95ULL};
    random.next();
    if (epoch.fresh && epoch.number == 0) {
        for (int i = threadIdx.x; i < N; i += 32) s.p[i] = own[i];
    } else if (epoch.fresh) {
        start(s, all.record, all.visits, member == 0 && (all.seed & 1), random);
    } else {
        const int away = 1 + random.below(recipe.reach);
        const int partner = (member + (random.next() & 1 ? away : members - away % members)) % members;
        const int waited = all.stale[(long long)all.parity * members + member];
        child(s, m, recipe, own, from + (long long)partner * N, cost[partner] == cost[member], waited, random);
    }
}

// Grid: members. Block: THREADS. Shared: sizeof(Shared), dynamic.
// Reads: half `parity` of population, cost, stale; epoch, record, visits. Writes: the other half, own member only;
// news.
// Requires: members >= 1; population holds permutations.
// Work: length * (N^2 + 3 N^2 / 2) multiply-adds per member.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
evolve(Matrices m, Members all, Recipe recipe, Epoch *state, News news) {
    extern __shared__ __align__(16) unsigned char raw[];
    Shared &s = *reinterpret_cast<Shared *>(raw);
    const int member = blockIdx.x, members = gridDim.x, t = threadIdx.x, group = t / N;
    const bool over = state->done;
    if (!over) {
        int *tabu = TABU_SHARED ? s.tabu : all.tabu + (long long)member * N * N;
        if (t < 32) begin(s, m, recipe, all, *state);
        Mine mine;
        mine.column = t % N;
        mine.first_row = group * R;
        mine.first_distance = 1 + group * K;
        mine.active = t < N * GROUPS;
        __syncthreads();  // begin -> open
        open(s, mine, m, tabu);
        const Random random = {all.seed * 0x2545f4914f6cdd1dULL + (unsigned long long)member * 2 + 1};
        const int done = search(s, mine, m, tabu, state->length, all.tenure_low, all.tenure_span, news, random);
        if (t == 0) atomicAdd(&state->moves, (unsigned long long)done);  // all blocks count
    }
    const long long here = (long long)all.parity * members + member, there = here + (1 - 2 * all.parity) * members;
    const T64 own_cost = all.cost[here];
    const int waited = all.stale[here];
    const bool accept = !over && (state->fresh || s.best_cost < own_cost || waited >= recipe.patience);
    for (int i = t; i < N; i += THREADS)
        all.population[there * N + i] = accept ? s.best[i] : all.population[here * N + i];
    if (t == 0) {
        all.cost[there] = accept ? s.best_cost : own_cost;
        all.stale[there] = accept ? 0 : waited + 1;
    }
}

constexpr int JUDGES = 1024, MARKS = 65536;

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

// Grid: 1. Block: JUDGES. Reads: half `parity` of population and cost. Writes: epoch, record, visits, mailbox.
// Requires: runs alone, after `evolve`.
// Work: members comparisons, members * N increments at the end of an epoch.
extern "C" __global__ void __launch_bounds__(JUDGES)
judge(Members all, Epoch *state, News news, int members) {
    __shared__ unsigned marks[MARKS / 32];
    __shared__ bool over;
    Epoch epoch = *state;
    if (epoch.done) return;
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
            tell(ordered(least), news.least, news.mailbox + MAIL_LEAST);
        }
        over = epoch.quiet >= epoch.quiet_limit || different < min(members, max(2, min(members, MARKS) / 8));
        epoch.fresh = over;
        epoch.done = epoch.best <= epoch.goal;
        epoch.number += over;
        if (over) epoch.length = (int)fminf((float)epoch.longest, epoch.growth * (float)epoch.length);
        news.mailbox[MAIL_EPOCHS] = epoch.number;
        news.mailbox[MAIL_GENERATIONS] = ++epoch.generation;
        *state = epoch;
    }
    __syncthreads();  // over -> all
    if (!over) return;
    for (long long k = threadIdx.x; k < (long long)members * N; k += JUDGES)
        atomicAdd(&all.visits[k % N * N + here[k]], 1);  // many members end at one place
}

// Grid: 1. Block: 1. Writes: out[0] = bytes of Shared, out[1] = THREADS.
extern "C" __global__ void layout(int *out) {
    out[0] = (int)sizeof(Shared);
    out[1] = THREADS;
}
