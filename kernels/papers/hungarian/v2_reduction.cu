// Version 2 of the Hungarian system. Version 1 with the zeros counted by a reduction over the blocks' counts, in a
// launch of its own.
//
// Paper: S. Kawtikwar, Y. Chang, V. Govind, section IV.
// CPU reference: kernels/lap/cpu/solver.py. Run: python -m benchmarks.lap_systems --parts ablation; its rows of opt 0.
enum : bool { COUNTS_EACH_ZERO = false, LISTS_WHILE_SHIFTING = false, KEEPS_IN_REGISTER = false, ABREAST = false };
#include "papers/hungarian/primes.cuh"
#include "papers/hungarian/launches.cuh"
