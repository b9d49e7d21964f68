"""What the kernel of tree.cu and its launch share: its buffers, words and outcomes.

dual_t and cost_t are chosen when the kernel is compiled.
"""

from kernels.layout import enumeration, struct

THREADS = 512
"""Of a block."""
WARPS = THREADS // 32
MAX_BLOCKS = 256
WORDS = ("OUTCOME", "ROOTS", "PHASES", "ROUNDS", "WORDS")
"""Places of word[]; the last one is their number."""
OUTCOME, ROOTS, PHASES, ROUNDS = range(len(WORDS) - 1)
OUTCOMES = ("RUNNING", "OPTIMAL", "INFEASIBLE", "STOPPED")
RUNNING, OPTIMAL, INFEASIBLE, STOPPED = range(len(OUTCOMES))

SLOT = struct(
    "Slot",
    """
    dual_t key
    dual_t row_u               // u of the row paired with the column
    int row                    // -1: the column is free, a path ends here
    int col
    long long stop             // block 0's: the caller wants what there is
    """,
)
"""One block's nearest column outside the trees."""

PROBLEM = struct(
    "TreeProblem",
    """
    const cost_t* cost         // [n_rows, n_cols]
    dual_t* u                  // [n_rows]
    dual_t* v                  // [n_cols]
    int* col_of                // [n_rows]
    int* row_of                // [n_cols]
    int* roots                 // [n_rows]
    int* parent                // [n_cols]
    int* green                 // [n_rows]
    int* in_tree               // [n_cols]
    Slot* slots                // [2, blocks]
    volatile int* word         // [WORDS]
    const volatile int* stop   // host memory: nonzero once the caller wants what there is
    long long n_rows
    long long n_cols
    long long negate           // maximise
    long long phase_limit
    long long width            // columns of a block
    """,
)
SIZES = f"constexpr int THREADS = {THREADS}, WARPS = {WARPS}, MAX_BLOCKS = {MAX_BLOCKS};"
CUDA = "\n".join([SIZES, enumeration("Word", WORDS), enumeration("Outcome", OUTCOMES), SLOT.text, PROBLEM.text])
