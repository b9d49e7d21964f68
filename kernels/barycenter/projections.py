"""Iterative Bregman projections, batched over the measures; the same lines for NumPy and CuPy.

Potentials are held in units of reg: F (k, m), G (k, n). The plans are P_k = exp(F_k + G_k - C_k / reg) / (m n).

    repeat                                      one iteration
      step         G so that every column of every plan is right; log of the row sums r_k that follow
      meet         log b = sum_k w_k log r_k, and F_k += log b - log r_k: all plans get the row sums b

sum_k w_k F_k stays 0, so F and G are feasible for the dual problem at any time. Their dual value there is the sum reg
sum_k w_k <G_k, a_k>.
"""

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Floats
from kernels.problems.barycenter import Barycenter
from kernels.solution import Solution
from kernels.stages import Schedule, Stopping

if TYPE_CHECKING:
    from kernels.barycenter import BarycenterOptions

WIDEST = 150.0
"""Of the costs over reg: up to here exp(-C / reg) is stored, and its products stay within float64 (see `Stored`)."""
LOOK = 10
"""Iterations between two looks at the deadline and at how far the rows are apart."""
DEAREST = 3.0
"""Of the spread of the costs: what moving a unit of mass costs at most, about, entropic term included."""
FAR = 30.0
"""Of a potential over reg from the one for which plans are kept."""
MOST_KEPT = 1 << 27
"""Entries of all plans, a gibibyte: more are worked out in every iteration."""
FLOOR = 1e-12
"""Of the spread of the costs: objectives below it are taken for that."""


class Step(Protocol):
    """One way to work out columns and row sums."""

    def __call__(self, F: Any) -> tuple[Any, Any]:
        """(G, log r) for the row potentials F."""


class Stored:
    """exp(-C / reg) in memory: an iteration is two matrix products for all measures.

    Costs are taken less their least. The spread s = (max C - min C) / reg is at most WIDEST. log(K v) has a range of at
    most s, and F is a difference of a mean of such and one such: |F| is at most 2 s. So sums of products stay between
    exp(-4 s) and exp(4 s), 10^260, times the number of points.
    """

    def __init__(self, xp: Any, problem: Barycenter, reg: float) -> None:
        _, m, n = problem.sizes
        self.xp, self.a = xp, xp.asarray(problem.masses)
        self.least = float(problem.cost.min())
        cost = xp.asarray(problem.cost)
        self.kernel = xp.exp((self.least - cost) / reg) / (m * n)
        self.reg = reg

    def __call__(self, F: Any) -> tuple[Any, Any]:
        """(G, log r) for the row potentials F."""
        xp, kernel = self.xp, self.kernel
        u = xp.exp(F)
        if kernel.ndim == 2:
            v = self.a / (u @ kernel)
            rows = v @ kernel.T
        else:
            v = self.a / xp.matmul(u[:, None, :], kernel)[:, 0]
            rows = xp.matmul(kernel, v[:, :, None])[:, :, 0]
        with np.errstate(divide="ignore"):
            return xp.log(v) + self.least / self.reg, xp.log(rows) + F


class Logged:
    """Sums of exponentials around the largest one: right at any reg, an exponential per entry and measure."""

    def __init__(self, xp: Any, problem: Barycenter, reg: float) -> None:
        _, m, n = problem.sizes
        self.xp = xp
        with np.errstate(divide="ignore"):
            self.log_a = xp.log(xp.asarray(problem.masses))
        self.terms = -xp.asarray(problem.cost) / reg - np.log(m * n)

    def __call__(self, F: Any) -> tuple[Any, Any]:
        """(G, log r) for the row potentials F."""
        xp = self.xp
        G, rows = xp.empty_like(self.log_a), xp.empty_like(F)
        for k in range(len(F)):
            terms = self.terms if self.terms.ndim == 2 else self.terms[k]
            G[k] = self.log_a[k] - log_sum(xp, terms + F[k][:, None], 0)
            rows[k] = log_sum(xp, terms + G[k], 1) + F[k]
        return G, rows


