"""What the kernels of the Hungarian system and their launches share: its buffers, flags, steps and outcomes.

dual_t and cost_t are chosen when the kernels are compiled.
"""

from kernels.layout import enumeration, parameter, struct

THREADS = 1024
"""Of a block."""
FLAGS = {"STARS": 0, "REPEAT": 1, "PATHS": 4, "OUTCOME": 7, "ZEROS": 8, "UPDATES": 9, "SEARCHES": 10, "ROUNDS": 11}
FLAGS |= {"STALE": 12, "FLAGS": 16}
"""Places of flags[]; REPEAT and PATHS are three each, in turn; the last one is their number."""
OUTCOMES = ("RUNNING", "OPTIMAL", "INFEASIBLE", "STOPPED")
RUNNING, OPTIMAL, INFEASIBLE, STOPPED = range(len(OUTCOMES))
STEPS = (
    "REDUCE_ROWS",
    "REDUCE_COLUMNS",
    "COMPRESS_ZEROS",
    "STAR_ZEROS",
    "COVER_STARS",
    "PRIME_ZEROS",
    "FIND_MINIMUM",
    "SHIFT_SLACK",
    "MARK_GREEN",
    "FLIP_PATHS",
    "COUNT_ZEROS",
)
"""What a launch of `hungarian_step` does."""

PROBLEM = struct(
    "HungarianProblem",
    """
    const cost_t* cost         // [n_rows, n_cols]
    dual_t* slack              // [n_rows, n_cols]
    unsigned* zeros            // [blocks, rows of a bin, n_cols]
    int* zeros_count           // [blocks]
    dual_t* u                  // [n_rows]
    dual_t* v                  // [n_cols]
    int* star_of_row           // [n_rows]
    int* star_of_col           // [n_cols]
    int* prime_of_col          // [n_cols]
    int* green_of_row          // [n_rows]
    volatile int* row_covered  // [n_rows]
    volatile int* col_covered  // [n_cols]
    dual_t* row_min            // [n_rows]
    dual_t* block_min          // [blocks]
    int* row_arg               // [n_rows]
    unsigned long long* open   // [1]
    volatile int* flags        // [FLAGS]
    const volatile int* stop   // host memory: nonzero once the caller wants what there is
    long long n_rows
    long long n_cols
    long long negate           // maximise
    long long search_limit
    """,
)

HUNGARIAN_STEP_ARGS = parameter(
    "HungarianStepArgs",
    """
    const HungarianProblem* problem
    int step                   // STEPS
    """,
)
ENUMS = (enumeration("Flag", FLAGS), enumeration("Outcome", OUTCOMES), enumeration("Step", STEPS))
CUDA = "\n".join([f"constexpr int THREADS = {THREADS};", *ENUMS, PROBLEM.text, HUNGARIAN_STEP_ARGS.text])
