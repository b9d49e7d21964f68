// Version 3 of the Hungarian system. Version 2 with shift_slack and compress_zeros in one pass: the slack is read once
// per dual update, not twice.
//
// Paper: S. Kawtikwar, Y. Chang, V. Govind, section IV.
// CPU reference: kernels/lap/cpu/solver.py. Run: python -m benchmarks.lap_systems --parts ablation; its rows of opt 1.
enum : bool { COUNTS_EACH_ZERO = false, LISTS_WHILE_SHIFTING = true, KEEPS_IN_REGISTER = false, ABREAST = false };
#include "papers/hungarian/primes.cuh"
#include "papers/hungarian/launches.cuh"
