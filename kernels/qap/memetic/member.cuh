// One member of the population: its permutation, and everything of size n^2 that a move of it needs, on the chip.
//
// The objective, up to `scale` on the host, is C(p) = sum over i < j of A_ij B_{p_i p_j} + sum_i L_{i p_i}, with zero
// diagonals; A and B are both symmetric. Under SKEW a second pair of antisymmetric matrices As, Bs adds its own
// sum: any pair of matrices splits so, because symmetric times antisymmetric sums to nothing.
//
// Invariant between moves, for every facility u, location l and distance 1 <= d <= SLOTS around the ring of facilities:
//     H[u][l]    = L_ul + sum_j A_uj B_{l p_j} (+ the skew sum), what u would cost at l
//     D[u, u+d]  = C(p with u, u + d exchanged) - C(p)
//     until      = min(T[u][p_v], T[v][p_u]), T[i][k] the iteration until which i may not return to k
// After an exchange of r (from location a to b) and q (from b to a), with x_u = A_ru - A_qu and y_l = B_bl - B_al:
//     H[u][l] += x_u y_l,    D[u, v] -= (x_u - x_v)(y_pu - y_pv), except where u or v is r or q
// Those 2n - 3 pairs are read off H as it was and p as it is. What comes out lacks exactly the product that all other
// pairs are about to be given, so one loop without a branch serves all of D. H itself is given its products BATCH at a
// time, which is a quarter of the traffic. The products that wait are added to what is read off H.
//
// Keeping H costs n^2 multiply-adds an iteration and makes each touched pair O(1); recomputing them costs 4 n^2 with
// gathered operands. D lies in quads of distances, [(d - 1) / 4][u][(d - 1) % 4], so that a warp reads whole lines;
// distances beyond n / 2 repeat other pairs.
//
// Facilities from n on do nothing, where n < SIZE: T keeps each at its own location. Compiled with -D:
//   SIZE      n, or more         THREADS   of a block                BLOCKS    of a multiprocessor
//   DELTA     type of D and H    ENTRY     type of the matrices      TOTAL     type of costs: long long or double
//   SKEW      1: As and Bs       LINEAR    1: L
//   STREAMED  what lies in global memory for want of room: 0 nothing, 1 T, 2 H too, 3 D and until too

#include "device/random.cuh"

#ifndef SIZE
#define SIZE 100
#define THREADS 256
#define DELTA int
#define ENTRY int
#define TOTAL long long
#define SKEW 0
#define LINEAR 0
#define BLOCKS 2
#define STREAMED 1
#endif

constexpr int N = SIZE;
using T = DELTA;
using W = ENTRY;
using T64 = TOTAL;

constexpr int LINES = (N / 2 + 3) / 4;  // quads of distances
constexpr int SLOTS = 4 * LINES;
static_assert(SLOTS < N, "a distance of N would pair a facility with itself");
constexpr int ITEMS = N * LINES, ROUNDS = (ITEMS + THREADS - 1) / THREADS;
constexpr int QUADS = (N + 3) / 4;                 // of a row of H
constexpr int STRIDE = 4 * (QUADS + 1 - QUADS % 2);  // an odd number of quads: a column meets 8 banks
constexpr int ROWS = THREADS / QUADS;              // of H at a time
static_assert(THREADS % 32 == 0 && ROWS >= 1, "a row of H is updated at once");
constexpr int WARPS = THREADS / 32;
constexpr int BATCH = 4;  // moves whose products are added to H at once
constexpr int UNROLL = ROUNDS <= 8 ? ROUNDS : 1;
constexpr int NEVER = 0x7fffffff;
constexpr int LEAST = (T)0.5 != (T)0 ? 1 << 24 : 1 << 30;  // no exchange gains more: aspiration below it means none

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

struct alignas(2 * sizeof(T)) Pair { T x, y; };
struct alignas(16) Quad { T of[4]; };
struct alignas(16) Dates { int of[4]; };

struct Shared {
    Pair pair[N + SLOTS];  // (x_u, y_pu) of the last move; its first again at the end: u + d needs no remainder
    Quad x[N];         // of up to BATCH moves that H has yet to be given
    Quad y[BATCH][QUADS];  // by location
#if SKEW
    Pair skew[N + SLOTS];
    Quad x_skew[N], y_skew[BATCH][QUADS];
#endif
    T least[WARPS];
    unsigned move[WARPS];
    short p[N], best[N], other[N], mark[N];
    T64 cost, best_cost;
    Quad h[STREAMED < 2 ? N * STRIDE / 4 : 1], d[STREAMED < 3 ? ITEMS : 1];
    Dates until[STREAMED < 3 ? ITEMS : 1];
    int tabu[STREAMED < 1 ? N * N : 1];
};

