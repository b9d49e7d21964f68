// Exchanges of a quadratic assignment with O(1) upkeep: the parts that the searches of multistart.cu are made of.
//
// partial[u, l] = linear[u, l] + sum_k flow[u, k] distance[l, p[k]] (+ the transposed product when asymmetric) is what
// facility u would cost at location l. After exchange (r, t), with a_u = F_ur - F_ut and h_u = D[p_u, p_r] - D[p_u,
// p_t]: partial += a b', delta[u, v] += (a_u - a_v)(h_u - h_v) for pairs without r and t; pairs with them are read
// off partial.
//
// Compile with -D VALUE (int, long long, double), SYMMETRIC, TU, TD (tile), MATRICES, RECENCY_PAIRS, THREADS (at most, of
// all blocks of a multiprocessor: registers are found for so many).
#include "device/random.cuh"
#include "qap/incumbent.cuh"

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
#ifndef MATRICES  // 1: flow and distance in shared memory (Novoa and Qasem 2019, section 5.1)
#define MATRICES 0
#endif
#ifndef RECENCY_PAIRS  // 1: Novoa and Qasem's matrix, recency of exchanged pairs above the diagonal, frequency below
#define RECENCY_PAIRS 0
#endif
#if MATRICES
#define READ(x) (x)
#else
#define READ(x) __ldg(&(x))
#endif
#ifndef THREADS
#define THREADS 512
#endif
typedef VALUE value_t;
constexpr int REPEATED = 0x7fffffff;  // the tabu limit of an exchange that another place of the tiling owns
constexpr int PAIRS = TU * TD;
constexpr int REACH = TU + TD - 1;
constexpr int UNROLL = PAIRS > 160 ? 1 : PAIRS;  // beyond, a tile lies in local memory, which is to say in L2
constexpr int VEC = 16 / sizeof(value_t);
constexpr bool FLOATING = value_t(0.5) != value_t(0);
template <bool floating> struct Wide { typedef long long type; };
template <> struct Wide<true> { typedef double type; };
typedef Wide<FLOATING>::type wide_t;

struct Pair { value_t a, h; };
struct alignas(16) Quad { value_t x[VEC]; };
struct Slot { value_t delta; int r, s; };

// QapProblem, Plan, Found: what the host hands over.
#include "qap/multistart/layout.py"

struct Shared {
    value_t *partial;  // n x stride
    Pair *ah, *ah2;    // differences of flow and distance by facility, repeated cyclically; ah2 only if asymmetric
    value_t *b, *b2;   // differences of distance by location, stride long
    value_t *of_r, *of_s;  // fresh deltas
    Slot *slots;       // one per warp
    int *p, *best, *scratch;
    int *until;        // n x n: facility u must not return to location l before this iteration (or RECENCY_PAIRS)
    int stride;
};

__device__ __forceinline__ value_t huge_value() {
    if (FLOATING) return value_t(1e308);
    return sizeof(value_t) == 4 ? value_t(0x7fffffff) : value_t(0x7fffffffffffffffLL);
}

__device__ __forceinline__ int least_of_warp(int value) { return __reduce_min_sync(FULL_WARP, value); }
__device__ __forceinline__ long long least_of_warp(long long value) { return warp_min(value); }
__device__ __forceinline__ double least_of_warp(double value) { return warp_min(value); }

__device__ __forceinline__ void add_to(double *total, double amount) { atomicAdd(total, amount); }
__device__ __forceinline__ void add_to(long long *total, long long amount) {
    atomicAdd(reinterpret_cast<unsigned long long *>(total), (unsigned long long)amount);
}

// The first lane at or after `turn` (cyclically) whose predicate holds: ties are broken by turn, not by index.
__device__ __forceinline__ int first_lane(unsigned ballot, int turn) {
    const unsigned turned = __funnelshift_r(ballot, ballot, turn & 31);
    return (__ffs(turned) - 1 + turn) & 31;
}

