// In front of every source but the certificates' (kernels/sources.py puts it there): reductions of a warp.
//
// Everything here is a __device__ __forceinline__ function; a kernel that uses none of it pays nothing.
//
// The groups are wanted without CUDA's atomics and type traits, whose headers take NVRTC a second for each source and
// add 150 kB of unused tables to each cubin. The machine code of every kernel is the same with and without them.
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>

#define FULL_WARP 0xffffffffu

// Sum over the 32 lanes, the same value in every lane.
template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(FULL_WARP, value, step);
    return value;
}

// Minimum over the 32 lanes, the same value in every lane.
template <typename T>
__device__ __forceinline__ T warp_min(T value) {
#pragma unroll
    for (int step = 16; step; step >>= 1) {
        const T other = __shfl_xor_sync(FULL_WARP, value, step);
        value = other < value ? other : value;
    }
    return value;
}
