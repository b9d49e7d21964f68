"""The steps of `arithmetic.py`, one kernel each, without a look by the host.

Up to n = 30 a step's products take a device less time than sending a hundred launches takes the host. Numbers are
arrays without axes, float64, on the device.
"""

from typing import Any

import cupy as cp

from kernels.qap.bounds.relaxed.arithmetic import (
    BALANCE,
    NEAR_BALANCE,
    NOTHING,
    PENALTY_LEAST,
    PENALTY_MOVES,
    STEP,
    LiftedArithmetic,
)
from kernels.qap.bounds.relaxed.gpu_signs import Signs, squares

HALVES_FROM = 300
"""Order from which signs are found by products of half floats."""

_together = cp.ElementwiseKernel("T y, T z, float64 beta", "T found", "found = y + z * (T)(1.0 / beta)", "qap_together")
_advance = cp.ElementwiseKernel(
    "T lifted, T costs, T most, float64 beta",
    "T y, T z, T half, T apart, T moved",
    f"""
    const T before = y, over = (T)(1.0 / beta);
    half = z + (before - lifted) * (T)beta;
    T after = lifted - (costs + z) * over;
    after = after < (T)0 ? (T)0 : after;
    after = after > most ? most : after;
    y = after;
    apart = after - lifted;
    moved = after - before;
    z += apart * (T)({STEP} * beta);
    """,
    "qap_advance",
)
_balance = cp.ElementwiseKernel(
    "S apart, S of_y, S of_lifted, S moved, S of_z, float64 beta, float64 unit",
    "float64 next",
    f"""
    const double primal = sqrt((double)apart) / sqrt(fmax((double)of_y, (double)of_lifted));
    const double dual = beta * sqrt((double)moved) / fmax(sqrt((double)of_z), {NOTHING});
    next = beta;
    if (primal > {BALANCE} * {NEAR_BALANCE} * dual)
        next = beta * {PENALTY_MOVES};
    else if ({BALANCE} * dual > {NEAR_BALANCE} * primal)
        next = fmax(beta / {PENALTY_MOVES}, {PENALTY_LEAST} * unit);
    """,
    "qap_balance",
)
_chosen = cp.ElementwiseKernel(
    "raw T whole, raw int64 indices, int64 kept, int64 order",
    "T found",
    "found = whole[indices[i / kept] * order + indices[i % kept]]",
    "qap_chosen",
)
_spread = cp.ElementwiseKernel(
    "raw T inner, raw int64 places, int64 kept, int64 order",
    "T found",
    """
    const long long row = places[i / order], column = places[i % order];  // -1 where there is none
    found = row < 0 || column < 0 ? (T)0 : inner[row * kept + column];
    """,
    "qap_spread",
)
_less_diagonal = cp.ElementwiseKernel(
    "float64 shift, int64 order", "T entry", "if (i / order == i % order) entry -= (T)shift", "qap_less_diagonal"
)
_of_norm_one = cp.ElementwiseKernel(
    "T entry, S squares", "T found", "found = entry / (T)fmax(sqrt((double)squares), 1e-30)", "qap_of_norm_one"
)
_within_one = cp.ElementwiseKernel(
    "S eighths", "T found, T square",
    """
    const double size = sqrt(sqrt(sqrt((double)eighths))) * 1.001;  // from the sum of all eighth powers
    found /= (T)size;
    square /= (T)(size * size);
    """,
    "qap_within_one",
)  # fmt: skip
_lifting = cp.ElementwiseKernel(
    "float64 factor, float64 diagonal, int64 order",
    "T square",
    "square = square * (T)factor + (i / order == i % order ? (T)diagonal : (T)0)",
    "qap_lifting",
)
_diagonals = cp.ElementwiseKernel(
    "raw T matrix, raw T product, raw T sign, int64 order",
    "T of_both, T of_sign",
    "of_both = (T)0.5 * (matrix[i * (order + 1)] + product[i * (order + 1)]), of_sign = sign[i * (order + 1)]",
    "qap_diagonals",
)
_more = cp.ElementwiseKernel(
    "T of_both, T of_sign, float64 order, float64 trace",
    "float64 more",
    "more = ((double)of_both - trace) / fmax(1.0, 0.5 * ((double)of_sign + order))",
    "qap_more",
)
_projected = cp.ElementwiseKernel(
    "raw T matrix, raw T product, raw T sign, float64 more, int64 order",
    "T found",
    """
    const long long row = i / order, column = i % order, other = column * order + row;
    const T own = (row == column ? (T)2 : (T)0) + sign[i] + sign[other];
    found = (T)0.25 * (matrix[i] + matrix[other] + product[i] + product[other] - (T)more * own);
    """,
    "qap_projected",
)


