// Branch and bound for the quadratic assignment: one block makes one child, raises its bound and chooses its line.
//
//   ascend:  settle     the child's costs from its parent's, facility i of it at location j            (once)
//            repeat at most `sweeps` times:
//                share      every leader is promised to the prices of its pair, evenly
//                for each row i in random order, all (i, j) at once, one warp each:
//                    take       price of ((i, j), (k, l)): half of it where row k comes later, else all of it
//                    assign     the least assignment of those prices: its value becomes the leader
//                    give       what the duals leave, and the half not taken, is the price again
//                assign     the leaders: the least assignment is what the bound gains
//            choose     the row or column of leaders with the least work below it
//
// The bound is the dual ascent of Hahn and Grant (1998) on the level-1 reformulation. A pair here is a facility at a
// location. Two pairs cost something together, and either of them may be asked to pay it: one price stands for both. That
// is m (m - 1) / 2 m^2 prices for m facilities. The pairs of one row, which is a facility, have no price in common. So
// the block works on a whole row in one step.
//
// Invariant between steps: objective >= bound + the sum of a permutation's leaders and prices, all of them >= 0.
// `room` is how far the bound may still rise: nothing is sought that costs more. A leader above it excludes its
// pair, a price above it excludes two pairs together; both stay at `cap` = room + 1 or above for the whole subtree.
//
// buffer   shape             holds
// arena    slots of a level  int32: m^2 leaders, then m (m - 1) / 2 blocks [j][l] of m^2 prices, for rows i < k
// tasks    children          Task: parent's slot, own slot, i, j, the parent's room
// found    children, FOUND   int32: room left (negative: done), the line chosen, the leaders of that line
// The host keeps a stack of nodes for each level and takes from the deepest (gpu_branch.py).
//
// Bound: cap < 2^25, so that a path of 32 of them and their duals stay below 2^31.
//
// References: Hahn, Grant, Hall, A branch-and-bound algorithm for the QAP based on the Hungarian method (1998). Hahn et
// al., Tree elaboration strategies in branch-and-bound algorithms for solving the QAP (2001).
//
// docs/notes/qap.md: how fast it is, and what was tried, with its figures.

#include "qap/exact/layout.py"

constexpr int TOP = 0x3fffffff;

__device__ __forceinline__ long long pair_of(int i, int k, int m) {  // i < k
    return (long long)i * (2 * m - i - 1) / 2 + (k - i - 1);
}
__device__ __forceinline__ long long slot_size(int m) { return (long long)m * m + (long long)m * (m - 1) / 2 * m * m; }
__device__ __forceinline__ int price(const int *prices, int i, int j, int k, int l, int m) {
    return i < k ? prices[(pair_of(i, k, m) * m + j) * m + l] : prices[(pair_of(k, i, m) * m + l) * m + j];
}

// The least assignment of `size` rows to as many lanes, by one warp; `mine[a * stride]` is what row a asks of this
// lane. Leaves row duals u (lane a holds row a's) and column duals v; returns their sum. Shortest augmenting paths.
__device__ int assign(const int *mine, int stride, int size, int lane, int &u, int &v) {
    const bool live = lane < size;
    v = TOP;
    if (live)
        for (int a = 0; a < size; ++a) v = min(v, mine[a * stride]);
    int row_of = -1, column_of = -1;
    u = 0;
    unsigned open = size == 32 ? FULL_WARP : (1u << size) - 1u, waiting = 0;
    for (int a = 0; a < size; ++a) {
        const int left = live ? mine[a * stride] - v : TOP;
        const int least = __reduce_min_sync(FULL_WARP, left);
        const unsigned free = __ballot_sync(FULL_WARP, left == least) & open;
        if (lane == a) u = least;
        if (free == 0) { waiting |= 1u << a; continue; }
        const int column = __ffs(free) - 1;
        open &= ~(1u << column);
        if (lane == column) row_of = a;
        if (lane == a) column_of = column;
    }
    while (waiting) {
        const int source = __ffs(waiting) - 1;
        waiting &= waiting - 1;
        const int of_source = __shfl_sync(FULL_WARP, u, source);
        int shortest = live ? mine[source * stride] - of_source - v : TOP;
        int before = source, sink, top;
        bool reached = !live;
        while (true) {
            top = __reduce_min_sync(FULL_WARP, reached ? 0x7fffffff : shortest);
            const unsigned next = __ballot_sync(FULL_WARP, !reached && shortest == top);
            if (next & open) { sink = __ffs(next & open) - 1; break; }
            const int column = __ffs(next) - 1;
            reached |= lane == column;
            const int row = __shfl_sync(FULL_WARP, row_of, column);
            const int base = top - __shfl_sync(FULL_WARP, u, row);
            const int length = reached ? TOP : base + mine[row * stride] - v;
            if (length < shortest) { shortest = length; before = row; }
        }
        const unsigned seen = __ballot_sync(FULL_WARP, reached && live);
        const int rise = top - __shfl_sync(FULL_WARP, shortest, column_of & 31);
        if (column_of >= 0 && (seen >> column_of & 1)) u += rise;
        if (lane == source) u += top;
        if (reached && live) v -= top - shortest;
        open &= ~(1u << sink);
        for (int column = sink;;) {
            const int row = __shfl_sync(FULL_WARP, before, column), then = __shfl_sync(FULL_WARP, column_of, row);
            if (lane == column) row_of = row;
            if (lane == row) column_of = column;
            if (row == source) break;
            column = then;
        }
    }
    return __reduce_add_sync(FULL_WARP, live ? u + v : 0);
}

