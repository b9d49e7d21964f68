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

__device__ __forceinline__ Row row_at(const Auction& a, Int i) {
    if (!a.indptr) return {i * a.n_cols, a.n_cols, i, 0, nullptr, nullptr};
    return {a.indptr[i], a.indptr[i + 1] - a.indptr[i], i, 0, nullptr, nullptr};
}

// Where a short list is kept.
struct Listing {
    int* columns;
    Int *benefits, *rest;
};

__device__ __forceinline__ Listing listing_of(const Auction& a, Int i) {
    return {a.list_columns + i * LIST, a.list_benefits + i * LIST, a.rest + i};
}

#if METRIC
// Minus the distance of x_i and y_j, in fixed point. Metrics: 1 squared Euclidean, 2 Euclidean, 3 city block.
__device__ __forceinline__ Int benefit_of_points(const Auction& a, Int i, Int j) {
    double sum = 0;
    for (Int k = 0; k < a.dimension; ++k) {
        const double step = (double)a.values[i * a.dimension + k] - (double)a.targets[j * a.dimension + k];
        sum += METRIC == 3 ? fabs(step) : step * step;
    }
    return -llrint((METRIC == 2 ? sqrt(sum) : sum) * a.scale);
}
#endif

// Benefit of the t-th edge of a row; LOWEST when it is forbidden.
__device__ __forceinline__ Int benefit_at(const Auction& a, const Row& row, Int t) {
    if (row.benefits) return row.benefits[t];
#if METRIC
    return benefit_of_points(a, row.i, row.first + t);
#elif FIXED_POINT
    const VALUE value = a.values[row.start + t];
    return isinf((double)value) ? LOWEST : llrint((double)value * a.scale);
#else
    return (Int)a.values[row.start + t] * (Int)a.scale;
#endif
}

__device__ __forceinline__ int column_at(const Auction& a, const Row& row, Int t) {
    if (row.columns) return row.columns[t];
    return a.indices ? a.indices[row.start + t] : (int)(row.first + t);
}

// Net benefit of the t-th edge of a row; LOWEST when it is forbidden.
__device__ __forceinline__ Int net_at(const Auction& a, const Row& row, Int t) {
    const Int benefit = benefit_at(a, row, t);
    return benefit == LOWEST ? LOWEST : benefit - a.prices[column_at(a, row, t)];
}

// Block-wide reductions through one word a warp.
struct Scratch {
    Int word[WARPS];
    int count;
};

template <bool largest>
__device__ __forceinline__ Int block_extreme(Int value, Scratch& s) {
#pragma unroll
    for (int step = 16; step; step >>= 1) {
        const Int other = __shfl_xor_sync(FULL_WARP, value, step);
        value = largest ? max(value, other) : min(value, other);
    }
    if (threadIdx.x % 32 == 0) s.word[threadIdx.x / 32] = value;
    __syncthreads();  // all words are written
    Int all = s.word[0];
    for (int w = 1; w < WARPS; ++w) all = largest ? max(all, s.word[w]) : min(all, s.word[w]);
    __syncthreads();  // all words are read: the next reduction may write them
    return all;
}

// Midpoint above low of low < high, without overflow.
__device__ __forceinline__ Int above_middle(Int low, Int high) {
    return low + (Int)(((unsigned long long)high - (unsigned long long)low + 1) / 2);
}

__device__ __forceinline__ void keep(const Auction& a, const Listing& list, int place, const Row& row, Int t) {
    list.columns[place] = column_at(a, row, t);
    list.benefits[place] = benefit_at(a, row, t);
}

