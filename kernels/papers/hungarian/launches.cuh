// The same steps as launches of their own, from version 1 to 3: the host picks one by `step`, and reads the flags after
// every step that sets one (gpu.py).
// Grid: one block per SM. Block: 1024. Shared: 13 KB static. Reads, Writes: as the step says. Requires: the step
// before it has ended. Work: a step's.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hungarian_step(const __grid_constant__ HungarianStepArgs args) {
    const HungarianProblem problem = *args.problem;
    const int step = uniform(args.step);
    if (step == REDUCE_ROWS) reduce_rows(problem);
    if (step == REDUCE_COLUMNS && problem.n_rows == problem.n_cols) reduce_columns(problem);
    if (step == COMPRESS_ZEROS) compress_zeros(problem);
    if (step == STAR_ZEROS) star_zeros(problem);
    if (step == COVER_STARS) cover_stars(problem);
    if (step == PRIME_ZEROS) prime_zeros(problem, 0);
    if (step == FIND_MINIMUM) find_minimum(problem);
    if (step == SHIFT_SLACK) {
        const dual_t delta = grid_minimum(problem);
        if (delta == TOP) problem.flags[OUTCOME] = INFEASIBLE;
        if (delta != TOP) shift_duals(problem, delta), shift_slack(problem, delta);
    }
    if (step == MARK_GREEN) mark_green(problem);
    if (step == FLIP_PATHS) flip_paths(problem);
    if (step == COUNT_ZEROS && blockIdx.x == 0) {  // count the zeros by reduction (from version 2 on)
        int count = 0;
        for (int k = threadIdx.x; k < gridDim.x; k += THREADS) count += problem.zeros_count[k];
        count = __reduce_add_sync(FULL_WARP, count);
        if ((threadIdx.x & 31) == 0) atomicAdd((int*)problem.flags + ZEROS, count);
    }
}
