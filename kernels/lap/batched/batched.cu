// Many small assignment problems at once: a team of TEAM threads (a warp or a block) per problem. Teams share nothing.
//
//   load            the matrix into shared memory when it fits (MATRIX_SHARED), the shorter side as rows
//   reduce_columns  v_j = least entry of column j                         (square problems; else v = 0)
//   reduce_rows     where a warp solves: twice, a free row takes its best column, whose price falls to the second best
//   jacobi_auction  where a block solves: the same as an auction, a warp a row, until few rows are free
//   augment         for each row still free: Dijkstra's search over the columns, then prices and pairs along the path
//   store           assignment and duals, in the problem's own orientation
//
// The algorithm of Jonker and Volgenant, as in cpu/path.py but dense. Each step waits for the one before, so the time
// is the number of steps (200 at 64 x 64, 1900 at 512 x 512) times the latency of one. A thread therefore keeps all
// that belongs to its SLOTS columns j = slot * TEAM + rank in registers: price, distance, row, and that row's dual. A
// step reads one row, finds the nearest column, and has its owner tell the next row and its dual. Finding it takes one
// 32-bit minimum over the warp, on the leading bits; the other bits are compared only where several lanes agree on
// those. Ties go to a free column, then to the smallest column: the result is deterministic.
//
// Invariant between augmentations: col_of and the owners' rows agree; an assigned entry is a least one of its row,
// entries minus prices; with n_rows < n_cols prices are <= 0 and 0 in free columns.
//
// buffer      shape                    type     where
// cost        batch, max_rows, max_cols  cost_t   global
// sizes       batch, 2                 int32    global, null when every problem is max_rows x max_cols
// assignment  batch, max_rows          int64    global, -1 beyond a problem's size
// u, v        batch, max_rows; max_cols value_t  global, 0 beyond a problem's size
// status      batch                    int32    global: STATUSES of layout.py
// matrix      rows, cols               cost_t   shared (MATRIX_SHARED)
// price, row_of, parent  cols          value_t, int32   shared; price for jacobi_auction and store
// col_of, free  rows                   int32    shared
// key         cols                     uint64   shared (JACOBI): best bid of a column, 0 for none
// rise, target  rows                   value_t, int32   shared (JACOBI): a row's bid
//
// Overflow: integers stay below 16 (n_rows + n_cols) max |cost| < 2^62, checked by the problem; prices of float32 costs
// are float64.
//
// Reference: R. Jonker, A. Volgenant, Computing 38 (1987) 325-340.
//
// docs/notes/lap.md: what was tried, with its figures.
#ifndef COST
#define COST float
#endif
#ifndef VALUE
#define VALUE double
#endif
#ifndef TEAM
#define TEAM 32
#endif
#ifndef SLOTS
#define SLOTS 4
#endif
#ifndef MATRIX_SHARED
#define MATRIX_SHARED 1
#endif
#ifndef REDUCTIONS_PER_ROW
#define REDUCTIONS_PER_ROW 1  // in each of two passes
#endif
#ifndef JACOBI
#define JACOBI (TEAM > 32)
#endif
#define TAKEN 0x80000000u  // set in a code while the column has a row

typedef COST cost_t;
typedef VALUE value_t;
typedef unsigned long long u64;
typedef unsigned int u32;

#include "device/uniform.cuh"
#include "lap/batched/nearest.cuh"
#include "lap/batched/layout.py"

struct Shared {  // one team's
    const cost_t* __restrict__ matrix;  // shared or global
    long long row_step, col_step;
    value_t *price, *rise;
    u64* key;
    int *row_of, *parent, *col_of, *free, *target;
    Nearest* partial;  // 2 x 32, used in turn
    int n_rows, n_cols, negate, turn;

    __device__ __forceinline__ value_t entry(int i, int j) const {
        const value_t loaded =
            MATRIX_SHARED ? (value_t)matrix[i * n_cols + j] : (value_t)__ldg(matrix + i * row_step + j * col_step);
        return negate ? -loaded : loaded;
    }
    __device__ __forceinline__ int owner_of(int j) const { return row_of[j]; }
    __device__ __forceinline__ void take(int j, int i, int, value_t up) const {
        row_of[j] = i;
        price[j] -= up;
    }
};

struct Own {  // one thread's columns
    value_t price[SLOTS], distance[SLOTS], row_dual[SLOTS];
    int row[SLOTS];
    u32 here, done;  // one bit per slot
};

__device__ __forceinline__ int column(int slot) { return slot * TEAM + (int)threadIdx.x; }

