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

__device__ __forceinline__ Int distance_in(const PathForest& forest, Label label) {
    return label == NO_ROW ? FAR : (Int)(label >> forest.row_bits);
}
__device__ __forceinline__ int row_in(const PathForest& forest, Label label) {
    return (int)(label & ((1ULL << forest.row_bits) - 1));
}

// What row i holds, net, and its distance from its root. A root's best is kept in `held` by plant.
struct Stand {
    Int base, profit;
};
__device__ __forceinline__ Stand stand_of(const Auction& auction, const PathForest& forest, Int i) {
    const int j = auction.column_of[i];
    const Int held = auction.held[i];
    if (j < 0) return {0, held};
    return {distance_in(forest, __ldcg(forest.label + j)), held - auction.prices[j]};
}

// List row i for wave `next`, once: the exchange settles who lists it, the sum hands out the place.
__device__ __forceinline__ void activate(const Auction& auction, const PathForest& forest, int i, Int next) {
    if (atomicExch(forest.stamp + i, (int)next) == (int)next) return;
    forest.active[next % 2 * auction.n_rows + add(forest.growth->n_active + next % 3, 1)] = i;
}

__device__ void plant(const Auction& auction, const PathForest& forest, Int n_bidders, Int wave, Scratch& scratch) {
    for (Int j = grid_thread(); j < auction.n_cols; j += grid_threads()) forest.label[j] = NO_ROW;
    for (Int i = grid_thread(); i < auction.n_rows; i += grid_threads()) {
        forest.whole_at[i] = FAR;
        forest.tree_distance[i] = FAR;
        forest.tree_column[i] = INT_MAX;
    }
    for (Int bidder = blockIdx.x; bidder < n_bidders; bidder += gridDim.x) {
        const Int i = auction.queue[bidder];
        Offer offer = look(auction, i);  // every warp: all agree
        if (offer.net < auction.rest[i]) {
            reveal(auction, i, scratch);
            offer = look(auction, i);
        }
        if (threadIdx.x == 0) {
            auction.held[i] = offer.net;
            activate(auction, forest, (int)i, wave);
        }
        __syncthreads();  // the list is read before it may be written for the next root
    }
}

// Try one edge of row i. The exchange settles which row labels the column; a label only ever gets nearer, so that
// following labels back cannot run in a circle of edges of length 0.
__device__ __forceinline__ void try_edge(const Auction& auction, const PathForest& forest, int i, const Stand& stand,
                                         int j, Int benefit, Int next) {
    const int owner = auction.row_of[j];
    Label old = __ldcg(forest.label + j);
    const Int length = stand.base + max(0LL, stand.profit - (benefit - auction.prices[j]));
    if (length >> (63 - forest.row_bits)) {
        forest.growth->outcome = TOO_FAR;
        return;
    }
    const Label mine = (Label)length << forest.row_bits | (Label)i;
    while (length < distance_in(forest, old)) {
        const Label found = atomicCAS(forest.label + j, old, mine);
        if (found == old) {
            if (owner >= 0) activate(auction, forest, owner, next);
            return;
        }
        old = found;
    }
}

// Warp by warp, scan the rows listed for this wave through their short lists.
__device__ void grow_wave(const Auction& auction, const PathForest& forest, Int wave, Int count) {
    const int lane = threadIdx.x % 32;
    const int* active = forest.active + wave % 2 * auction.n_rows;
    for (Int k = grid_warp(); k < count; k += grid_warps()) {
        const int i = active[k];
        const int2 columns = reinterpret_cast<const int2*>(auction.list_columns + (Int)i * LIST)[lane];
        const longlong2 benefits = reinterpret_cast<const longlong2*>(auction.list_benefits + (Int)i * LIST)[lane];
        const Stand stand = stand_of(auction, forest, i);
        if (columns.x >= 0) try_edge(auction, forest, i, stand, columns.x, benefits.x, wave + 1);
        if (columns.y >= 0) try_edge(auction, forest, i, stand, columns.y, benefits.y, wave + 1);
    }
}

