"""Costs between few points, rounded once unless they lie next to the middle of two floats: sums of two floats each.

Rounded costs tie where real ones differ in their last bits, and the certificate of points says so. What NumPy offers
beyond float64 takes 20 to 30 ns for each coordinate of a pair, and these loops a tenth of it. A sum of two floats is
Dekker's (Numer. Math. 18, 1971): the rounded number, and what it lacks. Nothing may be fused or reordered.
"""

import numpy as np

from kernels.compiling import njit
from kernels.lap.cpu.shortlist import inner
from kernels.lap.cpu.threads import in_threads, threads_for
from kernels.problems import metrics
from kernels.problems.arrays import Costs, Floats, untouched
from kernels.problems.metrics import DIRECTIONS, FINE, prepared

SQUARES, ROOT, SIZES = range(3)
KINDS = {"sqeuclidean": SQUARES, "euclidean": ROOT, "cityblock": SIZES, "cosine": SQUARES, "correlation": SQUARES}
SPLIT = 134217729.0
"""2^27 + 1: times this, less the rest, a float is cut in two halves whose products are exact (Veltkamp)."""
A_WAKE = 1 << 14
"""Coordinates of pairs that are worked out in the time that one more thread costs all others, some 30 us."""
SMALLEST = 1e-120
"""Of a root the squares stay in the range of float64 where a coordinate is larger."""


def costs(x: Costs, y: Costs, metric: str) -> Floats:
    """The costs (m, n) of points x (m, d) and y (n, d) in float64, as `kernels.problems.metrics.costs`."""
    pairs = len(x) * len(y) * x.shape[1]
    if pairs > FINE or metric not in KINDS or max(np.abs(x).max(), np.abs(y).max()) < SMALLEST:
        return metrics.costs(x, y, metric)
    (x_high, x_low), (y_high, y_low) = (_apart(cloud, metric) for cloud in (x, y))
    found = np.empty((len(x), len(y)))
    turned = untouched(np.ascontiguousarray(y_high.T)), untouched(np.ascontiguousarray(y_low.T))
    threads = threads_for(pairs, A_WAKE)
    ends = np.linspace(0, len(x), threads + 1).astype(np.int64).tolist()

    def write(piece: int) -> None:
        write_rows(KINDS[metric], ends[piece], ends[piece + 1], x_high, x_low, *turned, found)

    in_threads(write, range(threads), threads)
    return found / 2 if metric in DIRECTIONS else found


def _apart(cloud: Costs, metric: str) -> tuple[Floats, Floats]:
    """The prepared points: the rounded coordinates, and what they lack."""
    points = prepared(cloud, metric, np.longdouble if metric in DIRECTIONS else np.float64)
    high = np.ascontiguousarray(points, np.float64)
    return untouched(high), untouched(np.ascontiguousarray(points - high, np.float64))


@inner
def lack_of_square(value: float, square: float) -> float:
    """What a rounded square lacks of the real one, without error."""
    wide = SPLIT * value
    front = wide - (wide - value)
    end = value - front
    return ((front * front - square) + 2.0 * front * end) + end * end


@njit(cache=True, nogil=True, error_model="numpy")
def write_rows(
    kind: int, first: int, last: int, x: Floats, x_low: Floats, across: Floats, across_low: Floats, found: Floats
) -> None:
    """Costs of the rows from `first` to before `last`. `across`: (d, n)."""
    n = across.shape[1]
    lacks = np.empty(n)
    for i in range(first, last):
        line = found[i]
        for j in range(n):
            line[j] = lacks[j] = 0.0
        for k in range(x.shape[1]):
            own, own_low, other, other_low = x[i, k], x_low[i, k], across[k], across_low[k]
            for j in range(n):
                away = own - other[j]
                back = away - own
                left = (own - (away - back)) - (other[j] + back) + (own_low - other_low[j])
                step = away + left
                back = step - away
                low = (away - (step - back)) + (left - back)
                if kind == SIZES:
                    term, rest = (step, low) if step >= 0.0 else (-step, -low)
                else:
                    term = step * step
                    rest = lack_of_square(step, term) + 2.0 * step * low
                total = line[j] + term
                part = total - line[j]
                lacks[j] += ((line[j] - (total - part)) + (term - part)) + rest
                line[j] = total
        for j in range(n):
            total = line[j] + lacks[j]
            if kind == ROOT and total > 0.0:
                root = np.sqrt(total)
                square = root * root
                rest = lack_of_square(root, square)
                line[j] = root + (((line[j] - square) - rest) + lacks[j]) / (2.0 * root)
            else:
                line[j] = total


def warm_up() -> None:
    """Compile the loops, or load them from numba's cache."""
    for metric in KINDS:
        costs(np.ones((1, 2)), np.array([[1.0, 2.0], [2.0, 1.0]]), "sqeuclidean" if metric == "correlation" else metric)
