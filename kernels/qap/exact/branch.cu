// Branch and bound for the quadratic assignment: one block makes one child, raises its bound and chooses its line.
//
//   ascend:  settle     the child's costs from its parent's, facility i of it at location j            (once)
//            gather     the leaders: the least assignment is what the bound gains                      (once)
//            repeat at most `sweeps` times:
//                exclude    pairs of pairs beside which a third facility finds no place (exclusion.cuh)
//                share      every leader is promised to the prices of its pair, evenly
//                for each row i in random order, all (i, j) at once, one warp each:
//                    take       price of ((i, j), (k, l)): half of it where row k comes later, else all of it
//                    assign     the least assignment of those prices: its value becomes the leader
//                    give       what the duals leave, and the half not taken, is the price again
//                    gain       the least leader of the row, which is the bound's at once
//                gather     as above
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
constexpr int AT_ONCE = 4;  // loads of global memory under way: one after the other they are most of a sweep's time

// Within a slot, which holds less than 2^19 numbers, 32 bits say where; slots are told apart by 64.
__device__ __forceinline__ int pair_of(int i, int k, int m) { return i * (2 * m - i - 1) / 2 + (k - i - 1); }  // i < k
__device__ __forceinline__ long long slot_size(int m) { return m * m + m * (m - 1) / 2 * m * m; }
__device__ __forceinline__ int price(const int *prices, int i, int j, int k, int l, int m) {
    return i < k ? prices[(pair_of(i, k, m) * m + j) * m + l] : prices[(pair_of(k, i, m) * m + l) * m + j];
}

#include "qap/exact/assignment.cuh"
#include "qap/exact/exclusion.cuh"

struct alignas(16) Shared {
    int leaders[32 * 33];
    int order[32], rank[32];
    int room, left;
};

// The child's leaders and prices from its parent's.
__device__ void settle(Shared &shared, const int *parent, int *prices, int i, int j, int m) {
    const int wide = m + 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int *theirs = parent + wide * wide;
    const int cap = shared.room + 1, l = lane + (lane >= j), k = warp + (warp >= i);
    if (lane < m) shared.leaders[warp * 33 + lane] = min(parent[k * wide + l] + price(theirs, i, j, k, l, wide), cap);
    const int *line = theirs + (warp + (warp >= j)) * wide + l;
    int *own = prices + warp * m + lane;
    if (lane >= m) return;
    for (int one = 0; one < m - 1; ++one) {
        const int above = one + (one >= i), *from = line + pair_of(above, above + 1, wide) * wide * wide;
        for (int first = one + 1; first < m; first += AT_ONCE) {
            int taken[AT_ONCE];
#pragma unroll
            for (int each = 0; each < AT_ONCE; ++each) {
                const int two = first + each, below = two + (two >= i);
                if (two < m) taken[each] = from[(below - above - 1) * wide * wide];
            }
#pragma unroll
            for (int each = 0; each < AT_ONCE; ++each) {
                if (first + each >= m) break;
                *own = taken[each];
                own += m * m;
            }
        }
    }
}

// Promise every leader to its prices; a random order of the rows.
__device__ void share(Shared &shared, int *promised, int m, unsigned &random) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, cap = shared.room + 1, at = warp * 33 + lane;
    if (lane < m) {
        const int leader = shared.leaders[at], each = leader >= cap ? cap : leader / (m - 1);
        promised[at] = each;
        shared.leaders[at] = leader >= cap ? cap : leader - each * (m - 1);
    }
    if (threadIdx.x != 0) return;
    for (int turn = 0; turn < m; ++turn) {
        random = random * 1664525u + 1013904223u;
        const int other = __umulhi(random, turn + 1);
        shared.order[turn] = shared.order[other];
        shared.order[other] = turn;
    }
    for (int turn = 0; turn < m; ++turn) shared.rank[shared.order[turn]] = turn;
}

// What leaders promise beside the prices of some rows: `own` and row[33], to rows whose turn comes later, a bit each. An
// asked price is `cap` at most.
struct Promised {
    int own;
    const int *row;
    unsigned later;
    int cap;
};

