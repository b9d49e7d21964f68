// The same steps as launches of their own, from version 1 to 3: the host picks one by `step`, and reads the flags after
// every step that sets one (gpu.py).
// Grid: one block per SM. Block: 1024. Shared: 13 KB static. Reads and writes: as the step says. Requires: the step
// before it has ended. Work: a step's.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hungarian_step(const Problem* problem, int step) {
    const Problem p = *problem;
    if (step == 0) reduce_rows(p);
    if (step == 1 && p.n_rows == p.n_cols) reduce_columns(p);
    if (step == 2) compress_zeros(p);
    if (step == 3) star_zeros(p);
    if (step == 4) cover_stars(p);
    if (step == 5) prime_zeros(p, 0);
    if (step == 6) find_minimum(p);
    if (step == 7) {
        const dual_t delta = grid_minimum(p);
        if (delta == TOP) p.flags[OUTCOME] = INFEASIBLE;
        if (delta != TOP) shift_duals(p, delta), shift_slack(p, delta);
    }
    if (step == 8) mark_green(p);
    if (step == 9) flip_paths(p);
    if (step == 10 && blockIdx.x == 0) {  // count the zeros by reduction (from version 2 on)
        int count = 0;
        for (int k = threadIdx.x; k < gridDim.x; k += THREADS) count += p.zeros_count[k];
        count = __reduce_add_sync(FULL_WARP, count);
        if ((threadIdx.x & 31) == 0) atomicAdd((int*)p.flags + ZEROS, count);
    }
}