// A barrier of the team. Whoever calls it says what it orders.
__device__ __forceinline__ void team_barrier() {
    if (TEAM == 32) __syncwarp();
    else __syncthreads();
}

// Row i in this thread's columns; a slot without a column reads the last one's.
__device__ __forceinline__ void read_row(const Shared& team, int i, value_t* entries) {
#pragma unroll
    for (int k = 0; k < SLOTS; k++) entries[k] = team.entry(i, min(column(k), team.n_cols - 1));
}

// One thread's nearest column by `value` among the slots in `open_slots`, and the least value of the others in `second`.
__device__ __forceinline__ Nearest own_nearest(const Own& own, const value_t* value, u32 open_slots, value_t* second) {
    Nearest best = {TOP, 0, NO_CODE, -1};
    *second = TOP;
#pragma unroll
    for (int k = 0; k < SLOTS; k++) {
        const u32 code = (own.row[k] >= 0 ? TAKEN : 0) | (u32)column(k);
        const value_t seen = open_slots >> k & 1 ? value[k] : TOP;
        const bool wins = seen < best.value || (seen == best.value && seen < TOP && code < best.code);
        *second = wins ? best.value : seen < *second ? seen : *second;
        if (wins) best.value = seen, best.code = code, best.row = own.row[k], best.extra = own.row_dual[k];
    }
    return best;
}

// v_j = least entry of column j; a column that nobody may take gets 0, any finite price will do.
__device__ void reduce_columns(const Shared& team, Own& own) {
#pragma unroll
    for (int k = 0; k < SLOTS; k++) own.price[k] = TOP;
    constexpr int ROWS = SLOTS > 2 ? 4 : 8;  // rows whose entries are in flight at once
#pragma unroll ROWS
    for (int i = 0; i < team.n_rows; i++) {
        value_t entries[SLOTS];
        read_row(team, i, entries);
#pragma unroll
        for (int k = 0; k < SLOTS; k++) own.price[k] = entries[k] < own.price[k] ? entries[k] : own.price[k];
    }
#pragma unroll
    for (int k = 0; k < SLOTS; k++) own.price[k] = own.price[k] == TOP ? (value_t)0 : own.price[k];
}

#include "lap/batched/jacobi.cuh"

// Augmenting row reduction of free[0:n_free]; returns how many rows wait in free[0:]. The price falls to the second
// best, and a row driven out goes on at once; where the price cannot fall it waits. What a thread reads of free lies
// behind what thread 0 has rewritten, and was read before the barrier inside team_nearest_two: no barrier of its own
// is needed.
__device__ int reduce_rows(Shared& team, Own& own, int n_free) {
    int kept = 0, steps = REDUCTIONS_PER_ROW * team.n_rows, next = -1;
    for (int at = 0; next >= 0 || at < n_free;) {
        const int i = next >= 0 ? next : team.free[at++];
        value_t value[SLOTS], second;
        read_row(team, i, value);
#pragma unroll
        for (int k = 0; k < SLOTS; k++) value[k] -= own.price[k];
        Nearest best = own_nearest(own, value, own.here, &second);
#pragma unroll
        for (int k = 0; k < SLOTS; k++)
            if ((best.code & ~TAKEN) == column(k)) best.extra = own.price[k];
        best = team_nearest_two(team.partial, team.turn, best, &second);
        const int j = best.code & ~TAKEN;
        const bool wait = second == TOP || --steps < 0;  // no second choice: a price may not fall to -inf
        const value_t price = wait ? 0 : best.extra - (second - best.value);
        const bool falls = !wait && price < best.extra;
        const int driven_out = wait ? -1 : best.row;
        if (!wait)
#pragma unroll
            for (int k = 0; k < SLOTS; k++)
                if (column(k) == j)
                    own.row[k] = i, own.row_dual[k] = second, own.price[k] = falls ? price : own.price[k];
        next = falls ? driven_out : -1;
        if (TEAM == 32) __syncwarp();  // free has been read by every lane; in a block the barrier within saw to it
        const int later = wait ? i : falls ? -1 : driven_out;
        if (later < 0) continue;
        if (threadIdx.x == 0) team.free[kept] = later;
        kept++;
    }
    team_barrier();  // free is whole before anyone reads it
    return kept;
}

// The other side of the owners' rows, for `augment` and `store`.
__device__ void list_columns(const Shared& team, const Own& own) {
#pragma unroll
    for (int k = 0; k < SLOTS; k++)
        if (own.row[k] >= 0) team.col_of[own.row[k]] = column(k);
    team_barrier();  // written by the owners before others read it
}

