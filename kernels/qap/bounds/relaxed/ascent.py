"""Alternating directions on the semidefinite relaxation (Oliveira, Wolkowicz and Xu 2018), and a bound of any iterate.

    min <L, Y>  over  Y = W R W',  R positive semidefinite of trace n,  0 <= Y <= 1,  Y = 0 but for `open_entries`

      R <- the nearest matrix of the cone to  W' (Y + Z / beta) W
      Y <- W R W' - (L + Z) / beta,  cut to [0, 1] and to the open entries
      Z <- Z + step beta (Y - W R W'),  and so on

Between the first and the second step, Z + beta (Y - W R W') has the largest eigenvalue beta s inside the span, where s
is the shift of the projection. That makes a bound of every iterate: for any symmetric Z,

    <L, x x'> = <L + Z, x x'> - x' Z x >= (n^2 + 1 assignments under L + Z) - n lambda_max(W' Z W).

Differs from the paper: no border row, since the trace n says the same; the trace is kept by the projection; the
penalty beta begins high and is balanced in every iteration; and the minimum over Y uses assignments and not the box
alone, which is worth most early. So 20 iterations give what the box gives after 80.
"""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, frexp
from types import ModuleType
from typing import Any

import numpy as np

from kernels.problems import QuadraticAssignment
from kernels.qap.bounds.lower import Bound, round_up
from kernels.qap.bounds.relaxed.arithmetic import LiftedArithmetic
from kernels.qap.bounds.relaxed.cone import BySpectrum, Projection
from kernels.qap.bounds.relaxed.eigenvalue import exceeds, top
from kernels.qap.bounds.relaxed.leaders import priced
from kernels.qap.bounds.relaxed.lifted import Frame, open_entries, pair_costs

SMALLEST_N, LARGEST_N = 4, 128
PENALTY_FIRST = 60.0
"""Of beta, in units of n / 3."""
BITS = 30
"""Of the largest entry that evidence keeps."""
LARGEST = 2**49
"""Of evidence; and 16 n^3 times as much stays below 2^62, as do sums of assignments with barred pairs."""
MARGINS = (2.0**-34, 2.0**-27, 2.0**-23, 2.0**-20, 2.0**-17, 2.0**-12)
"""Added to the expected eigenvalue, as shares of the matrix's norm, until a factorisation shows that it is enough."""

