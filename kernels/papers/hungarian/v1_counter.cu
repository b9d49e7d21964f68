// Version 1 of the Hungarian system. The system as published, mirrored (system.cuh). Every step is a launch, and the
// host reads the flags in between. All zeros are counted in one global word, by an atomic addition each.
//
// Paper: P. Lopes, S. Yadav, A. Ilic, S. Patra (2019), algorithms 1 to 4.
// CPU reference: kernels/lap/cpu/solver.py. Run: python -m benchmarks.lap_systems --parts ablation; its rows of opt -1.
enum : bool { COUNTS_EACH_ZERO = true, LISTS_WHILE_SHIFTING = false, KEEPS_IN_REGISTER = false, ABREAST = false };
#include "papers/hungarian/primes.cuh"
#include "papers/hungarian/launches.cuh"