// `stream`: this block's part of global memory for what does not fit on the chip (null: all of it does).
__device__ Shared carve(unsigned char *memory, int n, unsigned char *stream, int streamed) {
    Shared shared;
    const int reach = n + n / 2 + TU + 2 * TD + 2;
    shared.stride = (n + VEC - 1) / VEC * VEC;
    if (shared.stride % (32 * 4 / int(sizeof(value_t))) == 0) shared.stride += VEC;  // else every row starts in bank 0
    const size_t partial_bytes = size_t(n) * shared.stride * sizeof(value_t), until_bytes = (size_t(n) * n + 3) / 4 * 16;
    shared.partial = reinterpret_cast<value_t *>(streamed >= 2 ? stream : memory);
    if (streamed < 2) memory += partial_bytes;
    shared.until = reinterpret_cast<int *>(streamed >= 1 ? stream + (streamed >= 2 ? partial_bytes : 0) : memory);
    if (streamed < 1) memory += until_bytes;
    shared.b = reinterpret_cast<value_t *>(memory);
    shared.b2 = shared.b + shared.stride;
    shared.ah = reinterpret_cast<Pair *>(shared.b2 + (SYMMETRIC ? 0 : shared.stride));
    shared.ah2 = shared.ah + reach;
    shared.slots = reinterpret_cast<Slot *>(shared.ah2 + (SYMMETRIC ? 0 : reach));
    shared.of_r = reinterpret_cast<value_t *>(shared.slots + 32);
    shared.of_s = shared.of_r + n;
    shared.p = reinterpret_cast<int *>(shared.of_s + n);
    shared.best = shared.p + n;
    shared.scratch = shared.best + n;
    return shared;
}

__device__ void fill_partial(const QapProblem &problem, const Shared &shared) {
    const int n = problem.n;
    for (int cell = threadIdx.x; cell < (n + 3) / 4 * n; cell += blockDim.x) {
        const int u = cell / n * 4, l = cell % n;
        value_t sum[4];
        for (int i = 0; i < 4; ++i) sum[i] = u + i < n ? problem.linear[size_t(u + i) * n + l] : value_t(0);
        for (int k = 0; k < n; ++k) {
            const value_t away = READ(problem.distance_t[size_t(shared.p[k]) * n + l]);
            for (int i = 0; i < 4; ++i)
                if (u + i < n) sum[i] += READ(problem.flow[size_t(u + i) * n + k]) * away;
            if (!SYMMETRIC) {
                const value_t back = READ(problem.distance[size_t(shared.p[k]) * n + l]);
                for (int i = 0; i < 4; ++i)
                    if (u + i < n) sum[i] += READ(problem.flow_t[size_t(u + i) * n + k]) * back;
            }
        }
        for (int i = 0; i < 4; ++i)
            if (u + i < n) shared.partial[(u + i) * shared.stride + l] = sum[i];
    }
}

// flow and distance between facilities u and v as they sit now and as they would after exchange (u, v).
__device__ __forceinline__ value_t between(const QapProblem &problem, int u, int v, int pu, int pv) {
    const int n = problem.n;
    const value_t flow_uv = READ(problem.flow[u * n + v]), distance_uv = READ(problem.distance[pu * n + pv]);
    if (SYMMETRIC) return (flow_uv + flow_uv) * distance_uv;
    return (flow_uv + READ(problem.flow[v * n + u])) * (distance_uv + READ(problem.distance[pv * n + pu]));
}

