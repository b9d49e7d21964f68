// Shortest augmenting paths from all unassigned rows at once: the finish of an auction without its thin tail.
//
//   while rows are queued (the roots)
//     plant                clear labels, bring every root's best net benefit up to date, make the roots active
//     repeat
//       while rows are active:  relax (label columns through short lists), adopt (parents; rows of new labels turn active)
//       measure            per tree the nearest column without a row; over all rows the nearest edge outside a list
//       stop when the nearest free column is nearer than that, or when no row is left to read whole
//       read_whole         relax all edges of the rows that might hide a nearer one, with their lists renewed
//     raise_prices         by radius - distance; the radius takes in as many trees as the lists vouch for
//     flip                 one path per tree inside the radius: trees share no row and no column
//     requeue
//
// Edges cost max(0, profit - net benefit), where an assigned row's profit is what it holds. So an auction's answer
// within epsilon stays within epsilon: raising prices never lowers a cost below min(cost, 0), and a flipped edge is
// at most epsilon better than tight. Prices never fall, which keeps the lists true.
// Invariant between rounds: distance[j] is the length of a path root .. parent[j], j; a label only falls; the row of a
// label that fell is active. No free column in reach and every row read whole: rows labelled see too few columns.
//
// Buffers: struct Auction (rows.cuh), struct Forest below.
// Overflow: a distance is at most a difference of prices plus one span per hop that lies on a shortest path, below 2^62.
// Spare columns (n_rows < n_cols) must keep their price: then the radius is the nearest free column's distance.
// References: Jonker and Volgenant 1987 (shortest augmenting paths); Balas, Miller, Pekny and Toth 1991 (from many
// rows at once).
#include "auction/rows.cuh"
namespace cg = cooperative_groups;

#define FAR (1LL << 61)
#define NO_EDGE (1LL << 60)  // distances from here on are none

struct Forest {
    Int* distance;       // (n,) FAR: no label
    int* parent;         // (n,) row the label came from
    int* tree;           // (n,) root of that row
    int* dirty;          // (n,) the label fell while rows were read whole, and nobody has adopted it
    int* active;         // (m,) ring of rows to scan
    int* waiting;        // (m,) 1 while in the ring
    int* whole;          // (m,) rows to read whole
    Int* whole_at;       // (m,) distance at which a row was last read whole in this phase, FAR: not
    Int* tree_distance;  // (m,) by root: nearest column without a row
    int* tree_column;    // (m,) and which
    struct Growth* growth;
};

struct Growth {
    Int head, tail, n_whole, nearest, farthest, hidden, outcome, phases, rounds, scans, readings;
};
#define RUNNING 0
#define COMPLETE 1
#define INFEASIBLE 2

// Distance of row i from its root, which is that of the column it holds.
__device__ __forceinline__ Int distance_of(const Auction& a, const Forest& f, Int i) {
    const int j = a.column_of[i];
    return j < 0 ? 0 : __ldcg(f.distance + j);
}

// What row i holds, net: its best for a root, where plant keeps it in `held`.
__device__ __forceinline__ Int profit_of(const Auction& a, Int i) {
    const int j = a.column_of[i];
    return j < 0 ? a.held[i] : a.held[i] - a.prices[j];
}

// The atomic hands out places in the ring; `waiting` keeps a row from standing in it twice.
__device__ __forceinline__ void activate(const Auction& a, const Forest& f, int i) {
    if (!atomicExch(f.waiting + i, 1)) f.active[add(&f.growth->tail, 1) % a.n_rows] = i;
}

__device__ void plant(const Auction& a, const Forest& f, Int n, Scratch& s) {
    for (Int j = grid_thread(); j < a.n_cols; j += grid_threads()) {
        f.distance[j] = FAR;
        f.dirty[j] = 0;
    }
    for (Int i = grid_thread(); i < a.n_rows; i += grid_threads()) {
        f.whole_at[i] = FAR;
        f.tree_distance[i] = FAR;
        f.tree_column[i] = INT_MAX;
    }
    for (Int q = blockIdx.x; q < n; q += gridDim.x) {
        const Int i = a.queue[q];
        Offer o = look(a, i);  // every warp: all agree
        if (o.net < a.rest[i]) {
            reveal(a, i, s);
            o = look(a, i);
        }
        if (threadIdx.x == 0) {
            a.held[i] = o.net;
            activate(a, f, (int)i);
        }
        __syncthreads();  // the list is read before it may be written for the next root
    }
}

// One edge tried: the atomic settles which of two rows has the shorter path. True when the label fell.
__device__ __forceinline__ bool try_edge(const Auction& a, const Forest& f, Int base, Int profit, int j, Int benefit,
                                         Int& length) {
    length = base + max(0LL, profit - (benefit - a.prices[j]));
    return length < __ldcg(f.distance + j) && length < atomicMin(f.distance + j, length);
}

