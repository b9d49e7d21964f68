// Independent searches for the quadratic assignment, one block each: 2-opt to a local optimum, or robust tabu search.
// The two systems of Novoa and Qasem (2019), with O(1) deltas in the place of their O(n) ones.
//
//   search:                                             one launch, one block per start
//     start               the host's permutation | in later rounds, the least visited places (frequency memory)
//     fill_partial        partial[u, l] = linear[u, l] + sum_k flow[u, k] distance[l, p[k]] (+ transposed products)
//     repeat:
//       sweep             delta[u, v] += (a_u - a_v)(h_u - h_v) in registers; the least that is allowed
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
// Recency is kept by facility and location (until[u, l]: u must not return to l before), which is stricter than the
// seed's matrix of exchanged pairs: on tai60a, 4e6 iterations, 0.34% above best known against 0.60% by pairs.
//
// Buffers (per block): partial n x stride value_t, until n x n int32, ah 3n/2+ pairs, difference and fresh vectors,
// p, best: shared memory; until, then partial, in global memory where they do not fit (`streamed` 1, 2).
// Global: flow, distance and transposes, linear n x n value_t; starts, hall B x n int32; hall_costs B wide_t;
// visits n x n int32. stop, least: mapped host memory.
//
// Overflow: value_t is int only when form.py proved that every delta fits; sums wrap modulo 2^32 on the way.
// Sources: Taillard 1991 (deltas, random tenure, aspiration); Novoa and Qasem 2019, sections 4.2 to 4.4, 5.1, 5.2.
// Tried on an H200 at tai100a, 264 searches: tile 4 x 5 (256 threads) 3.0e11 exchanges/s, 4 x 10 2.2e11, 2 x 5 (512
// threads, one block per multiprocessor) 2.3e11, 4 x 3 2.1e11.
#ifndef VALUE
#define VALUE int
#endif
#ifndef TU
#define TU 4
#define TD 5
#endif
#ifndef SYMMETRIC
#define SYMMETRIC 1
#endif
#ifndef MATRICES  // 1: flow and distance in shared memory, the seed's section 5.1
#define MATRICES 0
#endif
#if MATRICES
#define READ(x) (x)
#else
#define READ(x) __ldg(&(x))
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
typedef VALUE value_t;
constexpr int REPEATED = 0x7fffffff;  // the tabu limit of an exchange that another place of the tiling owns
constexpr int PAIRS = TU * TD;
constexpr int REACH = TU + TD - 1;
constexpr int VEC = 16 / sizeof(value_t);
constexpr bool FLOATING = value_t(0.5) != value_t(0);
template <bool floating> struct Wide { typedef long long type; };
template <> struct Wide<true> { typedef double type; };
typedef Wide<FLOATING>::type wide_t;

struct Pair { value_t a, h; };
struct alignas(16) Quad { value_t x[VEC]; };
struct Slot { value_t delta; int r, s; };

struct Problem {
    const value_t *flow, *flow_t, *distance, *distance_t, *linear;
    int n;
};

struct Shared {
    value_t *partial;  // n x stride
    Pair *ah, *ah2;    // differences of flow and distance by facility, repeated cyclically; ah2 only if asymmetric
    value_t *b, *b2;   // differences of distance by location, stride long
    value_t *of_r, *of_s;  // fresh deltas
    Slot *slots;       // one per warp
    int *p, *best, *scratch;
    int *until;        // n x n: facility u must not return to location l before this iteration
    int stride;
};

__device__ __forceinline__ value_t huge_value() {
    if (FLOATING) return value_t(1e308);
    return sizeof(value_t) == 4 ? value_t(0x7fffffff) : value_t(0x7fffffffffffffffLL);
}

// splitmix64: the k-th draw of (seed, round, slot), 32 bits.
__device__ __forceinline__ unsigned draw(unsigned long long &state) {
    unsigned long long z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return unsigned((z ^ (z >> 31)) >> 32);
}
__device__ __forceinline__ int below(unsigned long long &state, int n) {
    return int(__umulhi(draw(state), unsigned(n)));
}

__device__ __forceinline__ int least_of_warp(int x) { return __reduce_min_sync(FULL_WARP, x); }
__device__ __forceinline__ long long least_of_warp(long long x) { return warp_min(x); }
__device__ __forceinline__ double least_of_warp(double x) { return warp_min(x); }

