// The end of a phase: how far the duals move, which paths are taken, and the flip. Part of forest.cu.

// T when every label is final (farthest free column reached), or for a wide matrix (nearest). TOP: none was reached.
__device__ __forceinline__ value_t threshold(const Matrix& a, const Slice& s, ulonglong2* board, u32 tag,
                                             bool farthest) {
    __syncthreads();  // what the search's last exchange left in got_* is read before this one writes it
    if (threadIdx.x < 32) {
        u64 x = ~0ull;
        for (int j = threadIdx.x; j < a.width; j += 32)
            if (s.row[j] < 0 && s.d[j] < TOP) {
                const u64 b = farthest ? ~(Value::bits(s.d[j]) + 1) : Value::bits(s.d[j]);  // all ones: none
                x = b < x ? b : x;
            }
        x = warp_min_bits(x);
        if (threadIdx.x == 0) publish(board, tag, {x, 0, 0, 0, 0}, 0);
    }
    u64 least, mask;
    int unused = 0;
    collect(board, tag, s, false, &least, &mask, &unused);
    if (least == ~0ull) return TOP;
    return Value::from(farthest ? ~least - 1 : least);
}

// Every free column within T proposes its path to its source; a source takes the lowest column. Ends in an exchange.
__device__ __forceinline__ void propose(const Matrix& a, const Slice& s, value_t T, u64* proposal, ulonglong2* board,
                                        u32 tag) {
    for (int j = threadIdx.x; j < a.width; j += THREADS)
        if (s.row[j] < 0 && s.d[j] <= T) {
            u32 r = s.pred[j];
            while (s.parent[r] != r) r = s.parent[r];
            atomicMin(&proposal[r], (u64)(a.first + j) << 32 | s.pred[j]);  // settles which column a source takes
        }
    __threadfence();  // proposals before the tag that announces them
    __syncthreads();  // every thread has fenced before thread 0 publishes the tag
    if (threadIdx.x == 0) publish(board, tag, {~0ull, 0, 0, 0, 0}, 0);
    u64 least, mask;
    int unused = 0;
    collect(board, tag, s, false, &least, &mask, &unused);
    __threadfence();
}

// Mark the rows of the accepted paths, give the free columns their rows, drop the matched sources from live.
__device__ __forceinline__ int accept(const Matrix& a, const Slice& s, u32* live, int n_live, const int* free_rows,
                                      const u64* proposal) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int kept = 0;
    for (int at = 0; at < n_live; at += THREADS) {
        const int k = at + threadIdx.x;
        u32 source = 0;
        u64 p = 0;
        if (k < n_live) {
            source = live[k];
            p = __ldcg(&proposal[free_rows[source]]);
            if (p != NO_PATH) {
                const int j = (int)(p >> 32) - a.first;
                u32 r = (u32)p;
                if (j >= 0 && j < a.width) s.row[j] = -2 - (int)r;  // augment gives it the row
                for (;;) {
                    atomicOr(&s.on_path[r >> 5], 1u << (r & 31));  // rows of other paths share the word
                    if (s.parent[r] == r) break;
                    r = s.parent[r];
                }
            }
        }
        const u32 votes = __ballot_sync(FULL_WARP, k < n_live && p == NO_PATH);
        if (lane == 0) warp_count[warp] = __popc(votes);
        __syncthreads();  // counts, and live[at ..] read, before live is compacted
        const int mine = lane < WARPS ? warp_count[lane] : 0;
        const int before = __reduce_add_sync(FULL_WARP, lane < warp ? mine : 0);
        if (k < n_live && p == NO_PATH) live[kept + before + __popc(votes & ((1u << lane) - 1))] = source;
        kept += __reduce_add_sync(FULL_WARP, mine);
        __syncthreads();  // counts read before the next round writes them
    }
    return kept;
}

// Move the duals by T and flip the marked paths; labels start afresh.
__device__ __forceinline__ void augment(const Matrix& a, const Slice& s, value_t T) {
    for (int j = threadIdx.x; j < a.width; j += THREADS) {
        if (s.d[j] < T) s.v[j] -= T - s.d[j];
        int i = s.row[j];
        const bool taken = i <= -2, passed = i >= 0 && (s.on_path[i >> 5] >> (i & 31) & 1);
        if (taken || passed) {
            i = taken ? -2 - i : s.parent[i];
            s.row[j] = i;
            s.pair[j] = read_cost(a.cost, (long long)i * a.n_cols + a.first + j, a.negate);
        }
        s.d[j] = TOP;
        s.active[j] = 0;
    }
    __syncthreads();  // on_path read before it is cleared
    for (int k = threadIdx.x; k < (a.n_rows + 31) / 32; k += THREADS) s.on_path[k] = 0;
    __syncthreads();  // clean before the next phase marks
}
