// Shortest augmenting paths from all unassigned rows at once: how an auction ends without rounds of few bidders.
//
//   while rows are queued (the roots)                                          one forest
//     plant                clear labels, bring every root's best net benefit up to date, make the roots active
//     repeat
//       while rows are active:  grow_wave scans their short lists; a label that comes nearer makes its column's row
//                               active in the next wave
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
// Invariant between waves: label[j] holds the length of a path root .. row, j and that row; labels only come nearer;
// the row of a label that came nearer is active. When no free column is in reach and every row has been read whole, the
// labelled rows see too few columns.
//
// Buffers: struct Auction, struct PathForest (layout.py).
// Overflow: a label has 63 - row_bits bits of distance; the launcher leaves room for 64 spans; more is outcome TOO_FAR.
// Spare columns (n_rows < n_cols) must keep their price: then the radius is the nearest free column's distance.
// References: Jonker and Volgenant 1987 (shortest augmenting paths); Balas, Miller, Pekny and Toth 1991 (from many
// rows at once).
// docs/notes/auction.md: what was tried, with its figures.
#include "auction/rows.cuh"
namespace cg = cooperative_groups;

#define FAR (1LL << 61)  // a distance that is none
typedef unsigned long long Label;  // distance << row_bits | row it came from

__device__ __forceinline__ Int distance_in(const PathForest& f, Label label) {
    return label == NO_ROW ? FAR : (Int)(label >> f.row_bits);
}
__device__ __forceinline__ int row_in(const PathForest& f, Label label) {
    return (int)(label & ((1ULL << f.row_bits) - 1));
}

// What row i holds, net, and its distance from its root. A root's best is kept in `held` by plant.
struct Stand {
    Int base, profit;
};
__device__ __forceinline__ Stand stand_of(const Auction& a, const PathForest& f, Int i) {
    const int j = a.column_of[i];
    const Int held = a.held[i];
    if (j < 0) return {0, held};
    return {distance_in(f, __ldcg(f.label + j)), held - a.prices[j]};
}

// List row i for wave `next`, once: the exchange settles who lists it, the sum hands out the place.
__device__ __forceinline__ void activate(const Auction& a, const PathForest& f, int i, Int next) {
    if (atomicExch(f.stamp + i, (int)next) == (int)next) return;
    f.active[next % 2 * a.n_rows + add(f.growth->n_active + next % 3, 1)] = i;
}

__device__ void plant(const Auction& a, const PathForest& f, Int n, Int wave, Scratch& s) {
    for (Int j = grid_thread(); j < a.n_cols; j += grid_threads()) f.label[j] = NO_ROW;
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
            activate(a, f, (int)i, wave);
        }
        __syncthreads();  // the list is read before it may be written for the next root
    }
}

// Try one edge of row i. The exchange settles which row labels the column; a label only ever gets nearer, so that
// following labels back cannot run in a circle of edges of length 0.
__device__ __forceinline__ void try_edge(const Auction& a, const PathForest& f, int i, const Stand& stand, int j,
                                         Int benefit, Int next) {
    const int owner = a.row_of[j];
    Label old = __ldcg(f.label + j);
    const Int length = stand.base + max(0LL, stand.profit - (benefit - a.prices[j]));
    if (length >> (63 - f.row_bits)) {
        f.growth->outcome = TOO_FAR;
        return;
    }
    const Label mine = (Label)length << f.row_bits | (Label)i;
    while (length < distance_in(f, old)) {
        const Label found = atomicCAS(f.label + j, old, mine);
        if (found == old) {
            if (owner >= 0) activate(a, f, owner, next);
            return;
        }
        old = found;
    }
}

// Warp by warp, scan the rows listed for this wave through their short lists.
__device__ void grow_wave(const Auction& a, const PathForest& f, Int wave, Int count) {
    const int lane = threadIdx.x % 32;
    const int* active = f.active + wave % 2 * a.n_rows;
    for (Int k = grid_warp(); k < count; k += grid_warps()) {
        const int i = active[k];
        const int2 columns = reinterpret_cast<const int2*>(a.list_columns + (Int)i * LIST)[lane];
        const longlong2 benefits = reinterpret_cast<const longlong2*>(a.list_benefits + (Int)i * LIST)[lane];
        const Stand stand = stand_of(a, f, i);
        if (columns.x >= 0) try_edge(a, f, i, stand, columns.x, benefits.x, wave + 1);
        if (columns.y >= 0) try_edge(a, f, i, stand, columns.y, benefits.y, wave + 1);
    }
}

// No edge outside row i's list leads nearer than this.
__device__ __forceinline__ Int hidden_from(const Auction& a, const PathForest& f, Int i) {
    const Int rest = a.rest[i];
    const Stand stand = stand_of(a, f, i);
    if (stand.base == FAR || rest == LOWEST || f.whole_at[i] == stand.base) return FAR;
    return stand.base + max(0LL, stand.profit - rest);
}

__device__ void measure_trees(const Auction& a, const PathForest& f) {
    for (Int j = grid_thread(); j < a.n_cols; j += grid_threads()) {
        if (a.row_of[j] >= 0 || f.label[j] == NO_ROW) continue;
        int i = row_in(f, f.label[j]);
        for (int back = a.column_of[i]; back >= 0; back = a.column_of[i]) i = row_in(f, f.label[back]);
        f.tree[j] = i;
        atomicMin(f.tree_distance + i, distance_in(f, f.label[j]));
    }
    Int hidden = FAR;
    for (Int i = grid_thread(); i < a.n_rows; i += grid_threads()) hidden = min(hidden, hidden_from(a, f, i));
    hidden = warp_min(hidden);
    if (threadIdx.x % 32 == 0 && hidden < FAR) atomicMin(&f.growth->hidden, hidden);
}