class Absorbed:
    """Plans in memory, as of potentials F0 and G0: an iteration is two products with them, right at any reg.

    A row i of plan k is kept over its sum: K_kij = P_kij / r_ki with P = exp(F0 + G0 - C / reg) / (m n). No row of K
    is 0 then, however little mass the row has, and as the columns of P have the sums a, no column of K is 0 where a is
    not. Entries that underflow are below 10^-300 of their row. Once F is further than FAR from F0, K is made anew.
    """

    def __init__(self, xp: Any, problem: Barycenter, reg: float) -> None:
        self.xp, self.logged = xp, Logged(xp, problem, reg)
        self.a = xp.asarray(problem.masses)
        self.kernel: Any = None

    def __call__(self, F: Any) -> tuple[Any, Any]:
        """(G, log r) for the row potentials F."""
        xp = self.xp
        if self.kernel is None or float(xp.abs(F - self.F0).max()) > FAR:
            return self._anew(F)
        u = xp.exp(F - self.F0 + self.rows)
        sums = xp.matmul(u[:, None, :], self.kernel)[:, 0]
        v = xp.where(self.a > 0, self.a / xp.where(self.a > 0, sums, 1.0), 0.0)
        rows = xp.matmul(self.kernel, v[:, :, None])[:, :, 0]
        with np.errstate(divide="ignore"):
            return self.G0 + xp.log(v), xp.log(rows) + (F - self.F0) + self.rows

    def _anew(self, F: Any) -> tuple[Any, Any]:
        xp, terms = self.xp, self.logged.terms
        G, rows = self.logged(F)
        if self.kernel is None:
            self.kernel = xp.empty((len(F), *terms.shape[-2:]))
        for k in range(len(F)):
            own = terms if terms.ndim == 2 else terms[k]
            xp.add(own, (F[k] - rows[k])[:, None], out=self.kernel[k])
            self.kernel[k] += G[k]
            xp.exp(self.kernel[k], out=self.kernel[k])
        self.F0, self.G0, self.rows = F, G, rows
        return G, rows


def log_sum(xp: Any, terms: Any, axis: int) -> Any:
    """Logarithms of sums of exponentials along an axis."""
    top = terms.max(axis=axis, keepdims=True)
    terms = terms - top
    return xp.log(xp.exp(terms, out=terms).sum(axis=axis)) + top.squeeze(axis)


def make_step(xp: Any, problem: Barycenter, reg: float) -> Step:
    """The faster way that is right for this reg."""
    spread = float(problem.cost.max() - problem.cost.min())
    if spread <= WIDEST * reg:
        return Stored(xp, problem, reg)
    return Absorbed(xp, problem, reg) if math.prod(problem.sizes) <= MOST_KEPT else Logged(xp, problem, reg)


def project(xp: Any, problem: Barycenter, options: "BarycenterOptions", deadline: Deadline) -> Solution:
    """Iterate on the device of `xp`; see `kernels.barycenter.cpu.solver.solve`."""
    k, m, _ = problem.sizes
    w = xp.asarray(problem.weights)
    spread = float(problem.cost.max() - problem.cost.min())
    stop = Stopping(options.iterations, 0.5 * options.tolerance, deadline)
    F = xp.zeros((k, m))
    for reg in Schedule(problem.reg, spread):
        last = reg == problem.reg
        F, G, rows = _at(xp, problem, reg, F, w, stop, last)
        if last or stop.ended:
            break
        F = F * (reg / Schedule.after(reg, problem.reg))
    if reg != problem.reg:  # out of time on the way: potentials are costs, and stay what they are
        F = F * (reg / problem.reg)
        G, rows = make_step(xp, problem, problem.reg)(F)
    log_b, _ = _met(xp, rows, w)
    method = "entropic, stored kernel" if spread <= WIDEST * problem.reg else "entropic, log domain"
    arrays = _answer(xp, problem, log_b, F, G)
    facts = {"reg": problem.reg, "tolerance": float(options.tolerance)}
    return Solution(stop.word, method, arrays, stop.done, facts=facts)


def _at(xp: Any, problem: Barycenter, reg: float, F: Any, w: Any, stop: Stopping, last: bool) -> tuple[Any, Any, Any]:
    """Iterate at one reg until `stop` says that it is enough; F and what followed from it."""
    step = make_step(xp, problem, reg)
    spread = max(float(problem.cost.max() - problem.cost.min()), reg)
    a, begun = xp.asarray(problem.masses), stop.done
    while True:
        G, rows = step(F)
        stop.done += 1
        if (stop.done - begun) % LOOK == 1 or stop.done >= stop.most:
            _, apart = _met(xp, rows, w)
            value = reg * float((w[:, None] * a * xp.where(a > 0, G, 0.0)).sum())
            gap = DEAREST * spread * apart
            if stop.enough(value, gap, apart, max(abs(value), FLOOR * spread), last):
                return F, G, rows
        log_mean = w @ rows
        F = F + (log_mean - rows)


def _met(xp: Any, rows: Any, w: Any) -> tuple[Any, float]:
    """(log of the mean b of the row sums, how much of their mass is elsewhere than b, by weight)."""
    sums = xp.exp(rows)
    b = w @ sums
    apart = float((w[:, None] * xp.abs(sums - b)).sum()) / 2
    return xp.log(b / b.sum()), apart


def _answer(xp: Any, problem: Barycenter, log_b: Any, F: Any, G: Any) -> dict[str, Floats]:
    b, f, g = (hosted(xp, one) for one in (xp.exp(log_b), problem.reg * F, problem.reg * G))
    return {"barycenter": b / b.sum(), "f": f, "g": g}


def hosted(xp: Any, array: Any) -> Floats:
    """The array in memory of the host."""
    return np.asarray(array if xp is np else xp.asnumpy(array))
