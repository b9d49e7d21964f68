// Many small assignment problems at once: one team of TEAM threads (a warp or a block) per problem, no word between teams.
//
//   load            the matrix into shared memory when it fits (MATRIX_SHARED), the shorter side as rows
//   reduce_columns  v_j = least entry of column j                         (square problems; else v = 0)
//   reduce_rows     twice: a free row takes its best column, whose price falls to the row's second best
//   augment         for each row still free: Dijkstra's search over the columns, then prices and pairs along the path
//   store           assignment and duals, in the problem's own orientation
//
// The algorithm of Jonker and Volgenant, as in cpu_path.py but dense: a thread owns the SLOTS columns j = slot * TEAM + rank
// and keeps their price, distance and state in registers, so that a step is one pass over a row, one value per slot, and two
// or three reductions over the team. Ties go to a free column, then to the smallest: the result is deterministic.
//
// Invariant between steps: col_of and row_of agree; an assigned entry is a least one of its row, entries minus prices; with
// n_rows < n_cols prices are <= 0 and 0 in free columns.
//
// buffer      shape                    type     where
// cost        batch, max_rows, max_cols  cost_t   global
// sizes       batch, 2                 int32    global, null when every problem is max_rows x max_cols
// assignment  batch, max_rows          int64    global, -1 beyond a problem's size
// u, v        batch, max_rows; max_cols value_t  global, 0 beyond a problem's size
// status      batch                    int32    global: 1 solved, 2 infeasible
// matrix      rows, cols               cost_t   shared (MATRIX_SHARED)
// price, row_of, parent; col_of, free   cols; rows  value_t, int32   shared
//
// Overflow: integers stay below 16 (n_rows + n_cols) max |cost| < 2^62, checked by the problem; prices of float32 costs are float64.
//
// Reference: R. Jonker, A. Volgenant, Computing 38 (1987) 325-340.
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
#define REDUCTIONS_PER_ROW 1  // in each of two passes; 20 made wars of bids 2.7 times as many steps at 512 x 512 as paths alone
#endif

typedef COST cost_t;
typedef VALUE value_t;
typedef unsigned long long u64;
typedef unsigned int u32;

__device__ __forceinline__ double top(double) { return __longlong_as_double(0x7ff0000000000000ll); }
__device__ __forceinline__ long long top(long long) { return 1ll << 62; }
#define TOP top(value_t())

// Order-preserving map onto unsigned integers, and back.
__device__ __forceinline__ u64 ordered(double x) {
    const long long bits = __double_as_longlong(x + 0.0);  // -0 becomes +0, which compares equal
    return (u64)(bits ^ (bits >> 63 | (long long)(1ull << 63)));
}
__device__ __forceinline__ u64 ordered(long long x) { return (u64)x ^ 1ull << 63; }
__device__ __forceinline__ double value_of(u64 key, double) {
    return __longlong_as_double((long long)(key & 1ull << 63 ? key ^ 1ull << 63 : ~key));
}
__device__ __forceinline__ long long value_of(u64 key, long long) { return (long long)(key ^ 1ull << 63); }

struct Best;
struct Shared {  // one team's
    const cost_t* matrix;  // shared or global
    long long row_step, col_step;
    value_t* price;
    int *row_of, *parent, *col_of, *free;
    Best* partial;  // 2 x 32, used in turn
    int n_rows, n_cols, negate, turn;

    __device__ __forceinline__ value_t entry(int i, int j) const {
        const value_t c = (value_t)matrix[i * row_step + j * col_step];
        return !MATRIX_SHARED && negate ? -c : c;
    }
};

struct Own {  // one thread's columns
    value_t price[SLOTS], distance[SLOTS];
    u32 taken, done;  // one bit per slot
};

__device__ __forceinline__ int column(int slot) { return slot * TEAM + (int)threadIdx.x; }

__device__ __forceinline__ void team_barrier() {
    if (TEAM == 32) __syncwarp();
    else __syncthreads();
}

