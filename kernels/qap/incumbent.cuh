// What blocks and the host tell each other while a kernel runs: better costs, and the word to stop.
//
// Costs travel as `ordered` integers, whose order is that of the costs. The device keeps the least of them. Whoever lowers
// it writes the next entry of a ring in the host's mailbox, its number last. The host reads entries as their numbers come.
// None is lost unless RING of them come between two looks. (A system-wide atomic on the mailbox is no option: hosts need
// not support it.)
//
// A read of the mailbox crosses the bus, which carries about a million reads a second, whoever asks. If every block asked
// after each 256 moves, the bus would bound all searches with n <= 60 (1.8e11 moves a second at n = 40). So one block at
// a time asks the host, and leaves the answer where the others look.
#include "device/ordered.cuh"
#include "qap/layout.py"

constexpr long long ASK_NS = 100000;

// One thread: tell the host if this is the least cost so far.
__device__ __forceinline__ void tell(long long cost, const News &news) {
    if (*(volatile long long *)(news.relay + RELAY_LEAST) <= cost) return;
    if (atomicMin(news.relay + RELAY_LEAST, cost) <= cost) return;  // the race of all blocks for the least
    const unsigned long long number = atomicAdd((unsigned long long *)(news.relay + RELAY_TOLD), 1);  // an entry each
    volatile long long *entry = news.mailbox + 1 + number % RING * 2;
    entry[1] = cost;
    __threadfence_system();  // cost -> number
    entry[0] = (long long)number + 1;
}

// One thread: has the host said to stop? Known within ASK_NS and the time between two calls.
__device__ __forceinline__ bool stopped(const News &news) {
    volatile long long *relay = news.relay;
    const long long asked = relay[RELAY_ASKED];
    long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    if (now - asked > ASK_NS) {
        unsigned long long *turn = (unsigned long long *)(news.relay + RELAY_ASKED);
        const unsigned long long before = (unsigned long long)asked, after = (unsigned long long)now;
        if (atomicCAS(turn, before, after) == before) relay[RELAY_STOP] = news.mailbox[0];  // one of those who are due
    }
    return relay[RELAY_STOP] != 0;
}

// One thread, now and then: tell the best cost so far, as `ordered` has it, and ask whether to stop.
__device__ __forceinline__ bool talk(long long cost, const News &news) {
    tell(cost, news);
    return stopped(news);
}
