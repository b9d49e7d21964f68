// Reductions over a warp, of 64-bit words by their halves.

// Minimum of non-negative values by their bits, the same in every lane of the warp.
__device__ __forceinline__ unsigned long long warp_min_bits(unsigned long long value) {
    const unsigned high = __reduce_min_sync(FULL_WARP, (unsigned)(value >> 32));
    const unsigned low = __reduce_min_sync(FULL_WARP, (unsigned)(value >> 32) == high ? (unsigned)value : 0xffffffffu);
    return (unsigned long long)high << 32 | low;
}
__device__ __forceinline__ unsigned long long warp_or(unsigned long long value) {
    const unsigned high = __reduce_or_sync(FULL_WARP, (unsigned)(value >> 32)),
                   low = __reduce_or_sync(FULL_WARP, (unsigned)value);
    return (unsigned long long)high << 32 | low;
}
