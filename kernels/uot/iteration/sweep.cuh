// One sweep over a matrix that gives row sums, row weights and weighted column sums, reading each byte once.
//
// A team of CS blocks (a cluster) owns whole rows; block `rank` of it owns `width` columns of each, the same ones in
// every team. Groups of R rows arrive by bulk copy in slots of shared memory. THREADS threads compute, as LANES x
// ROW_LANES. The LANES share a row: each has the same Q pieces of 16 bytes of every row, and keeps the values and sums of
// these columns in registers. The ROW_LANES share a group: each has RR of its rows. For each group k,
//
//   THREADS threads     forward(k)     shares of R row sums                                        -> shared
//                       backward(k - LAG)  column sums += weight * row; leaves the slot of group k - LAG   -> empty
//   SENDERS threads     send_sums(k)   to every block of the team, through its shared memory       -> exchanged
//   RECEIVERS threads   weigh(k)       sum over the blocks -> row weight, in every block alike     -> weighed
//   one warp            feed(k)        copies into slots that were left, at most `flight` under way at a time  -> full
//
// Each arrow is a barrier in shared memory, for which only the next step waits. No step waits for all threads, so warps
// drift apart, and the latency of a reduction or a logarithm is hidden. Every thread arrives for itself: one arrival a
// warp behind __syncwarp takes the same time, but racecheck does not see that it orders the other lanes. The matrix does
// not depend on the column values. So `feed` copies through all sweeps of a launch without waiting for new values, and
// fills the ring of slots while columns are updated. It has no more copies under way than hide the memory's latency: more
// of them would only delay every other load.
//
// Shares and weights of 4 groups are kept, sums of DEPTH. Why nobody still reads what is overwritten:
//   A warp shares group k + 4 after its backward(k + 1), which needed the sums of k + 1 of all blocks. So every block had
//   sent k + 1, and the shares and weights of k are used up.
//   A block sends k + 6 after its backward(k + 3). So every block had done backward(k), and the sums of k are used up.
// A sweep of at most 4 groups needs a DEPTH of 4 only.
//
// A file that includes this defines forward_step, backward_step (one element), ROWS_KEEP_REFERENCE (row sums
// are relative to the last ones) and STORES_TERMS (forward leaves its terms in shared memory for backward).
#include "uot/iteration/block.cuh"

// Which group comes k-th in a sweep. Where groups stream through shared memory every other sweep takes them backwards:
// it begins with what the second-level cache still holds of the sweep before.
constexpr bool TURNS = !KEEPS && !POINTS;
__device__ __forceinline__ int in_turn(const Block& b, bool back, int k) {
    return TURNS && back ? b.count - 1 - k : k;
}

// First row of the team's k-th group.
__device__ __forceinline__ int first_row(const Block& b, int k) { return (b.team + b.teams * k) * R; }

// Copies group k into a slot; one warp. The block's part of the matrix lies together, so this is one copy: with pieces
// of a few KiB the copy engine does not reach the bandwidth. What lies in the slot behind the last row stays, as its
// weight is 0.
__device__ __forceinline__ void load(const Block& b, const Problem& p, const unsigned char* matrix, int k, int slot) {
    const int first = first_row(b, k), bytes = min(R, p.m - first) * b.width * BYTES;
    if ((threadIdx.x & 31) == 0) barrier_expect(b.full + slot, bytes);
    __syncwarp();  // the bytes are announced before they arrive
    bulk_copy(b.slot + (size_t)slot * R * b.width * BYTES, matrix + ((size_t)b.rank * p.m + first) * b.width * BYTES,
              bytes, b.full + slot);
}

// VEC elements of a row in shared memory, as floats.
__device__ __forceinline__ void read(const unsigned char* place, float (&x)[VEC]) {
    const uint4 raw = *reinterpret_cast<const uint4*>(place);
    const unsigned word[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#if ELEM == 0
        x[k] = __uint_as_float(word[k]);
#elif ELEM == 1
        asm("{ .reg .f16 lo, hi; mov.b32 {lo, hi}, %2; cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi; }"
            : "=f"(x[2 * k]), "=f"(x[2 * k + 1])
            : "r"(word[k]));
#else
        x[2 * k] = __uint_as_float(word[k] << 16);
        x[2 * k + 1] = __uint_as_float(word[k] & 0xffff0000u);
#endif
    }
}

