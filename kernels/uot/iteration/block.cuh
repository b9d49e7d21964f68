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
__device__ __forceinline__ Block lay_out(unsigned char* shared, const Problem& problem, int slots, int flight) {
    Block block;
    block.rank = blockIdx.x % CS;
    block.team = blockIdx.x / CS;
    block.teams = gridDim.x / CS;
    block.width = problem.ld / CS;
    const int groups = (problem.m + R - 1) / R;
    block.count = (groups - block.team + block.teams - 1) / block.teams;
    block.slots = KEEPS ? block.count : slots;
    block.flight = flight;
    unsigned char* at = shared;
    block.shared = reinterpret_cast<unsigned long long*>(take(at, 2 * (4 + 4 + DEPTH + 4)));
    block.weighed = block.shared + 4;
    block.exchanged = block.weighed + 4;
    block.gathered = block.exchanged + DEPTH;
    block.settled = block.gathered + 2;
    block.share = take(at, 4 * ROW_WARPS * RP);
    block.weight = take(at, 4 * RP);
    block.sums = take(at, DEPTH * CS * RP);
    block.quick = reinterpret_cast<float4*>(take(at, 2 * CS * WARPS * 4));
    block.more = reinterpret_cast<float4*>(take(at, 2 * CS * MORE));
    block.exact = take(at, 8);
    block.value = take(at, block.width);
    block.fold = take(at, FOLDS * block.width);
    block.next = block.fold;  // whoever reads a pair of sums there writes the same pair of images
    block.full = reinterpret_cast<unsigned long long*>(take(at, 2 * slots));
    block.empty = reinterpret_cast<unsigned long long*>(take(at, 2 * slots));
    at = shared + ((at - shared) + 127) / 128 * 128;
    block.slot = at;
    at += (size_t)slots * R * block.width * BYTES;
    block.reference = take(at, block.count * R);
    block.row_mass = POINTS ? nullptr : take(at, block.count * R);
    return block;
}

__device__ __forceinline__ bool computes() { return threadIdx.x < THREADS; }

// Barriers of the threads that compute and weigh, at the end of a sweep, and of those that compute alone; the feeding
// warp never waits for them.
__device__ __forceinline__ void sweep_barrier() {
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS + WEIGHERS) : "memory");
}
__device__ __forceinline__ void compute_barrier() { asm volatile("bar.sync 2, %0;" ::"n"(THREADS) : "memory"); }