__device__ __forceinline__ void add_to(double *total, double x) { atomicAdd(total, x); }
__device__ __forceinline__ void add_to(long long *total, long long x) {
    atomicAdd(reinterpret_cast<unsigned long long *>(total), (unsigned long long)x);
}

// The first lane at or after `turn` (cyclically) whose predicate holds: ties are broken by turn, not by index.
__device__ __forceinline__ int first_lane(unsigned ballot, int turn) {
    const unsigned turned = __funnelshift_r(ballot, ballot, turn & 31);
    return (__ffs(turned) - 1 + turn) & 31;
}

// `stream`: this block's part of global memory for what does not fit on the chip (null: all of it does).
__device__ Shared carve(unsigned char *memory, int n, unsigned char *stream, int streamed) {
    Shared s;
    const int reach = n + n / 2 + TU + 2 * TD + 2;
    s.stride = (n + VEC - 1) / VEC * VEC;
    if (s.stride % (32 * 4 / int(sizeof(value_t))) == 0) s.stride += VEC;  // else every row starts in bank 0
    const size_t partial_bytes = size_t(n) * s.stride * sizeof(value_t), until_bytes = (size_t(n) * n + 3) / 4 * 16;
    s.partial = reinterpret_cast<value_t *>(streamed >= 2 ? stream : memory);
    if (streamed < 2) memory += partial_bytes;
    s.until = reinterpret_cast<int *>(streamed >= 1 ? stream + (streamed >= 2 ? partial_bytes : 0) : memory);
    if (streamed < 1) memory += until_bytes;
    s.b = reinterpret_cast<value_t *>(memory);
    s.b2 = s.b + s.stride;
    s.ah = reinterpret_cast<Pair *>(s.b2 + (SYMMETRIC ? 0 : s.stride));
    s.ah2 = s.ah + reach;
    s.slots = reinterpret_cast<Slot *>(s.ah2 + (SYMMETRIC ? 0 : reach));
    s.of_r = reinterpret_cast<value_t *>(s.slots + 32);
    s.of_s = s.of_r + n;
    s.p = reinterpret_cast<int *>(s.of_s + n);
    s.best = s.p + n;
    s.scratch = s.best + n;
    return s;
}

// Long-term memory: send facilities, in random order, to the least visited location still free.
__device__ void unvisited(int *p, const int *visits, int *used, int n, unsigned long long &state) {
    for (int i = 0; i < n; ++i) used[i] = 0;
    const int from = below(state, n), step = 1;
    for (int k = 0; k < n; ++k) {
        const int i = (from + k * step) % n;
        int at = -1, fewest = 0x7fffffff;
        const int start = below(state, n);
        for (int m = 0; m < n; ++m) {
            const int l = (start + m) % n;
            const int seen = visits[size_t(i) * n + l];
            if (!used[l] && seen < fewest) { fewest = seen; at = l; }
        }
        p[i] = at;
        used[at] = 1;
    }
}

__device__ void fill_partial(const Problem &q, const Shared &s) {
    const int n = q.n;
    for (int cell = threadIdx.x; cell < (n + 3) / 4 * n; cell += blockDim.x) {
        const int u = cell / n * 4, l = cell % n;
        value_t sum[4];
        for (int i = 0; i < 4; ++i) sum[i] = u + i < n ? q.linear[size_t(u + i) * n + l] : value_t(0);
        for (int k = 0; k < n; ++k) {
            const value_t d = READ(q.distance_t[size_t(s.p[k]) * n + l]);
            for (int i = 0; i < 4; ++i)
                if (u + i < n) sum[i] += READ(q.flow[size_t(u + i) * n + k]) * d;
            if (!SYMMETRIC) {
                const value_t e = READ(q.distance[size_t(s.p[k]) * n + l]);
                for (int i = 0; i < 4; ++i)
                    if (u + i < n) sum[i] += READ(q.flow_t[size_t(u + i) * n + k]) * e;
            }
        }
        for (int i = 0; i < 4; ++i)
            if (u + i < n) s.partial[(u + i) * s.stride + l] = sum[i];
    }
}

