// Pairs of pairs that nothing within the room holds, by one block: the twin of exclusion.py, which says why.
//
//   exclude: spread     leaders and prices in 16 bits, in shared memory                                  (once)
//            for each facility i, from the last to the first, all its locations j at once:
//                ask        what every (p, q) asks beside (i, j); is that within the room at all?   a warp per j
//                exclude    for each k < i and two l at a time, a lane each: what all others ask of (i, j) and (k, l)
//                           is bounded by a row and a column reduction; beyond the room, the two exclude each other
//                bar        (i, j), if it was too dear alone, or a facility k is left without a place beside it
//            given up after the first facility, where that has excluded few
//
// Pairs of one facility have nothing to do with each other, so no thread reads in a step what another writes there.
//
// Numbers are leaders and prices shifted until the room is below NONE, rounded down, so nothing is excluded that should
// not be. What is excluded is NONE. All sums are of two numbers up to NONE and fit 16 bits; longer ones stop at NONE.
//
// buffer   shape               holds, in shared memory
// prices   pairs i < k, wide   two numbers a word: block [j][l], lines padded to an odd number of words
// asked    group, m - 1, 2 h   the ask of (p, q) beside (i, j), in both halves of a word; h = HALF = (m + 1) / 2
// items    group, m h bytes    k h + x for each (k, 2 x) and (k, 2 x + 1), k < i, one of which is open beside (i, j)
// many     m                   how many items those are
// own      m, 33               leaders
// kept     m                   the facilities k, a bit each, that keep a place beside (i, j)
//
// Blocks of prices begin in other banks than their neighbours, by four at least: lanes read of one k and of the next.

constexpr int NONE = 0x3fff, NONE_TWICE = 0x3fff3fff;

struct alignas(16) Exclusion {
    short own[32 * 33];
    unsigned kept[32];
    int many[32];
    int room, asked, found;
};

// Words of a line of prices, and of a block.
__device__ __forceinline__ int word_line(int m) { return (m + 1) / 2 | 1; }
__device__ __forceinline__ int word_block(int m) {
    const int words = m * word_line(m);
    return words + max(0, 4 - words % 32);
}
// Bytes of the items of a location.
__device__ __forceinline__ int item_bytes(int m) { return (m * ((m + 1) / 2) + 3) / 4 * 4; }
// Where the price of (i, j) and (k, l) is, in numbers of 16 bits.
__device__ __forceinline__ int place(int i, int j, int k, int l, int m) {
    const int line = word_line(m), block = word_block(m);
    return i < k ? 2 * (pair_of(i, k, m) * block + j * line) + l : 2 * (pair_of(k, i, m) * block + l * line) + j;
}

// What all facilities but i and k ask at least of (i, j) and of (k, 2 x), and of (k, 2 x + 1): in the halves of a word.
// ask: of (i, j), [m - 1][2 HALF]. A function that is called, so that its loops have all registers to themselves.
template <int HALF>
__device__ __noinline__ unsigned demand(
    const unsigned *prices, const unsigned *ask, int i, int j, int k, int x, int m) {
    constexpr int LINE = HALF | 1;
    const int block = word_block(m);
    unsigned total = 0, rest[2 * HALF];
#pragma unroll
    for (int q = 0; q < 2 * HALF; ++q) rest[q] = NONE_TWICE;
#pragma unroll 1
    for (int p = 0; p < m; ++p) {
        if (p == i) continue;
        if (p != k) {
            unsigned both[2 * HALF], least = NONE_TWICE;
            if (p < k) {
                const unsigned *from = prices + pair_of(p, k, m) * block + x;
#pragma unroll
                for (int q = 0; q < 2 * HALF; ++q) both[q] = from[q * LINE];
            } else {
                const unsigned *from = prices + pair_of(k, p, m) * block + 2 * x * LINE;
#pragma unroll
                for (int q = 0; q < HALF; ++q) {
                    both[2 * q] = __byte_perm(from[q], from[q + LINE], 0x5410);
                    both[2 * q + 1] = __byte_perm(from[q], from[q + LINE], 0x7632);
                }
            }
#pragma unroll
            for (int q = 0; q < 2 * HALF; q += 2) {
                if (q == 2 * HALF - 2 && m < 2 * HALF) both[q + 1] = NONE_TWICE;  // there is no such line
                const uint2 two = *reinterpret_cast<const uint2 *>(ask + q);
                both[q] = __viaddmin_s16x2(both[q], two.x, 0x7fff7fff);
                both[q + 1] = __viaddmin_s16x2(both[q + 1], two.y, 0x7fff7fff);
                least = __vimin3_s16x2(both[q], both[q + 1], least);
            }
            total = __viaddmin_s16x2(total, least, NONE_TWICE);
            const unsigned less = (0x80008000u - least) ^ 0x80008000u;  // - least, of each half
#pragma unroll
            for (int q = 0; q < 2 * HALF; ++q) rest[q] = __viaddmin_s16x2(both[q], less, rest[q]);
        }
        ask += 2 * HALF;
    }
#pragma unroll
    for (int q = 0; q < 2 * HALF; ++q) {  // the locations j and l are taken
        const unsigned open = q == j || q >= m ? 0 : x != q / 2 ? ~0u : q % 2 ? 0x0000ffffu : 0xffff0000u;
        total = __viaddmin_s16x2(total, rest[q] & open, NONE_TWICE);
    }
    return total;
}