// Where H, D, until and T lie.
struct Board {
    T *h;
    Quad *d;
    Dates *until;
    int *tabu;
};

constexpr long long TABU_BYTES = (long long)(N * N + 3) / 4 * 16;  // of a member in `scratch`
constexpr long long H_BYTES = (long long)N * STRIDE * sizeof(T), D_BYTES = (long long)ITEMS * sizeof(Quad);
constexpr long long SCRATCH = STREAMED == 0 ? 16
                              : STREAMED == 1 ? TABU_BYTES
                              : STREAMED == 2 ? TABU_BYTES + H_BYTES
                                              : TABU_BYTES + H_BYTES + D_BYTES + ITEMS * 16LL;

__device__ __forceinline__ Board lay(Shared &shared, unsigned char *scratch) {
    Board board;
    unsigned char *h = scratch + TABU_BYTES, *d = h + H_BYTES;
    board.tabu = STREAMED < 1 ? shared.tabu : reinterpret_cast<int *>(scratch);
    board.h = STREAMED < 2 ? shared.h[0].of : reinterpret_cast<T *>(h);
    board.d = STREAMED < 3 ? shared.d : reinterpret_cast<Quad *>(d);
    board.until = STREAMED < 3 ? shared.until : reinterpret_cast<Dates *>(d + D_BYTES);
    return board;
}

// Matrices, Members, Recipe, Epoch: what the host hands over.
#include "qap/memetic/layout.py"

// The exchange value of (u, v) from scratch, O(N).
__device__ T exchange(const Matrices &matrices, const short *p, int u, int v) {
    const int pu = p[u], pv = p[v];
    T sum = 0;
    for (int k = 0; k < N; ++k) {
        if (k == u || k == v) continue;
        const int pk = p[k];
        sum +=
            (T)(matrices.a[u * N + k] - matrices.a[v * N + k]) * (T)(matrices.b[pv * N + pk] - matrices.b[pu * N + pk]);
#if SKEW
        sum += (T)(matrices.a_skew[u * N + k] - matrices.a_skew[v * N + k]) *
               (T)(matrices.b_skew[pv * N + pk] - matrices.b_skew[pu * N + pk]);
#endif
    }
#if SKEW
    sum -= 2 * (T)matrices.a_skew[u * N + v] * (T)matrices.b_skew[pu * N + pv];
#endif
#if LINEAR
    sum += matrices.linear[u * N + pv] + matrices.linear[v * N + pu] - matrices.linear[u * N + pu] -
           matrices.linear[v * N + pv];
#endif
    return sum;
}

// The exchange value of (u, v) at pu and pv, short of the products that H has yet to be given.
__device__ __forceinline__ T value(const T *h, T a, T b, int u, int v, int pu, int pv) {
    return h[u * STRIDE + pv] + h[v * STRIDE + pu] - h[u * STRIDE + pu] - h[v * STRIDE + pv] + 2 * a * b;
}

// What that is short of by the first `waiting` moves of the batch. x is read word by word, as this move's word in the
// same quad is being written.
__device__ __forceinline__ T owed(const Shared &shared, int waiting, int u, int v, int pu, int pv) {
    const volatile T *x_u = shared.x[u].of, *x_v = shared.x[v].of;
    T sum = 0;
    for (int i = 0; i < waiting; ++i) {
        const T *product = shared.y[i][0].of;
        sum += (x_u[i] - x_v[i]) * (product[pv] - product[pu]);
#if SKEW
        const volatile T *x_skew_u = shared.x_skew[u].of, *x_skew_v = shared.x_skew[v].of;
        const T *y_skew = shared.y_skew[i][0].of;
        sum += (x_skew_u[i] - x_skew_v[i]) * (y_skew[pv] - y_skew[pu]);
#endif
    }
    return sum;
}

// s.p, which is as good as nothing before it, into shared.best.
__device__ __forceinline__ void keep_best(Shared &shared) {
    for (int i = threadIdx.x; i < N; i += THREADS) shared.best[i] = shared.p[i];
}

// No product is pending.
__device__ __forceinline__ void still(Shared &shared) {
    for (int i = threadIdx.x; i < N + SLOTS; i += THREADS) {
        shared.pair[i] = Pair{0, 0};
#if SKEW
        shared.skew[i] = Pair{0, 0};
#endif
    }
}