// Lane by lane, the label of column j fell to `length`: if it still stands, row i is its parent.
__device__ __forceinline__ void adopt(const Auction& a, const Forest& f, int i, int tree, int j, Int length) {
    if (__ldcg(f.distance + j) != length) return;
    f.parent[j] = i;
    f.tree[j] = tree;
    const int owner = a.row_of[j];
    if (owner >= 0) activate(a, f, owner);
}

__device__ __forceinline__ int tree_of(const Auction& a, const Forest& f, int i) {
    const int j = a.column_of[i];
    return j < 0 ? i : f.tree[j];
}

// A round: warp w scans the w-th active row, all labels settle at the barrier, then they are adopted. A label that
// fell has exactly one warp that made it fall to where it is, so adopting needs no atomic.
__device__ void grow_round(const Auction& a, const Forest& f, Int head, Int count, cg::grid_group& grid) {
    const int lane = threadIdx.x % 32;
    const bool mine = grid_warp() < count;
    int i = -1;
    Int lengths[2];
    int2 columns = {-1, -1};
    bool fell[2] = {false, false};
    if (mine) {
        i = f.active[(head + grid_warp()) % a.n_rows];
        if (lane == 0) atomicExch(f.waiting + i, 0);
        __syncwarp();
        const Int base = distance_of(a, f, i), profit = profit_of(a, i);
        columns = reinterpret_cast<const int2*>(a.list_columns + (Int)i * LIST)[lane];
        const longlong2 benefits = reinterpret_cast<const longlong2*>(a.list_benefits + (Int)i * LIST)[lane];
        if (columns.x >= 0) fell[0] = try_edge(a, f, base, profit, columns.x, benefits.x, lengths[0]);
        if (columns.y >= 0) fell[1] = try_edge(a, f, base, profit, columns.y, benefits.y, lengths[1]);
    }
    grid.sync();  // labels have settled before anybody adopts one
    if (fell[0] || fell[1]) {
        const int tree = tree_of(a, f, i);
        if (fell[0]) adopt(a, f, i, tree, columns.x, lengths[0]);
        if (fell[1]) adopt(a, f, i, tree, columns.y, lengths[1]);
    }
}

// No edge outside row i's list leads nearer than this.
__device__ __forceinline__ Int hidden_from(const Auction& a, const Forest& f, Int i) {
    const Int base = distance_of(a, f, i), rest = a.rest[i];
    if (base >= NO_EDGE || rest == LOWEST || f.whole_at[i] == base) return FAR;
    return base + max(0LL, profit_of(a, i) - rest);
}

__device__ void measure_trees(const Auction& a, const Forest& f) {
    for (Int j = grid_thread(); j < a.n_cols; j += grid_threads())
        if (a.row_of[j] < 0 && f.distance[j] < NO_EDGE) atomicMin(f.tree_distance + f.tree[j], f.distance[j]);
    Int hidden = FAR;
    for (Int i = grid_thread(); i < a.n_rows; i += grid_threads()) hidden = min(hidden, hidden_from(a, f, i));
    hidden = warp_min(hidden);
    if (threadIdx.x % 32 == 0 && hidden < FAR) atomicMin(&f.growth->hidden, hidden);
}

__device__ void measure_forest(const Auction& a, const Forest& f, Int n) {
    for (Int q = grid_thread(); q < n; q += grid_threads()) {
        const Int reach = f.tree_distance[a.queue[q]];
        if (reach >= NO_EDGE) continue;
        atomicMin(&f.growth->nearest, reach);
        atomicMax(&f.growth->farthest, reach);
    }
}

__device__ void list_hidden(const Auction& a, const Forest& f, Int nearest) {
    for (Int i = grid_thread(); i < a.n_rows; i += grid_threads())
        if (hidden_from(a, f, i) < nearest) f.whole[add(&f.growth->n_whole, 1)] = (int)i;
}

// Relax every edge of the listed rows, or (second pass) adopt the labels that fell: one adopter per fallen label.
template <bool adopting>
__device__ void read_whole(const Auction& a, const Forest& f, Int n_whole, Scratch& s) {
    for (Int k = blockIdx.x; k < n_whole; k += gridDim.x) {
        const int i = f.whole[k];
        const Row row = row_at(a, i);
        const Int profit = profit_of(a, i);
        const int tree = tree_of(a, f, i);
        if (!adopting) {
            reveal(a, i, s);
            if (threadIdx.x == 0) f.whole_at[i] = distance_of(a, f, i);
            __syncthreads();  // whole_at fixes the distance that both passes use
        }
        const Int base = __ldcg(f.whole_at + i);
        for (Int t = threadIdx.x; t < row.degree; t += BLOCK) {
            const Int benefit = benefit_at(a, row.start + t);
            if (benefit == LOWEST) continue;
            const int j = column_at(a, row, t);
            Int length;
            if (!adopting) {
                if (try_edge(a, f, base, profit, j, benefit, length)) atomicExch(f.dirty + j, 1);
            } else if (__ldcg(f.dirty + j)) {
                length = base + max(0LL, profit - (benefit - a.prices[j]));
                if (__ldcg(f.distance + j) == length && atomicExch(f.dirty + j, 0)) adopt(a, f, i, tree, j, length);
            }
        }
    }
}

