// Rows of a benefit graph on the device, and their short lists: what every kernel of auction.cu and paths.cu reads.
//
// All arithmetic is int64: integers times `scale` (n_cols + 1 where the optimum is to be proved), floats in fixed point.
// Prices never fall, so the edges that a list leaves out stay at or below rest[i] from the moment the row was read.
#ifndef INT_MAX
#define INT_MAX 0x7fffffff
#endif

#ifndef VALUE
#define VALUE int
#endif
#ifndef FIXED_POINT
#define FIXED_POINT 0
#endif
#ifndef METRIC
#define METRIC 0  // not 0: the benefits are distances between points, worked out when read
#endif

#define WANTED 48     // edges that a reading aims for. A thread may hold two of the best: LIST leaves room for them
#define WARPS (BLOCK / 32)  // of every block; one bids for one row
#define FEW_BIDDERS WARPS  // up to so many bidders, one block runs the rounds alone

typedef long long Int;

// Auction, AuctionState: what the host hands over, and what outlives a launch.
#include "auction/layout.py"

// What a warp finds in a list. The same in every lane: the best net benefit, the second best (LOWEST: none), the best
// edge's column (-1: none) and the lane that lists it. In that lane alone: the edge's benefit, and who owns the column.
struct Offer {
    Int net, second, benefit;
    int column, holder, owner;
};

// Places in the grid, and the atomic that hands out places in a list.
__device__ __forceinline__ Int grid_warp() { return (Int)blockIdx.x * WARPS + threadIdx.x / 32; }
__device__ __forceinline__ Int grid_warps() { return (Int)gridDim.x * WARPS; }
__device__ __forceinline__ Int grid_thread() { return (Int)blockIdx.x * BLOCK + threadIdx.x; }
__device__ __forceinline__ Int grid_threads() { return (Int)gridDim.x * BLOCK; }
__device__ __forceinline__ Int add(Int* counter, Int by) {
    return (Int)atomicAdd(reinterpret_cast<unsigned long long*>(counter), (unsigned long long)by);
}

// `degree` edges of row i: all of them, or those from the `first` on (start points there), or some that were listed.
struct Row {
    Int start, degree, i, first;
    const int* columns;   // listed edges, with -1 and LOWEST where unused; null: the graph's own
    const Int* benefits;
};

__device__ __forceinline__ Row row_at(const Auction& auction, Int i) {
    if (!auction.indptr) return {i * auction.n_cols, auction.n_cols, i, 0, nullptr, nullptr};
    return {auction.indptr[i], auction.indptr[i + 1] - auction.indptr[i], i, 0, nullptr, nullptr};
}

// Where a short list is kept.
struct Listing {
    int* columns;
    Int *benefits, *rest;
};

__device__ __forceinline__ Listing listing_of(const Auction& auction, Int i) {
    return {auction.list_columns + i * LIST, auction.list_benefits + i * LIST, auction.rest + i};
}

#if METRIC
// Minus the distance of x_i and y_j, in fixed point. Metrics: 1 squared Euclidean, 2 Euclidean, 3 city block.
__device__ __forceinline__ Int benefit_of_points(const Auction& auction, Int i, Int j) {
    double sum = 0;
    for (Int k = 0; k < auction.dimension; ++k) {
        const double step =
            (double)auction.values[i * auction.dimension + k] - (double)auction.targets[j * auction.dimension + k];
        sum += METRIC == 3 ? fabs(step) : step * step;
    }
    return -llrint((METRIC == 2 ? sqrt(sum) : sum) * auction.scale);
}
#endif

// Benefit of an edge, told by its place in the row; LOWEST when it is forbidden.
__device__ __forceinline__ Int benefit_at(const Auction& auction, const Row& row, Int edge) {
    if (row.benefits) return row.benefits[edge];
#if METRIC
    return benefit_of_points(auction, row.i, row.first + edge);
#elif FIXED_POINT
    const VALUE value = auction.values[row.start + edge];
    return isinf((double)value) ? LOWEST : llrint((double)value * auction.scale);
#else
    return (Int)auction.values[row.start + edge] * (Int)auction.scale;
#endif
}

__device__ __forceinline__ int column_at(const Auction& auction, const Row& row, Int edge) {
    if (row.columns) return row.columns[edge];
    return auction.indices ? auction.indices[row.start + edge] : (int)(row.first + edge);
}

// Net benefit of an edge, told by its place in the row; LOWEST when it is forbidden.
__device__ __forceinline__ Int net_at(const Auction& auction, const Row& row, Int edge) {
    const Int benefit = benefit_at(auction, row, edge);
    return benefit == LOWEST ? LOWEST : benefit - auction.prices[column_at(auction, row, edge)];
}

// Block-wide reductions through one word a warp.
struct Scratch {
    Int word[WARPS];
    int count;
};

