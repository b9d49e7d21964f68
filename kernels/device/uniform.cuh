// A field of a kernel's parameter, as a number that is the same in every thread.
//
// A struct is read through a pointer, and for all that the compiler knows such a read may differ between threads. It
// then leaves a test of `args.negate` inside the loop over entries. Of this read it knows better, and makes two loops
// of one.

__device__ __forceinline__ int uniform(const int& field) {
    int value;
    asm("ld.param.s32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_grid_constant(&field)));
    return value;
}