// Leaders and prices in 16 bits; what has no number of lines is NONE.
__device__ void spread(Exclusion &ours, short *near, const int *leaders, const int *prices, int room, int m) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, line = word_line(m), block = word_block(m);
    int shift = 0;
    while (room >> shift >= NONE) ++shift;
    if (threadIdx.x == 0) { ours.room = room >> shift; ours.asked = ours.found = 0; }
    const int mine = lane < m ? leaders[warp * 33 + lane] : room + 1;
    ours.own[warp * 33 + lane] = mine > room ? NONE : mine >> shift;
    if (lane == 0) ours.kept[warp] = 0;
    for (int one = 0; one < m; ++one) {
        const bool open = leaders[one * 33 + warp] <= room && lane != warp && lane < m;
        const int *from = prices + (pair_of(one, one + 1, m) * m + warp) * m + lane;
        short *to = near + 2 * (pair_of(one, one + 1, m) * block + warp * line) + lane;
        for (int first = one + 1; first < m; first += AT_ONCE) {
            int taken[AT_ONCE];
#pragma unroll
            for (int more = 0; more < AT_ONCE; ++more)
                taken[more] = open && first + more < m ? from[(first + more - one - 1) * m * m] : NONE;
#pragma unroll
            for (int more = 0; more < AT_ONCE; ++more) {
                const int two = first + more;
                if (two >= m || lane >= 2 * line) break;
                const bool held = open && leaders[two * 33 + lane] <= room && taken[more] <= room;
                to[2 * (two - one - 1) * block] = held ? taken[more] >> shift : NONE;
            }
        }
    }
}

// What every (p, q) asks beside (i, j), for one warp, and the items; whether all that is asked is beyond the room.
template <int HALF>
__device__ __forceinline__ bool ask_beside(
    Exclusion &ours, const short *near, unsigned *asked, unsigned char *items, int i, int j, int m) {
    const int lane = threadIdx.x % 32;
    unsigned *to = asked + lane;
    int total = ours.own[i * 33 + j], rest = lane < m && lane != j ? NONE : 0;
    for (int p = 0; p < m; ++p) {
        if (p == i) continue;
        int mine = NONE;
        if (lane < m) mine = near[place(i, j, p, lane, m)] + ours.own[p * 33 + lane];
        if (mine > ours.room) mine = NONE;
        if (lane < 2 * HALF) *to = mine * 0x10001;
        const int least = __reduce_min_sync(FULL_WARP, mine);
        total += least;
        if (mine < NONE) rest = min(rest, mine - least);
        to += 2 * HALF;
    }
    if (total + __reduce_add_sync(FULL_WARP, rest) > ours.room) return true;
    __syncwarp();  // asks -> items
    int many = 0;
    for (int first = 0; first < i * HALF; first += 32) {
        const int at = first + lane;
        bool open = false;
        if (at < i * HALF) open = min(asked[2 * at], asked[2 * at + 1]) < NONE_TWICE;
        const unsigned all = __ballot_sync(FULL_WARP, open);
        if (open) items[many + __popc(all & ((1u << lane) - 1))] = at;
        many += __popc(all);
    }
    if (lane == 0) ours.many[j] = many;
    return false;
}

// Locations `first` and on from there, as many as there is memory for: what is asked beside them, and their items; and
// all prices.
struct Asked {
    short *near;
    unsigned *asks;
    unsigned char *items;
    int first;
};

