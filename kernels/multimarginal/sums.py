"""Three ways to sum a plan over two of its three sides; the same lines for NumPy and CuPy.

Potentials are held over reg, costs less their least. The plan is P = a b c exp(F + G + H - C / reg).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from kernels.problems.multimarginal import Multimarginal

FAR = 30.0
"""Of a potential over reg from the one for which a plan, or factors of one, are kept."""
ROOM = 420.0
"""Of the exponents of two factors together: products with the third stay within float64, below 10^183."""
SPLITS = (0.5, 1.0, 0.0)
"""How much of G may go with the costs from the first to the second measure."""
MOST_KEPT = 1 << 25
"""Entries of a plan that is kept, 256 MiB: a larger one is worked out in every iteration."""
BLOCK = 1 << 20
"""Entries of the tensor that are worked out together."""
LEAST = 1e-290
"""A sum below it may have lost what underflowed: a kept plan is made anew."""


class TripleSums(Protocol):
    """One way to work sums out."""

    def over_third(self, F: Any, G: Any, H: Any) -> tuple[Any, Any, Any]:
        """Logarithms of the first two marginals over a and b, as they are; and the G that is right for F - the first.

        The F that is right for G and H is F less the first.
        """

    def third(self, F: Any, G: Any) -> Any:
        """The H that makes the third marginal right."""


def least_of(problem: Multimarginal) -> float:
    """What is taken off the costs: the sum of the least entries of their parts."""
    return float(sum(part.min() for part in problem.parts))


class LoggedSums:
    """Sums of exponentials around the largest one, block by block: right at any reg, two exponentials an entry."""

    def __init__(self, xp: Any, problem: Multimarginal, reg: float) -> None:
        self.xp, self.reg, self.problem, self.least = xp, reg, problem, least_of(problem)
        with np.errstate(divide="ignore"):
            self.log_a, self.log_b, self.log_c = (xp.log(xp.asarray(side)) for side in problem.masses)

    def terms(self) -> Iterator[tuple[slice, Any]]:
        """(which of the first side, (some of l, m, n) -C / reg)."""
        rows, m, n = self.problem.sizes
        step = max(1, BLOCK // (m * n))
        for first in range(0, rows, step):
            some = slice(first, min(rows, first + step))
            yield some, (self.least - self.xp.asarray(self.problem.costs(some))) / self.reg

    def over_third(self, F: Any, G: Any, H: Any) -> tuple[Any, Any, Any]:
        """See `TripleSums`."""
        xp, (rows, m, _) = self.xp, self.problem.sizes
        S = xp.empty((rows, m))
        for some, terms in self.terms():
            terms += H + self.log_c
            S[some] = log_sum(xp, terms, 2)
        rows = log_sum(xp, S + (G + self.log_b), 1)
        columns = log_sum(xp, S + (F + self.log_a)[:, None], 0) + G
        return rows + F, columns, -log_sum(xp, S + (self.log_a - rows)[:, None], 0)

    def third(self, F: Any, G: Any) -> Any:
        """See `TripleSums`."""
        xp, (_, _, n) = self.xp, self.problem.sizes
        found = []
        for some, terms in self.terms():
            terms += (F + self.log_a)[some, None, None] + (G + self.log_b)[:, None]
            found.append(log_sum(xp, terms.reshape(-1, n), 0))
        return -log_sum(xp, xp.stack(found), 0)


class _About(ABC):
    """What is kept in memory about one triple of potentials, and multiplied by what has changed since.

    Once a potential is further than FAR from these, or a sum is near what underflows, it is made anew. Where it cannot
    be made, or still is near what underflows, `LoggedSums` works the sums out.
    """

    def __init__(self, xp: Any, problem: Multimarginal, reg: float) -> None:
        self.xp, self.problem, self.logged = xp, problem, LoggedSums(xp, problem, reg)
        self.a, self.b, self.c = (xp.asarray(side) for side in problem.masses)
        self.made: tuple[Any, Any, Any] | None = None

    def over_third(self, F: Any, G: Any, H: Any) -> tuple[Any, Any, Any]:
        """See `TripleSums`."""
        xp = self.xp
        for _ in range(2):
            if self.made is None and not self.keep(F, G, H):
                break
            F0, G0, H0 = self.made  # type: ignore[misc]
            near = not any(float(xp.abs(now - then).max()) > FAR for now, then in ((F, F0), (G, G0), (H, H0)))
            if near:
                S = self._over(self.c * xp.exp(H - H0))
                found = self._marginals(S, F - F0, G - G0)
                if found is not None:
                    rows, columns, right = found
                    return rows, columns, G0 - right
            self.made = None
        return self.logged.over_third(F, G, H)

    def third(self, F: Any, G: Any) -> Any:
        """See `TripleSums`."""
        xp = self.xp
        if self.made is not None:
            F0, G0, H0 = self.made
            if not any(float(xp.abs(now - then).max()) > FAR for now, then in ((F, F0), (G, G0))):
                sums = self._onto(self.a * xp.exp(F - F0), self.b * xp.exp(G - G0))
                if float(sums.min()) > LEAST:
                    return H0 - xp.log(sums)
            self.made = None
        return self.begin(F, G)

    def begin(self, F: Any, G: Any) -> Any:
        """The H of potentials that nothing is kept about."""
        return self.logged.third(F, G)

    def _marginals(self, S: Any, F: Any, G: Any) -> tuple[Any, Any, Any] | None:
        """Logarithms of both marginals and of what makes the second one right; F and G are what has changed."""
        xp = self.xp
        rows = S @ (self.b * xp.exp(G))
        if not float(rows.min()) > LEAST:
            return None
        columns, right = (self.a * xp.exp(F)) @ S, (self.a / rows) @ S
        if not min(float(columns.min()), float(right.min())) > LEAST:
            return None
        return xp.log(rows) + F, xp.log(columns) + G, xp.log(right)

    @abstractmethod
    def keep(self, F: Any, G: Any, H: Any) -> bool:
        """Make what is kept about these potentials; False where it cannot be."""

    @abstractmethod
    def _over(self, w: Any) -> Any:
        """Sums over the third side, which has these weights."""

    @abstractmethod
    def _onto(self, u: Any, v: Any) -> Any:
        """Sums onto the third side, of the first two with these weights."""


class Products(_About):
    """A plan as a product of three matrices' entries: an iteration is two products of matrices, and no tensor is made.

        exp(p_i + q_j - C12_ij)   exp(F_i - p_i + r_k - C13_ik)   exp(G_j - q_j + H_k - r_k - C23_jk)      C over reg

    q is a share of G, p = min (C12 - q) and r = min (C13 - F + p), so that entries of the first two are at most 1. An
    entry of the plan that matters is about 1 or more, so no factor of it is below exp(-ROOM). If C is from 0 to s over
    reg, potentials that were just worked out vary by s each, as a, b and c have the mass 1. The dual value is the sum
    of their means. Each step raises a mean by what it gains, so they come to s in all. The third is then at most exp(4
    s), and fits up to s = 100.
    """

    def __init__(self, xp: Any, problem: Multimarginal, reg: float) -> None:
        super().__init__(xp, problem, reg)
        self.costs = [xp.asarray((part - part.min()) / reg) for part in problem.pairs]
        self.factors: tuple[Any, Any, Any]

    def begin(self, F: Any, G: Any) -> Any:
        """See `_About`."""
        zero = self.xp.zeros(self.problem.sizes[2])
        if self.keep(F, G, zero):
            sums = self._onto(self.a, self.b)
            if float(sums.min()) > LEAST:
                return -self.xp.log(sums)
        self.made = None
        return self.logged.third(F, G)

    def pairs(self) -> tuple[Any, Any, Any]:
        """Sums over one side of the plan that is kept: (l, m), (l, n), (m, n)."""
        xy, xz, yz = self.factors
        u, v, w = self.a, self.b, self.c
        of_xy = xy * u[:, None] * v * ((xz * w) @ yz.T)
        of_xz = xz * u[:, None] * w * ((xy * v) @ yz)
        return of_xy, of_xz, yz * v[:, None] * w * ((xy * u[:, None]).T @ xz)

    def keep(self, F: Any, G: Any, H: Any) -> bool:
        """See `_About`."""
        xp, (xy, xz, yz) = self.xp, self.costs
        for share in SPLITS:
            q = share * G
            p = (xy - q).min(axis=1)
            rest = F - p
            r = (xz - rest[:, None]).min(axis=0)
            last = (G - q)[:, None] + (H - r) - yz
            if float(last.max()) <= ROOM:
                self.factors = xp.exp(p[:, None] + q - xy), xp.exp(rest[:, None] + r - xz), xp.exp(last)
                self.made = F, G, H
                return True
        return False

    def _over(self, w: Any) -> Any:
        xy, xz, yz = self.factors
        return xy * ((xz * w) @ yz.T)

    def _onto(self, u: Any, v: Any) -> Any:
        xy, xz, yz = self.factors
        return (((xy * u[:, None] * v).T @ xz) * yz).sum(axis=0)


class KeptPlan(_About):
    """A plan as a tensor: an iteration reads it twice, and is right at any reg."""

    def __init__(self, xp: Any, problem: Multimarginal, reg: float) -> None:
        super().__init__(xp, problem, reg)
        rows, m, n = problem.sizes
        self.flat = xp.empty((rows * m, n))

    def keep(self, F: Any, G: Any, H: Any) -> bool:
        """See `_About`."""
        whole = self.flat.reshape(*self.problem.sizes)
        for some, terms in self.logged.terms():
            terms += F[some, None, None] + G[:, None] + H
            whole[some] = self.xp.exp(terms)
        self.made = F, G, H
        return True

    def _over(self, w: Any) -> Any:
        return (self.flat @ w).reshape(*self.problem.sizes[:2])

    def _onto(self, u: Any, v: Any) -> Any:
        return (u[:, None] * v).reshape(-1) @ self.flat


def log_sum(xp: Any, terms: Any, axis: int) -> Any:
    """Logarithms of sums of exponentials along an axis."""
    top = terms.max(axis=axis, keepdims=True)
    terms = terms - top
    return xp.log(xp.exp(terms, out=terms).sum(axis=axis)) + top.squeeze(axis)


def make_sums(xp: Any, problem: Multimarginal, reg: float) -> TripleSums:
    """The fastest way that is right for this problem."""
    if problem.tensor is None:
        return Products(xp, problem, reg)
    return KeptPlan(xp, problem, reg) if math.prod(problem.sizes) <= MOST_KEPT else LoggedSums(xp, problem, reg)
