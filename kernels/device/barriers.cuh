// Bulk copies, barriers in shared memory and stores into another block of the cluster, as thin wrappers of PTX.
//
// Below sm_90 there is no bulk copy and no cluster: a copy is then made by the calling warp (slow and right), so that
// every kernel compiles and runs there with one block per row.

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(unsigned long long* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// One arrival that also announces how many bytes this phase waits for.
__device__ __forceinline__ void barrier_expect(unsigned long long* barrier, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
#endif
}

__device__ __forceinline__ void barrier_arrive(unsigned long long* barrier) {
    asm volatile("{ .reg .b64 token; mbarrier.arrive.shared.b64 token, [%0]; }" ::"r"(shared_address(barrier))
                 : "memory");
}

// True once the phase of the given parity has completed.
__device__ __forceinline__ bool barrier_done(unsigned long long* barrier, unsigned parity) {
    unsigned done = 0;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
    return done;
}

// Returns once the phase of the given parity has completed. Acquires at block scope, also for what other blocks stored
// into this one's shared memory: a wait at cluster scope would invalidate the first-level cache each time.
__device__ __forceinline__ void barrier_wait(unsigned long long* barrier, unsigned parity) {
    unsigned done = 0;
    while (!done) {
#if __CUDA_ARCH__ >= 900
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
#else
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
#endif
    }
}

__device__ __forceinline__ void fence_barrier_init() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// Orders this thread's ordinary stores to shared memory before later bulk copies into the same bytes.
__device__ __forceinline__ void fence_async() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Copy `bytes` (a multiple of 16, both ends aligned to 16) into shared memory; one warp. Completes on `barrier`.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, unsigned bytes, unsigned long long* barrier) {
    const unsigned lane = threadIdx.x & 31;
#if __CUDA_ARCH__ >= 900
    if (lane == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(to)),
                     "l"(from), "r"(bytes), "r"(shared_address(barrier))
                     : "memory");
#else
    for (unsigned k = lane; k < bytes / 16; k += 32) static_cast<uint4*>(to)[k] = static_cast<const uint4*>(from)[k];
    __syncwarp();  // copied above, announced below
    if (lane == 0) barrier_arrive(barrier);
#endif
}

// Store four floats into the same place of block `rank` of the cluster; counts 16 bytes on its `barrier`. A block that
// is its own cluster stores them plainly.
__device__ __forceinline__ void send(float* place, float4 value, unsigned long long* barrier, unsigned rank,
                                     bool alone) {
    if (alone) {
        *reinterpret_cast<float4*>(place) = value;
        return;
    }
#if __CUDA_ARCH__ >= 900
    unsigned to, at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(place)), "r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared_address(barrier)), "r"(rank));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(__float_as_uint(value.x)), "r"(__float_as_uint(value.y)), "r"(__float_as_uint(value.z)),
                 "r"(__float_as_uint(value.w)), "r"(at)
                 : "memory");
#endif
}

// Every thread of every block of the cluster waits for all the others.
__device__ __forceinline__ void cluster_barrier(bool alone) {
    if (alone) {
        __syncthreads();  // the same for a cluster of one block
        return;
    }
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Two floats, each with the number of the message it belongs to, in one transaction through the L2: whoever sees the
// number sees the float, so that no other signal is needed.
__device__ __forceinline__ void post(unsigned long long* place, float2 value, unsigned number) {
    const unsigned long long high = (unsigned long long)number << 32;
    asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(place), "l"(high | __float_as_uint(value.x)),
                 "l"(high | __float_as_uint(value.y))
                 : "memory");
}

// True once the message `number` is there; its floats are in `value` then.
__device__ __forceinline__ bool peek(const unsigned long long* place, unsigned number, float2& value) {
    unsigned long long first, second;
    asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : "l"(place) : "memory");
    value = make_float2(__uint_as_float((unsigned)first), __uint_as_float((unsigned)second));
    return (unsigned)(first >> 32) == number && (unsigned)(second >> 32) == number;
}

// 2^x in one instruction; the result flushes below 2^-126, relative error 2^-22.
__device__ __forceinline__ float fast_exp2(float exponent) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
    return result;
}