// Prices of row i and of other rows, a block each, from global memory, `far`, into the tile, `near`, or back.
template <bool TAKE>
__device__ __forceinline__ void carry(int *near, int *far, Blocks blocks, int across, Promised promised) {
    int step = blocks.step;
    const int many = blocks.many, cap = promised.cap;
    for (int first = 0; first < many; first += AT_ONCE) {
        int asks[AT_ONCE];
#pragma unroll
        for (int each = 0; each < AT_ONCE; ++each) {
            if (first + each >= many) break;
            if (TAKE)
                asks[each] = *far;
            else
                *far = near[each * across];
            far += step;
            step -= blocks.less;
        }
        if (TAKE) {
#pragma unroll
            for (int each = 0; each < AT_ONCE; ++each) {
                if (first + each >= many) break;
                int asked = asks[each];
                if (promised.later >> each & 1) asked += promised.own + promised.row[each * 33];
                near[each * across] = asked >= cap ? cap : promised.later >> each & 1 ? (asked + 1) >> 1 : asked;
            }
        }
        near += AT_ONCE * across;
        promised.row += AT_ONCE * 33;
        promised.later >>= AT_ONCE;
    }
}

// Prices of row i from global memory into tile[a][j][l], or back. Each warp moves line `warp` of every block: of rows
// before i that is their location, and j is the lane. later: rows whose turn comes later, a bit each.
template <bool TAKE>
__device__ __forceinline__ void move(Shared &shared, int *tile, int *prices, int i, unsigned later, int m) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, odd = m | 1, cap = shared.room + 1;
    const int *promised = tile - PROMISES;
    if (lane >= m) return;
    int *line = prices + warp * m + lane;
    int *before = line + pair_of(0, i, m) * m * m, *after = line + pair_of(i, i + 1, m) * m * m;
    const int across = m * odd, of_lane = promised[i * 33 + lane], of_warp = promised[i * 33 + warp];
    const Promised to_before = {of_lane, promised + warp, later, cap};
    const Promised to_after = {of_warp, promised + (i + 1) * 33 + lane, later >> i >> 1, cap};
    carry<TAKE>(tile + lane * odd + warp, before, {(m - 2) * m * m, m * m, i}, across, to_before);
    carry<TAKE>(tile + i * across + warp * odd + lane, after, {m * m, 0, m - 1 - i}, across, to_after);
}

// The submatrix of pair (i, j), j = warp: its least assignment becomes the leader, the rest stays price. A price that
// is beyond what is left, with its leaders, excludes.
__device__ __forceinline__ void ask(Shared &shared, int *tile, int i, unsigned later, int m) {
    const int lane = threadIdx.x % 32, j = threadIdx.x / 32, odd = m | 1, cap = shared.room + 1, less = m - 1;
    const int l = lane + (lane >= j);
    int *mine = tile + j * odd + l;
    const int stride = m * odd;
    int u = 0, v = 0, value = shared.leaders[i * 33 + j];
    const int left = shared.left;
    if (value < cap) value += assign(mine, stride, less, lane, u, v);
    if (value > left) value = cap;
#pragma unroll 4
    for (int each = 0; each < less; ++each) {
        const int row = __shfl_sync(FULL_WARP, u, each);
        if (lane >= less) continue;
        const int asked = mine[each * stride], k = each + (each >= i);
        const int kept = later >> k & 1 ? max(asked - 1, 0) : 0;  // the half not taken, to one unit
        const int price = asked - row - v + kept;
        const bool within = asked < cap && value < cap && price + value + shared.leaders[k * 33 + l] <= left;
        mine[each * stride] = within ? price : cap;
    }
    __syncwarp();  // the leader was read by all lanes
    if (lane == 0) shared.leaders[i * 33 + j] = value;
}

// The least assignment of the leaders is the bound's; shared.left falls by it.
__device__ __forceinline__ void gather(Shared &shared, int m) {
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x, cap = shared.room + 1;
        int u, v;
        const int gain = assign(shared.leaders + lane, 33, m, lane, u, v);
        for (int each = 0; each < m; ++each) {
            const int row = __shfl_sync(FULL_WARP, u, each);
            if (lane < m && shared.leaders[each * 33 + lane] < cap) shared.leaders[each * 33 + lane] -= row + v;
        }
        if (lane == 0) shared.left -= gain;
    }
    __syncthreads();  // leaders, left -> all
}

