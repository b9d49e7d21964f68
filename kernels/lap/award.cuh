// How a round of bids ends, the same in each auction of lap: bid.cu, start.cu, and jacobi.cuh for batches.
//
// Books are where an auction keeps prices and pairs: in shared memory, in device memory, or in one block of a batch. They
// have `key`, the best bid for a column in this round or 0, and these:
//   owner_of(j)          the row that has column j, or -1
//   take(j, i, old, up)  column j goes from row `old` (-1: nobody) to row i, and its price falls by `up`
//
// ROW_BITS is defined by who includes this: rows are below 2^ROW_BITS.

// Bids compare by the leading 63 - ROW_BITS bits of their rise, then by the lower row. Bids that differ only in the bits
// below count as equal, which is allowed: any of the best bidders may win. Never 0, which means no bid.
__device__ __forceinline__ u64 bid_key(value_t up, int row) {
    return ((u64)__double_as_longlong((double)up) & ~((2ull << ROW_BITS) - 1)) | (u64)((1 << ROW_BITS) - row);
}

// Award row i's bid of `up` for column j (-1: none); returns the row that is left without a column, or -1.
template <typename Books>
__device__ __forceinline__ int award(const Books& books, int i, int j, value_t up, bool* tied) {
    *tied = j >= 0 && up <= 0;
    // the exchange settles who looks first, the winner or a loser: 0 is equal to no bid
    if (j < 0 || atomicCAS(books.key + j, bid_key(up, i), 0ull) != bid_key(up, i)) return i;
    const int old = books.owner_of(j);
    if (old >= 0 && up <= 0) return i;
    books.take(j, i, old, up);
    return old;
}

// Where this thread's row goes in the list of rows that are left, which keeps its order: `kept` before, and after this
// call the rows of all threads. `ties` counts bids of 0. Every thread of the block calls; `counts`: one per warp, read
// until the caller's next barrier.
template <int N_WARPS>
__device__ __forceinline__ int place_in_order(bool keeps, bool tied, int* counts, int* kept, int* ties) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 votes = __ballot_sync(FULL_WARP, keeps), tie_votes = __ballot_sync(FULL_WARP, tied);
    if (lane == 0) counts[warp] = __popc(votes) | __popc(tie_votes) << 16;
    __syncthreads();  // counts, and the list that bids were read from, before it is written
    const int mine = lane < N_WARPS ? counts[lane] : 0;
    const int before = __reduce_add_sync(FULL_WARP, lane < warp ? mine & 0xffff : 0);
    const int sum = __reduce_add_sync(FULL_WARP, mine), place = *kept + before + __popc(votes & ((1u << lane) - 1));
    *kept += sum & 0xffff;
    *ties += sum >> 16;
    return place;
}
