// One sweep over a matrix that gives row sums, row weights and weighted column sums, reading each byte once.
//
// A team of CS blocks (a cluster when CS > 1) owns whole rows; block `rank` of it owns `width` columns of each. Thread t
// owns the same columns of every row, so that column values and column sums stay in its registers. Groups of R rows
// arrive by bulk copy in slots of shared memory. In step k, between two block barriers,
//
//   THREADS threads     forward(k)         their shares of the R row sums
//                       backward(k - LAG)  column sums += weight * row
//   one more warp       refill             the slot that group k - 1 - LAG left
//                       weigh(k - 1)       sum of shares -> [exchange in the cluster] -> row weight
//
// so neither the latency of a reduction nor that of a logarithm is ever waited for. The matrix does not depend on the
// column values: while the grid reduces the column sums, copies for the next sweep are already under way.
// A file that includes this defines forward_step, backward_step (one element), ROWS_KEEP_REFERENCE (row sums are relative
// to the last ones) and STORES_TERMS (forward leaves its terms in shared memory for backward).
#include "uot/marginals.cuh"

#ifndef POINTS
#define POINTS 0    // 1: no matrix; costs come from coordinates in registers, and slots hold the terms of a group
#endif
#ifndef ELEM
#define ELEM 0      // storage: 0 float32, 1 float16, 2 bfloat16
#define Q 5         // 16-byte pieces of a row that one thread owns
#define R 1         // rows of a group
#define CS 1        // blocks that share a row
#define THREADS 512
#endif

#if ELEM == 0
constexpr int VEC = 4;
constexpr int BYTES = 4;
#else
constexpr int VEC = 8;
constexpr int BYTES = 2;
#endif
constexpr int WARPS = THREADS / 32;
constexpr int LAG = CS > 1 ? 3 : 2;
constexpr int COLUMNS = Q * VEC;  // of one thread

#if POINTS
struct Place {
    float x, y, z;  // of a column's point, scaled so that costs come in log2 units
};
#else
struct Place {};
#endif

// What a block keeps for each of its rows: log2 of the mass, and the log2 of the last row sum; its point.
struct Row {
    float log_mass, reference;
#if POINTS
    Place at;
    float norm;
#endif
};

struct Block {
    unsigned char* slot;            // kept + ring slots of R * width elements
    unsigned long long* full;       // one barrier per slot
    unsigned long long* exchanged;  // 4 barriers, one per row sum in flight between the blocks of a cluster
    float* share;                   // [4][R][WARPS]
    float* weight;                  // [4][R]
    float* sums;                    // [4][CS][R], written by the other blocks of the cluster
    Row* row;                       // [count * R]
    int team, teams, rank, width, count, kept, ring, streamed;
};

__device__ __forceinline__ Block lay_out(unsigned char* shared, const Problem& p, int kept, int ring) {
    Block b;
    b.rank = blockIdx.x % CS;
    b.team = blockIdx.x / CS;
    b.teams = gridDim.x / CS;
    b.width = p.ld / CS;
    const int groups = (p.m + R - 1) / R;
    b.count = (groups - b.team + b.teams - 1) / b.teams;
    b.kept = kept < b.count ? kept : b.count;
    b.streamed = b.count - b.kept;
    b.ring = ring + kept - b.kept;
    b.slot = shared;
    unsigned char* at = shared + (size_t)(kept + ring) * R * b.width * BYTES;
    b.full = reinterpret_cast<unsigned long long*>(at);
    b.exchanged = b.full + kept + ring;
    b.share = reinterpret_cast<float*>(b.exchanged + 4);
    b.weight = b.share + 4 * R * WARPS;
    b.sums = b.weight + 4 * R;
    b.row = reinterpret_cast<Row*>(b.sums + 4 * CS * R);
    return b;
}

// First row of the team's k-th group.
__device__ __forceinline__ int first_row(const Block& b, int k) { return (b.team + b.teams * k) * R; }