// Fill H, D, T, until and the objective from s.p. N^3 products for H, spread over the block.
__device__ __forceinline__ void open(Shared &shared, const Board &board, const Matrices &matrices, int n) {
    constexpr int TALL = 8;  // rows of H at a time
    const int thread = threadIdx.x;
    for (int item = thread; item < (N + TALL - 1) / TALL * N; item += THREADS) {
        const int u0 = item / N * TALL, l = item % N;
        T sum[TALL];
#pragma unroll
        for (int i = 0; i < TALL; ++i) sum[i] = LINEAR && u0 + i < N ? matrices.linear[(u0 + i) * N + l] : (T)0;
        for (int j = 0; j < N; ++j) {
            const T b = (T)matrices.b[shared.p[j] * N + l];
#if SKEW
            const T b_skew = -(T)matrices.b_skew[shared.p[j] * N + l];
#endif
#pragma unroll
            for (int i = 0; i < TALL; ++i) {
                const int u = min(u0 + i, N - 1);
                sum[i] += (T)matrices.a[u * N + j] * b;
#if SKEW
                sum[i] += (T)matrices.a_skew[u * N + j] * b_skew;
#endif
            }
        }
#pragma unroll
        for (int i = 0; i < TALL; ++i)
            if (u0 + i < N) board.h[(u0 + i) * STRIDE + l] = sum[i];
    }
    for (int i = thread; i < N * N; i += THREADS) board.tabu[i] = i / N < n && i % N < n ? 0 : NEVER;
    still(shared);
    for (int i = thread; i < N; i += THREADS) shared.best[i] = shared.p[i];
    __syncthreads();  // H -> D, cost
    for (int item = thread; item < ITEMS; item += THREADS) {
        const int u = item % N;
        for (int k = 0; k < 4; ++k) {
            const int v = (u + 1 + item / N * 4 + k) % N, pu = shared.p[u], pv = shared.p[v];
            board.d[item].of[k] = value(board.h, (T)matrices.a[u * N + v], (T)matrices.b[pu * N + pv], u, v, pu, pv);
            board.until[item].of[k] = max(u, v) < n ? 0 : NEVER;
        }
    }
    if (thread < 32) {
        T64 twice = 0;
        for (int i = thread; i < N; i += 32) {
            twice += (T64)board.h[i * STRIDE + shared.p[i]];
#if LINEAR
            twice += (T64)matrices.linear[i * N + shared.p[i]];
#endif
        }
        twice = warp_sum(twice);
        if (thread == 0) shared.best_cost = shared.cost = twice / 2;
    }
    __syncthreads();  // D, cost -> all
}

// D by the products of the move before; the least admissible exchange of this thread and its slot.
__device__ __forceinline__ T advance_d(Shared &shared, const Board &board, int iteration, T aspiration, int &slot) {
    T least = Limit<T>::top();
#pragma unroll UNROLL
    for (int round = 0; round < ROUNDS; ++round) {
        const int item = threadIdx.x + round * THREADS, u = item % N, base = u + 1 + item / N * 4;
        if (round == ROUNDS - 1 && item >= ITEMS) break;
        const Pair own = shared.pair[u];
#if SKEW
        const Pair own_skew = shared.skew[u];
#endif
        Quad d = board.d[item];
        const Dates until = board.until[item];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const Pair other = shared.pair[base + k];
            d.of[k] -= (own.x - other.x) * (own.y - other.y);
#if SKEW
            const Pair skew = shared.skew[base + k];
            d.of[k] -= (own_skew.x - skew.x) * (own_skew.y - skew.y);
#endif
            if ((until.of[k] <= iteration || d.of[k] < aspiration) && d.of[k] < least) {
                least = d.of[k];
                slot = round * 4 + k;
            }
        }
        board.d[item] = d;
    }
    return least;
}

// The least admissible exchange of the block: value and (r, q) to every thread. One barrier; ties fall at random.
__device__ __forceinline__ T choose(
    Shared &shared, const Board &board, int iteration, T aspiration, unsigned draw, int &r, int &q) {
    int slot = 0;
    const T least = advance_d(shared, board, iteration, aspiration, slot), warp_least = redux_min(least);
    const int item = threadIdx.x + (slot >> 2) * THREADS, u = item % N;
    int other = u + 1 + item / N * 4 + (slot & 3);
    if (other >= N) other -= N;
    const unsigned shuffled = (draw ^ (threadIdx.x * 2654435761u)) & 0xfff00000u;
    const unsigned mark = least == warp_least ? shuffled | (unsigned)(u << 10) | (unsigned)other : 0xffffffffu;
    const unsigned warp_mark = __reduce_min_sync(FULL_WARP, mark);
    if (threadIdx.x % 32 == 0) {
        shared.least[threadIdx.x / 32] = warp_least;
        shared.move[threadIdx.x / 32] = warp_mark;
    }
    __syncthreads();  // every warp's candidate, D and H are there; pair and y were read
    const int lane = threadIdx.x % 32;
    const T mine_least = lane < WARPS ? shared.least[lane] : Limit<T>::top();
    const T block_least = redux_min(mine_least);
    const bool has_least = lane < WARPS && mine_least == block_least;
    const unsigned block_mark = __reduce_min_sync(FULL_WARP, has_least ? shared.move[lane] : 0xffffffffu);
    r = (block_mark >> 10) & 1023;
    q = block_mark & 1023;
    return block_least;
}

