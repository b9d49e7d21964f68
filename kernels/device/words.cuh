// 16-byte words through which blocks exchange news: whoever sees the tag in a word sees the rest of it.

// A 16-byte word is written and read whole: whoever sees its tag sees its value.
__device__ __forceinline__ void store_word(ulonglong2* at, unsigned long long low, unsigned long long high) {
    asm volatile("{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed.gpu.global.b128 [%0], t; }" ::"l"(at), "l"(low),
                 "l"(high)
                 : "memory");
}
__device__ __forceinline__ ulonglong2 load_word(const ulonglong2* at) {
    ulonglong2 word;
    asm volatile("{ .reg .b128 t; ld.relaxed.gpu.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
                 : "=l"(word.x), "=l"(word.y)
                 : "l"(at)
                 : "memory");
    return word;
}

// Wait for a word whose masked second half is `tag`. The nap keeps the waiting blocks' reads from delaying the writes
// that they wait for.
#ifndef NAP_NS
#define NAP_NS 300
#endif
__device__ __forceinline__ ulonglong2 await_word(const ulonglong2* at, unsigned long long mask,
                                                 unsigned long long tag) {
    ulonglong2 word = load_word(at);
    while ((word.y & mask) != tag) {
        __nanosleep(NAP_NS);
        word = load_word(at);
    }
    return word;
}
