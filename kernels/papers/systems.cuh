// Types of the papers' systems: COST of the matrix (float, double, int, long long), DUAL of slack, duals and distances.
#ifndef COST
#define COST double
#endif
#ifndef DUAL
#define DUAL double
#endif

typedef COST cost_t;
typedef DUAL dual_t;

__device__ __forceinline__ double top(double) { return __longlong_as_double(0x7ff0000000000000ll); }
__device__ __forceinline__ long long top(long long) { return 1ll << 62; }
#define TOP top(dual_t())  // above every slack and distance