struct Shared {
    int leaders[32 * 33], share[32 * 33];
    int order[32], rank[32];
    int room, gain;
};

// The child's leaders and prices from its parent's.
__device__ void settle(Shared &s, const int *parent, int *prices, int i, int j, int m) {
    const int wide = m + 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int *theirs = parent + wide * wide;
    const int cap = s.room + 1, l = lane + (lane >= j), k = warp + (warp >= i);
    if (lane < m) s.leaders[warp * 33 + lane] = min(parent[k * wide + l] + price(theirs, i, j, k, l, wide), cap);
    for (int a = 0; a < m; ++a) {
        for (int b = a + 1; b < m; ++b) {
            const long long from = pair_of(a + (a >= i), b + (b >= i), wide) * wide * wide;
            const long long to = pair_of(a, b, m) * m * m;
            if (lane < m) prices[to + warp * m + lane] = theirs[from + (warp + (warp >= j)) * wide + l];
        }
    }
}

// Promise every leader to its prices; a random order of the rows.
__device__ void share(Shared &s, int m, unsigned &random) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, cap = s.room + 1, at = warp * 33 + lane;
    if (lane < m) {
        const int leader = s.leaders[at], each = leader >= cap ? cap : leader / (m - 1);
        s.share[at] = each;
        s.leaders[at] = leader >= cap ? cap : leader - each * (m - 1);
    }
    if (threadIdx.x != 0) return;
    for (int t = 0; t < m; ++t) {
        random = random * 1664525u + 1013904223u;
        const int other = __umulhi(random, t + 1);
        s.order[t] = s.order[other];
        s.order[other] = t;
    }
    for (int t = 0; t < m; ++t) s.rank[s.order[t]] = t;
}

// Prices of row i from global memory into tile[a][j][l], or back. Each warp moves line `warp` of every block.
template <bool TAKE> __device__ __forceinline__ void move(Shared &s, int *tile, int *prices, int i, int m) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, odd = m | 1, cap = s.room + 1;
    if (lane >= m) return;
    for (int a = 0; a < m - 1; ++a) {
        const int k = a + (a >= i), j = k > i ? warp : lane, l = k > i ? lane : warp;
        int *far = prices + (pair_of(min(i, k), max(i, k), m) * m + warp) * m + lane;
        int *near = tile + (a * m + j) * odd + l;
        if (TAKE) {
            int x = *far;
            const bool later = s.rank[k] > s.rank[i];
            if (later) x += s.share[i * 33 + j] + s.share[k * 33 + l];
            *near = x >= cap ? cap : later ? (x + 1) >> 1 : x;
        } else {
            *far = *near;
        }
    }
}

// The submatrix of pair (i, j), j = warp: its least assignment becomes the leader, the rest stays price.
__device__ __forceinline__ void ask(Shared &s, int *tile, int i, int m) {
    const int lane = threadIdx.x % 32, j = threadIdx.x / 32, odd = m | 1, cap = s.room + 1, less = m - 1;
    int *mine = tile + j * odd + lane + (lane >= j);
    const int stride = m * odd;
    int u = 0, v = 0, value = s.leaders[i * 33 + j];
    if (value < cap) value = min(cap, value + assign(mine, stride, less, lane, u, v));
    for (int a = 0; a < less; ++a) {
        const int row = __shfl_sync(FULL_WARP, u, a);
        if (lane >= less) continue;
        const int x = mine[a * stride], k = a + (a >= i);
        const int kept = s.rank[k] > s.rank[i] ? max(x - 1, 0) : 0;  // the half not taken, to one unit
        mine[a * stride] = x >= cap || value >= cap ? cap : x - row - v + kept;
    }
    __syncwarp();  // the leader was read by all lanes
    if (lane == 0) s.leaders[i * 33 + j] = value;
}