// No edge outside row i's list leads nearer than this.
__device__ __forceinline__ Int hidden_from(const Auction& auction, const PathForest& forest, Int i) {
    const Int rest = auction.rest[i];
    const Stand stand = stand_of(auction, forest, i);
    if (stand.base == FAR || rest == LOWEST || forest.whole_at[i] == stand.base) return FAR;
    return stand.base + max(0LL, stand.profit - rest);
}

__device__ void measure_trees(const Auction& auction, const PathForest& forest) {
    for (Int j = grid_thread(); j < auction.n_cols; j += grid_threads()) {
        if (auction.row_of[j] >= 0 || forest.label[j] == NO_ROW) continue;
        int i = row_in(forest, forest.label[j]);
        for (int back = auction.column_of[i]; back >= 0; back = auction.column_of[i])
            i = row_in(forest, forest.label[back]);
        forest.tree[j] = i;
        atomicMin(forest.tree_distance + i, distance_in(forest, forest.label[j]));
    }
    Int hidden = FAR;
    for (Int i = grid_thread(); i < auction.n_rows; i += grid_threads())
        hidden = min(hidden, hidden_from(auction, forest, i));
    hidden = warp_min(hidden);
    if (threadIdx.x % 32 == 0 && hidden < FAR) atomicMin(&forest.growth->hidden, hidden);
}

__device__ void measure_forest(const Auction& auction, const PathForest& forest, Int n_bidders) {
    for (Int bidder = grid_thread(); bidder < n_bidders; bidder += grid_threads()) {
        const Int reach = forest.tree_distance[auction.queue[bidder]];
        if (reach == FAR) continue;
        atomicMin(&forest.growth->nearest, reach);
        atomicMax(&forest.growth->farthest, reach);
    }
}

__device__ void list_hidden(const Auction& auction, const PathForest& forest, Int nearest) {
    for (Int i = grid_thread(); i < auction.n_rows; i += grid_threads())
        if (hidden_from(auction, forest, i) < nearest) forest.whole[add(&forest.growth->n_whole, 1)] = (int)i;
}

// Try every edge of the listed rows, block by block, and renew their lists.
__device__ void read_whole(const Auction& auction, const PathForest& forest, Int n_whole, Int wave, Scratch& scratch) {
    for (Int k = blockIdx.x; k < n_whole; k += gridDim.x) {
        const int i = forest.whole[k];
        const Row row = row_at(auction, i);
        if (threadIdx.x == 0) {
            const Stand now = stand_of(auction, forest, i);
            forest.whole_at[i] = scratch.word[0] = now.base;
            scratch.word[1] = now.profit;
        }
        __syncthreads();  // one stand for the whole block: a label may come nearer any moment
        const Stand stand = {scratch.word[0], scratch.word[1]};
        __syncthreads();  // everyone has read it before reveal reuses the scratch
        reveal(auction, i, scratch);
        for (Int edge = threadIdx.x; edge < row.degree; edge += BLOCK) {
            const Int benefit = benefit_at(auction, row, edge);
            if (benefit != LOWEST) try_edge(auction, forest, i, stand, column_at(auction, row, edge), benefit, wave);
        }
        // Should the label have come nearer since, the row is listed again, and whole_at is not its distance.
    }
}

__device__ void raise_prices(const Auction& auction, const PathForest& forest, Int radius) {
    for (Int j = grid_thread(); j < auction.n_cols; j += grid_threads()) {
        const Int distance = distance_in(forest, forest.label[j]);
        if (distance < radius) auction.prices[j] += radius - distance;
        if (auction.row_of[j] < 0 && distance <= radius && distance == forest.tree_distance[forest.tree[j]])
            atomicMin(forest.tree_column + forest.tree[j], (int)j);  // of equally near columns the lowest
    }
}

__device__ void flip(const Auction& auction, const PathForest& forest, Int n_bidders) {
    for (Int bidder = grid_thread(); bidder < n_bidders; bidder += grid_threads()) {
        const int root = auction.queue[bidder];
        int j = forest.tree_column[root];
        if (j == INT_MAX) continue;
        for (int i = -1; i != root;) {
            i = row_in(forest, forest.label[j]);
            const int back = auction.column_of[i];
            auction.row_of[j] = i;
            auction.column_of[i] = j;
            auction.held[i] = benefit_of(auction, i, j);
            j = back;
        }
    }
}

