// Numbers as integers of the same order, for atomicMin and for the minimum of a warp. -0 comes before +0.

__device__ __forceinline__ long long ordered(long long x) { return x; }
__device__ __forceinline__ long long ordered(double x) {
    const long long bits = __double_as_longlong(x);
    return bits ^ ((bits >> 63) & 0x7fffffffffffffffll);
}

// The same, unsigned.
__device__ __forceinline__ unsigned long long rank_of(long long x) { return (unsigned long long)x ^ 1ull << 63; }
__device__ __forceinline__ unsigned long long rank_of(double x) {
    const long long bits = __double_as_longlong(x);
    return (unsigned long long)(bits ^ (bits >> 63 | (long long)(1ull << 63)));
}