// Exchange along the path that ends in free column `end`, and the owners' view of it. Prices: those after the search.
__device__ void exchange(Shared& team, Own& own, int source, int end) {
    team_barrier();  // parents written before they are followed
    if (threadIdx.x == 0)
        for (int j = end, row = -1; row != source;) {
            row = team.parent[j];
            const int next = team.col_of[row];
            team.row_of[j] = row;
            team.col_of[row] = j;
            j = next;
        }
    team_barrier();  // pairs before the owners learn them
#pragma unroll
    for (int k = 0; k < SLOTS; k++) {
        if (!(own.done >> k & 1) && column(k) != end) continue;
        if (team.row_of[column(k)] >= 0) own.row[k] = team.row_of[column(k)];
        own.row_dual[k] = team.entry(own.row[k], column(k)) - own.price[k];
        team.row_of[column(k)] = -1;  // not on the next path, until it is
    }
}

// Dijkstra's search from free row `source` and the exchange along its path. False when no free column can be reached.
__device__ bool augment(Shared& team, Own& own, int source) {
    own.done = 0;
#pragma unroll
    for (int k = 0; k < SLOTS; k++) own.distance[k] = TOP;
    value_t floor = 0, row_dual = 0;  // of the row that is scanned; the source's is part of every distance
    for (int i = source;;) {
        value_t entries[SLOTS], unused;
        read_row(team, i, entries);
        const u32 open = own.here & ~own.done;
#pragma unroll
        for (int k = 0; k < SLOTS; k++) {
            value_t length = floor + ((entries[k] - own.price[k]) - row_dual);
            if (i != source && length < floor) length = floor;  // rounding must not lead backwards
            if (open >> k & 1 && entries[k] < TOP && length < own.distance[k]) {
                own.distance[k] = length;
                team.parent[column(k)] = i;
            }
        }
        const Nearest found = team_nearest(team.partial, team.turn, own_nearest(own, own.distance, open, &unused));
        floor = found.value;
        if (floor == TOP) return false;
        const int j = found.code & ~TAKEN;
        if (!(found.code & TAKEN)) {
#pragma unroll
            for (int k = 0; k < SLOTS; k++)
                if (own.done >> k & 1) own.price[k] -= floor - own.distance[k];
            exchange(team, own, source, j);
            return true;
        }
#pragma unroll
        for (int k = 0; k < SLOTS; k++) own.done |= (u32)(column(k) == j) << k;
        i = found.row;
        row_dual = found.extra;
    }
}

// Copies the matrix into shared memory, the shorter side as rows.
__device__ __forceinline__ void copy_matrix(const cost_t* __restrict__ cost, int n_rows, int n_cols, int max_cols,
                                            cost_t* matrix) {
    const bool turned = n_rows > n_cols;
    const int count = n_rows * n_cols, per_word = 16 / (int)sizeof(cost_t);
    if (!turned && n_cols == max_cols && count % per_word == 0 && ((u64)cost & 15) == 0) {
#pragma unroll 8
        for (int k = threadIdx.x; k < count / per_word; k += TEAM) ((uint4*)matrix)[k] = __ldg((const uint4*)cost + k);
        return;
    }
#pragma unroll 8
    for (int k = threadIdx.x; k < count; k += TEAM) {
        const int i = k / n_cols, j = k - i * n_cols;
        matrix[turned ? j * n_rows + i : k] = __ldg(cost + (long long)i * max_cols + j);
    }
}

// Lays out the team's shared memory and copies the matrix, which comes first and so lies on a 16-byte boundary.
__device__ Shared load(const cost_t* cost, int n_rows, int n_cols, int max_cols, int negate, char* memory,
                       Nearest* partial) {
    Shared team;
    const bool turned = n_rows > n_cols;
    team.n_rows = turned ? n_cols : n_rows;
    team.n_cols = turned ? n_rows : n_cols;
    team.negate = negate;
    team.turn = 0;
    team.partial = partial;
    team.matrix = MATRIX_SHARED ? (const cost_t*)memory : cost;
    team.row_step = turned ? 1 : max_cols;
    team.col_step = turned ? max_cols : 1;
    if (MATRIX_SHARED) copy_matrix(cost, n_rows, n_cols, max_cols, (cost_t*)memory);
    const long long taken = MATRIX_SHARED ? ((long long)n_rows * n_cols * sizeof(cost_t) + 7) & ~7ll : 0;
    team.price = (value_t*)(memory + taken);
    team.key = (u64*)(team.price + team.n_cols);
    team.rise = (value_t*)(team.key + (JACOBI ? team.n_cols : 0));
    team.row_of = (int*)(team.rise + (JACOBI ? team.n_rows : 0));
    team.parent = team.row_of + team.n_cols;
    team.col_of = team.parent + team.n_cols;
    team.free = team.col_of + team.n_rows;
    team.target = team.free + team.n_rows;
    for (int j = threadIdx.x; j < team.n_cols; j += TEAM) team.row_of[j] = -1;
    for (int i = threadIdx.x; i < team.n_rows; i += TEAM) team.col_of[i] = -1, team.free[i] = i;
    team_barrier();  // everything in place before anyone reads it
    return team;
}