// flow and distance between facilities u and v as they sit now and as they would after exchange (u, v).
__device__ __forceinline__ value_t between(const Problem &q, int u, int v, int pu, int pv) {
    const int n = q.n;
    const value_t f = READ(q.flow[u * n + v]), d = READ(q.distance[pu * n + pv]);
    if (SYMMETRIC) return (f + f) * d;
    return (f + READ(q.flow[v * n + u])) * (d + READ(q.distance[pv * n + pu]));
}

__device__ wide_t block_cost(const Problem &q, const Shared &s) {
    __shared__ wide_t total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    for (int u = threadIdx.x; u < q.n; u += blockDim.x) {
        const wide_t line = q.linear[size_t(u) * q.n + s.p[u]];
        const wide_t twice = wide_t(s.partial[u * s.stride + s.p[u]]) - line;
        add_to(&total, twice + 2 * line);  // twice the pairs of u; summed over u that is even
    }
    __syncthreads();
    const wide_t sum = total;
    __syncthreads();
    return sum / 2;
}

// The tile of exchanges of one thread, and what it knows of them.
struct Tile {
    value_t delta[PAIRS];
    int until[PAIRS];
    int u0, v0;  // first facilities of its rows and of its reach
    bool live;
};

__device__ __forceinline__ int wrap(int i, int n) { return i < n ? i : i - n; }

__device__ __forceinline__ value_t exchange(const Problem &q, const Shared &s, int u, int v) {
    const int pu = s.p[u], pv = s.p[v];
    const value_t *x = s.partial + u * s.stride, *y = s.partial + v * s.stride;
    return x[pv] + y[pu] - x[pu] - y[pv] + between(q, u, v, pu, pv);
}

__device__ void open_tile(Tile &tile, const Problem &q, const Shared &s) {
    const int n = q.n, across = (n / 2 + TD - 1) / TD;
    const int row = threadIdx.x / across, d0 = threadIdx.x % across * TD + 1;
    tile.u0 = row * TU;
    tile.live = tile.u0 < n;
    tile.v0 = (tile.u0 + d0) % n;
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        const int i = k / TD, d = d0 + k % TD, u = tile.u0 + i;
        const bool own = u < n && (2 * d < n || (2 * d == n && u < d));
        tile.until[k] = own ? 0 : REPEATED;
        tile.delta[k] = tile.live ? exchange(q, s, wrap(u, n), (u + d) % n) : huge_value();
    }
}

// Add the pending product to every delta, put the fresh deltas and limits of r and s in, and find the least allowed.
__device__ __forceinline__ value_t sweep(Tile &tile, const Shared &s, int n, int it, value_t aspire, int r, int t) {
    Pair u[TU], v[REACH];
#pragma unroll
    for (int i = 0; i < TU; ++i) u[i] = s.ah[tile.u0 + i];
#pragma unroll
    for (int j = 0; j < REACH; ++j) v[j] = s.ah[tile.v0 + j];
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        const int i = k / TD, j = i + k % TD;
        tile.delta[k] += (u[i].a - v[j].a) * (u[i].h - v[j].h);
    }
    if constexpr (!SYMMETRIC) {
#pragma unroll
        for (int i = 0; i < TU; ++i) u[i] = s.ah2[tile.u0 + i];
#pragma unroll
        for (int j = 0; j < REACH; ++j) v[j] = s.ah2[tile.v0 + j];
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) {
            const int i = k / TD, j = i + k % TD;
            tile.delta[k] += (u[i].a - v[j].a) * (u[i].h - v[j].h);
        }
    }
    const int ru = r < tile.u0 ? r - tile.u0 + n : r - tile.u0, tu = t < tile.u0 ? t - tile.u0 + n : t - tile.u0;
    const int rv = r < tile.v0 ? r - tile.v0 + n : r - tile.v0, tv = t < tile.v0 ? t - tile.v0 + n : t - tile.v0;
    if (unsigned(ru) < TU || unsigned(tu) < TU || unsigned(rv) < REACH || unsigned(tv) < REACH) {
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) {
            const int i = k / TD, j = i + k % TD;
            const bool of_u = i == ru || i == tu;
            if (of_u || j == rv || j == tv) {
                const int other = of_u ? wrap(tile.v0 + j, n) : wrap(tile.u0 + i, n);
                const bool with_r = of_u ? i == ru : j == rv;
                tile.delta[k] = (with_r ? s.of_r : s.of_s)[other];
                if (tile.until[k] != REPEATED) tile.until[k] = s.scratch[(with_r ? 0 : n) + other];
            }
        }
    }
    value_t least = huge_value();
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        const bool allowed = tile.until[k] < it || tile.delta[k] < aspire;
        if (allowed && tile.delta[k] < least) least = tile.delta[k];
    }
    return least;
}

