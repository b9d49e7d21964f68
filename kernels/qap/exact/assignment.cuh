// An assignment problem of a warp: a lane is a column, and the costs lie in shared memory.
//
//   assign:  columns' least costs are their duals, and rows' least of what is left theirs
//            each row takes a column where it costs nothing more, if there is one free       (ROWS rows at once)
//            each other row finds a shortest augmenting path, over reduced costs
//
// Invariant: reduced costs are never negative, and those of assigned pairs are 0.

constexpr int ROWS = 4;

// The least assignment of `size` rows to as many lanes, by one warp; `mine[a * stride]` is what row a asks of this
// lane. Leaves row duals u (lane a holds row a's) and column duals v; returns their sum. Shortest augmenting paths.
__device__ int assign(const int *mine, int stride, int size, int lane, int &u, int &v) {
    const bool live = lane < size;
    v = TOP;
    if (live)
        for (int each = 0; each < size; ++each) v = min(v, mine[each * stride]);
    int row_of = -1, column_of = -1;
    u = 0;
    unsigned open = size == 32 ? FULL_WARP : (1u << size) - 1u, waiting = 0;
    for (int first = 0; first < size; first += ROWS) {
        int left[ROWS], least[ROWS];
        unsigned equal[ROWS];
#pragma unroll
        for (int each = 0; each < ROWS; ++each)
            left[each] = live ? mine[min(first + each, size - 1) * stride] - v : TOP;
#pragma unroll
        for (int each = 0; each < ROWS; ++each) least[each] = __reduce_min_sync(FULL_WARP, left[each]);
#pragma unroll
        for (int each = 0; each < ROWS; ++each) equal[each] = __ballot_sync(FULL_WARP, left[each] == least[each]);
#pragma unroll
        for (int each = 0; each < ROWS; ++each) {
            const int row = first + each;
            if (row >= size) break;
            const unsigned free = equal[each] & open;
            const int column = __ffs(free) - 1;
            if (lane == row) u = least[each];
            if (free == 0) { waiting |= 1u << row; continue; }
            open &= ~(1u << column);
            if (lane == column) row_of = row;
            if (lane == row) column_of = column;
        }
    }
    while (waiting) {
        const int source = __ffs(waiting) - 1;
        waiting &= waiting - 1;
        const int of_mine = __shfl_sync(FULL_WARP, u, row_of & 31);
        const int of_source = __shfl_sync(FULL_WARP, u, source);
        int shortest = live ? mine[source * stride] - of_source - v : TOP;
        int before = source, sink, top;
        bool reached = !live;
        while (true) {
            top = __reduce_min_sync(FULL_WARP, reached ? 0x7fffffff : shortest);
            const unsigned next = __ballot_sync(FULL_WARP, !reached && shortest == top);
            if (next & open) { sink = __ffs(next & open) - 1; break; }
            const int column = __ffs(next) - 1;
            reached |= lane == column;
            const int row = __shfl_sync(FULL_WARP, row_of, column);
            const int base = top - __shfl_sync(FULL_WARP, of_mine, column);
            const int length = reached ? TOP : base + mine[row * stride] - v;
            if (length < shortest) { shortest = length; before = row; }
        }
        const unsigned seen = __ballot_sync(FULL_WARP, reached && live);
        const int rise = top - __shfl_sync(FULL_WARP, shortest, column_of & 31);
        if (column_of >= 0 && (seen >> column_of & 1)) u += rise;
        if (lane == source) u += top;
        if (reached && live) v -= top - shortest;
        open &= ~(1u << sink);
        for (int column = sink;;) {
            const int row = __shfl_sync(FULL_WARP, before, column), then = __shfl_sync(FULL_WARP, column_of, row);
            if (lane == column) row_of = row;
            if (lane == row) column_of = column;
            if (row == source) break;
            column = then;
        }
    }
    return __reduce_add_sync(FULL_WARP, live ? u + v : 0);
}
