// One member of the population: its permutation, and everything of size n^2 that a move of it needs, in registers.
//
// The objective, up to `scale` on the host, is C(p) = sum over i < j of A_ij B_{p_i p_j} + sum_i L_{i p_i}, with zero
// diagonals; A and B are both symmetric. Under SKEW a second pair of antisymmetric matrices As, Bs adds its own
// sum: any pair of matrices splits so, because symmetric times antisymmetric sums to nothing.
//
// Invariant between moves: H[u][v] = sum_j A_uj B_{p_v p_j} (+ the skew sum), D[u,v] = C(p with u, v exchanged) - C(p),
// expiry[u,v] = min(T[u][p_v], T[v][p_u]) with T[i][k] the iteration until which i may not return to k.
//
// Keeping H costs n^2 multiply-adds an iteration and makes the touched pairs O(1) each; recomputing them costs
// 4 n^2 multiply-adds with gathered operands. Everything of size n^2 lies in registers: a thread owns column v and
// R rows of H, and the pairs (u, u + d mod N) for K consecutive distances d, so that operands are read without bank
// conflicts.
//
// Compile with -D SIZE (n), GROUPS, DELTA (float, int, long long or double), ENTRY (of the matrices), TOTAL (long long
// or double), SKEW, LINEAR, BLOCKS (per SM).

#ifndef SIZE
#define SIZE 100
#define GROUPS 5
#define DELTA int
#define ENTRY int
#define TOTAL long long
#define SKEW 0
#define LINEAR 0
#define BLOCKS 2
#endif

constexpr int N = SIZE;
static_assert(GROUPS <= N / 2, "a distance of N would pair a facility with itself");
using T = DELTA;
using W = ENTRY;
using T64 = TOTAL;

constexpr int HALF = N / 2;
constexpr int K = (HALF + GROUPS - 1) / GROUPS;
constexpr int R = ((N + GROUPS - 1) / GROUPS + 3) / 4 * 4;  // whole quads of x
static_assert(GROUPS * R <= 2 * N, "rows past N read the second copy of x");
constexpr int THREADS = (N * GROUPS + 31) / 32 * 32;
constexpr int WARPS = THREADS / 32;
constexpr int LEAST = (T)0.5 != (T)0 ? 1 << 24 : 1 << 30;  // no exchange gains more: aspiration below it means none
constexpr bool TABU_SHARED = N <= 128;

template <typename V> struct Limit;
template <> struct Limit<float> { static __device__ __forceinline__ float top() { return 3e38f; } };
template <> struct Limit<int> { static __device__ __forceinline__ int top() { return 0x7fffffff; } };
template <> struct Limit<long long> {
    static __device__ __forceinline__ long long top() { return 0x7fffffffffffffffLL; }
};
template <> struct Limit<double> { static __device__ __forceinline__ double top() { return 1e300; } };

__device__ __forceinline__ int redux_min(int value) { return __reduce_min_sync(FULL_WARP, value); }
__device__ __forceinline__ float redux_min(float value) {
    const int bits = __float_as_int(value), least = __reduce_min_sync(FULL_WARP, bits ^ ((bits >> 31) & 0x7fffffff));
    // the integer order of sign-folded bits is the float order
    return __int_as_float(least ^ ((least >> 31) & 0x7fffffff));
}
__device__ __forceinline__ long long redux_min(long long value) { return warp_min(value); }
__device__ __forceinline__ double redux_min(double value) { return warp_min(value); }

struct Random {
    unsigned long long state;
    __device__ __forceinline__ unsigned next() {  // PCG-XSH-RR, O'Neill 2014
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const unsigned word = (unsigned)(((state >> 18) ^ state) >> 27), turn = (unsigned)(state >> 59);
        return (word >> turn) | (word << ((32 - turn) & 31));
    }
    __device__ __forceinline__ int below(int n) { return (int)__umulhi(next(), (unsigned)n); }
};

struct alignas(2 * sizeof(T)) Pair { T x, y; };
struct alignas(16) Quad { T of[4]; };