// From a row sum to the weight of the row; keeps the row's reference and, in double, its potential.
//   potential = power * (alpha - log2 row sum) + beta
// with (alpha, beta) = (0, log2 a) for the product reference, else (log2 a, 0).
// A row without mass weighs 0.
__device__ __forceinline__ float row_weight(const Problem& p, float log_mass, float& kept_reference, float sum,
                                            double* potential, float& exact) {
    const float alpha = p.product ? 0.f : log_mass, beta = p.product ? log_mass : 0.f;
    const float reference = ROWS_KEEP_REFERENCE ? kept_reference : 0.f;
    const bool empty = log_mass == -INFINITY;
    const bool lost = !empty && !(sum > 0.f && sum < INFINITY);  // under- or overflow: the NaN ends up in every gap
    const float log_sum = empty || lost ? 0.f : __log2f(sum);
    // (1 - power) * reference is small when power is near 1, where potential + reference would cancel
    const float now = STORES_TERMS ? 0.f : log_sum;
    const float weight = ROWS_KEEP_REFERENCE
                             ? fast_exp2((1.f - p.power_a) * reference + now + p.power_a * (alpha - log_sum) + beta)
                             : fast_exp2(p.power_a * (alpha - log_sum) + beta);
    const float f = p.power_a * (alpha - (reference + log_sum));
    if (p.exact_rows && !empty) exact += exp2f(log_mass) * f;
    if (potential) *potential = empty ? -INFINITY : (double)p.power_a * (alpha - ((double)reference + log_sum)) + beta;
    if (ROWS_KEEP_REFERENCE && !empty) kept_reference = reference + log_sum;
    return empty ? 0.f : lost ? NAN : weight;
}

// Waits for a barrier of `depth` (a power of two) that groups take in turn; `number` counts groups over the launch.
__device__ __forceinline__ void group_wait(unsigned long long* barriers, unsigned number, int depth) {
    barrier_wait(barriers + (number & (depth - 1)), number / depth & 1);
}

// Sends this block's sums of a group to every block of the team.
__device__ __forceinline__ void send_sums(const Block& b, unsigned number) {
    const int t = threadIdx.x - THREADS, buffer = number & (DEPTH - 1);
    if (CS > 1 && t == 0) barrier_expect(b.exchanged + buffer, CS * RP * 4);
    group_wait(b.shared, number, 4);
#pragma unroll 1
    for (int i = t; i < RP / 4 * CS; i += SENDERS) {
        const int peer = i / (RP / 4), r = i % (RP / 4) * 4;
        const float* from = b.share + (number & 3) * ROW_WARPS * RP + r;
        float4 sum = *reinterpret_cast<const float4*>(from);
#pragma unroll
        for (int w = 1; w < ROW_WARPS; ++w) {
            const float4 x = *reinterpret_cast<const float4*>(from + w * RP);
            sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
        }
        send(b.sums + (buffer * CS + b.rank) * RP + r, sum, b.exchanged + buffer, peer, CS == 1);
    }
    barrier_arrive(b.exchanged + buffer);  // the shares were read: the sums tell that to their receivers alone
}

// A group in the order of a sweep.
struct Group {
    unsigned number;  // over the launch, for barriers
    int k;            // of this sweep, in its order
    bool back;        // the order is backwards
};

// The weights of group k; `stores`: and the potentials of its rows, which the blocks of the team take in turn.
__device__ __forceinline__ void weigh(const Block& b, const Problem& p, const Group group, const float* log_a,
                                      double* potential, bool stores, float& exact) {
    const unsigned number = group.number;
    const int k = in_turn(b, group.back, group.k);
    const int buffer = number & (DEPTH - 1);
    float mass[MINE];
#pragma unroll
    for (int c = 0; c < MINE; ++c) {
        const int r = threadIdx.x - THREADS - SENDERS + c * RECEIVERS, i = first_row(b, k) + r;
        mass[c] = r >= R || i >= p.m ? -INFINITY : POINTS ? __ldg(log_a + i) : b.row_mass[k * R + r];
    }
    group_wait(b.exchanged, number, DEPTH);
#pragma unroll
    for (int c = 0; c < MINE; ++c) {
        const int r = threadIdx.x - THREADS - SENDERS + c * RECEIVERS, i = first_row(b, k) + r;
        if (r >= R) break;
        float part[2] = {0.f, 0.f};
#pragma unroll
        for (int peer = 0; peer < CS; ++peer) part[peer & 1] += b.sums[(buffer * CS + peer) * RP + r];
        double* place = stores && k % CS == b.rank && i < p.m ? potential + i : nullptr;
        b.weight[(number & 3) * RP + r] =
            row_weight(p, mass[c], b.reference[k * R + r], part[0] + part[1], place, exact);
    }
    barrier_arrive(b.weighed + (number & 3));
}

// A place in the ring of slots, over all sweeps of the launch.
struct Place {
    int slot = 0;
    unsigned phase = 0;  // of the slot's barrier
    __device__ __forceinline__ int next(const Block& b) {
        const int here = slot;
        if (++slot == b.slots) slot = 0, phase ^= 1;
        return here;
    }
};