// One slot per warp: its least allowed exchange.
__device__ __forceinline__ void post(const Tile &tile, const Shared &s, int n, value_t least, int it, value_t aspire, unsigned turn) {
    const value_t of_warp = least_of_warp(least);
    const int lane = threadIdx.x & 31;
    const unsigned ballot = __ballot_sync(FULL_WARP, least == of_warp);
    if (lane != first_lane(ballot, turn)) return;
    Slot slot{of_warp, 0, 1};
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        if (tile.delta[k] == of_warp && (tile.until[k] < it || of_warp < aspire)) {
            slot.r = wrap(tile.u0 + k / TD, n);
            slot.s = wrap(tile.v0 + k / TD + k % TD, n);
        }
    }
    s.slots[threadIdx.x >> 5] = slot;
}

// The least of all warps, the same in every thread.
__device__ __forceinline__ Slot choose(const Shared &s, unsigned turn) {
    const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
    const value_t mine = lane < warps ? s.slots[lane].delta : huge_value();
    const value_t least = least_of_warp(mine);
    return s.slots[first_lane(__ballot_sync(FULL_WARP, mine == least && lane < warps), turn)];
}

// Taillard's second rule: an exchange of facility u whose two arrivals were last forbidden before `before`.
__device__ __forceinline__ bool oldest(const Problem &q, const Shared &s, int u, int before, unsigned turn, Slot &slot) {
    __shared__ int found;
    const int n = q.n;
    if (threadIdx.x == 0) found = 0x7fffffff;
    __syncthreads();
    for (int v = threadIdx.x; v < n; v += blockDim.x)
        if (v != u && s.until[u * n + s.p[v]] < before && s.until[v * n + s.p[u]] < before)
            atomicMin(&found, int((v + turn) % n) << 16 | v);  // settles which of several is taken
    __syncthreads();
    const int v = found;
    if (v == 0x7fffffff) return false;
    slot.r = min(u, v & 0xffff);
    slot.s = max(u, v & 0xffff);
    slot.delta = exchange(q, s, slot.r, slot.s);
    return true;
}

// Difference vectors of exchange (r, t) with p[r], p[t] as they will be; the swap itself waits for `refresh`.
__device__ __forceinline__ void differences(const Problem &q, const Shared &s, int r, int t, int pr, int pt) {
    const int n = q.n, reach = n + n / 2 + TU + 2 * TD + 2;
    for (int u = threadIdx.x; u < n; u += blockDim.x) {
        const int pu = u == r ? pr : u == t ? pt : s.p[u];
        Pair x;
        x.a = READ(q.flow_t[r * n + u]) - READ(q.flow_t[t * n + u]);
        x.h = READ(q.distance_t[pt * n + pu]) - READ(q.distance_t[pr * n + pu]);
        for (int at = u; at < reach; at += n) s.ah[at] = x;
        s.b[pu] = -x.h;
        if constexpr (!SYMMETRIC) {
            x.a = READ(q.flow[r * n + u]) - READ(q.flow[t * n + u]);
            x.h = READ(q.distance[pt * n + pu]) - READ(q.distance[pr * n + pu]);
            for (int at = u; at < reach; at += n) s.ah2[at] = x;
            s.b2[pu] = -x.h;
        }
    }
}

// partial[u, l] as it will be once the product is added.
__device__ __forceinline__ value_t soon(const Shared &s, int u, int l) {
    value_t x = s.partial[u * s.stride + l] + s.ah[u].a * s.b[l];
    if constexpr (!SYMMETRIC) x += s.ah2[u].a * s.b2[l];
    return x;
}

