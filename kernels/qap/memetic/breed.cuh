// How a member begins a generation: a child of two parents, a shaken copy of one, or a fresh start.
// Facilities from n on are at home in every member: a child has them from its parents, a fresh start from `start`.
#include "qap/memetic/member.cuh"

// Positions where both parents agree stay, the others come from either, the rest is drawn. One thread, into s.p.
__device__ void cross(Shared &shared, const short *own, const short *partner, Random &random) {
    int open = 0;
    for (int i = 0; i < N; ++i) shared.mark[i] = 0;
    for (int i = 0; i < N; ++i) {
        shared.p[i] = own[i] == partner[i] ? own[i] : (short)-1;
        if (shared.p[i] >= 0) shared.mark[shared.p[i]] = 1;
    }
    const int turn = random.below(N);
    for (int step = 0; step < N; ++step) {
        const int i = step + turn < N ? step + turn : step + turn - N;
        if (shared.p[i] >= 0) continue;
        short first = own[i], second = partner[i];
        if (random.next() & 1) { const short keep = first; first = second; second = keep; }
        const short chosen = !shared.mark[first] ? first : !shared.mark[second] ? second : (short)-1;
        shared.p[i] = chosen;
        if (chosen >= 0) shared.mark[chosen] = 1;
        else shared.other[open++] = (short)i;
    }
    for (int k = 0; k < N && open; ++k) {
        if (shared.mark[k]) continue;
        const int pick = random.below(open);
        shared.p[shared.other[pick]] = (short)k;
        shared.other[pick] = shared.other[--open];
    }
}

// shared.other <- a random order of n facilities, whose first `count` places are drawn. One thread.
__device__ void draw_order(Shared &shared, int n, int count, Random &random) {
    for (int i = 0; i < n; ++i) shared.other[i] = (short)i;
    for (int k = 0; k < count && k + 1 < n; ++k) {
        const int pick = k + random.below(n - k);
        const short keep = shared.other[k];
        shared.other[k] = shared.other[pick];
        shared.other[pick] = keep;
    }
}

// A cycle through `strength` of n positions: the shortest move that no single exchange undoes. One thread.
__device__ void shake(Shared &shared, int n, int strength, Random &random) {
    if (strength < 2) return;
    draw_order(shared, n, strength, random);
    const short first = shared.p[shared.other[0]];
    for (int k = 0; k + 1 < strength; ++k) shared.p[shared.other[k]] = shared.p[shared.other[k + 1]];
    shared.p[shared.other[strength - 1]] = first;
}

// Path relinking: from s.p half of the way to `partner`. Each step is the best of up to 32 exchanges that bring a
// facility home. One warp.
__device__ void relink(Shared &shared, const Matrices &matrices, const short *partner, Random &random) {
    const int lane = threadIdx.x % 32;
    int apart = 0;
    for (int i = lane; i < N; i += 32) {
        shared.mark[shared.p[i]] = (short)i;
        apart += shared.p[i] != partner[i];
    }
    apart = __reduce_add_sync(FULL_WARP, apart);
    for (int step = apart / 2; step > 0; --step) {
        __syncwarp();  // p, mark -> all lanes
        int u = (random.below(N) + lane * ((N + 31) / 32)) % N, tries = 0;
        while (tries < N && shared.p[u] == partner[u]) {
            u = u + 1 < N ? u + 1 : 0;
            ++tries;
        }
        const int v = shared.mark[partner[u]];
        const T change = u != v ? exchange(matrices, shared.p, u, v) : Limit<T>::top();
        const T least = redux_min(change);
        if (least == Limit<T>::top()) break;
        __syncwarp();  // p was read by all lanes
        if (lane == __ffs(__ballot_sync(FULL_WARP, change == least)) - 1) {
            const short keep = shared.p[u];
            shared.p[u] = shared.p[v];
            shared.p[v] = keep;
            shared.mark[shared.p[u]] = (short)u;
            shared.mark[shared.p[v]] = (short)v;
        }
    }
    __syncwarp();  // the last exchange -> all lanes
}