#if POINTS
struct Cloud;
__device__ __forceinline__ void point_terms(const Block& b, const Problem& p, const Cloud& cloud, int k,
                                            const float (&column)[COLUMNS], float (&sum)[RR2], unsigned char* slot);
#else
struct Cloud {};
#endif

// Where a computing thread reads: its first row in a group, and bytes from the slot to its first and its last piece of
// it. A last piece may lie outside of the row. The thread then reads the row's end, or where terms are stored its own first
// piece, if it has one. The columns' values make all of these terms vanish.
struct Lane {
    int first, whole, last, share;
    bool inside;
};

__device__ __forceinline__ Lane lane_of(const Block& b) {
    Lane l;
    const int lane = threadIdx.x % LANES, j = ((Q - 1) * LANES + lane) * VEC;
    l.first = threadIdx.x / LANES * RR;
    l.whole = (l.first * b.width + lane * VEC) * BYTES;
    l.inside = FILLS || j < b.width;
    l.last = STORES_TERMS && !l.inside ? l.whole : (l.first * b.width + min(j, b.width - VEC)) * BYTES;
    l.share = lane / 32 * RP + l.first + lane % WARP_LANES / (WARP_LANES / RR2);
    return l;
}

__device__ __forceinline__ unsigned char* slot_at(const Block& b, int slot) {
    return b.slot + (size_t)slot * R * b.width * BYTES;
}

__device__ __forceinline__ int piece(const Lane& l, int q) {
    return q < Q - 1 ? l.whole + q * LANES * VEC * BYTES : l.last;
}

__device__ __forceinline__ bool skipped(const Lane& l) { return STORES_TERMS && Q == 1 && !l.inside; }

#if !POINTS
__device__ __forceinline__ void forward(const Block& b, const Lane& l, unsigned char* slot, const Problem& p,
                                        const float (&column)[COLUMNS], const float* reference, float (&sum)[RR2]) {
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        if (skipped(l)) continue;
        unsigned char* line = slot + piece(l, q);
#pragma unroll
        for (int i = 0; i < RR; ++i, line += b.width * BYTES) {
            float x[VEC];
            read(line, x);
            const float above = ROWS_KEEP_REFERENCE ? reference[l.first + i] : 0.f;
#pragma unroll
            for (int e = 0; e < VEC; ++e) x[e] = forward_step(x[e], column[q * VEC + e], above, p.scale, sum[i]);
#if STORES_TERMS
            if (q < Q - 1 || l.inside) *reinterpret_cast<float4*>(line) = make_float4(x[0], x[1], x[2], x[3]);
#endif
        }
    }
}
#endif

// Adds up RR sums over the lanes of a row. Each step halves the distance and the number of sums. Lane l is left with sum
// number l / (WARP_LANES / RR2), and the first of the lanes that share a number writes it down.
__device__ __forceinline__ void share_sums(const Block& b, const Lane& l, int buffer, float (&sum)[RR2]) {
    const int lane = threadIdx.x & (WARP_LANES - 1);
#pragma unroll
    for (int halving = 0; (WARP_LANES >> halving) > 1; ++halving) {
        const int step = WARP_LANES >> (halving + 1), left = RR2 >> (halving + 1);
        if (left) {
#pragma unroll
            for (int k = 0; k < left; ++k) {
                const float give = lane & step ? sum[k] : sum[k + left], keep = lane & step ? sum[k + left] : sum[k];
                sum[k] = keep + __shfl_xor_sync(FULL_WARP, give, step);
            }
        } else {
            sum[0] += __shfl_xor_sync(FULL_WARP, sum[0], step);
        }
    }
    if (lane % (WARP_LANES / RR2) == 0 && lane / (WARP_LANES / RR2) < RR)
        b.share[buffer * ROW_WARPS * RP + l.share] = sum[0];
}

// Of a computing thread's columns: coordinates, values, and the sums that backward adds to.
struct Columns {
    const Cloud& cloud;
    const float (&value)[COLUMNS];
    float (&total)[COLUMNS];
};

__device__ __forceinline__ void backward(const Block& b, const Lane& l, const unsigned char* slot, int buffer,
                                         const Problem& p, const Columns& columns, const float* reference) {
    const float(&column)[COLUMNS] = columns.value;
    float(&total)[COLUMNS] = columns.total;
    float weight[RR];
#pragma unroll
    for (int i = 0; i < RR; ++i) weight[i] = b.weight[buffer * RP + l.first + i];
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        if (skipped(l)) continue;
        const unsigned char* line = slot + piece(l, q);
#pragma unroll
        for (int i = 0; i < RR; ++i, line += b.width * BYTES) {
            float x[VEC];
            read(line, x);
            const float above = ROWS_KEEP_REFERENCE ? reference[l.first + i] : 0.f;
#pragma unroll
            for (int e = 0; e < VEC; ++e)
                total[q * VEC + e] =
                    backward_step(x[e], column[q * VEC + e], above, p.scale, weight[i], total[q * VEC + e]);
        }
    }
}