// Facility i at those of the locations of `beside_i` that are `open` (a bit each).
template <int HALF>
__device__ __forceinline__ void exclude_beside(
    Exclusion &ours, const Asked beside_i, int *prices, int i, unsigned open, int cap, int m) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int mine = open >> lane & 1 ? (ours.many[lane] + 31) / 32 : 0;
    int upto = mine, looked = 0, found = 0;  // tasks of the locations up to the lane's
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(FULL_WARP, upto, step);
        if (lane >= step) upto += before;
    }
    const int tasks = __shfl_sync(FULL_WARP, upto, 31);
    for (int task = warp; task < tasks; task += m) {
        const int j = __ffs(__ballot_sync(FULL_WARP, upto > task)) - 1;
        const int at = (task - __shfl_sync(FULL_WARP, upto - mine, j)) * 32 + lane;
        if (at >= ours.many[j]) continue;
        const int turn = j - beside_i.first, item = beside_i.items[turn * item_bytes(m) + at];
        const int k = item / HALF, x = item - k * HALF;
        const unsigned *ask = beside_i.asks + turn * (m - 1) * 2 * HALF;
        const int beside[2] = {(int)(ask[2 * item] & 0xffff), (int)(ask[2 * item + 1] & 0xffff)};
        const unsigned more = demand<HALF>(reinterpret_cast<const unsigned *>(beside_i.near), ask, i, j, k, x, m);
        const int own = ours.own[i * 33 + j];
        for (int half = 0; half < 2; ++half) {
            if (beside[half] == NONE) continue;
            ++looked;
            if (own + beside[half] + (int)(more >> 16 * half & 0xffff) <= ours.room) {
                if (!(ours.kept[j] >> k & 1)) atomicOr(&ours.kept[j], 1u << k);  // lanes with other k set other bits
                continue;
            }
            const int l = 2 * x + half;
            beside_i.near[place(k, l, i, j, m)] = NONE;
            prices[(pair_of(k, i, m) * m + l) * m + j] = cap;
            ++found;
        }
    }
    if (i < m - 1) return;
    __syncwarp();  // lanes without a task wait for the others
    looked = __reduce_add_sync(FULL_WARP, looked);
    found = __reduce_add_sync(FULL_WARP, found);
    if (lane == 0) { atomicAdd(&ours.asked, looked); atomicAdd(&ours.found, found); }  // the warps' counts meet
}

// Raise to room + 1 the prices, and leaders, of what costs more than the room. Returns false when a facility is left
// without a place. `group`: how many locations' asks there is memory for.
template <int HALF>
__device__ bool exclude(unsigned char *raw, int *leaders, int *prices, int room, int group, int m) {
    Exclusion &ours = *reinterpret_cast<Exclusion *>(raw);
    unsigned *asked = reinterpret_cast<unsigned *>(raw + sizeof(Exclusion));
    unsigned char *items = reinterpret_cast<unsigned char *>(asked + group * (m - 1) * 2 * HALF);
    short *near = reinterpret_cast<short *>(items + group * item_bytes(m));
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, cap = room + 1;
    spread(ours, near, leaders, prices, room, m);
    __syncthreads();  // all numbers -> ask
    for (int i = m - 1; i >= 0; --i) {
        bool open = ours.own[i * 33 + warp] < NONE;
        for (int first = 0; first < m; first += group) {
            if (open && first <= warp && warp < first + group) {
                const int turn = warp - first;
                unsigned *ask = asked + turn * (m - 1) * 2 * HALF;
                open = !ask_beside<HALF>(ours, near, ask, items + turn * item_bytes(m), i, warp, m);
                if (!open && lane == 0) ours.own[i * 33 + warp] = NONE;
            }
            __syncthreads();  // asks, own -> exclude
            const bool asks = first <= lane && lane < min(first + group, m) && ours.own[i * 33 + lane] < NONE;
            const unsigned some = __ballot_sync(FULL_WARP, asks);
            if (i > 0) exclude_beside<HALF>(ours, {near, asked, items, first}, prices, i, some, cap, m);
            __syncthreads();  // asks -> ask; prices, kept, counts -> all
        }
        open = open && ours.kept[warp] == (1u << i) - 1;
        __syncwarp();  // kept was read by all lanes
        if (lane == 0) ours.kept[warp] = 0;
        if (!open && lane == 0) { leaders[i * 33 + warp] = cap; ours.own[i * 33 + warp] = NONE; }
        if (!__syncthreads_or(open)) return false;  // leaders, kept -> ask
        if (i == m - 1 && ours.found * FEW < ours.asked) break;
    }
    return true;
}
