// Numbers as integers of the same order, for atomicMin and for the minimum of a warp. -0 comes before +0.

__device__ __forceinline__ long long ordered(long long value) { return value; }
__device__ __forceinline__ long long ordered(double value) {
    const long long bits = __double_as_longlong(value);
    return bits < 0 ? bits ^ 0x7fffffffffffffffll : bits;
}

// The number that an integer of `ordered` stands for.
template <typename T>
__device__ __forceinline__ T unordered(long long rank);
template <>
__device__ __forceinline__ long long unordered(long long rank) { return rank; }
template <>
__device__ __forceinline__ double unordered(long long rank) {
    return __longlong_as_double(rank < 0 ? rank ^ 0x7fffffffffffffffll : rank);
}

// The same as `ordered`, unsigned.
__device__ __forceinline__ unsigned long long rank_of(long long value) { return (unsigned long long)value ^ 1ull << 63; }
__device__ __forceinline__ unsigned long long rank_of(double value) {
    const long long bits = __double_as_longlong(value);
    return (unsigned long long)(bits ^ (bits >> 63 | (long long)(1ull << 63)));
}