__device__ __forceinline__ u64 warp_least(u64 key) {
#if __CUDA_ARCH__ >= 800
    const u32 high = __reduce_min_sync(FULL_WARP, (u32)(key >> 32));
    const u32 low = __reduce_min_sync(FULL_WARP, (u32)(key >> 32) == high ? (u32)key : 0xffffffffu);
    return (u64)high << 32 | low;
#else
    return warp_min(key);
#endif
}

struct Best {
    u64 key;     // least key of the team
    u32 code;    // its column: a free one if any, then the smallest; bit 31 says that it is taken
    u64 second;  // least key among all other columns
};

// Joins 32 lanes' bests. Codes differ, so exactly one lane has the winner and puts forward its second.
__device__ __forceinline__ Best warp_best(const Best& mine) {
    Best out;
    out.key = warp_least(mine.key);
    out.code = __reduce_min_sync(FULL_WARP, mine.key == out.key ? mine.code : 0xffffffffu);
    out.second = warp_least(mine.code == out.code && mine.key == out.key ? mine.second : mine.key);
    return out;
}

// The same over the team, in every thread. The barrier separates the writes of the partial results from their reads; two sets of
// them take turns, so that the next call's writes need no barrier of their own.
__device__ __forceinline__ Best team_best(Shared& s, Best best) {
    best = warp_best(best);
    if (TEAM == 32) return best;
    Best* partial = s.partial + (s.turn ^= 32);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = best;
    __syncthreads();
    const int lane = threadIdx.x & 31;
    const Best none = {~0ull, 0xffffffffu, ~0ull};
    return warp_best(lane < TEAM / 32 ? partial[lane] : none);
}

// One thread's best of its columns in `allowed`.
__device__ __forceinline__ Best own_best(const Own& own, const value_t* value, u32 allowed) {
    Best best = {ordered(TOP), 0xffffffffu, ordered(TOP)};
#pragma unroll
    for (int k = 0; k < SLOTS; k++) {
        if (!(allowed >> k & 1)) continue;
        const u64 key = ordered(value[k]);
        const u32 code = (own.taken >> k & 1) << 31 | (u32)column(k);
        if (key < best.key || (key == best.key && code < best.code)) {
            best.second = best.key;
            best.key = key;
            best.code = code;
        } else if (key < best.second) {
            best.second = key;
        }
    }
    return best;
}

// Slots whose column exists, as bits.
__device__ __forceinline__ u32 present(const Shared& s) {
    u32 bits = 0;
#pragma unroll
    for (int k = 0; k < SLOTS; k++) bits |= (u32)(column(k) < s.n_cols) << k;
    return bits;
}

__device__ __forceinline__ void set_price(Shared& s, Own& own, int j, value_t price) {
#pragma unroll
    for (int k = 0; k < SLOTS; k++)
        if (column(k) == j) own.price[k] = price, s.price[j] = price;
}

__device__ __forceinline__ void take(Own& own, int j) {
#pragma unroll
    for (int k = 0; k < SLOTS; k++) own.taken |= (u32)(column(k) == j) << k;
}

// v_j = least entry of column j; a column that nobody may take gets 0, any finite price will do.
__device__ void reduce_columns(Shared& s, Own& own) {
#pragma unroll
    for (int k = 0; k < SLOTS; k++) {
        if (column(k) >= s.n_cols) continue;
        value_t least = TOP;
        for (int i = 0; i < s.n_rows; i++) {
            const value_t c = s.entry(i, column(k));
            least = c < least ? c : least;
        }
        own.price[k] = least == TOP ? (value_t)0 : least;
        s.price[column(k)] = own.price[k];
    }
}

