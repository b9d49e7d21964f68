"""What the kernel of batches and its launch share: its arguments."""

from kernels.layout import enumeration, parameter

STATUSES = ("NOT_BEGUN", "SOLVED", "INFEASIBLE")
NOT_BEGUN, SOLVED, INFEASIBLE = range(len(STATUSES))
"""What `solve_each` says of a problem."""

SOLVE_EACH_ARGS = parameter(
    "SolveEachArgs",
    """
    const cost_t* cost         // [batch, max_rows, max_cols]
    const int* sizes           // [batch, 2], or null: all of them max_rows x max_cols
    int first                  // problem of the first block
    int max_rows
    int max_cols
    int negate                 // maximise
    long long* assignment      // [batch, max_rows]
    value_t* u                 // [batch, max_rows]
    value_t* v                 // [batch, max_cols]
    int* status                // [batch], STATUSES
    """,
)
CUDA = "\n".join([enumeration("Status", STATUSES), SOLVE_EACH_ARGS.text])