__device__ wide_t block_cost(const QapProblem &problem, const Shared &shared) {
    __shared__ wide_t total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();  // 0 before anyone adds
    for (int u = threadIdx.x; u < problem.n; u += blockDim.x) {
        const wide_t line = problem.linear[size_t(u) * problem.n + shared.p[u]];
        const wide_t twice = wide_t(shared.partial[u * shared.stride + shared.p[u]]) - line;
        add_to(&total, twice + 2 * line);  // twice the pairs of u; summed over u that is even
    }
    __syncthreads();  // all have added
    const wide_t sum = total;
    __syncthreads();  // all have read it before the next call clears it
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

__device__ __forceinline__ value_t exchange(const QapProblem &problem, const Shared &shared, int u, int v) {
    const int pu = shared.p[u], pv = shared.p[v];
    const value_t *of_u = shared.partial + u * shared.stride, *of_v = shared.partial + v * shared.stride;
    return of_u[pv] + of_v[pu] - of_u[pu] - of_v[pv] + between(problem, u, v, pu, pv);
}

__device__ void open_tile(Tile &tile, const QapProblem &problem, const Shared &shared) {
    const int n = problem.n, across = (n / 2 + TD - 1) / TD;
    const int row = threadIdx.x / across, d0 = threadIdx.x % across * TD + 1;
    tile.u0 = row * TU;
    tile.live = tile.u0 < n;
    tile.v0 = (tile.u0 + d0) % n;
#pragma unroll UNROLL
    for (int k = 0; k < PAIRS; ++k) {
        const int i = k / TD, apart = d0 + k % TD, u = tile.u0 + i;
        const bool own = u < n && (2 * apart < n || (2 * apart == n && u < apart));
        tile.until[k] = own ? 0 : REPEATED;
        tile.delta[k] = tile.live ? exchange(problem, shared, wrap(u, n), (u + apart) % n) : huge_value();
    }
}

// Add the pending product to every delta, put the fresh deltas and limits of r and s in, and find the least allowed.
__device__ __forceinline__ value_t update_deltas(Tile &tile, const Shared &shared, int n, int it, value_t aspire, int r,
                                                 int t) {
    Pair u[TU], v[REACH];
#pragma unroll UNROLL
    for (int i = 0; i < TU; ++i) u[i] = shared.ah[tile.u0 + i];
#pragma unroll UNROLL
    for (int j = 0; j < REACH; ++j) v[j] = shared.ah[tile.v0 + j];
#pragma unroll UNROLL
    for (int k = 0; k < PAIRS; ++k) {
        const int i = k / TD, j = i + k % TD;
        tile.delta[k] += (u[i].a - v[j].a) * (u[i].h - v[j].h);
    }
    if constexpr (!SYMMETRIC) {
#pragma unroll UNROLL
        for (int i = 0; i < TU; ++i) u[i] = shared.ah2[tile.u0 + i];
#pragma unroll UNROLL
        for (int j = 0; j < REACH; ++j) v[j] = shared.ah2[tile.v0 + j];
#pragma unroll UNROLL
        for (int k = 0; k < PAIRS; ++k) {
            const int i = k / TD, j = i + k % TD;
            tile.delta[k] += (u[i].a - v[j].a) * (u[i].h - v[j].h);
        }
    }
    const int ru = r < tile.u0 ? r - tile.u0 + n : r - tile.u0, tu = t < tile.u0 ? t - tile.u0 + n : t - tile.u0;
    const int rv = r < tile.v0 ? r - tile.v0 + n : r - tile.v0, tv = t < tile.v0 ? t - tile.v0 + n : t - tile.v0;
    if (unsigned(ru) < TU || unsigned(tu) < TU || unsigned(rv) < REACH || unsigned(tv) < REACH) {
#pragma unroll UNROLL
        for (int k = 0; k < PAIRS; ++k) {
            const int i = k / TD, j = i + k % TD;
            const bool of_u = i == ru || i == tu;
            if (of_u || j == rv || j == tv) {
                const int other = of_u ? wrap(tile.v0 + j, n) : wrap(tile.u0 + i, n);
                const bool with_r = of_u ? i == ru : j == rv;
                tile.delta[k] = (with_r ? shared.of_r : shared.of_s)[other];
                if (tile.until[k] != REPEATED) tile.until[k] = shared.scratch[(with_r ? 0 : n) + other];
            }
        }
    }
    value_t least = huge_value();
#pragma unroll UNROLL
    for (int k = 0; k < PAIRS; ++k) {
        const bool allowed = tile.until[k] < it || tile.delta[k] < aspire;
        if (allowed && tile.delta[k] < least) least = tile.delta[k];
    }
    return least;
}

// One slot per warp: its least allowed exchange.
__device__ __forceinline__ void post(
    const Tile &tile, const Shared &shared, int n, value_t least, int it, value_t aspire, unsigned turn) {
    const value_t of_warp = least_of_warp(least);
    const int lane = threadIdx.x & 31;
    const unsigned ballot = __ballot_sync(FULL_WARP, least == of_warp);
    if (lane != first_lane(ballot, turn)) return;
    Slot slot{of_warp, 0, 1};
#pragma unroll UNROLL
    for (int k = 0; k < PAIRS; ++k) {
        if (tile.delta[k] == of_warp && (tile.until[k] < it || of_warp < aspire)) {
            slot.r = wrap(tile.u0 + k / TD, n);
            slot.s = wrap(tile.v0 + k / TD + k % TD, n);
        }
    }
    shared.slots[threadIdx.x >> 5] = slot;
}

// The least of all warps, the same in every thread.
__device__ __forceinline__ Slot choose(const Shared &shared, unsigned turn) {
    const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
    const value_t mine = lane < warps ? shared.slots[lane].delta : huge_value();
    const value_t least = least_of_warp(mine);
    return shared.slots[first_lane(__ballot_sync(FULL_WARP, mine == least && lane < warps), turn)];
}

// The iteration before which u (at pu) and v (at pv) must not change places.
__device__ __forceinline__ int limit(const Shared &shared, int n, int u, int v, int pu, int pv) {
    if (RECENCY_PAIRS) return u == v ? REPEATED : shared.until[min(u, v) * n + max(u, v)];
    return min(shared.until[u * n + pv], shared.until[v * n + pu]);
}

// Where a facility may not return to, and until which iteration.
struct Stay {
    int from, until;
};

// After exchange (r, t): both stay away from where they were, or the pair from being exchanged, which is counted.
__device__ __forceinline__ void forbid(const Shared &shared, int n, int r, int t, Stay at_r, Stay at_t) {
    if (RECENCY_PAIRS) {
        shared.until[min(r, t) * n + max(r, t)] = at_r.until;
        ++shared.until[max(r, t) * n + min(r, t)];
    } else {
        shared.until[r * n + at_r.from] = at_r.until;
        shared.until[t * n + at_t.from] = at_t.until;
    }
}

// Taillard's second rule: an exchange of facility u whose two arrivals (or whose pair) were last forbidden before
// `before`; of pairs the one exchanged least often.
__device__ __forceinline__ bool oldest(
    const QapProblem &problem, const Shared &shared, int u, int before, unsigned turn, Slot &slot) {
    __shared__ int found;
    const int n = problem.n;
    if (threadIdx.x == 0) found = 0x7fffffff;
    __syncthreads();  // none, before anyone finds one
    for (int v = threadIdx.x; v < n; v += blockDim.x) {
        if (v == u) continue;
        const bool old = RECENCY_PAIRS
                             ? limit(shared, n, u, v, 0, 0) < before
                             : shared.until[u * n + shared.p[v]] < before && shared.until[v * n + shared.p[u]] < before;
        const int rarity = RECENCY_PAIRS ? min(shared.until[max(u, v) * n + min(u, v)], 0x7ffe) : int((v + turn) % n);
        if (old) atomicMin(&found, rarity << 16 | v);  // settles which of several is taken
    }
    __syncthreads();  // all have looked
    const int v = found;
    if (v == 0x7fffffff) return false;
    slot.r = min(u, v & 0xffff);
    slot.s = max(u, v & 0xffff);
    slot.delta = exchange(problem, shared, slot.r, slot.s);
    return true;
}

// Difference vectors of exchange (r, t) with p[r], p[t] as they will be; the swap itself waits for `refresh`.
__device__ __forceinline__ void differences(const QapProblem &problem, const Shared &shared, int r, int t, int pr,
                                            int pt) {
    const int n = problem.n, reach = n + n / 2 + TU + 2 * TD + 2;
    for (int u = threadIdx.x; u < n; u += blockDim.x) {
        const int pu = u == r ? pr : u == t ? pt : shared.p[u];
        Pair pair;
        pair.a = READ(problem.flow_t[r * n + u]) - READ(problem.flow_t[t * n + u]);
        pair.h = READ(problem.distance_t[pt * n + pu]) - READ(problem.distance_t[pr * n + pu]);
        for (int at = u; at < reach; at += n) shared.ah[at] = pair;
        shared.b[pu] = -pair.h;
        if constexpr (!SYMMETRIC) {
            pair.a = READ(problem.flow[r * n + u]) - READ(problem.flow[t * n + u]);
            pair.h = READ(problem.distance[pt * n + pu]) - READ(problem.distance[pr * n + pu]);
            for (int at = u; at < reach; at += n) shared.ah2[at] = pair;
            shared.b2[pu] = -pair.h;
        }
    }
}

// partial[u, l] as it will be once the product is added.
__device__ __forceinline__ value_t soon(const Shared &shared, int u, int l) {
    value_t value = shared.partial[u * shared.stride + l] + shared.ah[u].a * shared.b[l];
    if constexpr (!SYMMETRIC) value += shared.ah2[u].a * shared.b2[l];
    return value;
}

// Deltas and limits of every exchange with r (first n places) and with t (the next n).
__device__ __forceinline__ void refresh(const QapProblem &problem, const Shared &shared, int r, int t, int pr, int pt) {
    const int n = problem.n;
    for (int cell = threadIdx.x; cell < 2 * n; cell += blockDim.x) {
        const bool first = cell < n;
        const int one = first ? r : t, v = first ? cell : cell - n, at = first ? pr : pt;
        const int pv = v == r ? pr : v == t ? pt : shared.p[v];
        value_t delta = value_t(0);
        if (v != one)
            delta = soon(shared, one, pv) + soon(shared, v, at) - soon(shared, one, at) - soon(shared, v, pv) +
                    between(problem, one, v, at, pv);
        (first ? shared.of_r : shared.of_s)[v] = delta;
        shared.scratch[cell] = limit(shared, n, one, v, at, pv);
    }
}

// partial += a b'.
__device__ __forceinline__ void add_product(const Shared &shared, int n) {
    const int quads = shared.stride / VEC, lines = blockDim.x / quads, column = threadIdx.x % quads;
    const int line = threadIdx.x / quads;
    if (lines == 0) {  // n beyond the block
        for (int cell = threadIdx.x; cell < n * n; cell += blockDim.x) {
            const int u = cell / n, l = cell % n;
            shared.partial[u * shared.stride + l] = soon(shared, u, l);
        }
        return;
    }
    if (line >= lines) return;
    const Quad line_of = reinterpret_cast<const Quad *>(shared.b)[column];
    Quad b2{};
    if constexpr (!SYMMETRIC) b2 = reinterpret_cast<const Quad *>(shared.b2)[column];
    for (int u = line; u < n; u += lines) {
        const value_t factor = shared.ah[u].a;
        Quad *at = reinterpret_cast<Quad *>(shared.partial + u * shared.stride) + column;
        Quad quad = *at;
#pragma unroll UNROLL
        for (int i = 0; i < VEC; ++i) quad.x[i] += factor * line_of.x[i];
        if constexpr (!SYMMETRIC) {
            const value_t a2 = shared.ah2[u].a;
#pragma unroll UNROLL
            for (int i = 0; i < VEC; ++i) quad.x[i] += a2 * b2.x[i];
        }
        *at = quad;
    }
}
