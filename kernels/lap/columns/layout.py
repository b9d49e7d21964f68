"""What the kernels of price.cu and their launches share: their arguments."""

from kernels.layout import parameter

THREADS, WARPS, TOGETHER, MOST = 256, 8, 4, 32
"""Of a block; rows that a warp reads side by side; columns that it lists at most, one a lane."""

PRICE_ROWS_ARGS = parameter(
    "PriceRowsArgs",
    """
    const cost_t* __restrict__ cost  // [held, n]: the rows of this device
    const value_t* __restrict__ v    // [n]
    const int* __restrict__ rows     // [k]: rows of `cost`
    const value_t* __restrict__ limits  // [k]
    int* columns               // [k, most]
    value_t* values            // [k, most]
    int* counts                // [k]
    long long n
    long long turn             // how far apart rows begin to read
    int k
    int most
    int negate                 // the problem maximises
    int wide                   // rows begin at multiples of 16 bytes
    """,
)

LEAST_OF_COLUMNS_ARGS = parameter(
    "LeastOfColumnsArgs",
    """
    const cost_t* __restrict__ cost  // [held, n]
    value_t* values            // [pieces, n]
    int* rows                  // [pieces, n]
    long long n
    int held
    int piece                  // rows of a piece
    int negate
    """,
)

JOIN_PIECES_ARGS = parameter(
    "JoinPiecesArgs",
    """
    value_t* values            // [pieces, n]: the first row becomes the least
    int* rows                  // [pieces, n]
    long long n
    int pieces
    """,
)

GATHER_ARGS = parameter(
    "GatherArgs",
    """
    const cost_t* __restrict__ cost  // [held, n]
    const long long* __restrict__ places  // [k]: row * n + column
    cost_t* found              // [k]
    long long k
    """,
)
SOFT_MINIMA_OF_ROWS_ARGS = parameter(
    "SoftMinimaOfRowsArgs",
    """
    const cost_t* __restrict__ cost  // [held, n]
    const double* __restrict__ v     // [n]
    double* least              // [held]
    double* sums               // [held]
    double scale               // log2(e) over the softness
    long long n
    int held
    int negate
    int wide                   // rows begin at multiples of 16 bytes
    """,
)

SOFT_MINIMA_OF_COLUMNS_ARGS = parameter(
    "SoftMinimaOfColumnsArgs",
    """
    const cost_t* __restrict__ cost  // [held, n]
    const double* __restrict__ u     // [held]
    double* least              // [pieces, n]
    double* sums               // [pieces, n]
    double scale
    long long n
    int held
    int piece                  // rows of a piece
    int negate
    """,
)
SIZES = f"constexpr int THREADS = {THREADS}, WARPS = {WARPS}, TOGETHER = {TOGETHER}, MOST = {MOST};"
KERNELS = (PRICE_ROWS_ARGS, LEAST_OF_COLUMNS_ARGS, JOIN_PIECES_ARGS, GATHER_ARGS, SOFT_MINIMA_OF_ROWS_ARGS,
           SOFT_MINIMA_OF_COLUMNS_ARGS)  # fmt: skip
CUDA = "\n".join([SIZES, *(kernel.text for kernel in KERNELS)])