// Augmenting row reduction of free[0:n_free]; returns how many rows wait in free[0:]. The price falls to the second best, and
// a row driven out goes on at once; where the price cannot fall it waits.
__device__ int reduce_rows(Shared& s, Own& own, u32 here, int n_free) {
    int kept = 0, steps = REDUCTIONS_PER_ROW * s.n_rows;
    for (int at = 0; at < n_free;) {
        const int i = s.free[at++];
        value_t value[SLOTS];
#pragma unroll
        for (int k = 0; k < SLOTS; k++) value[k] = here >> k & 1 ? s.entry(i, column(k)) - own.price[k] : TOP;
        const Best found = team_best(s, own_best(own, value, here));
        const value_t best = value_of(found.key, value_t()), second = value_of(found.second, value_t());
        const int j = found.code & 0x7fffffffu;
        const bool wait = second == TOP || --steps < 0;  // no second choice: a price may not fall to -inf
        const value_t price = wait ? 0 : s.price[j] - (second - best);
        const bool falls = !wait && price < s.price[j];
        const int driven_out = wait || !(found.code >> 31) ? -1 : s.row_of[j];
        team_barrier();  // price, row_of and free are read before they are written
        const int later = wait ? i : driven_out >= 0 && !falls ? driven_out : -1;
        if (threadIdx.x == 0) {
            if (!wait) s.col_of[i] = j, s.row_of[j] = i;
            if (driven_out >= 0) s.col_of[driven_out] = -1;
            if (later >= 0) s.free[kept] = later;
            if (driven_out >= 0 && falls) s.free[at - 1] = driven_out;
        }
        if (falls) set_price(s, own, j, price);
        if (!wait) take(own, j);
        kept += later >= 0;
        at -= driven_out >= 0 && falls;
        team_barrier();  // written before the next row reads
    }
    return kept;
}

// Dijkstra's search from free row `source` and the exchange along its path. False when no free column can be reached.
__device__ bool augment(Shared& s, Own& own, u32 here, int source) {
    own.done = 0;
#pragma unroll
    for (int k = 0; k < SLOTS; k++) own.distance[k] = TOP;
    value_t floor = 0, base = 0;
    bool first = true;
    int i = source, end = -1;
    while (end < 0) {
        const value_t taken_at = base;  // what the row's own column costs on top of `floor`
#pragma unroll
        for (int k = 0; k < SLOTS; k++) {
            if (!(here >> k & 1) || own.done >> k & 1) continue;
            const value_t c = s.entry(i, column(k));
            value_t length = floor + ((c - own.price[k]) - taken_at);
            if (!first && length < floor) length = floor;  // rounding must not lead backwards
            if (c < TOP && length < own.distance[k]) own.distance[k] = length, s.parent[column(k)] = i;
        }
        first = false;
        const Best found = team_best(s, own_best(own, own.distance, here & ~own.done));
        floor = value_of(found.key, value_t());
        if (floor == TOP) return false;
        const u32 code = found.code;
        const int j = code & 0x7fffffffu;
        if (!(code >> 31)) {
            end = j;
        } else {
#pragma unroll
            for (int k = 0; k < SLOTS; k++) own.done |= (u32)(column(k) == j) << k;
            i = s.row_of[j];
            base = s.entry(i, j) - s.price[j];
        }
    }
#pragma unroll
    for (int k = 0; k < SLOTS; k++)
        if (own.done >> k & 1) s.price[column(k)] = own.price[k] -= floor - own.distance[k];
    take(own, end);
    team_barrier();  // parents written before they are followed; pairs and prices read before they change
    if (threadIdx.x == 0)
        for (int j = end, row = -1; row != source;) {
            row = s.parent[j];
            const int next = s.col_of[row];
            s.row_of[j] = row;
            s.col_of[row] = j;
            j = next;
        }
    team_barrier();  // pairs and prices before the next search
    return true;
}