// The largest bar that at least WANTED threads' best edges reach; LOWEST + 1 when fewer threads have an edge. Every
// barrier gives all threads the same count, and so the same next bar.
__device__ Int choose_bar(Int mine, Int high, Scratch& s) {
    Int low = block_extreme<false>(mine, s);
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
__device__ Int raise_bar(const Auction& a, const Row& row, Int bar, Int high, Scratch& s) {
    while (bar < high) {
        const Int middle = above_middle(bar, high);
        if (threadIdx.x == 0) s.count = 0;
        __syncthreads();  // 0 before the first thread adds
        int reach = 0;
        for (Int t = threadIdx.x; t < row.degree; t += BLOCK) reach += net_at(a, row, t) >= middle;
        if (reach) atomicAdd(&s.count, min(reach, LIST));
        __syncthreads();  // all threads have added
        if (s.count >= LIST) bar = middle;
        else high = middle - 1;
        __syncthreads();  // all have read the count before it is cleared
    }
    return bar;
}

// Append the edges that equal `bar` until the list is full: from the lowest column on or, with `spread`, from a place
// that grows with the row's number. In a dense row that is column i, as in rank_of; in a sparse one it need not be.
__device__ void keep_equals(const Auction& a, const Listing& list, const Row& row, Int bar, Scratch& s) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const Int start = a.spread ? row.i * row.degree / a.n_cols % row.degree : 0;
    for (Int base = 0; base < row.degree && s.count < LIST; base += BLOCK) {
        Int t = base + threadIdx.x + start;
        const bool in_row = t < row.degree + start;
        if (t >= row.degree) t -= row.degree;
        const bool equal = in_row && net_at(a, row, t) == bar;
        const unsigned votes = __ballot_sync(FULL_WARP, equal);
        if (lane == 0) s.word[warp] = __popc(votes);
        __syncthreads();  // the votes of all warps are written
        int place = s.count + __popc(votes & ((1u << lane) - 1)), all = 0;
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) place += (int)s.word[w];
            all += (int)s.word[w];
        }
        if (equal && place < LIST) keep(a, list, place, row, t);
        __syncthreads();  // everyone has read s.count and s.word
        if (threadIdx.x == 0) s.count += all;
        __syncthreads();  // the new count before the next votes
    }
}

// Read a row whole with the whole block and list its best edges. All threads of the block must call it together.
__device__ void reveal(const Auction& a, const Row& row, const Listing& list, Scratch& s) {
    Int mine = LOWEST;
    for (Int t = threadIdx.x; t < row.degree; t += BLOCK) mine = max(mine, net_at(a, row, t));
    const Int high = block_extreme<true>(mine, s);
    Int bar = row.degree <= LIST || high == LOWEST ? LOWEST + 1 : choose_bar(mine, high, s);
    for (int once = 0; once < 2; ++once) {
        if (threadIdx.x < LIST) list.columns[threadIdx.x] = -1, list.benefits[threadIdx.x] = LOWEST;
        if (threadIdx.x == 0) s.count = 0;
        __syncthreads();  // cleared before the first edge is kept
        Int left = LOWEST;
        for (Int t = threadIdx.x; t < row.degree; t += BLOCK) {
            const Int net = net_at(a, row, t);
            if (net < bar || (once && net == bar) || net == LOWEST) {
                left = max(left, net);
                continue;
            }
            const int place = atomicAdd(&s.count, 1);  // hands out places in the list
            if (place < LIST) keep(a, list, place, row, t);
        }
        __syncthreads();  // all edges are counted
        const int reached = s.count;
        left = block_extreme<true>(left, s);
        if (threadIdx.x == 0) *list.rest = left;
        if (reached <= LIST) {
            if (once) keep_equals(a, list, row, bar, s);
            break;
        }
        bar = raise_bar(a, row, bar, high, s);
    }
    __syncthreads();  // the list stands before anybody looks at it
}

__device__ __forceinline__ void reveal(const Auction& a, Int i, Scratch& s) {
    reveal(a, row_at(a, i), listing_of(a, i), s);
}

