"""What the kernels that work out costs of points and their launches share: their arguments."""

from kernels.layout import parameter

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
CUDA = "\n".join(kernel.text for kernel in (DISTANCES_ARGS, OVERLAPS_ARGS))
