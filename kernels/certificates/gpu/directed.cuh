// Sums and differences of float64 whose rounding is known: exact pairs (TwoSum), and sums rounded to one side.
//
// Every operation is an intrinsic that names its rounding, so that the compiler can neither fuse nor reorder it.
// SIDE -1 is towards -inf, 1 towards +inf. Sources: D. E. Knuth, "The Art of Computer Programming", volume 2, 4.2.2,
// theorem B (TwoSum is exact where the sum is finite); T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product",
// SIAM J. Sci. Comput. 26 (2005), algorithm 4.1 (the errors of a sum added up beside it).
#define WARP 32
#define ALL_LANES 0xffffffffu

template <int SIDE>
__device__ __forceinline__ double add_to(double x, double y) {
    return SIDE < 0 ? __dadd_rd(x, y) : __dadd_ru(x, y);
}

template <int SIDE>
__device__ __forceinline__ double multiply_to(double x, double y) {
    return SIDE < 0 ? __dmul_rd(x, y) : __dmul_ru(x, y);
}

// The error of s = x + y rounded to nearest.
__device__ __forceinline__ double lost_by(double s, double x, double y) {
    const double t = __dsub_rn(s, x);
    return __dadd_rn(__dsub_rn(x, __dsub_rn(s, t)), __dsub_rn(y, t));
}

// A float32's bits as float64, exactly. CuPy compiles with -ftz=true, under which the plain conversion loses subnormal
// numbers; this instruction keeps them.
__device__ __forceinline__ double widened(unsigned int bits) {
    double wide;
    asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(__uint_as_float(bits)));
    return wide;
}

// A sum known from one side: high is the sum of the terms rounded to nearest step by step, rest bounds the sum of the
// errors of these steps. high + rest is at most (SIDE -1) or at least (SIDE 1) the exact sum, and next to it.
template <int SIDE>
struct Sum {
    double high, rest;

    __device__ __forceinline__ Sum() : high(0), rest(0) {}

    __device__ __forceinline__ void add(double x) {
        const double s = __dadd_rn(high, x);
        rest = add_to<SIDE>(rest, lost_by(s, high, x));
        high = s;
    }

    __device__ __forceinline__ void join(double other_high, double other_rest) {
        add(other_high);
        rest = add_to<SIDE>(rest, other_rest);
    }

    // Not finite where the sum left float64.
    __device__ __forceinline__ double value() const { return add_to<SIDE>(high, rest); }

    // The sum over a block, in thread 0. `room` holds two numbers a warp. Every thread of the block calls it.
    __device__ void over_block(double* room) {
        for (int step = WARP / 2; step; step >>= 1) {
            const double other_high = __shfl_down_sync(ALL_LANES, high, step);
            const double other_rest = __shfl_down_sync(ALL_LANES, rest, step);
            join(other_high, other_rest);
        }
        const int warp = threadIdx.x / WARP;
        __syncthreads();  // nobody reads `room` from the sum before
        if (threadIdx.x % WARP == 0) {
            room[2 * warp] = high;
            room[2 * warp + 1] = rest;
        }
        __syncthreads();  // the warps' sums are in `room`
        if (threadIdx.x == 0)
            for (int k = 1; k < (int)blockDim.x / WARP; k++) join(room[2 * k], room[2 * k + 1]);
    }
};

// A sum of int64, in two words that cannot overflow below 2^31 terms: 2^32 high + low, 0 <= each low term < 2^32.
struct WholeSum {
    long long high, low;

    __device__ __forceinline__ WholeSum() : high(0), low(0) {}

    __device__ __forceinline__ void add(long long x) {
        high += x >> 32;
        low += x & 0xffffffffLL;
    }

    // As Sum::over_block.
    __device__ void over_block(long long* room) {
        for (int step = WARP / 2; step; step >>= 1) {
            high += __shfl_down_sync(ALL_LANES, high, step);
            low += __shfl_down_sync(ALL_LANES, low, step);
        }
        const int warp = threadIdx.x / WARP;
        __syncthreads();
        if (threadIdx.x % WARP == 0) {
            room[2 * warp] = high;
            room[2 * warp + 1] = low;
        }
        __syncthreads();
        if (threadIdx.x == 0)
            for (int k = 1; k < (int)blockDim.x / WARP; k++) {
                high += room[2 * k];
                low += room[2 * k + 1];
            }
    }
};

// The largest of a block's numbers, in thread 0; NaN counts as none. As Sum::over_block, one number a warp.
template <typename T>
__device__ T largest_of_block(T value, T* room) {
    for (int step = WARP / 2; step; step >>= 1) {
        const T other = __shfl_down_sync(ALL_LANES, value, step);
        value = other > value ? other : value;
    }
    __syncthreads();
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int k = 1; k < (int)blockDim.x / WARP; k++) value = room[k] > value ? room[k] : value;
    return value;
}
