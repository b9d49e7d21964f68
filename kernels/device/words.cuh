// 16-byte words through which blocks exchange news: whoever sees the tag in a word sees the rest of it.

// A 16-byte word is written and read whole: whoever sees its tag sees its value.
__device__ __forceinline__ void store_word(ulonglong2* at, unsigned long long a, unsigned long long b) {
    asm volatile("{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed.gpu.global.b128 [%0], t; }" ::"l"(at), "l"(a), "l"(b)
                 : "memory");
}
__device__ __forceinline__ ulonglong2 load_word(const ulonglong2* at) {
    ulonglong2 w;
    asm volatile("{ .reg .b128 t; ld.relaxed.gpu.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
                 : "=l"(w.x), "=l"(w.y)
                 : "l"(at)
                 : "memory");
    return w;
}

// Wait for a word whose masked second half is `tag`. The nap keeps the waiting blocks' reads from delaying the writes
// that they wait for.
#ifndef NAP_NS
#define NAP_NS 300
#endif
__device__ __forceinline__ ulonglong2 await_word(const ulonglong2* at, unsigned long long mask,
                                                 unsigned long long tag) {
    ulonglong2 w = load_word(at);
    while ((w.y & mask) != tag) {
        __nanosleep(NAP_NS);
        w = load_word(at);
    }
    return w;
}
