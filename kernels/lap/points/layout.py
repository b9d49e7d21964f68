"""What the kernels that work out costs of points and their launches share: their arguments."""

from kernels.layout import enumeration, parameter
from kernels.problems.metrics import METRICS

THREADS, ROWS, ACROSS = 64, 8, 4
"""Of a block, and rows and columns of a thread."""

CLOUDS = """
    const double* __restrict__ x       // [m, d]
    const double* __restrict__ turned  // [d, n]: y, turned
    double* __restrict__ cost          // [m, n]
    long long m
    long long n
"""

DISTANCES_ARGS = parameter(
    "DistancesArgs",
    CLOUDS
    + """
    int d
    int kind                           // as METRICS counts them
    int halved                         // of points of length 1
    """,
)
OVERLAPS_ARGS = parameter("OverlapsArgs", CLOUDS)
SIZES = f"constexpr int THREADS = {THREADS}, ROWS = {ROWS}, ACROSS = {ACROSS};"
KINDS = enumeration("Kind", tuple(name.upper() for name in METRICS))
CUDA = "\n".join([SIZES, KINDS, DISTANCES_ARGS.text, OVERLAPS_ARGS.text])