__device__ void requeue(const Auction& auction, Int n_bidders) {
    for (Int bidder = grid_thread(); bidder < n_bidders; bidder += grid_threads()) {
        const int i = auction.queue[bidder];
        if (auction.column_of[i] < 0)
            auction.next_queue[add(&auction.state->n_next, 1)] = i;  // the atomic hands out places
    }
}

// Grow the forest of the queued rows until the lists vouch for its nearest free column. Wave w scans n_active[w % 3]
// rows and lists rows for w + 1; meanwhile the leader clears the counter of w + 2, which wave w - 1 has read.
// Every barrier separates a step's writes from the next step's reads.
__device__ Int grow(const Auction& auction, const PathForest& forest, Int n_bidders, Int wave, Scratch& scratch,
                    cg::grid_group& grid) {
    Growth& growth = *forest.growth;
    const bool leader = grid_thread() == 0;
    while (true) {
        for (Int count = growth.n_active[wave % 3]; count; count = growth.n_active[wave % 3]) {
            if (leader) growth.n_active[(wave + 2) % 3] = 0, growth.scans += count;
            grow_wave(auction, forest, wave, count);
            grid.sync();  // labels and the next wave's list before that wave
            ++wave;
        }
        if (leader)
            growth.nearest = growth.hidden = FAR, growth.farthest = 0, growth.n_whole = 0,
            growth.n_active[(wave + 1) % 3] = 0;
        grid.sync();
        measure_trees(auction, forest);
        grid.sync();
        measure_forest(auction, forest, n_bidders);
        grid.sync();
        if (growth.hidden >= growth.nearest) return wave;
        list_hidden(auction, forest, growth.nearest);
        grid.sync();
        read_whole(auction, forest, growth.n_whole, wave, scratch);
        grid.sync();
        if (leader) growth.readings += growth.n_whole;
    }
}

// Grid: any, cooperative.  Block: BLOCK.  Shared: Scratch (static).
// Reads: everything.  Writes: lists, prices, matching, queue, state.n_queue, growth.
// Requires: state.n_queue and queue hold the rows without a column; no list leaves out an edge above its rest.
// Work: forests until no row is queued, `most_forests` have been grown, or one reaches no free column (outcome
// INFEASIBLE; the labels then show its rows). Every barrier separates a step's writes from the next step's reads.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) augment_rows(const __grid_constant__ AugmentRowsArgs args) {
    const Auction& auction = args.a;
    const PathForest& forest = args.f;
    __shared__ Scratch scratch;
    cg::grid_group grid = cg::this_grid();
    Growth& growth = *forest.growth;
    const bool leader = grid_thread() == 0;
    Int wave = growth.waves;
    for (Int grown = 0; grown < args.most_forests; ++grown) {
        const Int n_bidders = auction.state->n_queue;
        if (n_bidders == 0) {
            if (leader) growth.outcome = COMPLETE;
            return;
        }
        if (leader) auction.state->n_next = 0, ++growth.forests;
        plant(auction, forest, n_bidders, wave, scratch);
        grid.sync();
        wave = grow(auction, forest, n_bidders, wave, scratch, grid);
        if (leader) growth.waves = wave;
        const Int nearest = growth.nearest, hidden = growth.hidden, farthest = growth.farthest;
        if (growth.outcome == TOO_FAR) return;
        if (nearest == FAR) {
            if (leader) growth.outcome = INFEASIBLE;
            return;
        }
        raise_prices(auction, forest, auction.n_rows < auction.n_cols ? nearest : min(hidden, farthest));
        grid.sync();
        flip(auction, forest, n_bidders);
        grid.sync();
        requeue(auction, n_bidders);
        grid.sync();
        const Int n_next = auction.state->n_next;
        for (Int bidder = grid_thread(); bidder < n_next; bidder += grid_threads())
            auction.queue[bidder] = auction.next_queue[bidder];
        if (leader) auction.state->n_queue = n_next;
        grid.sync();
    }
}