template <bool largest>
__device__ __forceinline__ Int block_extreme(Int value, Scratch& scratch) {
#pragma unroll
    for (int step = 16; step; step >>= 1) {
        const Int other = __shfl_xor_sync(FULL_WARP, value, step);
        value = largest ? max(value, other) : min(value, other);
    }
    if (threadIdx.x % 32 == 0) scratch.word[threadIdx.x / 32] = value;
    __syncthreads();  // all words are written
    Int all = scratch.word[0];
    for (int warp = 1; warp < WARPS; ++warp) all = largest ? max(all, scratch.word[warp]) : min(all, scratch.word[warp]);
    __syncthreads();  // all words are read: the next reduction may write them
    return all;
}

// Midpoint above low of low < high, without overflow.
__device__ __forceinline__ Int above_middle(Int low, Int high) {
    return low + (Int)(((unsigned long long)high - (unsigned long long)low + 1) / 2);
}

__device__ __forceinline__ void keep(const Auction& auction, const Listing& list, int place, const Row& row, Int edge) {
    list.columns[place] = column_at(auction, row, edge);
    list.benefits[place] = benefit_at(auction, row, edge);
}

// The largest bar that at least WANTED threads' best edges reach; LOWEST + 1 when fewer threads have an edge. Every
// barrier gives all threads the same count, and so the same next bar.
__device__ Int choose_bar(Int mine, Int high, Scratch& scratch) {
    Int low = block_extreme<false>(mine, scratch);
    if (low == LOWEST) {
        low = LOWEST + 1;
        if (__syncthreads_count(mine >= low) < WANTED) return low;
    }
    while (low < high) {
        const Int middle = above_middle(low, high);
        if (__syncthreads_count(mine >= middle) >= WANTED) low = middle;
        else high = middle - 1;
    }
    return low;
}

// More than LIST edges reach `bar`: raise it until fewer than LIST lie above it, and at least LIST on or above.
__device__ Int raise_bar(const Auction& auction, const Row& row, Int bar, Int high, Scratch& scratch) {
    while (bar < high) {
        const Int middle = above_middle(bar, high);
        if (threadIdx.x == 0) scratch.count = 0;
        __syncthreads();  // 0 before the first thread adds
        int reach = 0;
        for (Int edge = threadIdx.x; edge < row.degree; edge += BLOCK) reach += net_at(auction, row, edge) >= middle;
        if (reach) atomicAdd(&scratch.count, min(reach, LIST));
        __syncthreads();  // all threads have added
        if (scratch.count >= LIST) bar = middle;
        else high = middle - 1;
        __syncthreads();  // all have read the count before it is cleared
    }
    return bar;
}

// Append the edges that equal `bar` until the list is full: from the lowest column on or, with `spread`, from a place
// that grows with the row's number. In a dense row that is column i, as in rank_of; in a sparse one it need not be.
__device__ void keep_equals(const Auction& auction, const Listing& list, const Row& row, Int bar, Scratch& scratch) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const Int start = auction.spread ? row.i * row.degree / auction.n_cols % row.degree : 0;
    for (Int base = 0; base < row.degree && scratch.count < LIST; base += BLOCK) {
        Int edge = base + threadIdx.x + start;
        const bool in_row = edge < row.degree + start;
        if (edge >= row.degree) edge -= row.degree;
        const bool equal = in_row && net_at(auction, row, edge) == bar;
        const unsigned votes = __ballot_sync(FULL_WARP, equal);
        if (lane == 0) scratch.word[warp] = __popc(votes);
        __syncthreads();  // the votes of all warps are written
        int place = scratch.count + __popc(votes & ((1u << lane) - 1)), all = 0;
        for (int other = 0; other < WARPS; ++other) {
            if (other < warp) place += (int)scratch.word[other];
            all += (int)scratch.word[other];
        }
        if (equal && place < LIST) keep(auction, list, place, row, edge);
        __syncthreads();  // everyone has read scratch.count and scratch.word
        if (threadIdx.x == 0) scratch.count += all;
        __syncthreads();  // the new count before the next votes
    }
}

// Read a row whole with the whole block and list its best edges. All threads of the block must call it together.
__device__ void reveal(const Auction& auction, const Row& row, const Listing& list, Scratch& scratch) {
    Int mine = LOWEST;
    for (Int edge = threadIdx.x; edge < row.degree; edge += BLOCK) mine = max(mine, net_at(auction, row, edge));
    const Int high = block_extreme<true>(mine, scratch);
    Int bar = row.degree <= LIST || high == LOWEST ? LOWEST + 1 : choose_bar(mine, high, scratch);
    for (int once = 0; once < 2; ++once) {
        if (threadIdx.x < LIST) list.columns[threadIdx.x] = -1, list.benefits[threadIdx.x] = LOWEST;
        if (threadIdx.x == 0) scratch.count = 0;
        __syncthreads();  // cleared before the first edge is kept
        Int left = LOWEST;
        for (Int edge = threadIdx.x; edge < row.degree; edge += BLOCK) {
            const Int net = net_at(auction, row, edge);
            if (net < bar || (once && net == bar) || net == LOWEST) {
                left = max(left, net);
                continue;
            }
            const int place = atomicAdd(&scratch.count, 1);  // hands out places in the list
            if (place < LIST) keep(auction, list, place, row, edge);
        }
        __syncthreads();  // all edges are counted
        const int reached = scratch.count;
        left = block_extreme<true>(left, scratch);
        if (threadIdx.x == 0) *list.rest = left;
        if (reached <= LIST) {
            if (once) keep_equals(auction, list, row, bar, scratch);
            break;
        }
        bar = raise_bar(auction, row, bar, high, scratch);
    }
    __syncthreads();  // the list stands before anybody looks at it
}

