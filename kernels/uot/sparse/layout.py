"""What the kernel of soft maxima and its launch share: its arguments."""

from kernels.layout import parameter

THREADS = 256
"""Of a block: eight lines at a time."""

SOFT_MAXIMA_ARGS = parameter(
    "SoftMaximaArgs",
    """
    const long long* __restrict__ starts  // [count + 1]
    const int* __restrict__ ends          // [nnz]
    const double* __restrict__ cost       // [nnz]
    const double* __restrict__ value      // one for each line of the other side
    double* __restrict__ out              // [count]
    long long count
    double scale
    """,
)
CUDA = "\n".join([f"constexpr int THREADS = {THREADS};", SOFT_MAXIMA_ARGS.text])
