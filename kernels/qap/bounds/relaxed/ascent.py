"""Alternating directions on the semidefinite relaxation (Oliveira, Wolkowicz and Xu 2018), and a bound of any iterate.

    min <L, Y>  over  Y = W R W',  R positive semidefinite of trace n,  0 <= Y <= 1,  Y = 0 but for `open_entries`

      R <- the nearest matrix of the cone to  W' (Y + Z / beta) W
      Y <- W R W' - (L + Z) / beta,  cut to [0, 1] and to the open entries
      Z <- Z + step beta (Y - W R W'),  and so on

Between the first and the second step, Z + beta (Y - W R W') has the largest eigenvalue beta s inside the span, where s
is the shift of the projection. That makes a bound of every iterate: for any symmetric Z,

    <L, x x'> = <L + Z, x x'> - x' Z x >= (n^2 + 1 assignments under L + Z) - n lambda_max(W' Z W).

Differs from the paper: no border row, since the trace n says the same; the trace is kept by the projection; the
penalty beta begins high and falls; and the minimum over Y uses assignments and not the box alone, which is worth most
early. So 20 iterations give what the box gives after 80.
"""

from fractions import Fraction
from math import ceil, floor, frexp
from types import ModuleType
from typing import Any

import numpy as np

from kernels.problems import Array, QuadraticAssignment
from kernels.qap.bounds.lower import Bound, round_up
from kernels.qap.bounds.relaxed.cone import BySpectrum, Projection
from kernels.qap.bounds.relaxed.leaders import priced
from kernels.qap.bounds.relaxed.lifted import Frame, open_entries, pair_costs

SMALLEST_N, LARGEST_N = 4, 128
STEP = 1.618
PENALTY_FIRST, PENALTY_FALLS, PENALTY_LAST = 60.0, 0.92, 1.2
"""Of beta, in units of n / 3: at first, by what it falls an iteration, and where it stays."""
BITS = 30
"""Of the largest entry that evidence keeps."""
LARGEST = 2**49
"""Of evidence; and 16 n^3 times as much stays below 2^62, as do sums of assignments with barred pairs."""
MARGINS = (2.0**-34, 2.0**-24, 2.0**-18, 2.0**-12)
"""Added to the expected eigenvalue, as shares of the matrix's norm, until a factorisation shows that it is enough."""


def fits(problem: QuadraticAssignment) -> bool:
    """True when the data are integers, of a size that leaves room for sums of assignments, and n is in range."""
    if not (problem.integer and SMALLEST_N <= problem.n <= LARGEST_N):
        return False
    largest = 2 * int(np.abs(problem.flow).max()) * int(np.abs(problem.distance).max())
    if largest == 0:
        return False
    largest += 0 if problem.linear is None else int(np.abs(problem.linear).max())
    return 64 * problem.n**3 * max(largest, 2**BITS) < 2**62