// One sweep: shared.left is the room after it. What a whole row asks is the bound's at once, and ends the sweep where
// it is more than is left.
__device__ __forceinline__ void sweep(Shared &shared, int *tile, int *prices, int m, unsigned &random) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    share(shared, tile - PROMISES, m, random);
    __syncthreads();  // shares and ranks -> take
    for (int turn = 0; turn < m; ++turn) {
        const int i = shared.order[turn];
        const unsigned later = __ballot_sync(FULL_WARP, lane < m && shared.rank[lane] > turn);
        move<true>(shared, tile, prices, i, later, m);
        __syncthreads();  // tile, leaders, left -> ask
        ask(shared, tile, i, later, m);
        __syncthreads();  // tile, leaders -> give
        const int mine = lane < m ? shared.leaders[i * 33 + lane] : TOP, least = __reduce_min_sync(FULL_WARP, mine);
        if (least > shared.left) {
            __syncthreads();  // left was read by all
            if (threadIdx.x == 0) shared.left = -1;
            __syncthreads();  // left -> all
            return;
        }
        move<false>(shared, tile, prices, i, later, m);
        __syncthreads();  // prices and tile -> take; leaders and left were read by all
        if (warp == 0 && mine <= shared.room) shared.leaders[i * 33 + lane] = mine - least;
        __syncwarp();  // leaders before left
        if (threadIdx.x == 0) shared.left -= least;
    }
    __syncthreads();  // left, leaders -> gather
    gather(shared, m);
}

// The line with the least work below it, by the first warp: a child weighs 2^(sharp * its room / this room).
__device__ void choose(const Shared &shared, int room, int m, float sharp, int *found) {
    const int lane = threadIdx.x;
    float least = 3e38f;
    int line = 0;
    for (int at = lane; at < 2 * m; at += 32) {
        float work = 0;
        for (int each = 0; each < m; ++each) {
            const int leader = shared.leaders[at < m ? at * 33 + each : each * 33 + at - m];
            const float part = (float)(room - leader) / (float)(room + 1);
            if (leader <= room) work += exp2f(sharp * part);
        }
        if (work < least) { least = work; line = at; }
    }
    const int bits = __reduce_min_sync(FULL_WARP, __float_as_int(least));  // positive floats are ordered as integers
    line = __reduce_min_sync(FULL_WARP, __float_as_int(least) == bits ? line : 64);
    if (lane == 0) found[1] = line;
    if (lane < m) found[2 + lane] = shared.leaders[line < m ? line * 33 + lane : lane * 33 + line - m];
}

// `exclude` with (m + 1) / 2 for HALF, which is one of LEAST to HALF here: its loops have as many words as there are.
template <int LEAST, int HALF>
__device__ __forceinline__ bool held(const AscendArgs &args, unsigned char *raw, int *leaders, int *prices, int room) {
    if constexpr (HALF > LEAST)
        if (args.m <= 2 * HALF - 2) return held<LEAST, HALF - 1>(args, raw, leaders, prices, room);
    return exclude<HALF>(raw, leaders, prices, room, args.group, args.m);
}

