"""The sign of a symmetric matrix on a device, by the units for half floats, with nearly all digits of float32.

A number times 2^8 is the sum of two half floats (22 digits), so a product is three of theirs: the fourth, of both
remainders, is below rounding. They are one product of three times the length: a matrix is kept as [h | h | l | h], and
blocks 0 to 2 of the left one meet blocks 1 to 3 of the right one, which makes h h + h l + l h. Every matrix here is
symmetric, so that the same rows serve on either side. Half floats have twice the rate of TF32. Rows are padded with
zeros, so that each begins where a tensor core can read it.

Source: H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
theoretical peak performance", International Journal of High Performance Computing Applications 36 (2022).
"""

from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda import cublas, device

from kernels.qap.bounds.relaxed.arithmetic import liftings

TILE = 32
"""Rows are a multiple of so many entries long, and a matrix meets its transpose in tiles of so many."""
SCALE = 256.0
"""Of entries before they are halves: those of a matrix of norm 1 are 1 at most, and of each 2^-25 / SCALE is lost."""
BLOCKS = 4
HALF, FLOAT, DEFAULT = 2, 0, -1
"""CUDA_R_16F, CUDA_R_32F and CUBLAS_GEMM_DEFAULT."""
_SCALED_BACK, _ZERO = np.array(SCALE**-2, np.float32), np.array(0, np.float32)
_WRITE = f"""
    const float16 high = (float16)scaled;
    const float16 low = (float16)(scaled - (float)high);
    const long long at = row * {BLOCKS} * wide + column;
    halves[at] = high;
    halves[at + wide] = high;
    halves[at + 2 * wide] = low;
    halves[at + 3 * wide] = high;
"""
_halve = cp.ElementwiseKernel(
    "raw float32 matrix, raw float64 factor, int64 order, int64 columns, int64 wide",
    "raw float16 halves",
    f"""
    const long long in_tile = i % {TILE * TILE}, tile = i / {TILE * TILE}, across = wide / {TILE};
    const long long row = tile / across * {TILE} + in_tile / {TILE}, column = tile % across * {TILE} + i % {TILE};
    float scaled = 0.0f;
    if (row < order && column < order)  // what the two halves of a matrix differ by grows with each step
        scaled = (matrix[row * columns + column] + matrix[column * columns + row]) * (float)({SCALE / 2} * factor[0]);
    {_WRITE}
    """,
    "qap_halve",
)
_lift = cp.ElementwiseKernel(
    "float32 entry, float64 over, float64 factor, float64 diagonal, int64 order, int64 wide",
    "raw float16 halves",
    f"""
    const long long row = i / wide, column = i % wide;
    const float more = row == column && row < order ? (float)({SCALE} * diagonal) : 0.0f;
    const float scaled = entry * (float)({SCALE} * factor * over * over) + more;
    {_WRITE}
    """,
    "qap_lift_halves",
)
_over_norm = cp.ElementwiseKernel(
    "float32 squares", "float64 found", "found = 1.0 / fmax(sqrt((double)squares), 1e-30)", "qap_over_norm"
)
_over_size = cp.ElementwiseKernel(
    "float32 eighths",
    "float64 found",
    "found = 1.0 / fmax(1.001 * sqrt(sqrt(sqrt((double)eighths))), 1e-30)",
    "qap_over_size",
)
_narrow = cp.ElementwiseKernel(
    "raw float32 whole, float64 over, int64 order, int64 wide",
    "float32 found",
    "found = whole[i / order * wide + i % order] / (float)over",
    "qap_narrow",
)


class Signs:
    """Of symmetric float32 matrices of one order, in memory of its own: 24 bytes an entry.

    Args:
        order: rows and columns, m.
    """

    def __init__(self, order: int) -> None:
        self.order, self.wide = order, -(-order // TILE) * TILE
        self._left, self._right = (cp.empty((self.wide, BLOCKS * self.wide), cp.float16) for _ in range(2))
        self._whole, self._square = (cp.empty((self.wide, self.wide), cp.float32) for _ in range(2))
        self._one = cp.ones((), cp.float64)

    def __call__(self, matrix: Any, smallest: float) -> tuple[Any, Any]:
        """sign(matrix) and matrix @ sign(matrix), (m, m) float32: see `LiftedArithmetic.signed`."""
        left, right, whole, square, one = self._left, self._right, self._whole, self._square, self._one
        over = _over_norm(squares(matrix))
        self._halve(matrix, over, left)
        _multiply(left, left, square)
        self._halve(square, one, right)
        _multiply(right, right, whole)
        over_size = _over_size(squares(whole))
        scale = over * over_size
        self._halve(matrix, scale, left)
        for k, (factor, diagonal) in enumerate(liftings(smallest)):
            if k:
                self._halve(whole, one, left)
                _multiply(left, left, square)
            _lift(square, one if k else over_size, factor, diagonal, self.order, self.wide, right)
            _multiply(left, right, whole)
        sign = self._narrowed(one)
        self._halve(whole, one, left)
        self._halve(matrix, scale, right)
        _multiply(right, left, whole)
        return sign, self._narrowed(scale)

    def _halve(self, matrix: Any, factor: Any, halves: Any) -> None:
        _halve(matrix, factor, self.order, len(matrix), self.wide, halves, size=self.wide**2)

    def _narrowed(self, over: Any) -> Any:
        """The product without what it was padded with, divided by a number."""
        return _narrow(self._whole, over, self.order, self.wide, cp.empty((self.order, self.order), cp.float32))


def _multiply(left: Any, right: Any, into: Any) -> None:
    """into = left @ right, for matrices of halves; by columns, as the library has them, these are their transposes."""
    wide = len(into)
    cublas.gemmEx(
        device.get_cublas_handle(), cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, wide, wide, (BLOCKS - 1) * wide,
        _SCALED_BACK.ctypes.data, right.data.ptr + wide * right.itemsize, HALF, BLOCKS * wide,
        left.data.ptr, HALF, BLOCKS * wide, _ZERO.ctypes.data, into.data.ptr, FLOAT, wide,
        cublas.CUBLAS_COMPUTE_32F, DEFAULT,
    )  # fmt: skip


def squares(matrix: Any) -> Any:
    """The sum of squares, by a library: CuPy's own sums are compiled anew for each size, for seconds."""
    flat = matrix.reshape(-1)
    return cp.dot(flat, flat)
