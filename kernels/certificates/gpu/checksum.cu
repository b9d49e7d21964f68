// The checksum of an array that no other sweep reads as words (points, matrices read by columns).
#include "certificates/gpu/directed.cuh"
#include "certificates/gpu/checksum.cuh"

// Grid: any. Block: a multiple of 32. Reads: n_bytes bytes. Writes: total, to be 0 before.
// Requires: base aligned to 8, n_bytes a multiple of 4. Work: one read.
extern "C" __global__ void add_up_words(const void* __restrict__ base, word_t n_bytes, word_t* total) {
    const word_t n_words = (n_bytes + 7) / 8, step = (word_t)gridDim.x * blockDim.x;
    word_t part = 0;
    for (word_t k = (word_t)blockIdx.x * blockDim.x + threadIdx.x; k < n_words; k += step)
        part += mixed(word_at(base, n_bytes, k), k);
    add_to_checksum(part, total);
}