__device__ __forceinline__ void reveal(const Auction& auction, Int i, Scratch& scratch) {
    reveal(auction, row_at(auction, i), listing_of(auction, i), scratch);
}

// List all edges of a row that has at most LIST, by one warp.
__device__ __forceinline__ void list_short(const Auction& auction, const Row& row) {
    const Listing list = listing_of(auction, row.i);
    for (int edge = threadIdx.x % 32; edge < LIST; edge += 32) {
        const Int benefit = edge < row.degree ? benefit_at(auction, row, edge) : LOWEST;
        list.columns[edge] = benefit == LOWEST ? -1 : column_at(auction, row, edge);
        list.benefits[edge] = benefit;
    }
    if (threadIdx.x % 32 == 0) *list.rest = LOWEST;
}

// Benefit of the edge from row i to column j, LOWEST for none: by place in a dense row, by bisection in a sparse one.
__device__ Int benefit_of(const Auction& auction, Int i, int j) {
    const Row row = row_at(auction, i);
    if (!auction.indices) return benefit_at(auction, row, j);
    Int low = row.start, high = row.start + row.degree;
    while (low < high) {
        const Int middle = (low + high) / 2;
        if (auction.indices[middle] < j) low = middle + 1;
        else high = middle;
    }
    return low < row.start + row.degree && auction.indices[low] == j ? benefit_at(auction, row, low - row.start)
                                                                     : LOWEST;
}

__device__ __forceinline__ Int warp_max(Int value) {
    const int high = (int)(value >> 32), most = __reduce_max_sync(FULL_WARP, high);
    const unsigned low = __reduce_max_sync(FULL_WARP, high == most ? (unsigned)value : 0u);
    return (Int)most << 32 | low;
}

// Where column j stands for row i among columns of equal net benefit. Each column has its own rank, below 0xffffffff:
// `look` takes that number for a lane without a column.
__device__ __forceinline__ unsigned rank_of(const Auction& auction, Int i, int j) {
    return auction.spread && j < i ? (unsigned)(j + auction.n_cols) : (unsigned)j;
}

// Best and second best edge of row i by one warp; of equals the first by rank.
__device__ __forceinline__ Offer look(const Auction& auction, Int i) {
    const int lane = threadIdx.x % 32;
    const int2 columns = reinterpret_cast<const int2*>(auction.list_columns + i * LIST)[lane];
    const longlong2 benefits = reinterpret_cast<const longlong2*>(auction.list_benefits + i * LIST)[lane];
    const Int first = columns.x < 0 ? LOWEST : benefits.x - auction.prices[columns.x];
    const Int other = columns.y < 0 ? LOWEST : benefits.y - auction.prices[columns.y];
    const bool swap = other > first || (other == first && columns.y >= 0 &&
                                        rank_of(auction, i, columns.y) < rank_of(auction, i, columns.x));
    const Int mine = swap ? other : first;
    Offer offer;
    offer.column = swap ? columns.y : columns.x;
    offer.benefit = swap ? benefits.y : benefits.x;
    offer.owner = offer.column < 0 ? -1 : auction.row_of[offer.column];
    offer.net = warp_max(mine);
    unsigned tied = __ballot_sync(FULL_WARP, mine == offer.net && offer.column >= 0);
    const bool alone = !(tied & (tied - 1));
    if (!alone) {
        const unsigned rank = tied >> lane & 1 ? rank_of(auction, i, offer.column) : 0xffffffffu;
        tied = __ballot_sync(FULL_WARP, rank == __reduce_min_sync(FULL_WARP, rank));
    }
    offer.holder = tied ? __ffs(tied) - 1 : 0;
    offer.second = alone ? warp_max(lane == offer.holder ? (swap ? first : other) : mine) : offer.net;
    offer.column = __shfl_sync(FULL_WARP, tied ? offer.column : -1, offer.holder);
    return offer;
}

// Whether an edge outside the list may be the best or the second best, or come first among the best.
__device__ __forceinline__ bool is_stale(const Auction& auction, Int i, const Offer& offer) {
    const Int rest = auction.rest[i];
    return rest > LOWEST && (offer.net < rest || offer.second < rest || (offer.net == rest && !auction.spread));
}

__device__ __forceinline__ Int rise_of(const Auction& auction, const Offer& offer, Int epsilon) {
    return (offer.second == LOWEST ? auction.alone : offer.net - offer.second) + epsilon;
}
