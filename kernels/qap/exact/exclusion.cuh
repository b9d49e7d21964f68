// Pairs of pairs that nothing within the room holds, by one block: the twin of exclusion.py, which says why.
//
//   exclude: spread     leaders and prices in 16 bits, in shared memory                                  (once)
//            for each facility i, from the last to the first, all its locations j at once:
//                ask        what every (p, q) asks beside (i, j); is that within the room at all?   a warp per j
//                list       the (k, j, two l), k < i, one of which is open                         a warp per k
//                exclude    for each of them, a lane each: what all others ask of (i, j) and (k, l) is bounded by a row
//                           and a column reduction; beyond the room, the two exclude each other
//                bar        (i, j), if it was too dear alone, or a facility k is left without a place beside it
//            given up after the first facility, where that has excluded few
//
// Pairs of one facility have nothing to do with each other, so no thread reads in a step what another writes there.
// Where m is odd the last line is read twice, and not the one beyond it: the next block may be written just then.
//
// Numbers are leaders and prices shifted until the room is below NONE, rounded down, so nothing is excluded that should
// not be. What is excluded is NONE. All sums are of two numbers up to NONE and fit 16 bits; longer ones stop at NONE.
//
// buffer   shape               holds, in shared memory
// prices   pairs i < k, wide   two numbers a word: block [j][l], lines padded to an odd number of words
// asked    group, m - 1, r     the ask of (p, q) beside (i, j), in both halves of a word; h = HALF = (m + 1) / 2; four
//                              are read at once, so r is 2 h or 2 h + 2
// items    m, group h bytes    of each k < i: t h + x, where (k, 2 x) or (k, 2 x + 1) is open beside the t-th of the
//                              locations j that are asked now
// many     m                   of each k, how many items those are
// own      m, 33               leaders
// kept     m                   the facilities k, a bit each, that keep a place beside (i, j)
//
// A warp's lanes have one k, or two, and some x of several j. So they take the same way through the others' prices, and
// read the same words or neighbours: x lies in other banks than x + 1, and asks of j in others than those of j + 1.

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
// Words of the asks of a facility beside a location, and of all of them: an odd number of fours, so that locations lie
// in other banks than their neighbours.
__device__ __forceinline__ constexpr int ask_line(int half) { return (half + 1) / 2 * 4; }
__device__ __forceinline__ int ask_words(int m) { return 4 * ((m - 1) * (ask_line((m + 1) / 2) / 4) | 1); }
// Bytes of the items for each location.
__device__ __forceinline__ int item_bytes(int m) { return (m * ((m + 1) / 2) + 3) / 4 * 4; }
// Where the price of (i, j) and (k, l) is, in numbers of 16 bits.
__device__ __forceinline__ int place(int i, int j, int k, int l, int m) {
    const int line = word_line(m), block = word_block(m);
    return i < k ? 2 * (pair_of(i, k, m) * block + j * line) + l : 2 * (pair_of(k, i, m) * block + l * line) + j;
}

// What all facilities but i and k ask at least of (i, j) and of (k, 2 x), and of (k, 2 x + 1): in the halves of a word.
// ask: of (i, j), [m - 1][ask_line]. A function that is called, so that its loops have all registers to themselves.
template <int HALF>
__device__ __noinline__ unsigned demand(
    const unsigned *prices, const unsigned *ask, int i, int j, int k, int x, int m) {
    constexpr int LINE = HALF | 1;
    const int block = word_block(m), last = (m - 1) * LINE, second = 2 * x + 1 < m ? LINE : 0;
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
                for (int q = 0; q < 2 * HALF - 1; ++q) both[q] = from[q * LINE];
                both[2 * HALF - 1] = from[last];
            } else {
                const unsigned *from = prices + pair_of(k, p, m) * block + 2 * x * LINE, *other = from + second;
#pragma unroll
                for (int q = 0; q < HALF; ++q) {
                    both[2 * q] = __byte_perm(from[q], other[q], 0x5410);
                    both[2 * q + 1] = __byte_perm(from[q], other[q], 0x7632);
                }
            }