// Value and date of the pair (line, v) into each of its slots.
__device__ __forceinline__ void put(const Board &board, int line, int v, T value, int until) {
    const int ahead = v - line + (v < line ? N : 0), behind = N - ahead;
    if (ahead <= SLOTS) {
        const int at = (ahead - 1) / 4 * N + line, k = (ahead - 1) % 4;
        reinterpret_cast<T *>(board.d + at)[k] = value;
        reinterpret_cast<int *>(board.until + at)[k] = until;
    }
    if (behind <= SLOTS) {
        const int at = (behind - 1) / 4 * N + v, k = (behind - 1) % 4;
        reinterpret_cast<T *>(board.d + at)[k] = value;
        reinterpret_cast<int *>(board.until + at)[k] = until;
    }
}

// Facilities r and q change places; each is tabu where it was until an iteration of its own.
struct Move {
    int r, q, until_r, until_q;
};

// What an exchange of r and q means for facility v: x, y, and its pairs with r and q. s.p is as it was before the
// exchange, and `waiting` moves were not yet given to H. Each thread writes what belongs to its v alone; q's thread
// writes the pair (r, q).
__device__ __forceinline__ void touch(Shared &shared, const Board &board, const Matrices &matrices, const Move &move,
                                      int waiting) {
    const int r = move.r, q = move.q, until_r = move.until_r, until_q = move.until_q;
    const int a = shared.p[r], b = shared.p[q];
    for (int v = threadIdx.x; v < N; v += THREADS) {
        const int pv = v == r ? b : v == q ? a : shared.p[v];
        const T a_r = (T)matrices.a[r * N + v], a_q = (T)matrices.a[q * N + v], b_r = (T)matrices.b[b * N + pv],
                b_q = (T)matrices.b[a * N + pv];
        const Pair pair = {a_r - a_q, b_r - b_q};
        shared.pair[v] = pair;
        if (v < SLOTS) shared.pair[v + N] = pair;
        shared.x[v].of[waiting] = pair.x;
        shared.y[waiting][0].of[pv] = pair.y;
#if SKEW
        const Pair skew = {(T)(matrices.a_skew[r * N + v] - matrices.a_skew[q * N + v]),
                           (T)(matrices.b_skew[b * N + pv] - matrices.b_skew[a * N + pv])};
        shared.skew[v] = skew;
        if (v < SLOTS) shared.skew[v + N] = skew;
        shared.x_skew[v].of[waiting] = skew.x;
        shared.y_skew[waiting][0].of[pv] = skew.y;
#endif
        if (v != r) {
            const int kept = min(board.tabu[r * N + pv], board.tabu[v * N + b]);
            const T change = value(board.h, a_r, b_r, r, v, b, pv) + owed(shared, waiting, r, v, b, pv);
            put(board, r, v, change, v == q ? min(until_r, until_q) : kept);
        }
        if (v != r && v != q) {
            const int kept = min(board.tabu[q * N + pv], board.tabu[v * N + a]);
            put(board, q, v, value(board.h, a_q, b_q, q, v, a, pv) + owed(shared, waiting, q, v, a, pv), kept);
        }
    }
}

// H by the products of a batch: a thread updates one quad of locations in every ROWS-th row.
__device__ __forceinline__ void advance_h(const Shared &shared, const Board &board) {
    const int quad = threadIdx.x % QUADS;
    int u = threadIdx.x / QUADS;
    if (u >= ROWS) return;
    Quad y[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; ++i) y[i] = shared.y[i][quad];
#if SKEW
    Quad y_skew[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; ++i) y_skew[i] = shared.y_skew[i][quad];
#endif
#pragma unroll (N / ROWS <= 16 ? 2 : 1)
    for (; u < N; u += ROWS) {
        Quad &at = reinterpret_cast<Quad *>(board.h + u * STRIDE)[quad];
        const Quad x = shared.x[u];
        Quad h = at;
#pragma unroll
        for (int k = 0; k < 16; ++k) h.of[k % 4] += x.of[k / 4] * y[k / 4].of[k % 4];
#if SKEW
        const Quad x_skew = shared.x_skew[u];
#pragma unroll
        for (int k = 0; k < 16; ++k) h.of[k % 4] += x_skew.of[k / 4] * y_skew[k / 4].of[k % 4];
#endif
        at = h;
    }
}
