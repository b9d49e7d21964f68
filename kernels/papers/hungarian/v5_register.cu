// Version 5 of the Hungarian system. Version 4 with the slack held in a register: no entry is read back.
//
// Paper: S. Kawtikwar, Y. Chang, V. Govind, section IV.
// CPU reference: kernels/lap/cpu/solver.py. Run: python -m benchmarks.lap_systems --parts ablation; its rows of opt 3.
enum : bool { COUNTS_EACH_ZERO = false, LISTS_WHILE_SHIFTING = true, KEEPS_IN_REGISTER = true, ABREAST = false };
#include "papers/hungarian/primes.cuh"
#include "papers/hungarian/one_launch.cuh"