__device__ void raise_prices(const Auction& a, const Forest& f, Int radius) {
    for (Int j = grid_thread(); j < a.n_cols; j += grid_threads()) {
        const Int distance = f.distance[j];
        if (distance < radius) a.prices[j] += radius - distance;
        if (a.row_of[j] < 0 && distance <= radius && distance == f.tree_distance[f.tree[j]])
            atomicMin(f.tree_column + f.tree[j], (int)j);  // of equally near columns the lowest
    }
}

// Benefit of an edge that exists: by its place in a dense row, by bisection in an ascending sparse one.
__device__ Int benefit_of(const Auction& a, Int i, int j) {
    const Row row = row_at(a, i);
    if (!a.indices) return benefit_at(a, row.start + j);
    Int low = row.start, high = row.start + row.degree - 1;
    while (low < high) {
        const Int middle = (low + high) / 2;
        if (a.indices[middle] < j) low = middle + 1;
        else high = middle;
    }
    return benefit_at(a, low);
}

__device__ void flip(const Auction& a, const Forest& f, Int n) {
    for (Int q = grid_thread(); q < n; q += grid_threads()) {
        const int root = a.queue[q];
        int j = f.tree_column[root];
        if (j == INT_MAX) continue;
        for (int i = -1; i != root;) {
            i = f.parent[j];
            const int back = a.column_of[i];
            a.row_of[j] = i;
            a.column_of[i] = j;
            a.held[i] = benefit_of(a, i, j);
            j = back;
        }
    }
}

__device__ void requeue(const Auction& a, Int n) {
    for (Int q = grid_thread(); q < n; q += grid_threads()) {
        const int i = a.queue[q];
        if (a.column_of[i] < 0) a.next_queue[add(&a.state->n_next, 1)] = i;  // the atomic hands out places
    }
}

// Grow the forest of the queued rows until the lists vouch for its nearest free column; false when there is none.
__device__ void grow(const Auction& a, const Forest& f, Int n, Scratch& s, cg::grid_group& grid) {
    Growth& g = *f.growth;
    const bool leader = grid_thread() == 0;
    while (true) {
        while (true) {
            const Int head = g.head, count = min(g.tail - head, grid_warps());
            grid.sync();  // everyone has read head and tail before adopt moves the tail
            if (count == 0) break;
            grow_round(a, f, head, count, grid);
            if (leader) g.head = head + count, ++g.rounds, g.scans += count;
            grid.sync();
        }
        if (leader) g.nearest = g.hidden = FAR, g.farthest = 0, g.n_whole = 0;
        grid.sync();
        measure_trees(a, f);
        grid.sync();
        measure_forest(a, f, n);
        grid.sync();
        if (g.hidden >= g.nearest) return;
        list_hidden(a, f, g.nearest);
        grid.sync();
        const Int n_whole = g.n_whole;
        read_whole<false>(a, f, n_whole, s);
        grid.sync();
        read_whole<true>(a, f, n_whole, s);
        if (leader) g.readings += n_whole;
        grid.sync();
    }
}

// Grid: any, cooperative.  Block: BLOCK.  Shared: Scratch (static).
// Reads: everything.  Writes: lists, prices, matching, queue, state.n_queue, growth.
// Requires: state.n_queue and queue hold the rows without a column; lists true; waiting all 0.
// Work: phases until no row is queued, `most_phases` have run, or a forest reaches no free column (outcome INFEASIBLE;
// the labels then show its rows). Every barrier separates a step's writes from the next step's reads.
extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    augment_rows(const __grid_constant__ Auction a, const __grid_constant__ Forest f, Int most_phases) {
    __shared__ Scratch s;
    cg::grid_group grid = cg::this_grid();
    Growth& g = *f.growth;
    const bool leader = grid_thread() == 0;
    for (Int phase = 0; phase < most_phases; ++phase) {
        const Int n = a.state->n_queue;
        if (n == 0) {
            if (leader) g.outcome = COMPLETE;
            return;
        }
        if (leader) a.state->n_next = 0, ++g.phases;
        plant(a, f, n, s);
        grid.sync();
        grow(a, f, n, s, grid);
        const Int nearest = g.nearest, hidden = g.hidden, farthest = g.farthest;
        if (nearest >= NO_EDGE) {
            if (leader) g.outcome = INFEASIBLE;
            return;
        }
        raise_prices(a, f, a.n_rows < a.n_cols ? nearest : min(hidden, farthest));
        grid.sync();
        flip(a, f, n);
        grid.sync();
        requeue(a, n);
        grid.sync();
        const Int n_next = a.state->n_next;
        for (Int q = grid_thread(); q < n_next; q += grid_threads()) a.queue[q] = a.next_queue[q];
        if (leader) a.state->n_queue = n_next;
        grid.sync();
    }
}