#pragma unroll
            for (int q = 0; q < 2 * HALF; q += 4) {
                if (q >= 2 * HALF - 4 && m < 2 * HALF) both[2 * HALF - 1] = NONE_TWICE;  // there is no such line
                const uint4 four = *reinterpret_cast<const uint4 *>(ask + q);
                both[q] += four.x;  // up to NONE each: no half carries
                both[q + 1] += four.y;
                least = __vimin3_s16x2(both[q], both[q + 1], least);
                if (q + 2 == 2 * HALF) break;
                both[q + 2] += four.z;
                both[q + 3] += four.w;
                least = __vimin3_s16x2(both[q + 2], both[q + 3], least);
            }
            total = __viaddmin_s16x2(total, least, NONE_TWICE);
            const unsigned less = (0x80008000u - least) ^ 0x80008000u;  // - least, of each half
#pragma unroll
            for (int q = 0; q < 2 * HALF; ++q) rest[q] = __viaddmin_s16x2(both[q], less, rest[q]);
        }
        ask += ask_line(HALF);
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

// So many blocks of pairs, one behind the other: from the first to the second it is `step` numbers, and `less` fewer each
// to the next ones.
struct Blocks {
    int step, less, many;
};

// What all q of the facilities of some blocks ask, for one warp; returns the sum of what each facility asks at least. own:
// of the first one, and of q = lane. rest: what q asks beyond its facility's least.
template <int HALF>
__device__ __forceinline__ int ask_of(
    const short *near, Blocks blocks, const short *own, unsigned *asks, int room, int &rest, int m) {
    const int lane = threadIdx.x % 32;
    int total = 0, step = blocks.step;
#pragma unroll 4
    for (int each = 0; each < blocks.many; ++each) {
        int asked = lane < m ? *near + own[each * 33] : NONE;
        if (asked > room) asked = NONE;
        if (lane < 2 * HALF) asks[each * ask_line(HALF)] = asked * 0x10001;
        const int least = __reduce_min_sync(FULL_WARP, asked);
        total += least;
        if (asked < NONE) rest = min(rest, asked - least);
        near += step;
        step -= blocks.less;
    }
    return total;
}

// What every (p, q) asks beside (i, j), for one warp; whether all that is asked is beyond the room.
template <int HALF>
__device__ __forceinline__ bool ask_beside(Exclusion &ours, const short *near, unsigned *asks, int i, int j, int m) {
    const int lane = threadIdx.x % 32, line = 2 * word_line(m), block = 2 * word_block(m);
    const short *before = near + pair_of(0, i, m) * block + lane * line + j, *own = ours.own + lane;
    const short *after = near + pair_of(i, i + 1, m) * block + j * line + lane;
    int rest = lane < m && lane != j ? NONE : 0, total = ours.own[i * 33 + j];
    asks += lane;
    total += ask_of<HALF>(before, {(m - 2) * block, block, i}, own, asks, ours.room, rest, m);
    own += (i + 1) * 33;
    total += ask_of<HALF>(after, {block, 0, m - 1 - i}, own, asks + i * ask_line(HALF), ours.room, rest, m);
    return total + __reduce_add_sync(FULL_WARP, rest) > ours.room;
}

// Locations `first` and on from there, as many as there is memory for: what is asked beside them; items; all prices.
struct Asked {
    short *near;
    unsigned *asks;
    unsigned char *items;
    int first, group;
};

