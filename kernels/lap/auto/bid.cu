// Duals and a partial matching to start from: a Jacobi auction, each block with its own copy of the books.
//
//   repeat, while goes_on: until `stop` rows are free at most, and some rounds more where epsilon is not 0
//     place_bids:  every free row finds the columns j, k of its least and second least cost - v (weigh) and bids
//                  rise = second - first + epsilon on j; blocks share the rows and publish the bids on a board
//     settle:      every block reads all bids and awards them by itself: the highest rise takes the column, v_j
//                  falls by it, the former owner is free again
//   plain (scale = 0): epsilon = 0. A rise of 0 evicts nobody. Ends early when most bids tie and few of them find
//                  a column without an owner (integers with few values), and where it is_hopeless.
//   scaled (scale = 1): from v_first, levels `first` to `end` - 1 of epsilon = spread / theta, spread / theta^2, ...,
//                  0; every level keeps the prices and frees all rows
//   The caller's flag stops either: block 0 looks at it every POLLED rounds and tells the others with its beat, so that
//   all blocks stop in the same round. If epsilon is above 0 then, all pairs are given up, as they are not quite tight.
//
// Holds after every round: u_i + v_j <= c_ij with u_i = min_j (c_ij - v_j), since v only falls. An awarded pair is tight
// to within epsilon. In the last level epsilon is 0 and pairs are tight, so its matching and duals start forest.cu.
// Every block computes the same awards from the same words, in the same order: the copies never differ.
//
// buffer     shape        type     owner
// cost       n_rows, n_cols  cost_t  -
// v_first    n_cols       value_t  prices to start from
// v_out      n_cols       value_t  final prices; written in slices
// col_row    n_cols       int32    owner or -1
// boards     2, n_rows    2 x u64  rise | tag, column of the k-th free row, on the side of the round's parity
// beats      2, blocks    2 x u64  tag: "I have left the previous round", and whether the caller wants to stop
// free_rows, free_u       int32, value_t   rows left free and their tight u
// Shared memory: 18 n_cols + 2 n_rows bytes: up to n = 11264.
//
// Overflow: v_j falls by at most the spread + epsilon a round, and rows stop bidding on columns dearer than their
// alternatives. The problem's check keeps 32 (n_rows + n_cols) max |c| in range.
//
// After D. Bertsekas, "The auction algorithm: a distributed relaxation method for the assignment problem", Annals
// of Operations Research 14 (1988).
//
// docs/notes/lap.md: what was tried, with its figures.
#include "device/uniform.cuh"
#include "lap/auto/dense.cuh"
#include "lap/auto/bid.cuh"

__shared__ int told_to_stop;  // what block 0's beat said in this round

// One block's copy of the auction, the same in every block.
struct Book {
    value_t* v;   // [n_cols] prices, as duals
    u64* key;     // [n_cols] best bid of the round, 0 for none
    u16* owner;   // [n_cols] row, 0xffff for none
    u16* list;    // [n_rows] free rows

    __device__ __forceinline__ int owner_of(int j) const { return owner[j] == 0xffff ? -1 : owner[j]; }
    __device__ __forceinline__ void take(int j, int i, int, value_t up) const {
        owner[j] = (u16)i;
        v[j] -= up;
    }
};

__device__ __forceinline__ void open_level(const Book& book, int n_rows, int n_cols) {
    for (int j = threadIdx.x; j < n_cols; j += THREADS) book.owner[j] = 0xffff;
    for (int i = threadIdx.x; i < n_rows; i += THREADS) book.list[i] = (u16)i;
    __syncthreads();  // the level's list before the first bids
}

// Publish the bids of this block's share of the free rows.
__device__ __forceinline__ void place_bids(const cost_t* __restrict__ cost, const Book& book, int n_cols, int negate,
                                           int n_free, ulonglong2* board, u32 tag, value_t eps, bool track,
                                           Range& range) {
    const int warp = threadIdx.x >> 5, n_blocks = gridDim.x, team = team_for(n_free, n_blocks, n_cols),
              per_block = WARPS / team;
    for (int at = 0; at < n_free; at += n_blocks * per_block) {
        const int k = at + (warp / team) * n_blocks + blockIdx.x;
        const int i = k < n_free ? book.list[k] : -1;
        const Best best = track ? weigh<true, true>({cost, n_cols, negate}, book.v, book.owner, i, team, range)
                                : weigh<true, false>({cost, n_cols, negate}, book.v, book.owner, i, team, range);
        if (k >= n_free || threadIdx.x % (32 * team)) continue;
        const value_t up = rise(best, best.at == NONE ? 0 : book.v[best.at], eps);
        store_word(board + k, Value::bits(up), (u64)tag << 32 | best.at);
    }
}