// Deltas and limits of every exchange with r (first n places) and with t (the next n).
__device__ __forceinline__ void refresh(const Problem &q, const Shared &s, int r, int t, int pr, int pt) {
    const int n = q.n;
    for (int cell = threadIdx.x; cell < 2 * n; cell += blockDim.x) {
        const bool first = cell < n;
        const int one = first ? r : t, v = first ? cell : cell - n, at = first ? pr : pt;
        const int pv = v == r ? pr : v == t ? pt : s.p[v];
        value_t x = value_t(0);
        if (v != one) x = soon(s, one, pv) + soon(s, v, at) - soon(s, one, at) - soon(s, v, pv) + between(q, one, v, at, pv);
        (first ? s.of_r : s.of_s)[v] = x;
        s.scratch[cell] = min(s.until[one * n + pv], s.until[v * n + at]);
    }
}

// partial += a b'.
__device__ __forceinline__ void add_product(const Shared &s, int n) {
    const int quads = s.stride / VEC, lines = blockDim.x / quads, column = threadIdx.x % quads;
    const int line = threadIdx.x / quads;
    if (lines == 0) {  // n beyond the block
        for (int cell = threadIdx.x; cell < n * n; cell += blockDim.x) {
            const int u = cell / n, l = cell % n;
            s.partial[u * s.stride + l] = soon(s, u, l);
        }
        return;
    }
    if (line >= lines) return;
    const Quad b = reinterpret_cast<const Quad *>(s.b)[column];
    Quad b2{};
    if constexpr (!SYMMETRIC) b2 = reinterpret_cast<const Quad *>(s.b2)[column];
    for (int u = line; u < n; u += lines) {
        const value_t a = s.ah[u].a;
        Quad *at = reinterpret_cast<Quad *>(s.partial + u * s.stride) + column;
        Quad x = *at;
#pragma unroll
        for (int i = 0; i < VEC; ++i) x.x[i] += a * b.x[i];
        if constexpr (!SYMMETRIC) {
            const value_t a2 = s.ah2[u].a;
#pragma unroll
            for (int i = 0; i < VEC; ++i) x.x[i] += a2 * b2.x[i];
        }
        *at = x;
    }
}

struct Plan {
    int iterations, tenure_least, tenure_span, age, every, tabu, round, streamed;  // tabu 0: 2-opt
    unsigned long long seed;
};

struct Found {
    const int *starts;
    int *hall, *visits;  // the best permutation of each search; how often facility u was found at location l
    wide_t *hall_costs;
    volatile int *stop;
    long long *least;  // integers: the least cost so far
    unsigned char *stream;
    size_t stream_bytes;
    unsigned long long *iterations;
};

// The permutation that this block starts from, by thread 0.
__device__ void start(const Problem &q, const Shared &s, const Plan &plan, const Found &found, unsigned long long state) {
    if (plan.round > 0) {
        unvisited(s.p, found.visits, s.scratch, q.n, state);
        return;
    }
    for (int i = 0; i < q.n; ++i) s.p[i] = found.starts[size_t(blockIdx.x) * q.n + i];
}

// Flow, distance and their transposes into shared memory behind everything else (MATRICES).
__device__ Problem near(Problem q, const Shared &s) {
    value_t *at = reinterpret_cast<value_t *>((reinterpret_cast<size_t>(s.scratch + 2 * q.n) + 15) / 16 * 16);
    const value_t **matrices[4] = {&q.flow, &q.distance, &q.flow_t, &q.distance_t};
    const int cells = q.n * q.n, copies = SYMMETRIC ? 2 : 4;
    for (int m = 0; m < copies; ++m) {
        for (int i = threadIdx.x; i < cells; i += blockDim.x) at[m * cells + i] = (*matrices[m])[i];
        *matrices[m] = at + m * cells;
    }
    if (SYMMETRIC) q.flow_t = q.flow, q.distance_t = q.distance;
    __syncthreads();  // copied -> read by all
    return q;
}