// The items of facility k beside those of the locations that are `open` (a bit each), by one warp.
template <int HALF>
__device__ __forceinline__ void list_open(Exclusion &ours, const Asked beside_i, int k, unsigned open, int m) {
    const int lane = threadIdx.x % 32, size = min(beside_i.group, m - beside_i.first) * HALF;
    unsigned char *to = beside_i.items + k * beside_i.group * HALF;
    int many = 0;
    for (int first = 0; first < size; first += 32) {
        const int at = first + lane, turn = at / HALF, x = at - turn * HALF;
        bool some = false;
        if (at < size && (open >> (beside_i.first + turn) & 1)) {
            const unsigned *ask = beside_i.asks + turn * ask_words(m) + k * ask_line(HALF) + 2 * x;
            some = min(ask[0], ask[1]) < NONE_TWICE;
        }
        const unsigned all = __ballot_sync(FULL_WARP, some);
        if (some) to[many + __popc(all & ((1u << lane) - 1))] = at;
        many += __popc(all);
    }
    if (lane == 0) ours.many[k] = many;
}

// Facility i at all of those locations: the items, 32 at a time.
template <int HALF>
__device__ __forceinline__ void exclude_beside(
    Exclusion &ours, const Asked beside_i, int *prices, int i, int cap, int m) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int mine = lane < i ? ours.many[lane] : 0;
    int upto = mine, looked = 0, found = 0;  // items of the facilities up to the lane's
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(FULL_WARP, upto, step);
        if (lane >= step) upto += before;
    }
    const int all = __shfl_sync(FULL_WARP, upto, 31);
    for (int at = warp * 32 + lane; at - lane < all; at += 32 * m) {
        int k = 0;  // the first one whose items go beyond `at`
        for (int step = 16; step > 0; step /= 2)
            if (__shfl_sync(FULL_WARP, upto, k + step - 1) <= at) k += step;
        const int begins = __shfl_sync(FULL_WARP, upto - mine, k);
        if (at >= all) continue;
        const int item = beside_i.items[k * beside_i.group * HALF + at - begins];
        const int turn = item / HALF, x = item - turn * HALF, j = beside_i.first + turn;
        const unsigned *ask = beside_i.asks + turn * ask_words(m), *two = ask + k * ask_line(HALF) + 2 * x;
        const int beside[2] = {(int)(two[0] & 0xffff), (int)(two[1] & 0xffff)};
        const unsigned more = demand<HALF>(reinterpret_cast<const unsigned *>(beside_i.near), ask, i, j, k, x, m);
        const int own = ours.own[i * 33 + j];
        for (int half = 0; half < 2; ++half) {
            if (beside[half] == NONE) continue;
            ++looked;
            if (own + beside[half] + (int)(more >> 16 * half & 0xffff) <= ours.room) {
                if (!(ours.kept[j] >> k & 1)) atomicOr(&ours.kept[j], 1u << k);  // lanes of other k set other bits
                continue;
            }
            const int l = 2 * x + half;
            beside_i.near[place(k, l, i, j, m)] = NONE;
            prices[(pair_of(k, i, m) * m + l) * m + j] = cap;
            ++found;
        }
    }
    if (i < m - 1) return;
    __syncwarp();  // lanes without an item wait for the others
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
    unsigned char *items = reinterpret_cast<unsigned char *>(asked + group * ask_words(m));
    short *near = reinterpret_cast<short *>(items + group * item_bytes(m));
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, cap = room + 1;
    spread(ours, near, leaders, prices, room, m);
    __syncthreads();  // all numbers -> ask
    for (int i = m - 1; i >= 0; --i) {
        bool open = ours.own[i * 33 + warp] < NONE;
        for (int first = 0; first < m; first += group) {
            if (open && first <= warp && warp < first + group) {
                open = !ask_beside<HALF>(ours, near, asked + (warp - first) * ask_words(m), i, warp, m);
                if (!open && lane == 0) ours.own[i * 33 + warp] = NONE;
            }
            __syncthreads();  // asks, own -> list
            const unsigned some = __ballot_sync(FULL_WARP, lane < m && ours.own[i * 33 + lane] < NONE);
            if (warp < i) list_open<HALF>(ours, {near, asked, items, first, group}, warp, some, m);
            __syncthreads();  // items -> exclude
            exclude_beside<HALF>(ours, {near, asked, items, first, group}, prices, i, cap, m);
            __syncthreads();  // asks, items -> ask; prices, kept, counts -> all
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
