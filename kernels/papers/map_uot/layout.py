"""What the kernels of MAP-UOT and their launches share: their arguments."""

from kernels.layout import parameter

FACTORS_ARGS = parameter(
    "FactorsArgs",
    """
    const float* mass          // [count]
    float* sum                 // [count]
    float* scaling             // [count]
    float* factor              // [count]
    int count
    float power
    int corrected              // the rule
    """,
)

SCALE_ROWS_ARGS = parameter(
    "ScaleRowsArgs",
    """
    float* plan                // [m, ld]
    const float* row_factor    // [m]
    float* column_sum          // [ld]
    int m
    int ld                     // columns with padding
    """,
)

SCALE_COLUMNS_ARGS = parameter(
    "ScaleColumnsArgs",
    """
    float* plan                // [m, ld]
    const float* column_factor  // [ld]
    float* row_sum             // [m]
    int m
    int ld
    """,
)
CUDA = "\n".join(kernel.text for kernel in (FACTORS_ARGS, SCALE_ROWS_ARGS, SCALE_COLUMNS_ARGS))