// Keep the search's best where it beats what this slot met in earlier rounds, and tell the host.
__device__ void settle(const Problem &q, const Shared &s, const Plan &plan, const Found &found, wide_t cost, int it) {
    const int n = q.n, slot = blockIdx.x;
    const bool record = plan.round == 0 || cost < found.hall_costs[slot];
    __syncthreads();  // every thread has read hall_costs
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        if (record) found.hall[size_t(slot) * n + i] = s.best[i];
        atomicAdd(&found.visits[size_t(i) * n + s.best[i]], 1);  // searches end at the same time
    }
    if (threadIdx.x != 0) return;
    if (record) found.hall_costs[slot] = cost;
    atomicAdd(found.iterations, (unsigned long long)it);
    if (!FLOATING) atomicMin_system(found.least, (long long)cost);
}

// Grid: one block per start. Block: THREADS. Shared: dynamic, carve(). Reads: problem, starts, visits. Writes: hall,
// hall_costs, visits, least. Requires: n >= 2 TD, THREADS tiles cover n (n / 2) exchanges. Work: 2 n^2 products an
// iteration, n^3 to start.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) search(Problem q, Plan plan, Found found) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int n = q.n;
    const Shared s = carve(memory, n, found.stream + blockIdx.x * found.stream_bytes, plan.streamed);
#if MATRICES
    q = near(q, s);
#endif
    // the same stream in every thread; thread 0 makes the start from another one
    unsigned long long state = plan.seed ^ (0x632be59bd9b4e019ULL * (plan.round * 1048573ULL + blockIdx.x + 1));
    if (threadIdx.x == 0) start(q, s, plan, found, ~state);
    __syncthreads();
    fill_partial(q, s);
    for (int i = threadIdx.x; i < n; i += blockDim.x) s.best[i] = s.p[i];
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) s.until[i] = -(i % n) - 1;
    const int reach = n + n / 2 + TU + 2 * TD + 2;
    for (int i = threadIdx.x; i < reach; i += blockDim.x) {
        s.ah[i] = Pair{0, 0};
        if (!SYMMETRIC) s.ah2[i] = Pair{0, 0};
    }
    __syncthreads();
    wide_t cost = block_cost(q, s), best = cost;
    Tile tile;
    open_tile(tile, q, s);
    int r = -2 * n, t = -2 * n, it = 1;
    for (; it <= plan.iterations; ++it) {
        const wide_t room = best - cost;
        const value_t aspire = !plan.tabu ? huge_value() : value_t(room < -wide_t(huge_value()) ? -huge_value() : room);
        const unsigned turn = draw(state);
        const value_t least = tile.live ? sweep(tile, s, n, it, aspire, r, t) : huge_value();
        post(tile, s, n, least, it, aspire, turn);
        __syncthreads();  // slots, partial -> choose
        Slot slot = choose(s, turn >> 8);
        if (!plan.tabu && !(slot.delta < 0)) break;
        if (plan.age > 0 && it % plan.every == 0 && !(slot.delta < aspire))
            oldest(q, s, below(state, n), it - plan.age, turn, slot);
        if (slot.delta == huge_value()) {  // everything is tabu: any exchange will do
            slot.r = below(state, n);
            slot.s = (slot.r + 1 + below(state, n - 1)) % n;
            slot.delta = exchange(q, s, slot.r, slot.s);
        }
        r = slot.r, t = slot.s;
        const int from_r = s.p[r], from_t = s.p[t];
        cost += slot.delta;
        const int first = below(state, plan.tenure_span), second = below(state, plan.tenure_span);
        differences(q, s, r, t, from_t, from_r);
        if (cost < best) {
            best = cost;
            for (int i = threadIdx.x; i < n; i += blockDim.x)
                s.best[i] = i == r ? from_t : i == t ? from_r : s.p[i];
        }
        if (threadIdx.x == 0) {
            s.until[r * n + from_r] = it + plan.tenure_least + first;
            s.until[t * n + from_t] = it + plan.tenure_least + second;
        }
        __syncthreads();  // differences, until -> refresh; s.p read by all -> swapped
        refresh(q, s, r, t, from_t, from_r);
        const int asked = (it & 255) == 0 && threadIdx.x == 0 ? *found.stop : 0;
        if (__syncthreads_or(asked)) break;  // fresh deltas -> sweep; old partial read -> add_product
        if (threadIdx.x == 0) {
            s.p[r] = from_t;
            s.p[t] = from_r;
        }
        add_product(s, n);
    }
    __syncthreads();
    settle(q, s, plan, found, best, it);
}
