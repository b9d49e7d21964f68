// Version 6 of the Hungarian system. Version 5 with a barrier in shift_slack that keeps the block's warps abreast, so
// that their reads stay close.
//
// Paper: S. Kawtikwar, Y. Chang, V. Govind, section IV.
// CPU reference: kernels/lap/cpu/solver.py. Run: python -m benchmarks.lap_systems --parts ablation; its rows of opt 4.
enum : bool { COUNTS_EACH_ZERO = false, LISTS_WHILE_SHIFTING = true, KEEPS_IN_REGISTER = true, ABREAST = true };
#include "papers/hungarian/primes.cuh"
#include "papers/hungarian/one_launch.cuh"