struct Shared {
    alignas(16) T x[2 * N];                 // doubled, so that u + d needs no remainder
#if SKEW
    alignas(16) T x_skew[2 * N];
    Pair skew[2 * N];
#endif
    Pair pair[2 * N];                       // (x, y)
    T old_row[2][N], old_column[2][N], diagonal[N];
    T touched[2][2 * N];
    int expiry[2][2 * N];
    T least[WARPS];
    unsigned move[WARPS];
    short p[N], best[N], other[N], mark[N];
    T64 cost, best_cost;
    int tabu[TABU_SHARED ? N * N : 1];
};

struct Matrices {
    const W *a, *b, *a_skew, *b_skew;
    const T *linear;
};

// The exchange value of (u, v) from scratch, O(N).
__device__ T exchange(const Matrices &m, const short *p, int u, int v) {
    const int pu = p[u], pv = p[v];
    T sum = 0;
    for (int k = 0; k < N; ++k) {
        if (k == u || k == v) continue;
        const int pk = p[k];
        sum += (T)(m.a[u * N + k] - m.a[v * N + k]) * (T)(m.b[pv * N + pk] - m.b[pu * N + pk]);
#if SKEW
        sum += (T)(m.a_skew[u * N + k] - m.a_skew[v * N + k]) * (T)(m.b_skew[pv * N + pk] - m.b_skew[pu * N + pk]);
#endif
    }
#if SKEW
    sum -= 2 * (T)m.a_skew[u * N + v] * (T)m.b_skew[pu * N + pv];
#endif
#if LINEAR
    sum += m.linear[u * N + pv] + m.linear[v * N + pu] - m.linear[u * N + pu] - m.linear[v * N + pv];
#endif
    return sum;
}

// What one thread holds of H and D between iterations.
struct Mine {
    T h[R];       // H[first_row + k][column]
    T d[K];       // D[column, column + first_distance + k]
    int expiry[K];
    int column, first_row, first_distance;
    bool active;
};

// Fill H, D, the diagonal and the objective from s.p. O(N) work for each of the N^2 entries, spread over the block.
__device__ __forceinline__ void open(Shared &s, Mine &mine, const Matrices &m, int *tabu) {
    if (threadIdx.x == 0) s.cost = 0;
    for (int i = threadIdx.x; i < N * N; i += THREADS) tabu[i] = 0;
    __syncthreads();  // s.p is complete, s.cost is zero
    if (mine.active) {
        const int v = mine.column, pv = s.p[v];
#pragma unroll
        for (int k = 0; k < R; ++k) mine.h[k] = 0;
        for (int j = 0; j < N; ++j) {
            const T b = (T)m.b[pv * N + s.p[j]];
#if SKEW
            const T b_skew = (T)m.b_skew[pv * N + s.p[j]];
#endif
#pragma unroll
            for (int k = 0; k < R; ++k) {
                const int u = mine.first_row + k < N ? mine.first_row + k : 0;
                mine.h[k] += (T)m.a[u * N + j] * b;
#if SKEW
                mine.h[k] += (T)m.a_skew[u * N + j] * b_skew;
#endif
            }
        }
#pragma unroll
        for (int k = 0; k < R; ++k)
            if (mine.first_row + k == v) s.diagonal[v] = mine.h[k];
#pragma unroll 1
        for (int k = 0; k < K; ++k) {
            const int w = (v + mine.first_distance + k) % N;
            const T value = v == w ? Limit<T>::top() : exchange(m, s.p, v, w);
#pragma unroll
            for (int slot = 0; slot < K; ++slot)
                if (slot == k) mine.d[slot] = value;
        }
#pragma unroll
        for (int k = 0; k < K; ++k) mine.expiry[k] = 0;
    }
    __syncthreads();  // the diagonal is complete
    if (threadIdx.x < 32) {
        T64 sum = 0, linear = 0;
        for (int i = threadIdx.x; i < N; i += 32) {
            sum += (T64)s.diagonal[i];
#if LINEAR
            linear += (T64)m.linear[i * N + s.p[i]];
#endif
        }
        sum = warp_sum(sum);
        linear = warp_sum(linear);
        if (threadIdx.x == 0) s.best_cost = s.cost = sum / 2 + linear;
    }
    for (int i = threadIdx.x; i < N; i += THREADS) s.best[i] = s.p[i];
    __syncthreads();  // cost is visible
}

