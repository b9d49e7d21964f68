// A block's slice of the columns in shared memory, and the exchange between the blocks. Part of forest.cu.
#ifndef STRIPS
#define STRIPS 1  // columns per thread: the least power of two with 32 * STRIPS >= width
#endif
#ifndef BATCH
#define BATCH (STRIPS == 1 ? 8 : STRIPS == 2 ? 4 : STRIPS < 16 ? 2 : 1)  // rows whose entries are in flight at once
#endif
#ifndef RESIDENT
#define RESIDENT 0  // 1: the slice of the matrix lives in shared memory; needs STRIPS 1
#endif
#define NEAR (STRIPS < 4 ? STRIPS : 4)  // columns per lane in nearest: one warp up to a width of 128
#define THREADS GROW_BLOCK
#define WARPS (THREADS / 32)
#define MOST_BLOCKS (THREADS / 2)
#define FOLDED (STRIPS >= 16 ? WARPS / 2 : WARPS)  // wide slices: half the warps hand over first, to save shared memory
#define SAMPLES 47  // sources watched for a reached free column
#define HALT (1ull << SAMPLES)

// The matrix, and where a block's slice of its columns lies.
struct Matrix {
    const cost_t* __restrict__ cost;
    int n_rows, n_cols, negate, first, width, lanes;
    int part;         // a search ends once one of so many sources has a free column, when there are no more columns
    bool prefetches;  // a row into L2 when it is published
    value_t grain;  // lengths are rounded down to its multiples (Value::floored); 0: they are exact
};

// A block's columns, in its shared memory.
struct Slice {
    value_t *d, *v, *pair;  // [width] label, dual, cost of the matched pair
    u32 *pred, *root;       // [width] row that gave the label; its source, as a position in live
    int* row;               // [width] matched row, -1 while free; -2 - row from accept to augment: that row takes it
    u32* active;            // [width] label improved since it was last published
    value_t* least;         // [FOLDED][width] fold's partial minima
    u32* giver;             // [FOLDED][width] and the list positions that gave them
    u32* on_path;           // bitset over rows
    cost_t* tile;           // [n_rows][width] this block's columns of the matrix, with RESIDENT
    u16* parent;            // [n_rows] row before this row on the way to its source; itself for a source
};

struct Entry {
    value_t D, u;
};

__shared__ Entry list[MOST_BLOCKS];
__shared__ int list_row[MOST_BLOCKS];
__shared__ u32 list_root[MOST_BLOCKS];
__shared__ u64 near_bits[WARPS], near_mask[WARPS], got_bits[WARPS], got_mask[WARPS];
__shared__ u32 near_at[WARPS], warp_count[WARPS];

__device__ Slice carve(unsigned char* at, int width, int n_rows) {
    Slice slice;
    slice.d = (value_t*)at, at += 8 * width;
    slice.v = (value_t*)at, at += 8 * width;
    slice.pair = (value_t*)at, at += 8 * width;
    slice.least = (value_t*)at, at += 8 * width * FOLDED;
    slice.giver = (u32*)at, at += 4 * width * FOLDED;
    slice.pred = (u32*)at, at += 4 * width;
    slice.root = (u32*)at, at += 4 * width;
    slice.row = (int*)at, at += 4 * width;
    slice.active = (u32*)at, at += 4 * width;
    slice.on_path = (u32*)at, at += 4 * ((n_rows + 31) / 32);
    slice.parent = (u16*)at, at += 2 * ((n_rows + 7) & ~7);
    slice.tile = (cost_t*)(((u64)at + 15) & ~15ull);
    return slice;
}

// What a block tells of a row: its label and dual, and where the label came from.
struct News {
    u64 D, u;
    u32 row, parent, root;
};

// One word pair on the board: D | row, parent, root, tag and u | mask, tag.
__device__ __forceinline__ void publish(ulonglong2* board, u32 tag, const News& news, u64 mask) {
    ulonglong2* at = board + 2 * ((size_t)(tag & 1) * gridDim.x + blockIdx.x);
    store_word(at, news.D, (u64)news.row << 48 | (u64)news.parent << 32 | (u64)news.root << 16 | (tag & 0xffffu));
    store_word(at + 1, news.u, mask << 16 | (tag & 0xffffu));
}

