// Whether a device runs so many clusters of so many blocks at once: an empty kernel to launch with their geometry.
//
// How many multiprocessors a GPC of this chip has, and so how many clusters of 16 it holds, cannot be asked for without
// a launch; asking with the real kernel would compile it for a geometry that may not fit.
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