// List all edges of a row that has at most LIST, by one warp.
__device__ __forceinline__ void list_short(const Auction& a, const Row& row) {
    const Listing list = listing_of(a, row.i);
    for (int t = threadIdx.x % 32; t < LIST; t += 32) {
        const Int benefit = t < row.degree ? benefit_at(a, row, t) : LOWEST;
        list.columns[t] = benefit == LOWEST ? -1 : column_at(a, row, t);
        list.benefits[t] = benefit;
    }
    if (threadIdx.x % 32 == 0) *list.rest = LOWEST;
}

// Benefit of the edge from row i to column j, LOWEST for none: by place in a dense row, by bisection in a sparse one.
__device__ Int benefit_of(const Auction& a, Int i, int j) {
    const Row row = row_at(a, i);
    if (!a.indices) return benefit_at(a, row, j);
    Int low = row.start, high = row.start + row.degree;
    while (low < high) {
        const Int middle = (low + high) / 2;
        if (a.indices[middle] < j) low = middle + 1;
        else high = middle;
    }
    return low < row.start + row.degree && a.indices[low] == j ? benefit_at(a, row, low - row.start) : LOWEST;
}

__device__ __forceinline__ Int warp_max(Int value) {
    const int high = (int)(value >> 32), most = __reduce_max_sync(FULL_WARP, high);
    const unsigned low = __reduce_max_sync(FULL_WARP, high == most ? (unsigned)value : 0u);
    return (Int)most << 32 | low;
}

// Where column j stands for row i among columns of equal net benefit. Each column has its own rank, below 0xffffffff:
// `look` takes that number for a lane without a column.
__device__ __forceinline__ unsigned rank_of(const Auction& a, Int i, int j) {
    return a.spread && j < i ? (unsigned)(j + a.n_cols) : (unsigned)j;
}

// Best and second best edge of row i by one warp; of equals the first by rank.
__device__ __forceinline__ Offer look(const Auction& a, Int i) {
    const int lane = threadIdx.x % 32;
    const int2 columns = reinterpret_cast<const int2*>(a.list_columns + i * LIST)[lane];
    const longlong2 benefits = reinterpret_cast<const longlong2*>(a.list_benefits + i * LIST)[lane];
    const Int first = columns.x < 0 ? LOWEST : benefits.x - a.prices[columns.x];
    const Int other = columns.y < 0 ? LOWEST : benefits.y - a.prices[columns.y];
    const bool swap = other > first || (other == first && columns.y >= 0 &&
                                        rank_of(a, i, columns.y) < rank_of(a, i, columns.x));
    const Int mine = swap ? other : first;
    Offer o;
    o.column = swap ? columns.y : columns.x;
    o.benefit = swap ? benefits.y : benefits.x;
    o.owner = o.column < 0 ? -1 : a.row_of[o.column];
    o.net = warp_max(mine);
    unsigned tied = __ballot_sync(FULL_WARP, mine == o.net && o.column >= 0);
    const bool alone = !(tied & (tied - 1));
    if (!alone) {
        const unsigned rank = tied >> lane & 1 ? rank_of(a, i, o.column) : 0xffffffffu;
        tied = __ballot_sync(FULL_WARP, rank == __reduce_min_sync(FULL_WARP, rank));
    }
    o.holder = tied ? __ffs(tied) - 1 : 0;
    o.second = alone ? warp_max(lane == o.holder ? (swap ? first : other) : mine) : o.net;
    o.column = __shfl_sync(FULL_WARP, tied ? o.column : -1, o.holder);
    return o;
}

// Whether an edge outside the list may be the best or the second best, or come first among the best.
__device__ __forceinline__ bool is_stale(const Auction& a, Int i, const Offer& o) {
    const Int rest = a.rest[i];
    return rest > LOWEST && (o.net < rest || o.second < rest || (o.net == rest && !a.spread));
}

__device__ __forceinline__ Int rise_of(const Auction& a, const Offer& o, Int epsilon) {
    return (o.second == LOWEST ? a.alone : o.net - o.second) + epsilon;
}
