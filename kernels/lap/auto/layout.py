"""What the kernels of method `auto` and their launches share: modes, the state of a solve, arguments of kernels.

`v`, `u` and lengths are value_t (float64 or int64), costs are cost_t.
"""

from kernels.layout import enumeration, parameter, struct

MODES = ("GROW", "SCALE", "SOLVED", "INFEASIBLE", "STOPPED", "PHASE_LIMIT", "SEATED")
GROW, SCALE, SOLVED, INFEASIBLE, STOPPED, PHASE_LIMIT, SEATED = range(len(MODES))
BID_BLOCK, GROW_BLOCK = 1024, 512
"""Threads of a block."""
TIES = 16
"""Columns that a row lists, from old duals."""

STATE = struct(
    "ChainState",
    """
    int mode[8]                // mode[k] is written by stage k - 1, mode[0] by take_seats
    int n_free                 // rows in free_rows
    u32 bid_tag                // the last tag used on the boards of an auction
    u32 grow_tag               // and on the forest's
    int phases
    int rounds
    int bid_rounds
    int n_begun
    int n_seated               // rows that take_seats gave a column
    int halted                 // the caller stopped an auction
    long long scans            // rows read by the forest
    long long bid_scans        // and by the auction
    u64 highest                // of cost - v in the first round, as a rank; 0 before
    u64 lowest                 // the same of the least, negated
    """,
)

MATRIX = """
    const cost_t* __restrict__ cost  // [n_rows, n_cols]
    int n_rows
    int n_cols
    int negate                 // maximise
"""

LEVELS = """
    int stage                  // of the launch: which mode it reads
    int scale
    int first                  // level
    int end                    // the level after the last
    int levels                 // the one with epsilon 0
    double theta
    int stop                   // rows left, when the auction hands over
    int extra                  // rounds after that
    int most_rounds
"""

REDUCE_COLUMNS_ARGS = parameter(
    "ReduceColumnsArgs",
    MATRIX
    + """
    value_t* v_first           // [n_cols]
    u64* proposal              // [n_rows]
    ulonglong2* boards         // [n_words]
    int n_words
    ChainState* state
    int minima                 // v_first: 1 column minima, 0 zeros, 2 left alone
    """,
)

TAKE_SEATS_ARGS = parameter(
    "TakeSeatsArgs",
    MATRIX
    + """
    const value_t* v_first     // [n_cols]
    const value_t* own         // [n_rows]
    value_t* v                 // [n_cols]
    value_t* u                 // [n_rows]
    int* col_row               // [n_cols]
    int* row_col               // [n_rows]
    int* free_rows             // [n_rows]
    value_t* free_u            // [n_rows]
    int* columns               // [n_rows, TIES]
    int* n_columns             // [n_rows]
    int* wanted                // [n_cols]
    u32* claim                 // [n_cols]
    int* counters              // [3, 2]
    ChainState* state
    int few                    // rows that may be without a seat
    """,
)

BID_SHARED_ARGS = parameter(
    "BidSharedArgs",
    MATRIX
    + """
    const value_t* v_first     // [n_cols]
    value_t* v_out             // [n_cols]
    int* col_row               // [n_cols]
    u64* proposal              // [n_rows]
    ulonglong2* boards         // [2, n_rows]
    ulonglong2* beats          // [2, blocks]
    int* free_rows             // [n_rows]
    value_t* free_u            // [n_rows]
    ChainState* state
    const volatile int* mailbox  // [4], host memory
    """
    + LEVELS,
)

BID_WIDE_ARGS = parameter(
    "BidWideArgs",
    MATRIX
    + """
    const value_t* v_first     // [n_cols]
    value_t* v                 // [n_cols]
    int* col_row               // [n_cols]
    int* row_col               // [n_rows]
    u64* proposal              // [n_rows]
    u64* key                   // [n_cols]
    value_t* raise             // [n_rows]
    int* target                // [n_rows]
    int* list                  // [2, n_rows]
    int* counters              // [3, 3]
    int* free_rows             // [n_rows]
    value_t* free_u            // [n_rows]
    ChainState* state
    const volatile int* mailbox  // [4], host memory
    """
    + LEVELS,
)

GROW_ARGS = parameter(
    "GrowArgs",
    MATRIX
    + """
    int width                  // columns per block
    int prefetches             // whether a row is fetched into L2 when it is published
    value_t* v                 // [n_cols]
    value_t* u                 // [n_rows]
    int* col_row               // [n_cols]
    int* row_col               // [n_rows]
    const int* free_rows       // [n_rows]
    const value_t* free_u      // [n_rows]
    u32* live_all              // [blocks, n_rows]
    u64* proposal              // [n_rows]
    u32* reached               // [n_cols]
    ulonglong2* board          // [2, blocks, 2]
    ChainState* state
    volatile int* mailbox      // [4], host memory
    int stage
    int give_up                // where three phases match few rows
    int phase_limit            // -1: none
    double share               // of the spread, which lengths are rounded down to; 0 for exact ones
    """,
)

KERNELS = (REDUCE_COLUMNS_ARGS, TAKE_SEATS_ARGS, BID_SHARED_ARGS, BID_WIDE_ARGS, GROW_ARGS)
BLOCKS = f"constexpr int BID_BLOCK = {BID_BLOCK}, GROW_BLOCK = {GROW_BLOCK}, TIES = {TIES};"
CUDA = "\n".join([BLOCKS, enumeration("Mode", MODES), STATE.text, *(kernel.text for kernel in KERNELS)])
