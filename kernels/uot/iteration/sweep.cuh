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
__device__ __forceinline__ int in_turn(const Block& block, bool back, int k) {
    return TURNS && back ? block.count - 1 - k : k;
}

// First row of the team's k-th group.
__device__ __forceinline__ int first_row(const Block& block, int k) { return (block.team + block.teams * k) * R; }

// Copies group k into a slot; one warp. The block's part of the matrix lies together, so this is one copy: with pieces
// of a few KiB the copy engine does not reach the bandwidth. What lies in the slot behind the last row stays, as its
// weight is 0.
__device__ __forceinline__ void load(const Block& block, const Problem& problem, const unsigned char* matrix, int k,
                                     int slot) {
    const int first = first_row(block, k), bytes = min(R, problem.m - first) * block.width * BYTES;
    if ((threadIdx.x & 31) == 0) barrier_expect(block.full + slot, bytes);
    __syncwarp();  // the bytes are announced before they arrive
    bulk_copy(block.slot + (size_t)slot * R * block.width * BYTES,
              matrix + ((size_t)block.rank * problem.m + first) * block.width * BYTES, bytes, block.full + slot);
}

// VEC elements of a row in shared memory, as floats.
__device__ __forceinline__ void read(const unsigned char* place, float (&element)[VEC]) {
    const uint4 raw = *reinterpret_cast<const uint4*>(place);
    const unsigned word[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#if ELEM == 0
        element[k] = __uint_as_float(word[k]);
#elif ELEM == 1
        asm("{ .reg .f16 lo, hi; mov.b32 {lo, hi}, %2; cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi; }"
            : "=f"(element[2 * k]), "=f"(element[2 * k + 1])
            : "r"(word[k]));
#else
        element[2 * k] = __uint_as_float(word[k] << 16);
        element[2 * k + 1] = __uint_as_float(word[k] & 0xffff0000u);
#endif
    }
}

// From a row sum to the weight of the row; keeps the row's reference and, in double, its potential.
//   potential = power * (alpha - log2 row sum) + beta
// with (alpha, beta) = (0, log2 a) for the product reference, else (log2 a, 0).
// A row without mass weighs 0.
__device__ __forceinline__ float row_weight(const Problem& problem, float log_mass, float& kept_reference, float sum,
                                            double* potential, float& exact) {
    const float alpha = problem.product ? 0.f : log_mass, beta = problem.product ? log_mass : 0.f;
    const float reference = ROWS_KEEP_REFERENCE ? kept_reference : 0.f;
    const bool empty = log_mass == -INFINITY;
    const bool lost = !empty && !(sum > 0.f && sum < INFINITY);  // under- or overflow: the NaN ends up in every gap
    const float log_sum = empty || lost ? 0.f : __log2f(sum);
    // (1 - power) * reference is small when power is near 1, where potential + reference would cancel
    const float now = STORES_TERMS ? 0.f : log_sum;
    const float weight =
        ROWS_KEEP_REFERENCE
            ? fast_exp2((1.f - problem.power_a) * reference + now + problem.power_a * (alpha - log_sum) + beta)
            : fast_exp2(problem.power_a * (alpha - log_sum) + beta);
    const float f = problem.power_a * (alpha - (reference + log_sum));
    if (problem.exact_rows && !empty) exact += exp2f(log_mass) * f;
    if (potential)
        *potential = empty ? -INFINITY : (double)problem.power_a * (alpha - ((double)reference + log_sum)) + beta;
    if (ROWS_KEEP_REFERENCE && !empty) kept_reference = reference + log_sum;
    return empty ? 0.f : lost ? NAN : weight;
}

// Waits for a barrier of `depth` (a power of two) that groups take in turn; `number` counts groups over the launch.
__device__ __forceinline__ void group_wait(unsigned long long* barriers, unsigned number, int depth) {
    barrier_wait(barriers + (number & (depth - 1)), number / depth & 1);
}