// Wait for all bids of the round and award them. Returns the new number of free rows.
__device__ __forceinline__ int settle(const Book& book, int n_free, const ulonglong2* board, const ulonglong2* beats,
                                      u32 tag, int* ties, bool* halted) {
    ulonglong2 word = make_ulonglong2(0, 0);
    for (int k = threadIdx.x; k < n_free; k += THREADS) {
        word = await_word(board + k, 0xffffffff00000000ull, (u64)tag << 32);
        if ((u32)word.y != NONE)
            atomicMax(book.key + (u32)word.y,
                      bid_key(Value::from(word.x), book.list[k]));  // settles which row a column takes
    }
    // everyone has left the previous round, so that its side of the board may be written again
    if (threadIdx.x < gridDim.x) {
        const ulonglong2 beat = await_word(beats + threadIdx.x, 0xffffffffull, tag);
        if (threadIdx.x == 0) told_to_stop = (int)beat.x;
    }
    __syncthreads();  // all keys, and told_to_stop, before awards
    *halted = told_to_stop;
    int kept = 0;
    *ties = 0;
    for (int at = 0; at < n_free; at += THREADS) {
        const int k = at + threadIdx.x;
        int keep = -1;
        bool tied = false;
        if (k < n_free) {
            const ulonglong2 bid = n_free > THREADS ? load_word(board + k) : word;
            keep = award(book, book.list[k], (int)(u32)bid.y, Value::from(bid.x), &tied);
        }
        const int place = place_in_order<WARPS>(keep >= 0, tied, team_count, &kept, ties);
        if (keep >= 0) book.list[place] = (u16)keep;
        __syncthreads();  // counts read before they are written again; owners, prices and list before the next bids
    }
    return kept;
}

// The books, laid out in dynamic shared memory.
__device__ __forceinline__ Book book_in(unsigned char* shared, int n_cols) {
    Book book;
    book.v = (value_t*)shared;
    book.key = (u64*)(book.v + n_cols);
    book.owner = (u16*)(book.key + n_cols);
    book.list = book.owner + n_cols;
    return book;
}

// Grid: one block per multiprocessor, all resident (cooperative launch). Block: 1024.
// Shared: 18 n_cols + 2 n_rows bytes. Reads: cost, v_first, state, mailbox. Writes: v_out, col_row, free_rows, free_u,
// proposal (reset), boards, beats, state. Requires: for scale, state->mode[stage] == SCALE, else not SEATED, or it does nothing.
// Work: n_cols entries per free row and round; every block reads all bids.
extern "C" __global__ void __launch_bounds__(THREADS, 1) bid_shared(const __grid_constant__ BidSharedArgs args) {
    const int n_rows = args.n_rows, n_cols = args.n_cols, scale = args.scale, negate = uniform(args.negate);
    ChainState* state = args.state;
    extern __shared__ __align__(16) unsigned char shared[];
    const int tid = threadIdx.x, n_blocks = gridDim.x;
    if (is_idle(state, args.stage, scale)) {
        if (blockIdx.x == 0 && tid == 0) state->mode[args.stage + 1] = state->mode[args.stage];
        return;
    }
    const Book book = book_in(shared, n_cols);
    const double spread = scale ? spread_of(state) : 0;
    u32 tag = state->bid_tag;
    for (int j = tid; j < n_cols; j += THREADS) book.v[j] = args.v_first[j], book.key[j] = 0;
    if (blockIdx.x == 0)
        for (int i = tid; i < n_rows; i += THREADS) args.proposal[i] = NO_PATH;
    const Rule rule = {args.first, args.end, args.levels, args.theta, args.stop, args.extra, args.most_rounds};
    Range range = {TOP, -TOP};
    int n_free = n_rows, rounds = 0, ties;
    bool tied_out = false, halted = false;
    long long scans = 0;
    double eps = 0;
    for (int level = rule.first; level < rule.end && !halted; level++) {
        eps = epsilon_of(rule, level, spread);
        open_level(book, n_rows, n_cols);
        n_free = n_rows;
        for (int round = 0, late = 0; round < rule.most_rounds && goes_on(rule, level == rule.levels, n_free, &late);
             round++) {
            tag++;
            const size_t side = tag & 1;
            ulonglong2 *board = args.boards + side * n_rows, *beat = args.beats + side * n_blocks;
            const bool look = blockIdx.x == 0 && tid == 0 && tag % POLLED == 0;
            if (tid == 0) store_word(beat + blockIdx.x, look && *args.mailbox, tag);
            place_bids(args.cost, book, n_cols, negate, n_free, board, tag, (value_t)eps, !scale && rounds == 0, range);
            const int was = n_free;
            n_free = settle(book, n_free, board, beat, tag, &ties, &halted);
            scans += was;
            rounds++;
            if (halted) break;
            if (eps == 0 && ties * 2 > was && (was - n_free) * 4 < was) { tied_out = true; break; }
            if (!scale && is_hopeless(rule, rounds, n_free)) break;
        }
    }
    if (halted && eps > 0) {
        open_level(book, n_rows, n_cols);
        n_free = n_rows;
    }
    for (int k = blockIdx.x; k < n_free; k += n_blocks) {
        const int i = book.list[k];
        const Best best = weigh<true, false>({args.cost, n_cols, negate}, book.v, book.owner, i, WARPS, range);
        if (tid == 0) args.free_rows[k] = i, args.free_u[k] = best.at != NONE ? best.first : value_t(0);
    }
    if (!scale) widen_spread(state, range);
    for (int j = blockIdx.x * THREADS + tid; j < n_cols; j += n_blocks * THREADS) {
        args.v_out[j] = book.v[j];
        args.col_row[j] = book.owner[j] == 0xffff ? -1 : book.owner[j];
    }
    if (blockIdx.x == 0 && tid == 0) {
        state->bid_tag = tag;
        close_auction(state, args.stage, scale, rule, {n_free, rounds, scans, tied_out, halted});
    }
}