class Ascent:
    """The iteration under way.

    Attributes:
        steps: iterations so far.
        measured: how often a bound was made of one.
        best: the best bound so far, None before the first `measure`.
    """

    def __init__(
        self,
        problem: QuadraticAssignment,
        xp: ModuleType = np,
        project: Projection | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.problem, self._xp, self._dtype = problem, xp, np.dtype(dtype)
        self._project = BySpectrum() if project is None else project
        n = problem.n
        sides = [float(np.abs(m).max()) for m in (problem.flow, problem.distance)]
        scaled = (m / s for m, s in zip((problem.flow, problem.distance), sides, strict=True))
        flow, distance = (xp.asarray(m.astype(self._dtype)) for m in scaled)
        linear = np.zeros((n, n)) if problem.linear is None else problem.linear / (sides[0] * sides[1])
        if problem.forbidden is not None:
            linear = np.where(problem.forbidden, 0.0, linear)
        costs = pair_costs(flow, distance, xp.asarray(linear.astype(self._dtype)), xp)
        self._open = xp.asarray(open_entries(problem))
        self._top = self._open.astype(self._dtype)
        size = float(xp.linalg.norm(costs * self._top)) / n**2 or 1.0
        costs *= self._number(1 / size)
        self._costs, self._unit = costs, sides[0] * sides[1] * size
        self._frame = Frame(n, xp, self._dtype)
        self._y = self._top * self._number(1 / (n * (n - 1)))
        at = xp.arange(n * n)
        self._y[at, at] *= self._number(n - 1)
        self._z = xp.zeros_like(costs)
        self._half: Any = None
        self._beta, self.steps, self.measured = 0.0, 0, 0
        self.best: Bound | None = None

    def _number(self, value: float) -> Any:
        return self._dtype.type(value)

    def step(self) -> None:
        """One iteration."""
        xp, n, number = self._xp, self.problem.n, self._number
        falls = PENALTY_FIRST * PENALTY_FALLS**self.steps
        beta = self._beta = max(PENALTY_LAST, falls) * n / 3
        inside = self._frame.inside(self._y + self._z * number(1 / beta))
        lifted = self._frame.outside(self._project(inside, n))
        self._half = self._z + (self._y - lifted) * number(beta)
        self._y = lifted - (self._costs + self._z) * number(1 / beta)
        xp.maximum(self._y, number(0), out=self._y)
        xp.minimum(self._y, self._top, out=self._y)
        self._z += (self._y - lifted) * number(STEP * beta)
        self.steps += 1

    def measure(self, threads: int = 1) -> Bound | None:
        """The bound of the present iterate, with the evidence of it; `best` keeps the better one."""
        self.measured += 1
        left, exponent = self._rounded_costs()
        largest, size = self._largest(left, exponent)
        # x' x = n: a multiple of the identity moves from the eigenvalue to the costs, and leaves it just above 0
        moved = -floor(largest)
        left[np.diag_indices_from(left)] += moved
        if int(np.abs(left).max()) > min(LARGEST, 2**62 // (16 * self.problem.n**3)):
            return None
        permitted = np.ones((self.problem.n,) * 2, bool) if self.problem.forbidden is None else ~self.problem.forbidden
        prices, v, assigned = priced(left, permitted, threads)
        guess = largest + moved + size * MARGINS[0]
        raw = (Fraction(assigned) - self.problem.n * Fraction(guess + size * MARGINS[0])) * Fraction(2) ** exponent
        narrow = np.int32 if int(np.abs(left).max()) < 2**31 else np.int64
        evidence = {
            "costs": left.astype(narrow), "exponent": np.array(exponent), "prices": prices, "leaders": v,
            "eigenvalue": np.array(guess),
        }  # fmt: skip
        found = Bound("sdp", round_up(self.problem, ceil(raw)), float(raw), evidence)
        if self.best is None or found.raw > self.best.raw:
            self.best = found
        return found

    def _rounded_costs(self) -> tuple[Array, int]:
        """L + Z as integers times 2^exponent, in units of the objective; at most 0, so that L is made of them too."""
        together = self._costs + self._half
        together = 0.5 * (together + together.T)
        host = (together.get() if hasattr(together, "get") else together).astype(np.float64) * self._unit
        exponent = min(0, frexp(float(np.abs(host).max()))[1] - BITS)
        return np.rint(np.ldexp(host, -exponent)).astype(np.int64), exponent

    def _largest(self, left: Array, exponent: int) -> tuple[float, float]:
        """A number that the largest eigenvalue of W' Z W does not exceed, in units of 2^exponent; and the norm."""
        xp, problem = self._xp, self.problem
        flow, distance = (xp.asarray(m.astype(np.float64)) for m in (problem.flow, problem.distance))
        linear = np.zeros(flow.shape) if problem.linear is None else problem.linear.astype(np.float64)
        exact = pair_costs(flow, distance, xp.asarray(linear), xp)
        exact *= 2.0**-exponent
        inside = Frame(problem.n, xp, np.float64).inside(xp.asarray(left.astype(np.float64)) - exact)
        inside = 0.5 * (inside + inside.T)
        size = float(xp.linalg.norm(inside))
        if xp is np:
            expected = self._beta * self._project.shift * self._unit * 2.0**-exponent
            for margin in MARGINS:
                if _exceeds(expected + size * margin, inside):
                    return expected + size * margin, size
        return float(xp.linalg.eigvalsh(inside)[-1]) + size * MARGINS[0], size


def _exceeds(value: float, matrix: Array) -> bool:
    """Whether a factorisation finds value - matrix positive definite."""
    try:
        np.linalg.cholesky(value * np.eye(len(matrix)) - matrix)
    except np.linalg.LinAlgError:
        return False
    return True