// Sends this block's sums of a group to every block of the team.
__device__ __forceinline__ void send_sums(const Block& block, unsigned number) {
    const int thread = threadIdx.x - THREADS, buffer = number & (DEPTH - 1);
    if (CS > 1 && thread == 0) barrier_expect(block.exchanged + buffer, CS * RP * 4);
    group_wait(block.shared, number, 4);
#pragma unroll 1
    for (int i = thread; i < RP / 4 * CS; i += SENDERS) {
        const int peer = i / (RP / 4), row = i % (RP / 4) * 4;
        const float* from = block.share + (number & 3) * ROW_WARPS * RP + row;
        float4 sum = *reinterpret_cast<const float4*>(from);
#pragma unroll
        for (int warp = 1; warp < ROW_WARPS; ++warp) {
            const float4 other = *reinterpret_cast<const float4*>(from + warp * RP);
            sum = make_float4(sum.x + other.x, sum.y + other.y, sum.z + other.z, sum.w + other.w);
        }
        send(block.sums + (buffer * CS + block.rank) * RP + row, sum, block.exchanged + buffer, peer, CS == 1);
    }
    barrier_arrive(block.exchanged + buffer);  // the shares were read: the sums tell that to their receivers alone
}

// A group in the order of a sweep.
struct Group {
    unsigned number;  // over the launch, for barriers
    int k;            // of this sweep, in its order
    bool back;        // the order is backwards
};

// The weights of group k; `stores`: and the potentials of its rows, which the blocks of the team take in turn.
__device__ __forceinline__ void weigh(const Block& block, const Problem& problem, const Group group, const float* log_a,
                                      double* potential, bool stores, float& exact) {
    const unsigned number = group.number;
    const int k = in_turn(block, group.back, group.k);
    const int buffer = number & (DEPTH - 1);
    float mass[MINE];
#pragma unroll
    for (int each = 0; each < MINE; ++each) {
        const int row = threadIdx.x - THREADS - SENDERS + each * RECEIVERS, i = first_row(block, k) + row;
        mass[each] = row >= R || i >= problem.m ? -INFINITY : POINTS ? __ldg(log_a + i) : block.row_mass[k * R + row];
    }
    group_wait(block.exchanged, number, DEPTH);
#pragma unroll
    for (int each = 0; each < MINE; ++each) {
        const int row = threadIdx.x - THREADS - SENDERS + each * RECEIVERS, i = first_row(block, k) + row;
        if (row >= R) break;
        float part[2] = {0.f, 0.f};
#pragma unroll
        for (int peer = 0; peer < CS; ++peer) part[peer & 1] += block.sums[(buffer * CS + peer) * RP + row];
        double* place = stores && k % CS == block.rank && i < problem.m ? potential + i : nullptr;
        block.weight[(number & 3) * RP + row] =
            row_weight(problem, mass[each], block.reference[k * R + row], part[0] + part[1], place, exact);
    }
    barrier_arrive(block.weighed + (number & 3));
}

// A place in the ring of slots, over all sweeps of the launch.
struct Place {
    int slot = 0;
    unsigned phase = 0;  // of the slot's barrier
    __device__ __forceinline__ int next(const Block& block) {
        const int here = slot;
        if (++slot == block.slots) slot = 0, phase ^= 1;
        return here;
    }
};