class DeviceArithmetic(LiftedArithmetic):
    """As there, of matrices on a device."""

    def __init__(self) -> None:
        super().__init__(cp)
        self._places: dict[int, Any] = {}
        self._signs: Signs | None = None

    def number(self, value: float) -> Any:
        """See there."""
        return cp.array(value)

    def together(self, y: Any, z: Any, beta: Any) -> Any:
        """See there."""
        return _together(y, z, beta)

    def advanced(self, y: Any, z: Any, lifted: Any, fixed: tuple[Any, Any], beta: Any) -> tuple[Any, Any, Any]:
        """See there; the norms are squared."""
        half, apart, moved = (cp.empty_like(y) for _ in range(3))
        _advance(lifted, *fixed, beta, y, z, half, apart, moved)
        return y, half, [squares(one) for one in (apart, y, lifted, moved, z)]

    def balanced(self, norms: Any, beta: Any, unit: float) -> Any:
        """See there."""
        return _balance(*norms, beta, unit)

    def chosen(self, matrix: Any, indices: Any) -> Any:
        """See there."""
        kept = len(indices)
        return _chosen(matrix, indices, kept, len(matrix), cp.empty((kept, kept), matrix.dtype))

    def spread(self, matrix: Any, indices: Any, order: int) -> Any:
        """See there."""
        if order not in self._places:
            places = cp.full(order, -1)
            places[indices] = cp.arange(len(indices))
            self._places[order] = places
        return _spread(matrix, self._places[order], len(matrix), order, cp.empty((order, order), matrix.dtype))

    def less_diagonal(self, matrix: Any, shift: Any) -> Any:
        """See there."""
        return _less_diagonal(shift, len(matrix), matrix)

    def of_norm_one(self, matrix: Any) -> Any:
        """See there."""
        return _of_norm_one(matrix, squares(matrix))

    def within_one(self, found: Any, square: Any) -> tuple[Any, Any]:
        """See there."""
        _within_one(squares(self.product(square, square)), found, square)
        return found, square

    def lifting(self, square: Any, factor: float, diagonal: float) -> Any:
        """See there."""
        return _lifting(factor, diagonal, len(square), square)

    def signed(self, matrix: Any, smallest: float) -> tuple[Any, Any]:
        """See there; of float32, from an order on that pays, by half floats."""
        if matrix.dtype != cp.float32 or len(matrix) < HALVES_FROM:
            return super().signed(matrix, smallest)
        if self._signs is None or self._signs.order != len(matrix):
            self._signs = Signs(len(matrix))
        return self._signs(matrix, smallest)

    def projected(self, matrix: Any, product: Any, sign: Any, trace: float) -> tuple[Any, Any]:
        """See there."""
        order = len(matrix)
        diagonals = cp.empty((2, order), matrix.dtype)
        _diagonals(matrix, product, sign, order, *diagonals)
        of_both, of_sign = cp.matmul(diagonals, cp.ones(order, matrix.dtype))
        more = _more(of_both, of_sign, float(order), trace)
        return _projected(matrix, product, sign, more, order, cp.empty_like(matrix)), more