__device__ __forceinline__ void load(const Block& b, const Problem& p, const unsigned char* matrix, int k, int slot) {
    barrier_expect(b.full + slot, R * b.width * BYTES);
    for (int r = 0; r < R; ++r) {
        const size_t from = ((size_t)(first_row(b, k) + r) * p.ld + (size_t)b.rank * b.width) * BYTES;
        bulk_copy(b.slot + ((size_t)slot * R + r) * b.width * BYTES, matrix + from, b.width * BYTES, b.full + slot);
    }
    bulk_commit(b.full + slot);
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
//   potential = power * (alpha - log2 row sum) + beta, (alpha, beta) = (0, log2 a) for the product reference, else (log2 a, 0)
// A row without mass weighs 0.
__device__ __forceinline__ float row_weight(const Problem& p, Row& row, float sum, double* potential) {
    const float alpha = p.product ? 0.f : row.log_mass, beta = p.product ? row.log_mass : 0.f;
    const float reference = ROWS_KEEP_REFERENCE ? row.reference : 0.f;
    const bool empty = row.log_mass == -INFINITY;
    const bool lost = !empty && !(sum > 0.f && sum < INFINITY);  // under- or overflow: the NaN ends up in every gap
    const float log_sum = empty || lost ? 0.f : log2f(sum);
    // (1 - power) * reference is small when power is near 1, where potential + reference would cancel
    const float now = STORES_TERMS ? 0.f : log_sum;
    const float weight = ROWS_KEEP_REFERENCE
                             ? exp2f((1.f - p.power_a) * reference + now + p.power_a * (alpha - log_sum) + beta)
                             : exp2f(p.power_a * (alpha - log_sum) + beta);
    if (potential) {
        const double f = (double)p.power_a * (alpha - ((double)reference + log_sum)) + beta;
        *potential = empty ? -INFINITY : f;
    }
    if (!empty) row.reference = reference + log_sum;
    return empty ? 0.f : lost ? NAN : weight;
}

// The sum of the shares of row r over the warps, in lane r.
__device__ __forceinline__ float sum_shares(const Block& b, int buffer) {
    const int lane = threadIdx.x & 31;
    float mine = 0.f;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const float sum = warp_sum(lane < WARPS ? b.share[(buffer * R + r) * WARPS + lane] : 0.f);
        if (lane == r) mine = sum;
    }
    return mine;
}

__device__ __forceinline__ void weigh(const Block& b, const Problem& p, int k, int buffer, float sum, double* potential) {
    const int lane = threadIdx.x & 31;
    if (lane >= R) return;
    const int i = first_row(b, k) + lane;
    double* place = b.rank == 0 && i < p.m ? potential + i : nullptr;
    b.weight[buffer * R + lane] = row_weight(p, b.row[k * R + lane], sum, place);
}

// Sends this block's sums of group `number` (counted over all sweeps) to every block of the cluster.
__device__ __forceinline__ void send_sums(const Block& b, unsigned number, float sum) {
    const int lane = threadIdx.x & 31, buffer = number & 3;
    if (lane == 0) barrier_expect(b.exchanged + buffer, CS * R * 4);
    __syncwarp();
    if (lane < R) {
        for (int peer = 0; peer < CS; ++peer)
            send(b.sums + (buffer * CS + b.rank) * R + lane, sum, b.exchanged + buffer, peer);
    }
}

__device__ __forceinline__ float receive_sums(const Block& b, unsigned number) {
    const int lane = threadIdx.x & 31, buffer = number & 3;
    barrier_wait_cluster(b.exchanged + buffer, (number >> 2) & 1);
    float sum = 0.f;
    for (int peer = 0; peer < CS && lane < R; ++peer) sum += b.sums[(buffer * CS + peer) * R + lane];
    return sum;
}

// Where the groups of one sweep lie: kept slots in order, streamed ones around the ring, spread evenly.
struct Cursor {
    int error = 0, next_kept = 0;
    __device__ __forceinline__ bool streams(const Block& b) {
        error += b.streamed;
        if (error < b.count) return false;
        error -= b.count;
        return true;
    }
};

__device__ __forceinline__ void forward(const Block& b, int slot, const Problem& p, const float (&column)[COLUMNS],
                                        const Place (&place)[COLUMNS], const Row* row, float (&sum)[R]) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
        float part[2] = {0.f, 0.f};  // two chains of additions
        unsigned char* line = b.slot + ((size_t)slot * R + r) * b.width * BYTES;
#if !POINTS
        const float reference = ROWS_KEEP_REFERENCE ? row[r].reference : 0.f;
#endif
#pragma unroll
        for (int q = 0; q < Q; ++q) {
            const int j = (q * THREADS + threadIdx.x) * VEC;
            if (q < Q - 1 || j < b.width) {  // all pieces but the last are whole
                float x[VEC];
#if POINTS
#pragma unroll
                for (int e = 0; e < VEC; ++e) x[e] = point_term(row[r], place[q * VEC + e], column[q * VEC + e], part[e & 1]);
#else
                read(line + (size_t)j * BYTES, x);
#pragma unroll
                for (int e = 0; e < VEC; ++e) x[e] = forward_step(x[e], column[q * VEC + e], reference, p.scale, part[e & 1]);
#endif
#if STORES_TERMS
                *reinterpret_cast<float4*>(line + (size_t)j * BYTES) = make_float4(x[0], x[1], x[2], x[3]);
#endif
            }
        }
        sum[r] = part[0] + part[1];
    }
}

__device__ __forceinline__ void share_sums(const Block& b, int buffer, const float (&sum)[R]) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const float total = warp_sum(sum[r]);
        if ((threadIdx.x & 31) == 0) b.share[(buffer * R + r) * WARPS + threadIdx.x / 32] = total;
    }
}