// Lays out the team's shared memory and copies the matrix. Rows are the shorter side.
__device__ Shared load(const cost_t* cost, int n_rows, int n_cols, int max_cols, int negate, char* memory, Best* partial) {
    Shared s;
    const bool turned = n_rows > n_cols;
    s.n_rows = turned ? n_cols : n_rows;
    s.n_cols = turned ? n_rows : n_cols;
    s.negate = negate;
    s.turn = 0;
    s.partial = partial;
    s.price = (value_t*)memory;
    s.row_of = (int*)(s.price + s.n_cols);
    s.parent = s.row_of + s.n_cols;
    s.col_of = s.parent + s.n_cols;
    s.free = s.col_of + s.n_rows;
    s.matrix = cost;
    s.row_step = turned ? 1 : max_cols;
    s.col_step = turned ? max_cols : 1;
    if (MATRIX_SHARED) {
        const int used = 8 * s.n_cols + 8 * s.n_cols + 8 * s.n_rows;
        cost_t* matrix = (cost_t*)(memory + used);
        const int count = n_rows * n_cols;
#pragma unroll 8
        for (int k = threadIdx.x; k < count; k += TEAM) {
            const int i = k / n_cols, j = k - i * n_cols;
            const cost_t c = cost[(long long)i * max_cols + j];
            matrix[turned ? j * n_rows + i : k] = negate ? -c : c;
        }
        s.matrix = matrix;
        s.row_step = s.n_cols;
        s.col_step = 1;
    }
    for (int j = threadIdx.x; j < s.n_cols; j += TEAM) s.price[j] = 0, s.row_of[j] = -1;
    for (int i = threadIdx.x; i < s.n_rows; i += TEAM) s.col_of[i] = -1, s.free[i] = i;
    team_barrier();  // everything in place before anyone reads it
    return s;
}

// Writes assignment and duals; u_i = c_ij - v_j of the pair. Padding gets -1 and 0.
__device__ void store(const Shared& s, bool turned, int max_rows, int max_cols, long long* assignment, value_t* u, value_t* v) {
    const value_t sign = s.negate ? -1 : 1;
    value_t *row_dual = turned ? v : u, *col_dual = turned ? u : v;
    for (int i = threadIdx.x; i < (turned ? max_cols : max_rows); i += TEAM)
        row_dual[i] = i < s.n_rows ? sign * (s.entry(i, s.col_of[i]) - s.price[s.col_of[i]]) : (value_t)0;
    for (int j = threadIdx.x; j < (turned ? max_rows : max_cols); j += TEAM)
        col_dual[j] = j < s.n_cols ? sign * s.price[j] : (value_t)0;
    for (int i = threadIdx.x; i < max_rows; i += TEAM)
        assignment[i] = turned ? (i < s.n_cols ? s.row_of[i] : -1) : (i < s.n_rows ? s.col_of[i] : -1);
}

// Grid: one block per problem from `first` on. Block: TEAM. Shared: 16 bytes a column, 8 a row, and the matrix. Reads: cost, sizes.
// Writes: assignment, u, v, status of its problem. Requires: n_cols <= TEAM * SLOTS after turning. Work: about 5 n^2 to 20 n^2
// entries on uniform costs, n^3 at worst.
extern "C" __global__ void __launch_bounds__(TEAM)
solve_each(const cost_t* cost, const int* sizes, int first, int max_rows, int max_cols, int negate, long long* assignment,
           value_t* u, value_t* v, int* status) {
    extern __shared__ __align__(16) char memory[];
    __shared__ Best partial[64];
    const long long b = first + blockIdx.x;
    const int n_rows = sizes ? sizes[2 * b] : max_rows, n_cols = sizes ? sizes[2 * b + 1] : max_cols;
    Shared s = load(cost + b * max_rows * max_cols, n_rows, n_cols, max_cols, negate, memory, partial);
    const u32 here = present(s);
    Own own;
    own.taken = 0;
#pragma unroll
    for (int k = 0; k < SLOTS; k++) own.price[k] = 0;
    if (s.n_rows == s.n_cols) reduce_columns(s, own);
    team_barrier();  // prices before rows are reduced
    int n_free = reduce_rows(s, own, here, s.n_rows);
    n_free = reduce_rows(s, own, here, n_free);
    bool feasible = true;
    for (int k = 0; k < n_free && feasible; k++) feasible = augment(s, own, here, s.free[k]);
    if (threadIdx.x == 0) status[b] = feasible ? 1 : 2;
    if (feasible) store(s, n_rows > n_cols, max_rows, max_cols, assignment + b * max_rows, u + b * max_rows, v + b * max_cols);
}
