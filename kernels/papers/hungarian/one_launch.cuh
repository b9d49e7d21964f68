// All steps in one cooperative launch, from version 4 on: the host takes no part.
//
// A version brings:
//   open_rows    what it prepares for a search
//   search       step 4; true when it found a path
//   find_least   step 6a
//   shift        step 6b
//   TRACES       whether its search runs to the end without grid barriers. Such a search counts the rows under way in
//                problem.open, clears its own flag of paths, and wants zeros listed anew after dual updates

// Step 6, between two grid barriers of its own. False when the problem is infeasible or the caller wants to stop.
__device__ bool update_duals(const HungarianProblem& problem, cg::grid_group& grid, unsigned char* seen) {
    const bool leader = grid.thread_rank() == 0;
    if (leader && *problem.stop) problem.flags[OUTCOME] = STOPPED;
    find_least(problem, seen);
    grid.sync();  // every block's minimum; every block has left step 4
    const dual_t delta = grid_minimum(problem);
    if (problem.flags[OUTCOME] == STOPPED) return false;
    if (delta == TOP) {
        if (leader) problem.flags[OUTCOME] = INFEASIBLE;
        return false;
    }
    shift_duals(problem, delta);
    shift(problem, delta, seen);
    if (leader) problem.flags[UPDATES]++, problem.flags[STALE] = TRACES, *problem.open = gridDim.x;
    grid.sync();  // the new slack and duals before zeros are primed
    return true;
}

// All steps. Grid: one block per SM, cooperative. Block: 1024. Shared: 13 KB static, and a byte per row of a bin.
// Reads: cost. Writes: everything else. Requires: flags all 0. Work: three sweeps for step 1. Per dual update two to three
// sweeps of slack; with TRACES only what changes and rows whose minimum is not known, and a sweep per search.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hungarian(const HungarianProblem* given) {
    extern __shared__ unsigned char seen[];
    __shared__ HungarianProblem problem;  // twenty pointers would take forty registers
    if (threadIdx.x == 0) problem = *given;
    __syncthreads();  // problem before anyone reads it
    cg::grid_group grid = cg::this_grid();
    const bool leader = grid.thread_rank() == 0;
    reduce_rows(problem);
    grid.sync();  // slack by rows before it is read by columns
    if (problem.n_rows == problem.n_cols) reduce_columns(problem);
    grid.sync();  // slack final before zeros are listed
    compress_zeros(problem);
    star_zeros(problem);
    for (int round = 0;;) {
        if (leader) *problem.open = gridDim.x;
        grid.sync();  // stars settled before they are counted
        cover_stars(problem);
        open_rows(problem, seen);
        grid.sync();  // covers and the count before anyone decides
        if (leader) problem.flags[STALE] = 0;
        const bool done = problem.flags[STARS] == problem.n_rows;
        if (done || problem.flags[SEARCHES] >= problem.search_limit) {
            if (leader) problem.flags[OUTCOME] = done ? OPTIMAL : STOPPED;
            return;
        }
        for (;;) {
            if (search(problem, grid, round, seen)) break;
            if (!update_duals(problem, grid, seen)) return;
        }
        mark_green(problem);
        grid.sync();  // all greens before a path is followed
        if (leader) problem.flags[STARS] = 0, problem.flags[SEARCHES]++;
        if (TRACES && leader) problem.flags[PATHS] = 0;
        flip_paths(problem);
    }
}
