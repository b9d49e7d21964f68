"""What the kernels of certify.cu and their launches share: their arguments."""

from kernels.layout import parameter

THREADS = 256
"""Of a block."""

WEIGH_ROWS_ARGS = parameter(
    "WeighRowsArgs",
    """
    const cost_t* __restrict__ cost  // [n_rows, n_cols]
    int n_rows
    int n_cols
    int negate                 // the answer maximises
    const value_t* __restrict__ u  // [n_rows]
    const value_t* __restrict__ v  // [n_cols]
    const int* __restrict__ row_col  // [n_rows], -1 for a row without a column
    value_t* partial           // [blocks, 4]
    """,
)

ADD_UP_ARGS = parameter(
    "AddUpArgs",
    """
    int n_rows
    int n_cols
    int n_partial
    const value_t* v           // [n_cols]
    const int* row_col         // [n_rows]
    const value_t* partial     // [n_partial, 4]
    value_t* proof             // [5]
    """,
)

WEIGH_PROBLEMS_ARGS = parameter(
    "WeighProblemsArgs",
    """
    const cost_t* __restrict__ cost  // [batch, max_rows, max_cols]
    const int* sizes           // [batch, 2], or null
    int max_rows
    int max_cols
    int negate
    const value_t* u           // [batch, max_rows]
    const value_t* v           // [batch, max_cols]
    const long long* assignment  // [batch, max_rows]
    value_t* proof             // [batch, 5]
    """,
)
KERNELS = (WEIGH_ROWS_ARGS, ADD_UP_ARGS, WEIGH_PROBLEMS_ARGS)
CUDA = "\n".join([f"constexpr int THREADS = {THREADS};", *(kernel.text for kernel in KERNELS)])
