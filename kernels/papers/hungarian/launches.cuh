// The same steps as launches of their own, from version 1 to 3: the host picks one by `step`, and reads the flags after
// every step that sets one (gpu.py).
// Grid: one block per SM. Block: 1024. Shared: 13 KB static. Reads, Writes: as the step says. Requires: the step
// before it has ended. Work: a step's.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hungarian_step(const __grid_constant__ HungarianStepArgs args) {
    const HungarianProblem p = *args.problem;
    const int step = uniform(args.step);
    if (step == REDUCE_ROWS) reduce_rows(p);
    if (step == REDUCE_COLUMNS && p.n_rows == p.n_cols) reduce_columns(p);
    if (step == COMPRESS_ZEROS) compress_zeros(p);
    if (step == STAR_ZEROS) star_zeros(p);
    if (step == COVER_STARS) cover_stars(p);
    if (step == PRIME_ZEROS) prime_zeros(p, 0);
    if (step == FIND_MINIMUM) find_minimum(p);
    if (step == SHIFT_SLACK) {
        const dual_t delta = grid_minimum(p);
        if (delta == TOP) p.flags[OUTCOME] = INFEASIBLE;
        if (delta != TOP) shift_duals(p, delta), shift_slack(p, delta);
    }
    if (step == MARK_GREEN) mark_green(p);
    if (step == FLIP_PATHS) flip_paths(p);
    if (step == COUNT_ZEROS && blockIdx.x == 0) {  // count the zeros by reduction (from version 2 on)
        int count = 0;
        for (int k = threadIdx.x; k < gridDim.x; k += THREADS) count += p.zeros_count[k];
        count = __reduce_add_sync(FULL_WARP, count);
        if ((threadIdx.x & 31) == 0) atomicAdd((int*)p.flags + ZEROS, count);
    }
}