// One child. With exclusions where MOST > 0: then m is at most 2 MOST and more than 2 LEAST - 2.
template <int LEAST, int MOST> __device__ __forceinline__ void grow(const AscendArgs &args) {
    const int m = args.m;
    extern __shared__ __align__(16) unsigned char raw[];
    Shared &shared = *reinterpret_cast<Shared *>(raw);
    int *tile = reinterpret_cast<int *>(raw + sizeof(Shared)) + PROMISES;
    const Task task = args.tasks[blockIdx.x];
    int *slot = args.arena + task.slot * slot_size(m), *prices = slot + m * m;
    int *out = args.found + (long long)blockIdx.x * FOUND;
    const int *parent = args.parents + task.parent * slot_size(m + 1);
    if (threadIdx.x == 0) shared.left = shared.room = task.room - parent[task.i * (m + 1) + task.j];
    __syncthreads();  // room -> settle
    settle(shared, parent, prices, task.i, task.j, m);
    __syncthreads();  // leaders, prices -> gather
    gather(shared, m);
    unsigned random = 2654435761u * (task.i * 64 + task.j + 1);
    for (int k = 0; k < args.sweeps; ++k) {
        const int room = shared.left;
        if (room < 0) break;
        __syncthreads();  // left was read by all
        if (threadIdx.x == 0) shared.room = room;
        if constexpr (MOST > 0) {
            if (!held<LEAST, MOST>(args, raw + sizeof(Shared), shared.leaders, prices, room)) {
                if (threadIdx.x == 0) shared.left = -1;
                __syncthreads();  // left -> all
                break;
            }
        }
        __syncthreads();  // room, leaders, prices -> share
        sweep(shared, tile, prices, m, random);
        if (shared.left < 0 || (long long)(room - shared.left) * args.patience < shared.left) break;
    }
    const int room = shared.left;
    if (threadIdx.x == 0) out[0] = room;
    if (room < 0) return;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane < m) slot[warp * m + lane] = shared.leaders[warp * 33 + lane];
    if (warp == 0) choose(shared, room, m, args.sharp, out);
}

// Grid: children. Block: 32 m, a warp per location. Shared: Shared, then PROMISES and (m - 1) m (m | 1) int32, or what
// exclusion.cuh holds, dynamic.
// Reads: tasks, slots of the level above. Writes: one slot of this level and one line of `found` per child.
// Requires: 3 <= m <= 31, 0 <= room < 2^25; no two tasks write one slot.
// Work: m^2 assignments of size m - 1 a sweep; 4 m^3 (m - 1) bytes moved each way.
extern "C" __global__ void __launch_bounds__(1024, 2) ascend(const __grid_constant__ AscendArgs args) {
    grow<0, 0>(args);
}

// The same with exclusions, where two blocks have 64 registers a thread.
// Grid: children. Block: 32 m, a warp per location. Shared: Shared, then what exclusion.cuh holds or a sweep does.
// Reads: as ascend. Writes: as ascend. Requires: 5 <= m <= 16; else as ascend.
// Work: as ascend, and m^6 / 4 words of shared memory read at most for an exclusion.
extern "C" __global__ void __launch_bounds__(512, 2) ascend_narrow(const __grid_constant__ AscendArgs args) {
    grow<3, 8>(args);
}

// The same, where they have 56.
// Grid: children. Block: 32 m, a warp per location. Shared: as ascend_narrow.
// Reads: as ascend. Writes: as ascend. Requires: m = 17; else as ascend. Work: as ascend_narrow.
extern "C" __global__ void __launch_bounds__(544, 2) ascend_middle(const __grid_constant__ AscendArgs args) {
    grow<9, 9>(args);
}

// The same, where there is one block: beside another there is room for too few locations' asks at once. It has 96.
// Grid: children. Block: 32 m, a warp per location. Shared: as ascend_narrow.
// Reads: as ascend. Writes: as ascend. Requires: 18 <= m <= 20; else as ascend. Work: as ascend_narrow.
extern "C" __global__ void __launch_bounds__(640, 1) ascend_wide(const __grid_constant__ AscendArgs args) {
    grow<9, 10>(args);
}

// The same, where it has 80.
// Grid: children. Block: 32 m, a warp per location. Shared: as ascend_narrow.
// Reads: as ascend. Writes: as ascend. Requires: m = 21; else as ascend. Work: as ascend_narrow.
extern "C" __global__ void __launch_bounds__(672, 1) ascend_widest(const __grid_constant__ AscendArgs args) {
    grow<11, 11>(args);
}

// Grid: 1. Block: 1. Shared: none. Reads: nothing. Writes: out[0], out[1] = bytes of Shared and of Exclusion.
// Requires: nothing. Work: none.
extern "C" __global__ void layout(int *out) {
    out[0] = (int)sizeof(Shared);
    out[1] = (int)sizeof(Exclusion);
}