// The least admissible exchange of the block: value and (r, s) to every thread. One barrier; ties fall at random.
__device__ __forceinline__ T choose(
    Shared &s, const Mine &mine, int iteration, T aspiration, unsigned draw, int &r, int &s_) {
    T least = Limit<T>::top();
    int slot = 0;
    if (mine.active) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const T value = mine.expiry[k] <= iteration || mine.d[k] < aspiration ? mine.d[k] : Limit<T>::top();
            if (value < least) { least = value; slot = k; }
        }
    }
    const T warp_least = redux_min(least);
    int w = mine.column + mine.first_distance + slot;
    if (w >= N) w -= N;
    const unsigned shuffled = (draw ^ (threadIdx.x * 2654435761u)) & 0xfff00000u;
    const unsigned mark = least == warp_least ? shuffled | (unsigned)(mine.column << 10) | (unsigned)w : 0xffffffffu;
    const unsigned warp_mark = __reduce_min_sync(FULL_WARP, mark);
    if (threadIdx.x % 32 == 0) { s.least[threadIdx.x / 32] = warp_least; s.move[threadIdx.x / 32] = warp_mark; }
    __syncthreads();  // every warp's candidate is there; also separates D's operands from the next stage
    const int lane = threadIdx.x % 32;
    const T mine_least = lane < WARPS ? s.least[lane] : Limit<T>::top();
    const T block_least = redux_min(mine_least);
    const bool has_least = lane < WARPS && mine_least == block_least;
    const unsigned block_mark = __reduce_min_sync(FULL_WARP, has_least ? s.move[lane] : 0xffffffffu);
    r = (block_mark >> 10) & 1023;
    s_ = block_mark & 1023;
    return block_least;
}

// x, y and the old rows and columns r, s of H, into shared memory.
__device__ __forceinline__ void stage(Shared &s, const Mine &mine, const Matrices &m, int r, int q) {
    const int pr = s.p[r], pq = s.p[q];
    if (threadIdx.x < N) {
        const int u = threadIdx.x, pu = s.p[u];
        const Pair pair = {(T)(m.a[r * N + u] - m.a[q * N + u]), (T)(m.b[pq * N + pu] - m.b[pr * N + pu])};
        s.x[u] = s.x[u + N] = pair.x;
        s.pair[u] = s.pair[u + N] = pair;
#if SKEW
        const Pair skew = {
            (T)(m.a_skew[r * N + u] - m.a_skew[q * N + u]), (T)(m.b_skew[pq * N + pu] - m.b_skew[pr * N + pu])};
        s.x_skew[u] = s.x_skew[u + N] = skew.x;
        s.skew[u] = s.skew[u + N] = skew;
#endif
    }
    if (!mine.active) return;
#pragma unroll 1
    for (int which = 0; which < 2; ++which) {
        const int line = which ? q : r, k_row = line - mine.first_row;
        if ((unsigned)k_row < (unsigned)R) {
            T value = mine.h[0];
#pragma unroll
            for (int k = 1; k < R; ++k)
                if (k == k_row) value = mine.h[k];
            s.old_row[which][mine.column] = value;
        }
        if (mine.column == line) {
#pragma unroll
            for (int k = 0; k < R; ++k)
                if (mine.first_row + k < N) s.old_column[which][mine.first_row + k] = mine.h[k];
        }
    }
}

// Rank-one product of the staged vectors at (u, v).
__device__ __forceinline__ T product(const Shared &s, int u, int v) {
    T value = s.pair[u].x * s.pair[v].y;
#if SKEW
    value += s.skew[u].x * s.skew[v].y;
#endif
    return value;
}

