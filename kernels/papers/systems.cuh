// Types of the papers' systems: COST of the matrix (float, double, int, long long), DUAL of slack, duals and distances.
#include "device/limits.cuh"

#ifndef COST
#define COST double
#endif
#ifndef DUAL
#define DUAL double
#endif

typedef COST cost_t;
typedef DUAL dual_t;

#define TOP top(dual_t())  // above every slack and distance