// Where a problem's answer goes.
struct Places {
    long long* assignment;  // [max_rows]
    value_t *u, *v;         // [max_rows], [max_cols]
};

// Writes assignment and duals; u_i = c_ij - v_j of the pair. Padding gets -1 and 0.
__device__ void store(const Shared& team, const Own& own, bool turned, int max_rows, int max_cols,
                      const Places& answer) {
#pragma unroll
    for (int k = 0; k < SLOTS; k++)
        if (own.here >> k & 1) team.price[column(k)] = own.price[k], team.row_of[column(k)] = own.row[k];
    team_barrier();  // prices and rows before others read them
    const value_t sign = team.negate ? -1 : 1;
    value_t *row_dual = turned ? answer.v : answer.u, *col_dual = turned ? answer.u : answer.v;
    for (int i = threadIdx.x; i < (turned ? max_cols : max_rows); i += TEAM)
        row_dual[i] = i < team.n_rows ? sign * (team.entry(i, team.col_of[i]) - team.price[team.col_of[i]]) : (value_t)0;
    for (int j = threadIdx.x; j < (turned ? max_rows : max_cols); j += TEAM)
        col_dual[j] = j < team.n_cols ? sign * team.price[j] : (value_t)0;
    for (int i = threadIdx.x; i < max_rows; i += TEAM)
        answer.assignment[i] =
            turned ? (i < team.n_cols ? team.row_of[i] : -1) : (i < team.n_rows ? team.col_of[i] : -1);
}

// Grid: one block per problem from `first` on. Block: TEAM.
// Shared: 16 bytes a column, 8 a row (24 and 20 if JACOBI), and the matrix.
// Reads: cost, sizes. Writes: assignment, u, v, status of its problem.
// Requires: n_cols <= TEAM * SLOTS after turning. Work: 4 n^2 to 8 n^2 entries on uniform costs, n^3 at worst.
extern "C" __global__ void __launch_bounds__(TEAM) solve_each(const __grid_constant__ SolveEachArgs args) {
    const int negate = uniform(args.negate);
    const int max_rows = args.max_rows, max_cols = args.max_cols, *sizes = args.sizes;
    extern __shared__ __align__(16) char memory[];
    __shared__ Nearest partial[TEAM == 32 ? 1 : 64];
    const long long problem = args.first + blockIdx.x;
    const int n_rows = sizes ? sizes[2 * problem] : max_rows, n_cols = sizes ? sizes[2 * problem + 1] : max_cols;
    const cost_t* cost = args.cost + problem * max_rows * max_cols;
    Shared team = load(cost, n_rows, n_cols, max_cols, negate, memory, partial);
    Own own;
    own.here = own.done = 0;
#pragma unroll
    for (int k = 0; k < SLOTS; k++) {
        own.price[k] = 0, own.row[k] = -1, own.row_dual[k] = 0;
        own.here |= (u32)(column(k) < team.n_cols) << k;
    }
    if (team.n_rows == team.n_cols) reduce_columns(team, own);
    int n_free = JACOBI ? jacobi_auction(team, own) : reduce_rows(team, own, team.n_rows);
    if (!JACOBI) n_free = reduce_rows(team, own, n_free);
    list_columns(team, own);
    bool feasible = true;
    for (int k = 0; k < n_free && feasible; k++) feasible = augment(team, own, team.free[k]);
    if (threadIdx.x == 0) args.status[problem] = feasible ? SOLVED : INFEASIBLE;
    const long long rows_at = problem * max_rows, cols_at = problem * max_cols;
    if (!feasible) return;
    store(team, own, n_rows > n_cols, max_rows, max_cols,
          {args.assignment + rows_at, args.u + rows_at, args.v + cols_at});
}
