// Above every cost and distance that a solver of assignments meets.

__device__ __forceinline__ double top(double) { return __longlong_as_double(0x7ff0000000000000ll); }
__device__ __forceinline__ long long top(long long) { return 1ll << 62; }