__device__ void measure_forest(const Auction& a, const PathForest& f, Int n) {
    for (Int q = grid_thread(); q < n; q += grid_threads()) {
        const Int reach = f.tree_distance[a.queue[q]];
        if (reach == FAR) continue;
        atomicMin(&f.growth->nearest, reach);
        atomicMax(&f.growth->farthest, reach);
    }
}

__device__ void list_hidden(const Auction& a, const PathForest& f, Int nearest) {
    for (Int i = grid_thread(); i < a.n_rows; i += grid_threads())
        if (hidden_from(a, f, i) < nearest) f.whole[add(&f.growth->n_whole, 1)] = (int)i;
}

// Try every edge of the listed rows, block by block, and renew their lists.
__device__ void read_whole(const Auction& a, const PathForest& f, Int n_whole, Int wave, Scratch& s) {
    for (Int k = blockIdx.x; k < n_whole; k += gridDim.x) {
        const int i = f.whole[k];
        const Row row = row_at(a, i);
        if (threadIdx.x == 0) {
            const Stand now = stand_of(a, f, i);
            f.whole_at[i] = s.word[0] = now.base;
            s.word[1] = now.profit;
        }
        __syncthreads();  // one stand for the whole block: a label may come nearer any moment
        const Stand stand = {s.word[0], s.word[1]};
        __syncthreads();  // everyone has read it before reveal reuses the scratch
        reveal(a, i, s);
        for (Int t = threadIdx.x; t < row.degree; t += BLOCK) {
            const Int benefit = benefit_at(a, row, t);
            if (benefit != LOWEST) try_edge(a, f, i, stand, column_at(a, row, t), benefit, wave);
        }
        // Should the label have come nearer since, the row is listed again, and whole_at is not its distance.
    }
}

__device__ void raise_prices(const Auction& a, const PathForest& f, Int radius) {
    for (Int j = grid_thread(); j < a.n_cols; j += grid_threads()) {
        const Int distance = distance_in(f, f.label[j]);
        if (distance < radius) a.prices[j] += radius - distance;
        if (a.row_of[j] < 0 && distance <= radius && distance == f.tree_distance[f.tree[j]])
            atomicMin(f.tree_column + f.tree[j], (int)j);  // of equally near columns the lowest
    }
}

__device__ void flip(const Auction& a, const PathForest& f, Int n) {
    for (Int q = grid_thread(); q < n; q += grid_threads()) {
        const int root = a.queue[q];
        int j = f.tree_column[root];
        if (j == INT_MAX) continue;
        for (int i = -1; i != root;) {
            i = row_in(f, f.label[j]);
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

// Grow the forest of the queued rows until the lists vouch for its nearest free column. Wave w scans n_active[w % 3]
// rows and lists rows for w + 1; meanwhile the leader clears the counter of w + 2, which wave w - 1 has read.
// Every barrier separates a step's writes from the next step's reads.
__device__ Int grow(const Auction& a, const PathForest& f, Int n, Int wave, Scratch& s, cg::grid_group& grid) {
    Growth& g = *f.growth;
    const bool leader = grid_thread() == 0;
    while (true) {
        for (Int count = g.n_active[wave % 3]; count; count = g.n_active[wave % 3]) {
            if (leader) g.n_active[(wave + 2) % 3] = 0, g.scans += count;
            grow_wave(a, f, wave, count);
            grid.sync();  // labels and the next wave's list before that wave
            ++wave;
        }
        if (leader) g.nearest = g.hidden = FAR, g.farthest = 0, g.n_whole = 0, g.n_active[(wave + 1) % 3] = 0;
        grid.sync();
        measure_trees(a, f);
        grid.sync();
        measure_forest(a, f, n);
        grid.sync();
        if (g.hidden >= g.nearest) return wave;
        list_hidden(a, f, g.nearest);
        grid.sync();
        read_whole(a, f, g.n_whole, wave, s);
        grid.sync();
        if (leader) g.readings += g.n_whole;
    }
}

// Grid: any, cooperative.  Block: BLOCK.  Shared: Scratch (static).
// Reads: everything.  Writes: lists, prices, matching, queue, state.n_queue, growth.
// Requires: state.n_queue and queue hold the rows without a column; no list leaves out an edge above its rest.
// Work: forests until no row is queued, `most_forests` have been grown, or one reaches no free column (outcome
// INFEASIBLE; the labels then show its rows). Every barrier separates a step's writes from the next step's reads.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) augment_rows(const __grid_constant__ AugmentRowsArgs args) {
    const Auction& a = args.a;
    const PathForest& f = args.f;
    __shared__ Scratch s;
    cg::grid_group grid = cg::this_grid();
    Growth& g = *f.growth;
    const bool leader = grid_thread() == 0;
    Int wave = g.waves;
    for (Int forest = 0; forest < args.most_forests; ++forest) {
        const Int n = a.state->n_queue;
        if (n == 0) {
            if (leader) g.outcome = COMPLETE;
            return;
        }
        if (leader) a.state->n_next = 0, ++g.forests;
        plant(a, f, n, wave, s);
        grid.sync();
        wave = grow(a, f, n, wave, s, grid);
        if (leader) g.waves = wave;
        const Int nearest = g.nearest, hidden = g.hidden, farthest = g.farthest;
        if (g.outcome == TOO_FAR) return;
        if (nearest == FAR) {
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
