"""Products of float32 matrices by the units for matrices of half the digits, with nearly all digits of float32.

A number is the sum of two of TF32 (11 digits each), so a product is three of theirs: the fourth, of both remainders, is
below rounding. On an H100 TF32 has ten times the rate of float32 and more. By one product of TF32 alone the
semidefinite bound of nug20 stays .9% lower (docs/notes/qap.md).
"""

from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda import cublas, device

SPLIT_FROM = 1600
"""Order from which three products and the splitting take less time than one of float32."""
FLOAT32, DEFAULT = 0, -1
"""CUDA_R_32F and CUBLAS_GEMM_DEFAULT."""
_ONE, _ZERO = np.array(1, np.float32), np.array(0, np.float32)
_split = cp.ElementwiseKernel(
    "float32 x",
    "float32 high, float32 low",
    "high = __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u); low = x - high;",
    "qap_split",
)


def product(left: Any, right: Any) -> Any:
    """left @ right; of large square matrices of float32 by three products of TF32."""
    order = len(left)
    if left.dtype != cp.float32 or order < SPLIT_FROM or (left.shape, right.shape) != ((order, order),) * 2:
        return cp.matmul(left, right)
    left, right = cp.ascontiguousarray(left), cp.ascontiguousarray(right)
    high, low = _split(left)
    other_high, other_low = (high, low) if right is left else _split(right)
    found = cp.empty_like(left)
    for one, other, kept in ((low, other_high, _ZERO), (high, other_low, _ONE), (high, other_high, _ONE)):
        _add(one, other, kept, found)
    return found


def _add(left: Any, right: Any, kept: Any, into: Any) -> None:
    """into = left @ right + kept into. By columns, as the library has them, a matrix by rows is its transpose."""
    order, plain = len(left), cublas.CUBLAS_OP_N
    cublas.gemmEx(
        device.get_cublas_handle(), plain, plain, order, order, order, _ONE.ctypes.data,
        right.data.ptr, FLOAT32, order, left.data.ptr, FLOAT32, order, kept.ctypes.data,
        into.data.ptr, FLOAT32, order, cublas.CUBLAS_COMPUTE_32F_FAST_TF32, DEFAULT,
    )  # fmt: skip
