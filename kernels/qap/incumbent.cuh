// The least cost met so far, from any block to the host while the kernel runs.
//
// Costs travel as `ordered` integers, whose order is that of the costs. The device keeps the least of them; whoever
// lowers it tells the host's mailbox, again and again until the mailbox holds what the device holds: two tellers cannot
// leave the older value behind. (A system-wide atomic on the mailbox itself is no option: hosts need not support it.)

__device__ __forceinline__ long long ordered(long long cost) { return cost; }
__device__ __forceinline__ long long ordered(double cost) {
    const long long bits = __double_as_longlong(cost);
    return bits ^ ((bits >> 63) & 0x7fffffffffffffffLL);
}

// One thread. `least` in device memory, `mailbox` mapped from the host.
__device__ __forceinline__ void tell(long long cost, long long *least, volatile long long *mailbox) {
    if (atomicMin(least, cost) <= cost) return;  // the race of all blocks for the least
    long long seen;
    do {
        seen = *(volatile long long *)least;
        *mailbox = seen;
        __threadfence_system();
    } while (*(volatile long long *)least != seen);
}