// Wait for every block's pair with this tag; lists the entries, returns the least D and all masks. The exchange is
// also the barrier of the round: nobody passes before everybody published. The board has two sides: a block
// writes side tag + 2 only after it has read side tag + 1 of all, and they wrote that after reading side tag.
__device__ __forceinline__ void collect(const ulonglong2* board, u32 tag, const Slice& slice, bool record, u64* least,
                                        u64* mask, int* n_entries) {
    const int thread = threadIdx.x, block = thread >> 1, n_warps = (2 * gridDim.x + 31) / 32;
    if (thread < 32 * n_warps) {
        u64 D = ~0ull, bits = 0;
        bool valid = false;
        u32 row = 0;
        if (block < gridDim.x) {
            const ulonglong2* at = board + 2 * (size_t)(tag & 1) * gridDim.x + thread;
            const ulonglong2 word = await_word(at, 0xffffull, tag & 0xffffu);
            if (thread & 1) {
                list[block].u = Value::from(word.x);
                bits = word.y >> 16;
            } else {
                D = word.x;
                valid = record && D < Value::bits(TOP);
                row = (u32)(word.y >> 48);
                list[block].D = Value::from(D);
                list_root[block] = (u32)(word.y >> 16) & 0xffffu;
                if (valid) slice.parent[row] = (u16)(word.y >> 32);
            }
        }
        if ((thread & 1) == 0 && block < gridDim.x) list_row[block] = valid ? (int)row : -1;
        *n_entries += valid;
        D = warp_min_bits(D);
        bits = warp_or(bits);
        if ((thread & 31) == 0) got_bits[thread >> 5] = D, got_mask[thread >> 5] = bits;
    }
    __syncthreads();  // list and got_* before all threads read them
    u64 m = ~0ull, all = 0;
    for (int k = 0; k < n_warps; k++) {
        m = got_bits[k] < m ? got_bits[k] : m;
        all |= got_mask[k];
    }
    *least = m;
    *mask = all;
}

__device__ void load_slice(const Matrix& matrix, const Slice& slice, const value_t* v, const int* col_row) {
    for (int j = threadIdx.x; j < matrix.width; j += THREADS) {
        const int i = slice.row[j] = col_row[matrix.first + j];
        slice.v[j] = v[matrix.first + j];
        slice.pair[j] = i >= 0 ? read_cost(matrix.cost, (long long)i * matrix.n_cols + matrix.first + j, matrix.negate)
                               : value_t(0);
        slice.d[j] = TOP;
        slice.active[j] = 0;
    }
    for (int k = threadIdx.x; k < (matrix.n_rows + 31) / 32; k += THREADS) slice.on_path[k] = 0;
}

// Copy the block's columns of the matrix into its shared memory.
__device__ __forceinline__ void load_tile(const Matrix& matrix, const Slice& slice) {
    const int lane = threadIdx.x & (matrix.lanes - 1), step = THREADS / matrix.lanes;
    if (lane >= matrix.width) return;
#pragma unroll 8
    for (int i = threadIdx.x / matrix.lanes; i < matrix.n_rows; i += step)
        slice.tile[i * matrix.width + lane] = __ldg(matrix.cost + (long long)i * matrix.n_cols + matrix.first + lane);
}

__device__ void store_slice(const Matrix& matrix, const Slice& slice, value_t* v, value_t* u, int* col_row, int* row_col,
                            u32* reached) {
    for (int j = threadIdx.x; j < matrix.width; j += THREADS) {
        const int i = slice.row[j];
        v[matrix.first + j] = slice.v[j];
        col_row[matrix.first + j] = i;
        reached[matrix.first + j] = slice.d[j] < TOP;
        if (i >= 0) row_col[i] = matrix.first + j, u[i] = slice.pair[j] - slice.v[j];
    }
}