#if POINTS
struct Cloud;
__device__ __forceinline__ void point_terms(const Block& block, const Problem& problem, const Cloud& cloud, int k,
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

__device__ __forceinline__ Lane lane_of(const Block& block) {
    Lane mine;
    const int lane = threadIdx.x % LANES, j = ((Q - 1) * LANES + lane) * VEC;
    mine.first = threadIdx.x / LANES * RR;
    mine.whole = (mine.first * block.width + lane * VEC) * BYTES;
    mine.inside = FILLS || j < block.width;
    mine.last =
        STORES_TERMS && !mine.inside ? mine.whole : (mine.first * block.width + min(j, block.width - VEC)) * BYTES;
    mine.share = lane / 32 * RP + mine.first + lane % WARP_LANES / (WARP_LANES / RR2);
    return mine;
}

__device__ __forceinline__ unsigned char* slot_at(const Block& block, int slot) {
    return block.slot + (size_t)slot * R * block.width * BYTES;
}

__device__ __forceinline__ int piece_at(const Lane& mine, int piece) {
    return piece < Q - 1 ? mine.whole + piece * LANES * VEC * BYTES : mine.last;
}

__device__ __forceinline__ bool skipped(const Lane& mine) { return STORES_TERMS && Q == 1 && !mine.inside; }

#if !POINTS
__device__ __forceinline__ void forward(const Block& block, const Lane& mine, unsigned char* slot,
                                        const Problem& problem, const float (&column)[COLUMNS], const float* reference,
                                        float (&sum)[RR2]) {
#pragma unroll
    for (int piece = 0; piece < Q; ++piece) {
        if (skipped(mine)) continue;
        unsigned char* line = slot + piece_at(mine, piece);
#pragma unroll
        for (int i = 0; i < RR; ++i, line += block.width * BYTES) {
            float element[VEC];
            read(line, element);
            const float above = ROWS_KEEP_REFERENCE ? reference[mine.first + i] : 0.f;
#pragma unroll
            for (int each = 0; each < VEC; ++each)
                element[each] = forward_step(element[each], column[piece * VEC + each], above, problem.scale, sum[i]);
#if STORES_TERMS
            if (piece < Q - 1 || mine.inside)
                *reinterpret_cast<float4*>(line) = make_float4(element[0], element[1], element[2], element[3]);
#endif
        }
    }
}
#endif

// Adds up RR sums over the lanes of a row. Each step halves the distance and the number of sums. Lane l is left with sum
// number l / (WARP_LANES / RR2), and the first of the lanes that share a number writes it down.
__device__ __forceinline__ void share_sums(const Block& block, const Lane& mine, int buffer, float (&sum)[RR2]) {
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
        block.share[buffer * ROW_WARPS * RP + mine.share] = sum[0];
}

// Of a computing thread's columns: coordinates, values, and the sums that backward adds to.
struct Columns {
    const Cloud& cloud;
    const float (&value)[COLUMNS];
    float (&total)[COLUMNS];
};

__device__ __forceinline__ void backward(const Block& block, const Lane& mine, const unsigned char* slot, int buffer,
                                         const Problem& problem, const Columns& columns, const float* reference) {
    const float(&column)[COLUMNS] = columns.value;
    float(&total)[COLUMNS] = columns.total;
    float weight[RR];
#pragma unroll
    for (int i = 0; i < RR; ++i) weight[i] = block.weight[buffer * RP + mine.first + i];
#pragma unroll
    for (int piece = 0; piece < Q; ++piece) {
        if (skipped(mine)) continue;
        const unsigned char* line = slot + piece_at(mine, piece);
#pragma unroll
        for (int i = 0; i < RR; ++i, line += block.width * BYTES) {
            float element[VEC];
            read(line, element);
            const float above = ROWS_KEEP_REFERENCE ? reference[mine.first + i] : 0.f;
#pragma unroll
            for (int each = 0; each < VEC; ++each)
                total[piece * VEC + each] = backward_step(element[each], column[piece * VEC + each], above,
                                                          problem.scale, weight[i], total[piece * VEC + each]);
        }
    }
}

// Group k forward, group k - LAG backward, without a branch between them, so that one hides the other.
template <bool AHEAD, bool BEHIND>
__device__ __forceinline__ void step(const Block& block, const Lane& mine, const Problem& problem, const Group group,
                                     const Columns& columns, Place& now, Place& then) {
    const unsigned number = group.number;
    const int k = group.k;
    const bool back = group.back;
    float sum[RR2] = {};
    if (AHEAD) {
        if (!POINTS) barrier_wait(block.full + now.slot, KEEPS ? 0 : now.phase);
        unsigned char* slot = slot_at(block, now.next(block));
#if POINTS
        point_terms(block, problem, columns.cloud, k, columns.value, sum, slot);
#else
        forward(block, mine, slot, problem, columns.value, block.reference + in_turn(block, back, k) * R, sum);
#endif
    }
    if (BEHIND) {
        group_wait(block.weighed, number - LAG, 4);
        const int slot = then.next(block);
        const float* reference = block.reference + in_turn(block, back, k - LAG) * R;
        backward(block, mine, slot_at(block, slot), (number - LAG) & 3, problem, columns, reference);
        if (!POINTS && !KEEPS) fence_async(), barrier_arrive(block.empty + slot);
    }
    if (AHEAD) {
        share_sums(block, mine, number & 3, sum);
        barrier_arrive(block.shared + (number & 3));
    }
}

// `groups`: of the launch, before this sweep.
__device__ __forceinline__ void compute(const Block& block, const Problem& problem, const Columns& columns,
                                        unsigned groups, bool back, Place& now) {
    const Lane mine = lane_of(block);
    Place then = now;  // where backward is
    int k = 0;
#pragma unroll 1
    for (; k < min(LAG, block.count); ++k)
        step<true, false>(block, mine, problem, {groups + k, k, back}, columns, now, then);
    k = LAG;
#pragma unroll 1
    for (; k < block.count; ++k) step<true, true>(block, mine, problem, {groups + k, k, back}, columns, now, then);
#pragma unroll 1
    for (; k < block.count + LAG; ++k)
        step<false, true>(block, mine, problem, {groups + k, k, back}, columns, now, then);
}

// The weighers' side of a sweep; leaves the rows' side of the dual value in block.exact where it is asked for.
__device__ __forceinline__ void weigh_groups(const Block& block, const Problem& problem, const float* log_a,
                                             double* potential, bool stores, bool back, unsigned groups) {
    if (threadIdx.x < THREADS + SENDERS) {
#pragma unroll 1
        for (int k = 0; k < block.count; ++k) send_sums(block, groups + k);
        return;
    }
    float exact = 0.f;
#pragma unroll 1
    for (int k = 0; k < block.count; ++k)
        weigh(block, problem, {groups + k, k, back}, log_a, potential, stores, exact);
    if (!problem.exact_rows) return;
    exact = warp_sum(exact);
    if ((threadIdx.x & 31) == 0) block.exact[(threadIdx.x - THREADS - SENDERS) / 32] = exact;
}

// Copies the groups in order, sweep after sweep, around the ring; one warp. The barrier `stop` ends it when no slot
// becomes free any more. Copies under way land before it returns.
__device__ __forceinline__ void feed(const Block& block, const Problem& problem, const unsigned char* matrix, int sweeps,
                                     unsigned long long* stop) {
    const unsigned last = KEEPS ? block.count : (unsigned)sweeps * block.count;
    unsigned issued = 0;
    bool back = false;
    for (int k = 0; issued < last; ++issued) {
        const int slot = issued % block.slots;
        bool stopped = false;
        if (issued >= block.slots)
            while (!barrier_done(block.empty + slot, (issued / block.slots - 1) & 1) && !stopped)
                stopped = barrier_done(stop, 0);
        if (__any_sync(FULL_WARP, stopped)) break;
        if (issued >= block.flight) {
            const unsigned before = issued - block.flight;
            barrier_wait(block.full + before % block.slots, (before / block.slots) & 1);
        }
        load(block, problem, matrix, in_turn(block, back, k), slot);
        if (++k == block.count) k = 0, back = !back;
    }
    for (unsigned left = issued > block.flight ? issued - block.flight : 0; left < issued; ++left)
        barrier_wait(block.full + left % block.slots, (left / block.slots) & 1);
}
