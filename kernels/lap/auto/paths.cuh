// The end of a phase: how far the duals move, which paths are taken, and the flip. Part of forest.cu.

// T when every label is final (farthest free column reached), or for a wide matrix (nearest). TOP: none was reached.
__device__ __forceinline__ value_t threshold(const Matrix& matrix, const Slice& slice, ulonglong2* board, u32 tag,
                                             bool farthest) {
    __syncthreads();  // what the search's last exchange left in got_* is read before this one writes it
    if (threadIdx.x < 32) {
        u64 nearest = ~0ull;
        for (int j = threadIdx.x; j < matrix.width; j += 32)
            if (slice.row[j] < 0 && slice.d[j] < TOP) {
                const u64 bits = farthest ? ~(Value::bits(slice.d[j]) + 1) : Value::bits(slice.d[j]);  // all ones: none
                nearest = bits < nearest ? bits : nearest;
            }
        nearest = warp_min_bits(nearest);
        if (threadIdx.x == 0) publish(board, tag, {nearest, 0, 0, 0, 0}, 0);
    }
    u64 least, mask;
    int unused = 0;
    collect(board, tag, slice, false, &least, &mask, &unused);
    if (least == ~0ull) return TOP;
    return Value::from(farthest ? ~least - 1 : least);
}

// Every free column within T proposes its path to its source; a source takes the lowest column. Ends in an exchange.
__device__ __forceinline__ void propose(const Matrix& matrix, const Slice& slice, value_t T, u64* proposal,
                                        ulonglong2* board, u32 tag) {
    for (int j = threadIdx.x; j < matrix.width; j += THREADS)
        if (slice.row[j] < 0 && slice.d[j] <= T) {
            u32 row = slice.pred[j];
            while (slice.parent[row] != row) row = slice.parent[row];
            atomicMin(&proposal[row],
                      (u64)(matrix.first + j) << 32 | slice.pred[j]);  // settles which column a source takes
        }
    __threadfence();  // proposals before the tag that announces them
    __syncthreads();  // every thread has fenced before thread 0 publishes the tag
    if (threadIdx.x == 0) publish(board, tag, {~0ull, 0, 0, 0, 0}, 0);
    u64 least, mask;
    int unused = 0;
    collect(board, tag, slice, false, &least, &mask, &unused);
    __threadfence();
}

// Mark the rows of the accepted paths, give the free columns their rows, drop the matched sources from live.
__device__ __forceinline__ int accept(const Matrix& matrix, const Slice& slice, u32* live, int n_live,
                                      const int* free_rows, const u64* proposal) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int kept = 0;
    for (int at = 0; at < n_live; at += THREADS) {
        const int k = at + threadIdx.x;
        u32 source = 0;
        u64 path = 0;
        if (k < n_live) {
            source = live[k];
            path = __ldcg(&proposal[free_rows[source]]);
            if (path != NO_PATH) {
                const int j = (int)(path >> 32) - matrix.first;
                u32 row = (u32)path;
                if (j >= 0 && j < matrix.width) slice.row[j] = -2 - (int)row;  // augment gives it the row
                for (;;) {
                    atomicOr(&slice.on_path[row >> 5], 1u << (row & 31));  // rows of other paths share the word
                    if (slice.parent[row] == row) break;
                    row = slice.parent[row];
                }
            }
        }
        const u32 votes = __ballot_sync(FULL_WARP, k < n_live && path == NO_PATH);
        if (lane == 0) warp_count[warp] = __popc(votes);
        __syncthreads();  // counts, and live[at ..] read, before live is compacted
        const int mine = lane < WARPS ? warp_count[lane] : 0;
        const int before = __reduce_add_sync(FULL_WARP, lane < warp ? mine : 0);
        if (k < n_live && path == NO_PATH) live[kept + before + __popc(votes & ((1u << lane) - 1))] = source;
        kept += __reduce_add_sync(FULL_WARP, mine);
        __syncthreads();  // counts read before the next round writes them
    }
    return kept;
}

// Move the duals by T and flip the marked paths; labels start afresh.
__device__ __forceinline__ void augment(const Matrix& matrix, const Slice& slice, value_t T) {
    for (int j = threadIdx.x; j < matrix.width; j += THREADS) {
        if (slice.d[j] < T) slice.v[j] -= T - slice.d[j];
        int i = slice.row[j];
        const bool taken = i <= -2, passed = i >= 0 && (slice.on_path[i >> 5] >> (i & 31) & 1);
        if (taken || passed) {
            i = taken ? -2 - i : slice.parent[i];
            slice.row[j] = i;
            slice.pair[j] = read_cost(matrix.cost, (long long)i * matrix.n_cols + matrix.first + j, matrix.negate);
        }
        slice.d[j] = TOP;
        slice.active[j] = 0;
    }
    __syncthreads();  // on_path read before it is cleared
    for (int k = threadIdx.x; k < (matrix.n_rows + 31) / 32; k += THREADS) slice.on_path[k] = 0;
    __syncthreads();  // clean before the next phase marks
}
