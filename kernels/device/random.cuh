// Two generators of random numbers. Which one a search draws from decides its answers: neither can replace the other.

// splitmix64 (Steele, Lea, Flood 2014): the next 32 bits.
__device__ __forceinline__ unsigned draw(unsigned long long &state) {
    unsigned long long mixed = (state += 0x9e3779b97f4a7c15ULL);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return unsigned((mixed ^ (mixed >> 31)) >> 32);
}

// A number in [0, n).
__device__ __forceinline__ int below(unsigned long long &state, int count) {
    return int(__umulhi(draw(state), unsigned(count)));
}

// PCG-XSH-RR (O'Neill 2014).
struct Random {
    unsigned long long state;
    __device__ __forceinline__ unsigned next() {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const unsigned word = (unsigned)(((state >> 18) ^ state) >> 27), turn = (unsigned)(state >> 59);
        return (word >> turn) | (word << ((32 - turn) & 31));
    }
    __device__ __forceinline__ int below(int count) { return (int)__umulhi(next(), (unsigned)count); }
};
