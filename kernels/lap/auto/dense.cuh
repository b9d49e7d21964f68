// What the kernels of method `auto` share: types, and the state of a solve.
#include "device/ordered.cuh"
#include "device/warp.cuh"
#include "device/words.cuh"

#ifndef COST
#define COST double  // storage of the matrix: double, float, long long or int
#endif
#ifndef VALUE
#define VALUE double  // duals and path lengths: double for floats, long long for integers
#endif

typedef COST cost_t;
typedef VALUE value_t;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

#define NONE 0xffffffffu
#define NO_PATH 0xffffffffffffffffull

template <typename T>
struct Limits;
template <>
struct Limits<double> {
    static __device__ __forceinline__ double top() { return __longlong_as_double(0x7ff0000000000000ll); }
    static __device__ __forceinline__ u64 bits(double number) { return (u64)__double_as_longlong(number); }
    static __device__ __forceinline__ double from(u64 number) { return __longlong_as_double((long long)number); }
    // `grain` stands for the power of two q at or below `about`, and `floored` rounds x >= 0 down to a multiple of q:
    // near 2^52 q numbers lie q apart.
    static __device__ __forceinline__ double least_epsilon() { return 0; }
    static __device__ __forceinline__ double grain(double about) {
        const double power = __longlong_as_double(__double_as_longlong(about) & 0x7ff0000000000000ll);
        return power < 1e290 ? power * 4503599627370496.0 : 0;
    }
    static __device__ __forceinline__ double floored(double number, double grain) {
        return __dadd_rz(number, grain) - grain;
    }
};
template <>
struct Limits<long long> {
    static __device__ __forceinline__ long long top() { return 0x3fffffffffffffffll; }
    static __device__ __forceinline__ u64 bits(long long number) { return (u64)number; }
    static __device__ __forceinline__ long long from(u64 number) { return (long long)number; }
    static __device__ __forceinline__ double least_epsilon() { return 1; }
    static __device__ __forceinline__ long long grain(double about) {
        return about < 2 ? 0 : (1ll << (min(61, ilogb(about)))) - 1;
    }
    static __device__ __forceinline__ long long floored(long long number, long long grain) { return number & ~grain; }
};
typedef Limits<value_t> Value;
#define TOP (Value::top())

// ChainState, which a launch leaves for the next one to decide by (reduce_columns zeroes it); the arguments of each kernel.
#include "lap/auto/layout.py"

// How far the values cost - v of the first round lay apart.
__device__ __forceinline__ double spread_of(const ChainState* state) {
    const u64 high = state->highest, low = ~state->lowest;
    const value_t largest = unordered<value_t>((long long)(high ^ 0x8000000000000000ull)),
                  smallest = unordered<value_t>((long long)(low ^ 0x8000000000000000ull));
    return largest > smallest ? (double)largest - (double)smallest : 0;
}

__device__ __forceinline__ value_t read_cost(const cost_t* __restrict__ cost, long long at, int negate) {
    const value_t entry = (value_t)__ldg(cost + at);
    return negate ? -entry : entry;
}

// Ask for a row before anyone reads it; a hint, so that the alignment may cut a few bytes off.
__device__ __forceinline__ void prefetch_row(const cost_t* row, int n_cols) {
#if __CUDA_ARCH__ >= 900
    const u64 from = ((u64)row + 15) & ~15ull, bytes = ((u64)(row + n_cols) - from) & ~15ull;
    if (bytes) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"((u32)bytes) : "memory");
#endif
}