// Group k forward, group k - LAG backward, without a branch between them, so that one hides the other.
template <bool AHEAD, bool BEHIND>
__device__ __forceinline__ void step(const Block& b, const Lane& l, const Problem& p, const Group group,
                                     const Columns& columns, Place& now, Place& then) {
    const unsigned number = group.number;
    const int k = group.k;
    const bool back = group.back;
    float sum[RR2] = {};
    if (AHEAD) {
        if (!POINTS) barrier_wait(b.full + now.slot, KEEPS ? 0 : now.phase);
        unsigned char* slot = slot_at(b, now.next(b));
#if POINTS
        point_terms(b, p, columns.cloud, k, columns.value, sum, slot);
#else
        forward(b, l, slot, p, columns.value, b.reference + in_turn(b, back, k) * R, sum);
#endif
    }
    if (BEHIND) {
        group_wait(b.weighed, number - LAG, 4);
        const int slot = then.next(b);
        const float* reference = b.reference + in_turn(b, back, k - LAG) * R;
        backward(b, l, slot_at(b, slot), (number - LAG) & 3, p, columns, reference);
        if (!POINTS && !KEEPS) fence_async(), barrier_arrive(b.empty + slot);
    }
    if (AHEAD) {
        share_sums(b, l, number & 3, sum);
        barrier_arrive(b.shared + (number & 3));
    }
}

// `groups`: of the launch, before this sweep.
__device__ __forceinline__ void compute(const Block& b, const Problem& p, const Columns& columns, unsigned groups,
                                        bool back, Place& now) {
    const Lane l = lane_of(b);
    Place then = now;  // where backward is
    int k = 0;
#pragma unroll 1
    for (; k < min(LAG, b.count); ++k)
        step<true, false>(b, l, p, {groups + k, k, back}, columns, now, then);
    k = LAG;
#pragma unroll 1
    for (; k < b.count; ++k) step<true, true>(b, l, p, {groups + k, k, back}, columns, now, then);
#pragma unroll 1
    for (; k < b.count + LAG; ++k) step<false, true>(b, l, p, {groups + k, k, back}, columns, now, then);
}

// The weighers' side of a sweep; leaves the rows' side of the dual value in b.exact where it is asked for.
__device__ __forceinline__ void weigh_groups(const Block& b, const Problem& p, const float* log_a, double* potential,
                                             bool stores, bool back, unsigned groups) {
    if (threadIdx.x < THREADS + SENDERS) {
#pragma unroll 1
        for (int k = 0; k < b.count; ++k) send_sums(b, groups + k);
        return;
    }
    float exact = 0.f;
#pragma unroll 1
    for (int k = 0; k < b.count; ++k)
        weigh(b, p, {groups + k, k, back}, log_a, potential, stores, exact);
    if (!p.exact_rows) return;
    exact = warp_sum(exact);
    if ((threadIdx.x & 31) == 0) b.exact[(threadIdx.x - THREADS - SENDERS) / 32] = exact;
}

// Copies the groups in order, sweep after sweep, around the ring; one warp. The barrier `stop` ends it when no slot
// becomes free any more. Copies under way land before it returns.
__device__ __forceinline__ void feed(const Block& b, const Problem& p, const unsigned char* matrix, int sweeps,
                                     unsigned long long* stop) {
    const unsigned last = KEEPS ? b.count : (unsigned)sweeps * b.count;
    unsigned issued = 0;
    bool back = false;
    for (int k = 0; issued < last; ++issued) {
        const int slot = issued % b.slots;
        bool stopped = false;
        if (issued >= b.slots)
            while (!barrier_done(b.empty + slot, (issued / b.slots - 1) & 1) && !stopped)
                stopped = barrier_done(stop, 0);
        if (__any_sync(FULL_WARP, stopped)) break;
        if (issued >= b.flight) {
            const unsigned before = issued - b.flight;
            barrier_wait(b.full + before % b.slots, (before / b.slots) & 1);
        }
        load(b, p, matrix, in_turn(b, back, k), slot);
        if (++k == b.count) k = 0, back = !back;
    }
    for (unsigned z = issued > b.flight ? issued - b.flight : 0; z < issued; ++z)
        barrier_wait(b.full + z % b.slots, (z / b.slots) & 1);
}