// D and expiry of every pair that holds r or q, after the exchange, by the first N threads; each writes its own index.
__device__ __forceinline__ void touch(Shared &s, const Matrices &m, const int *tabu, int r, int q) {
    const int v = threadIdx.x;
    if (v >= N) return;
    const int pr = s.p[q], pq = s.p[r];  // after the exchange
    const int pv = v == r ? pr : v == q ? pq : s.p[v];
    // New H[r][r], H[q][q] come from the old columns q, r; likewise the new columns r, q.
    const T rr = s.old_row[0][q] + product(s, r, q), qq = s.old_row[1][r] + product(s, q, r);
    const T vv = v == r ? rr : v == q ? qq : s.diagonal[v] + product(s, v, v);
    const int from = v == r ? q : v == q ? r : v;  // the old column that is now column v
    const T rv = s.old_row[0][from] + product(s, r, from), qv = s.old_row[1][from] + product(s, q, from);
    const T vr = s.old_column[1][v] + product(s, v, q), vq = s.old_column[0][v] + product(s, v, r);
    T with_r = rv + vr - rr - vv + 2 * (T)m.a[r * N + v] * (T)m.b[pr * N + pv];
    T with_q = qv + vq - qq - vv + 2 * (T)m.a[q * N + v] * (T)m.b[pq * N + pv];
#if LINEAR
    with_r += m.linear[r * N + pv] + m.linear[v * N + pr] - m.linear[r * N + pr] - m.linear[v * N + pv];
    with_q += m.linear[q * N + pv] + m.linear[v * N + pq] - m.linear[q * N + pq] - m.linear[v * N + pv];
#endif
    s.touched[0][v] = s.touched[0][v + N] = v == r ? Limit<T>::top() : with_r;
    s.touched[1][v] = s.touched[1][v + N] = v == q ? Limit<T>::top() : with_q;
    const int until_r = min(tabu[r * N + pv], tabu[v * N + pr]), until_q = min(tabu[q * N + pv], tabu[v * N + pq]);
    s.expiry[0][v] = s.expiry[0][v + N] = until_r;
    s.expiry[1][v] = s.expiry[1][v + N] = until_q;
    s.diagonal[v] = vv;
}

// H by its rank-one change, columns r and q in each other's place.
__device__ __forceinline__ void advance_h(const Shared &s, Mine &mine, int r, int q) {
    if (!mine.active) return;
    const int v = mine.column;
    const int from = v == r ? q : v == q ? r : v;
    if (from != v) {
#pragma unroll
        for (int k = 0; k < R; ++k)
            mine.h[k] = s.old_column[v == r ? 1 : 0][mine.first_row + k < N ? mine.first_row + k : 0];
    }
    const T y = s.pair[from].y;
#if SKEW
    const T y_skew = s.skew[from].y;
#endif
#pragma unroll
    for (int k = 0; k < R; k += 4) {
        const Quad x = *reinterpret_cast<const Quad *>(&s.x[mine.first_row + k]);
#pragma unroll
        for (int i = 0; i < 4; ++i) mine.h[k + i] += x.of[i] * y;
#if SKEW
        const Quad x_skew = *reinterpret_cast<const Quad *>(&s.x_skew[mine.first_row + k]);
#pragma unroll
        for (int i = 0; i < 4; ++i) mine.h[k + i] += x_skew.of[i] * y_skew;
#endif
    }
}

// D by its rank-one change; pairs that hold r or q take their staged values.
__device__ __forceinline__ void advance_d(const Shared &s, Mine &mine, int r, int q) {
    if (!mine.active) return;
    const int u = mine.column, base = u + mine.first_distance;
    const Pair own = s.pair[u];
#if SKEW
    const Pair own_skew = s.skew[u];
#endif
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const Pair other = s.pair[base + k];
        mine.d[k] -= (own.x - other.x) * (own.y - other.y);
#if SKEW
        const Pair skew = s.skew[base + k];
        mine.d[k] -= (own_skew.x - skew.x) * (own_skew.y - skew.y);
#endif
    }
#pragma unroll 1
    for (int which = 0; which < 2; ++which) {
        const int line = which ? q : r;
        if (u == line) {
#pragma unroll
            for (int k = 0; k < K; ++k) {
                mine.d[k] = s.touched[which][base + k];
                mine.expiry[k] = s.expiry[which][base + k];
            }
        }
        const int slot = (line - u + (line < u ? N : 0)) - mine.first_distance;
        if ((unsigned)slot < (unsigned)K && u != line) {
            const T value = s.touched[which][u];
            const int until = s.expiry[which][u];
#pragma unroll
            for (int k = 0; k < K; ++k)
                if (k == slot) { mine.d[k] = value; mine.expiry[k] = until; }
        }
    }
}
