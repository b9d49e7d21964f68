// What one block of a sweep is: how its threads share the work, and where things lie in its shared memory.
//
// Geometry is compiled in (gpu_geometry.py chooses it): the constants below, then those that follow from them.
#include "uot/iteration/marginals.cuh"

#ifndef POINTS
#define POINTS 0  // 1: no matrix; costs come from coordinates, and slots hold the terms of a group
#endif
#ifndef ELEM
#define ELEM 0        // storage: 0 float32, 1 float16, 2 bfloat16
#define Q 1           // 16-byte pieces of a row that one thread owns
#define LANES 128     // threads along a row: a power of two up to 32, or a multiple of 32
#define RR 4          // rows of a thread in a group, at most LANES
#define CS 1          // blocks that share a row
#define THREADS 512   // that compute
#define SENDERS 64    // that pass row sums on
#define RECEIVERS 32  // that weigh rows
#define DEPTH 8  // groups whose sums may be on their way between blocks: 8, or 4 if a sweep has no more than 4 groups
#define KEEPS 0  // 1: all groups stay in their slots for all sweeps
#define FILLS 0  // 1: the pieces of a row are as many as its lanes own, none lies outside of it
#endif

#if ELEM == 0
constexpr int VEC = 4;
constexpr int BYTES = 4;
#else
constexpr int VEC = 8;
constexpr int BYTES = 2;
#endif
constexpr int WARPS = THREADS / 32;
#ifndef LAG
#define LAG (CS > 1 ? 3 : 2)  // groups between a sum and its weight's return
#endif
constexpr int COLUMNS = Q * VEC;  // of one thread
constexpr int ROW_LANES = THREADS / LANES;
constexpr int R = ROW_LANES * RR;                       // rows of a group
constexpr int RP = (R + 3) / 4 * 4;                     // with padding
constexpr int WARP_LANES = LANES < 32 ? LANES : 32;     // of one row in a warp
constexpr int ROW_WARPS = LANES < 32 ? 1 : LANES / 32;  // that share a row
constexpr int FOLDS = LANES < 32 ? WARPS : ROW_LANES;   // column sums of a block, after each warp has added up its own
constexpr int RR2 = RR > 4 ? 8 : RR > 2 ? 4 : RR;       // RR rounded up to a power of two
constexpr int WEIGHERS = SENDERS + RECEIVERS;
constexpr int MINE = (R + RECEIVERS - 1) / RECEIVERS;  // rows of a group that one receiver weighs

struct Block {
    unsigned char* slot;  // slots of R * width elements
    // barriers: two a slot; 4 each; DEPTH, for the sums of a group; 2, for the sums of columns.cuh; for the verdict
    unsigned long long *full, *empty, *shared, *weighed, *exchanged, *gathered, *settled;
    float* share;           // [4][ROW_WARPS][RP]
    float* weight;          // [4][RP]
    float* sums;            // [DEPTH][CS][RP], written by the blocks of the team
    float* fold;            // [FOLDS][width]
    float *value, *next;    // [width] each: log2 of the columns' values, of their image; next is the first line of fold
    const float* log_mass;  // [width] of all columns' in global memory
    float4* quick;          // [2][CS, busy_warps] of the sums that every iteration needs, written by the team's blocks
    float4* more;           // [2][CS][MORE / 4] of the others
    float* reference;       // [count * R]: log2 of the last row sum
    float* row_mass;        // [count * R]: log2 of the rows' masses; with POINTS those in global memory
    float* exact;  // [8]: by warp of the receivers, the rows' side of the dual value where their marginal is exact
    int team, teams, rank, width, count, slots, flight;
};

__device__ __forceinline__ float* take(unsigned char*& at, int floats) {
    float* place = reinterpret_cast<float*>(at);
    at += (size_t)floats * 4;
    return place;
}

// gpu_geometry.py counts the same bytes. What has a size known to the compiler comes first: its addresses are constants
// then, which the code between two sweeps would work out again and again otherwise.
__device__ __forceinline__ Block lay_out(unsigned char* shared, const Problem& p, int slots, int flight) {
    Block b;
    b.rank = blockIdx.x % CS;
    b.team = blockIdx.x / CS;
    b.teams = gridDim.x / CS;
    b.width = p.ld / CS;
    const int groups = (p.m + R - 1) / R;
    b.count = (groups - b.team + b.teams - 1) / b.teams;
    b.slots = KEEPS ? b.count : slots;
    b.flight = flight;
    unsigned char* at = shared;
    b.shared = reinterpret_cast<unsigned long long*>(take(at, 2 * (4 + 4 + DEPTH + 4)));
    b.weighed = b.shared + 4;
    b.exchanged = b.weighed + 4;
    b.gathered = b.exchanged + DEPTH;
    b.settled = b.gathered + 2;
    b.share = take(at, 4 * ROW_WARPS * RP);
    b.weight = take(at, 4 * RP);
    b.sums = take(at, DEPTH * CS * RP);
    b.quick = reinterpret_cast<float4*>(take(at, 2 * CS * WARPS * 4));
    b.more = reinterpret_cast<float4*>(take(at, 2 * CS * MORE));
    b.exact = take(at, 8);
    b.value = take(at, b.width);
    b.fold = take(at, FOLDS * b.width);
    b.next = b.fold;  // whoever reads a pair of sums there writes the same pair of images
    b.full = reinterpret_cast<unsigned long long*>(take(at, 2 * slots));
    b.empty = reinterpret_cast<unsigned long long*>(take(at, 2 * slots));
    at = shared + ((at - shared) + 127) / 128 * 128;
    b.slot = at;
    at += (size_t)slots * R * b.width * BYTES;
    b.reference = take(at, b.count * R);
    b.row_mass = POINTS ? nullptr : take(at, b.count * R);
    return b;
}

__device__ __forceinline__ bool computes() { return threadIdx.x < THREADS; }

// Barriers of the threads that compute and weigh, at the end of a sweep, and of those that compute alone; the feeding
// warp never waits for them.
__device__ __forceinline__ void sweep_barrier() {
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS + WEIGHERS) : "memory");
}
__device__ __forceinline__ void compute_barrier() { asm volatile("bar.sync 2, %0;" ::"n"(THREADS) : "memory"); }