HALVINGS = 6
"""Of what products leave open about that eigenvalue: without them .06% of the bound was lost at nug30."""


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
        factorise: Callable[[Any], Any] = np.linalg.cholesky,
        arithmetic: Any = None,
    ) -> None:
        self.problem, self._xp, self._dtype = problem, xp, np.dtype(dtype)
        self._project = BySpectrum() if project is None else project
        self._factorise, self._by = factorise, LiftedArithmetic(xp) if arithmetic is None else arithmetic
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
        size = float(self._by.norm(costs * self._top)) / n**2 or 1.0
        costs *= self._number(1 / size)
        self._costs, self._unit = costs, sides[0] * sides[1] * size
        self._frame = Frame(n, xp, self._dtype, self._by)
        self._y = self._top * self._number(1 / (n * (n - 1)))
        at = xp.arange(n * n)
        self._y[at, at] *= self._number(n - 1)
        self._z = xp.zeros_like(costs)
        self._half: Any = None
        self._next_beta = self._beta = self._by.number(PENALTY_FIRST * n / 3)
        self.steps, self.measured = 0, 0
        self.best: Bound | None = None

    def _number(self, value: float) -> Any:
        return self._dtype.type(value)

    def step(self) -> None:
        """One iteration."""
        by, n, beta = self._by, self.problem.n, self._next_beta
        self._project.shift = self._project.shift * (self._beta / beta)  # of Z / beta: its part in it is the larger one
        self._beta = beta
        inside = self._frame.inside(by.together(self._y, self._z, beta))
        lifted = self._frame.outside(self._project(inside, n))
        fixed = self._costs, self._top
        self._y, self._half, norms = by.advanced(self._y, self._z, lifted, fixed, beta)
        self._next_beta = by.balanced(norms, beta, n / 3)
        self.steps += 1

    def measure(self, threads: int = 1) -> Bound | None:
        """The bound of the present iterate, with the evidence of it; `best` keeps the better one."""
        self.measured += 1
        left, exponent, most = self._rounded_costs()
        largest, size = self._largest(left, exponent)
        # x' x = n: a multiple of the identity moves from the eigenvalue to the costs, and leaves it just above 0
        moved = -floor(largest)
        if most + abs(moved) > min(LARGEST, 2**62 // (16 * self.problem.n**3)):
            return None
        at = self._xp.arange(len(left))
        left[at, at] += moved
        narrow = left.astype(np.int32 if most + abs(moved) < 2**31 else np.int64)
        narrow = narrow.get() if hasattr(narrow, "get") else narrow
        permitted = np.ones((self.problem.n,) * 2, bool) if self.problem.forbidden is None else ~self.problem.forbidden
        prices, v, assigned = priced(narrow, permitted, threads)
        guess = largest + moved + size * MARGINS[0]
        raw = (Fraction(assigned) - self.problem.n * Fraction(guess + size * MARGINS[0])) * Fraction(2) ** exponent
        evidence = {
            "costs": narrow, "exponent": np.array(exponent), "prices": prices, "leaders": v,
            "eigenvalue": np.array(guess),
        }  # fmt: skip
        found = Bound("sdp", round_up(self.problem, ceil(raw)), float(raw), evidence)
        if self.best is None or found.raw > self.best.raw:
            self.best = found
        return found

    def _rounded_costs(self) -> tuple[Any, int, int]:
        """L + Z as int64 times 2^exponent, in units of the objective; at most 0, so that L is made of them too.

        The third is at least every |entry|.
        """
        xp = self._xp
        together = self._costs + self._half
        together = 0.5 * (together + together.T).astype(np.float64) * self._unit
        most = self._by.largest(together)
        exponent = min(0, frexp(most)[1] - BITS)
        together *= 2.0**-exponent
        return xp.rint(together).astype(np.int64), exponent, ceil(most * 2.0**-exponent)

    def _largest(self, left: Any, exponent: int) -> tuple[float, float]:
        """A number that the largest eigenvalue of W' Z W does not exceed, in units of 2^exponent; and the norm."""
        xp, problem = self._xp, self.problem
        flow, distance = (xp.asarray(m.astype(np.float64)) for m in (problem.flow, problem.distance))
        linear = np.zeros(flow.shape) if problem.linear is None else problem.linear.astype(np.float64)
        outside = pair_costs(flow, distance, xp.asarray(linear), xp)
        outside *= -(2.0**-exponent)
        outside += left
        inside = Frame(problem.n, xp, np.float64).inside(outside)
        inside = 0.5 * (inside + inside.T)
        size = float(self._by.norm(inside))
        if xp is np:  # the projection is exact there, and has seen it
            low = expected = self._beta * self._project.shift * self._unit * 2.0**-exponent
        else:
            low, expected = top(inside, xp)
        for margin in MARGINS:
            if exceeds(expected + size * margin, inside, self._factorise, xp):
                return self._lowered(low, expected + size * margin, size * MARGINS[0], inside), size
        return float(xp.linalg.eigvalsh(inside)[-1]) + size * MARGINS[0], size

    def _lowered(self, low: float, high: float, near: float, inside: Any) -> float:
        """As `high`, which no eigenvalue exceeds, and nearer to `low` unless it is near: n times it is lost."""
        for _ in range(HALVINGS):
            if high - low <= near:
                break
            between = 0.5 * (low + high)
            if exceeds(between, inside, self._factorise, self._xp):
                high = between
            else:
                low = between
        return high