__device__ __forceinline__ void backward(const Block& b, int slot, int buffer, const Problem& p, const float (&column)[COLUMNS],
                                         const Row* row, float (&total)[COLUMNS]) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const float reference = ROWS_KEEP_REFERENCE ? row[r].reference : 0.f;
        const float weight = b.weight[buffer * R + r];
        const unsigned char* line = b.slot + ((size_t)slot * R + r) * b.width * BYTES;
#pragma unroll
        for (int q = 0; q < Q; ++q) {
            const int j = (q * THREADS + threadIdx.x) * VEC;
            if (q < Q - 1 || j < b.width) {  // all pieces but the last are whole
                float x[VEC];
                read(line + (size_t)j * BYTES, x);
#pragma unroll
                for (int e = 0; e < VEC; ++e)
                    total[q * VEC + e] = backward_step(x[e], column[q * VEC + e], reference, p.scale, weight, total[q * VEC + e]);
            }
        }
    }
}

// How far the launch has come, over all its sweeps. Compute threads count slots, the other warp counts refills.
struct Progress {
    unsigned groups = 0;    // weighed so far
    unsigned streamed = 0;  // of them, groups that came around the ring
    unsigned last = 0;      // streamed groups that the launch can need at most
    int slot = 0;           // of the ring, next
    unsigned phase = 0;     // of that slot's barrier
};

// Issues the copies of the streamed groups in order, sweep after sweep, around the ring. One thread.
struct Loader {
    Cursor cursor;
    unsigned issued = 0;
    int k = 0, slot = 0;
    __device__ __forceinline__ void next(const Block& b, const Problem& p, const unsigned char* matrix) {
        for (;; ++k) {
            if (k == b.count) k = 0, cursor = Cursor();
            if (cursor.streams(b)) break;
        }
        load(b, p, matrix, k++, b.kept + slot);
        if (++slot == b.ring) slot = 0;
        ++issued;
    }
};

// The slot of the sweep's next group; `wait` says whether to wait until it is there.
__device__ __forceinline__ int next_slot(const Block& b, Cursor& cursor, Progress& now, bool wait) {
    if (POINTS) return cursor.next_kept++ % (LAG + 1);
    if (!cursor.streams(b)) {
        if (wait) barrier_wait(b.full + cursor.next_kept, 0);
        return cursor.next_kept++;
    }
    ++now.streamed;
    const int slot = b.kept + now.slot;
    if (wait) barrier_wait(b.full + slot, now.phase);
    if (++now.slot == b.ring) now.slot = 0, now.phase ^= 1;
    return slot;
}

__device__ __forceinline__ void compute(const Block& b, const Problem& p, const float (&column)[COLUMNS],
                                        const Place (&place)[COLUMNS], float (&total)[COLUMNS], Progress& now) {
    Cursor ahead, behind;
    Progress then = now;  // where backward is
    for (int k = 0; k < b.count + LAG; ++k) {
        float sum[R];
        if (k < b.count) forward(b, next_slot(b, ahead, now, true), p, column, place, b.row + k * R, sum);
        if (k >= LAG)
            backward(b, next_slot(b, behind, then, false), (k - LAG) & 3, p, column, b.row + (k - LAG) * R, total);
        if (k < b.count) share_sums(b, k & 3, sum);
        if (STORES_TERMS && !POINTS) fence_async();
        __syncthreads();  // shares and weights written before are read after; the slot of group k - LAG is free
    }
}

// `ahead`: how many groups of the next sweep may be fetched before this one's columns are done: a deep queue of copies
// would hold up the small loads of the column phase.
__device__ __forceinline__ void weigh_groups(const Block& b, const Problem& p, const unsigned char* matrix, double* potential,
                                             Progress& now, Loader& loader, int ahead) {
    Cursor behind;
    const unsigned limit = min(now.last, now.streamed + b.streamed + ahead);
    for (int k = 0; k < b.count + LAG; ++k) {
        __syncthreads();  // as in compute
        if (CS == 1 && k < b.count) weigh(b, p, k, k & 3, sum_shares(b, k & 3), potential);
        if (CS > 1 && k < b.count) send_sums(b, now.groups + k, sum_shares(b, k & 3));
        if (CS > 1 && k > 0 && k <= b.count) weigh(b, p, k - 1, (k - 1) & 3, receive_sums(b, now.groups + k - 1), potential);
        if (!POINTS && k >= LAG && behind.streams(b)) {
            ++now.streamed;  // and its slot is free
            if ((threadIdx.x & 31) == 0 && loader.issued < limit) loader.next(b, p, matrix);
        }
    }
    now.groups += b.count;
}

__device__ __forceinline__ void sweep(const Block& b, const Problem& p, const unsigned char* matrix, double* potential,
                                      const float (&column)[COLUMNS], const Place (&place)[COLUMNS], float (&total)[COLUMNS],
                                      Progress& now, Loader& loader, int ahead) {
    if (threadIdx.x < THREADS) compute(b, p, column, place, total, now);
    else weigh_groups(b, p, matrix, potential, now, loader, ahead);
}
