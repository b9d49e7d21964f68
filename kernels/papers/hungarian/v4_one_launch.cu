// Version 4 of the Hungarian system. Version 3 in one cooperative launch: grid barriers take the place of the host's
// round trips.
//
// Paper: S. Kawtikwar, Y. Chang, V. Govind, section IV.
// CPU reference: kernels/lap/cpu/solver.py. Run: python -m benchmarks.lap_systems --parts ablation; its rows of opt 2.
enum : bool { COUNTS_EACH_ZERO = false, LISTS_WHILE_SHIFTING = true, KEEPS_IN_REGISTER = false, ABREAST = false };
#include "papers/hungarian/primes.cuh"
#include "papers/hungarian/one_launch.cuh"