// Long-term memory, by one warp: facilities, in random order, go to the location still free where they were found
// least often.
__device__ void unvisited(Shared &shared, int n, const int *visits, Random &random) {
    const int lane = threadIdx.x % 32;
    if (lane == 0) draw_order(shared, n, n, random);
    for (int l = lane; l < n; l += 32) shared.mark[l] = 0;
    for (int k = 0; k < n; ++k) {
        __syncwarp();  // order, mark -> all lanes
        const int i = shared.other[k];
        const unsigned salt = random.next();
        unsigned fewest = 0xffffffffu;
        int at = 0;
        for (int l = lane; l < n; l += 32) {
            const unsigned seen = (unsigned)min(visits[i * N + l], (1 << 20) - 1);
            const unsigned key = seen << 11 | ((salt ^ l * 2654435761u) >> 21);  // ties fall at random
            if (!shared.mark[l] && key < fewest) { fewest = key; at = l; }
        }
        const unsigned least = __reduce_min_sync(FULL_WARP, fewest);
        if (lane == __ffs(__ballot_sync(FULL_WARP, fewest == least)) - 1) {
            shared.p[i] = (short)at;
            shared.mark[at] = 1;
        }
    }
    __syncwarp();  // the last place -> all lanes
}

// Two members of the population, `own` in this block's place.
struct Parents {
    const short *own, *partner;
    bool twin;  // of equal cost: taken for the same permutation
};

// A child of `own` and `partner` in s.p, by one warp. A perturbation grows with the generations that its member waited.
__device__ void child(Shared &shared, const Matrices &matrices, const Recipe &recipe, const Parents &of, int n,
                      int waited, Random &random) {
    const short *own = of.own, *partner = of.partner;
    const bool twin = of.twin;
    const int lane = threadIdx.x % 32, kind = (int)(random.next() & 255);
    if (!twin && kind < recipe.cross) {
        if (lane == 0) cross(shared, own, partner, random);
        return;
    }
    for (int i = lane; i < N; i += 32) shared.p[i] = own[i];
    __syncwarp();  // p -> relink, shake
    if (!twin && kind < recipe.cross + recipe.relink) {
        relink(shared, matrices, partner, random);
        return;
    }
    const int span = 1 + recipe.strength_span * (1 + min(waited, recipe.patience)) / (1 + recipe.patience / 2);
    if (lane == 0) shake(shared, n, min(recipe.strength_low + random.below(span), n), random);
}

// A fresh start in s.p: the least visited places, or chance. One warp.
__device__ void start(Shared &shared, int n, const int *visits, Random &random) {
    const int lane = threadIdx.x % 32, kind = random.below(4);
    for (int i = n + lane; i < N; i += 32) shared.p[i] = (short)i;
    if (kind == 0) {
        unvisited(shared, n, visits, random);
    } else if (lane == 0) {
        draw_order(shared, n, n, random);
        for (int i = 0; i < n; ++i) shared.p[i] = shared.other[i];
    }
    __syncwarp();  // p -> all lanes
}

// How many of each epoch's members go on to the last epoch of an era.
__device__ int elders_of_one(int members) { return members / (ERA - 1); }

// Whether that epoch begins with the best of those before it.
__device__ bool is_last_of_era(int number, int members) {
    return members >= LEAST_MEMBERS && number % ERA == ERA - 1;
}

// How a member begins such an epoch: where one of an earlier epoch ended, or in every second era the last member at the
// best so far. Null where it begins afresh.
__device__ const short *elder(const Members &all, int number, int member, int members) {
    if (member == members - 1 && number / ERA % 2) return all.record;
    const bool is_there = member < (ERA - 1) * elders_of_one(members);
    return is_there ? all.elders + (long long)member * N : nullptr;
}
