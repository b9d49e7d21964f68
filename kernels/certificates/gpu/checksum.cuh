// The checksum of checksum.py, word by word: what says that the bytes swept here are the bytes that the host holds.
//
//   sum over words k of low(y) * high(y) mod 2^64,   y = word_k + key(k) mod 2^64,
//   key(k) = spread(k mod KEYS) + (k div KEYS) * STRIDE
//
// Words are 64 bits, little-endian; the last is filled up with zeros. The sum may be taken in any order.
#define KEYS 16384
#define STRIDE 0x9e3779b97f4a7c15ull

typedef unsigned long long word_t;

__device__ __forceinline__ word_t key_of(word_t k) {
    unsigned int h = ((unsigned int)(k % KEYS) + 1u) * 0x9e3779b1u;
    h = (h ^ (h >> 15)) * 0x85ebca77u;
    const unsigned int low = h ^ (h >> 13);
    h = (low + 0x165667b1u) * 0xc2b2ae3du;
    const unsigned int high = h ^ (h >> 16);
    return ((word_t)high << 32 | low) + k / KEYS * STRIDE;
}

__device__ __forceinline__ word_t mixed(word_t word, word_t k) {
    const word_t y = word + key_of(k);
    return (y & 0xffffffffull) * (y >> 32);
}

// Word k of `n_bytes` bytes (a multiple of 4) from `base`, which is aligned to 8.
__device__ __forceinline__ word_t word_at(const void* base, word_t n_bytes, word_t k) {
    if (8 * k + 8 <= n_bytes) return __ldg((const word_t*)base + k);
    return __ldg((const unsigned int*)base + 2 * k);
}

// Adds every thread's part to `total`. Every thread of a warp calls it.
__device__ __forceinline__ void add_to_checksum(word_t part, word_t* total) {
    for (int step = WARP / 2; step; step >>= 1) part += __shfl_down_sync(ALL_LANES, part, step);
    // Additions mod 2^64 in any order give one sum, so that this race has one outcome.
    if (threadIdx.x % WARP == 0 && part) atomicAdd(total, part);
}
