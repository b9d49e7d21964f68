// Whether a device runs so many clusters of so many blocks at once: an empty kernel to launch with their geometry.
//
// How many clusters of 16 a chip holds depends on how many multiprocessors its GPCs have. Only a launch shows that. The
// real kernel would have to be compiled for a geometry that may not fit, so this one is launched.
#ifndef CS
#define CS 1
#endif
#if CS > 1 && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
#define CLUSTER __cluster_dims__(CS, 1, 1)
#else
#define CLUSTER
#endif

// Grid, Block, Shared: those asked about. Reads, Writes: nothing. Requires: nothing. Work: none.
extern "C" __global__ void CLUSTER meet() {}