// One sweep; what the bound gains is s.gain.
__device__ __forceinline__ void sweep(Shared &s, int *tile, int *prices, int m, unsigned &random) {
    share(s, m, random);
    __syncthreads();  // shares and ranks -> take
    for (int t = 0; t < m; ++t) {
        const int i = s.order[t];
        move<true>(s, tile, prices, i, m);
        __syncthreads();  // tile -> ask
        ask(s, tile, i, m);
        __syncthreads();  // tile -> give
        move<false>(s, tile, prices, i, m);
        __syncthreads();  // prices and tile -> take
    }
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x, cap = s.room + 1;
        int u, v;
        const int gain = assign(s.leaders + lane, 33, m, lane, u, v);
        for (int a = 0; a < m; ++a) {
            const int row = __shfl_sync(FULL_WARP, u, a);
            if (lane < m && s.leaders[a * 33 + lane] < cap) s.leaders[a * 33 + lane] -= row + v;
        }
        __syncwarp();  // room was read by all lanes
        if (lane == 0) { s.gain = gain; s.room -= gain; }
    }
    __syncthreads();  // gain, room -> all
}

// The line with the least work below it, by the first warp: a child weighs 2^(sharp * its room / this room).
__device__ void choose(const Shared &s, int m, float sharp, int *found) {
    const int lane = threadIdx.x;
    float least = 3e38f;
    int line = 0;
    for (int at = lane; at < 2 * m; at += 32) {
        float work = 0;
        for (int b = 0; b < m; ++b) {
            const int leader = s.leaders[at < m ? at * 33 + b : b * 33 + at - m];
            const float x = (float)(s.room - leader) / (float)(s.room + 1);
            if (leader <= s.room) work += exp2f(sharp * x);
        }
        if (work < least) { least = work; line = at; }
    }
    const int bits = __reduce_min_sync(FULL_WARP, __float_as_int(least));  // positive floats are ordered as integers
    line = __reduce_min_sync(FULL_WARP, __float_as_int(least) == bits ? line : 64);
    if (lane == 0) found[1] = line;
    if (lane < m) found[2 + lane] = s.leaders[line < m ? line * 33 + lane : lane * 33 + line - m];
}

// Grid: children. Block: 32 m, a warp per location. Shared: Shared and (m - 1) m (m | 1) int32, dynamic.
// Reads: tasks, slots of the level above. Writes: one slot of this level and one line of `found` per child.
// Requires: 3 <= m <= 31, 0 <= room < 2^25; no two tasks write one slot.
// Work: m^2 assignments of size m - 1 a sweep; 4 m^3 (m - 1) bytes moved each way.
extern "C" __global__ void __launch_bounds__(1024, 2) ascend(const __grid_constant__ AscendArgs args) {
    const int m = args.m;
    extern __shared__ __align__(16) unsigned char raw[];
    Shared &s = *reinterpret_cast<Shared *>(raw);
    int *tile = reinterpret_cast<int *>(raw + sizeof(Shared));
    const Task task = args.tasks[blockIdx.x];
    int *slot = args.arena + task.slot * slot_size(m), *prices = slot + m * m;
    int *out = args.found + (long long)blockIdx.x * FOUND;
    const int *parent = args.parents + task.parent * slot_size(m + 1);
    if (threadIdx.x == 0) s.room = task.room - parent[task.i * (m + 1) + task.j];
    __syncthreads();  // room -> settle
    settle(s, parent, prices, task.i, task.j, m);
    __syncthreads();  // leaders -> share
    unsigned random = 2654435761u * (task.i * 64 + task.j + 1);
    for (int k = 0; k < args.sweeps; ++k) {
        sweep(s, tile, prices, m, random);
        if (s.room < 0 || (long long)s.gain * args.patience < s.room) break;
    }
    if (threadIdx.x == 0) out[0] = s.room;
    if (s.room < 0) return;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane < m) slot[warp * m + lane] = s.leaders[warp * 33 + lane];
    if (warp == 0) choose(s, m, args.sharp, out);
}

// Grid: 1. Block: 1. Shared: none. Reads: nothing. Writes: out[0] = bytes of Shared. Requires: nothing. Work: none.
extern "C" __global__ void layout(int *out) { out[0] = (int)sizeof(Shared); }
