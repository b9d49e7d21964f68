"""Sums of E_ijk = exp((f_i + g_j + h_k - C_ijk) / reg), with a bound on what rounding does to each.

Every sum is of terms that are not negative, with weights of mass 1 at most in all. What is worked out, s, and the true
sum t differ by relative * t + TINY at most. The parts of `relative`, with u = 2^-53 and Z = max |f| + |g| + |h| + |C|:
    an exponent     a dozen operations on numbers of size 7 Z / reg at most: off by 64 u Z / reg, which exp amplifies
    exp             4 u of itself (transport_elementary.py), three times at most
    products, sums  u each: l + m + n + 32 in all, for sums are nested, in any order and with or without fused
                    operations (Higham 2002, sections 3.1 and 4.2; terms of one sign)
    the masses      quotients within 3 u of the true ones, three of them
`Factored` writes E as a product of three matrices' entries, so that sums are products of matrices. Exponents below
LOWEST are taken for it, and products may underflow: either loses less than e^LOWEST times the largest that the other
factors can be. As two factors are e^ROOM at most together, that is below e^-280. `Whole` takes an exponential for each
entry; those of exponents below LOWEST are off by less than e^LOWEST.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from kernels.certificates.transport_elementary import LOWEST, exp_pair, expm1_up
from kernels.problems.arrays import Array
from kernels.problems.multimarginal import Multimarginal
from kernels.solution import unheard

UNIT = 2.0**-53
TINY = 1e-110
"""Above e^-280, 1e-121.6, and above 2^26 times what a product of 2^-1022 with the other factors may be, 1e-117."""
ROOM = 420.0
"""Of the exponents of two factors together."""
TOP = 690.0
"""Of an exponent: potentials that make larger ones are far from those of any plan."""
COARSEST = 5e-4
"""Of an exponent: potentials so large that rounding moves it by more are far from any plan's."""
BLOCK = 1 << 16
"""Entries of E that are worked out together."""
HELD = 1 << 24
"""Entries of E that are kept from one sum to the next, 128 MiB."""

Potentials = tuple[Array, Array, Array]


class Sums(Protocol):
    """One way to sum."""

    relative: float

    def over_third(self, w: Array) -> Array:
        """(l, m): sums over k of E_ijk w_k."""

    def third(self, u: Array, v: Array) -> Array:
        """(n,): sums over i and j of u_i v_j E_ijk."""

    def pairs(self, u: Array, v: Array, w: Array) -> tuple[Array, Array, Array]:
        """(l, m), (l, n), (m, n): sums of u_i v_j w_k E_ijk over the side that is missing."""


class Factored:
    """E as exp(p_i + q_j - C12_ij), exp(f_i - p_i + r_k - C13_ik), exp(g_j - q_j + h_k - r_k - C23_jk), all over reg.

    Any p, q and r may be taken. With q a share of g, p = min (C12 - q) and r = min (C13 - f + p) two exponents are at
    most 0 but for rounding. These numbers are of size 3 Z at most, and their sums of 7 Z.
    """

    def __init__(self, problem: Multimarginal, found: Potentials, relative: float) -> None:
        self.relative, self.fits = relative, False
        (f, g, h), (first, second, third), reg = found, problem.pairs, problem.reg
        for share in (1.0, 0.5, 0.0):
            q = share * g
            p = (first - q).min(axis=1)
            rest = f - p
            r = (second - rest[:, None]).min(axis=0)
            exponents = p[:, None] + q - first, rest[:, None] + r - second, (g - q)[:, None] + (h - r) - third
            tops = sorted(max(float(one.max()) / reg, 0.0) for one in exponents)
            if tops[1] + tops[2] <= ROOM:
                self.fits = True
                self.xy, self.xz, self.yz = (exp(one / reg) for one in exponents)
                return

    def over_third(self, w: Array) -> Array:
        """See `Sums`."""
        return np.asarray(self.xy * ((self.xz * w) @ self.yz.T))

    def third(self, u: Array, v: Array) -> Array:
        """See `Sums`."""
        return np.asarray((((self.xy * u[:, None] * v).T @ self.xz) * self.yz).sum(axis=0))

    def pairs(self, u: Array, v: Array, w: Array) -> tuple[Array, Array, Array]:
        """See `Sums`."""
        xy = self.over_third(w) * u[:, None] * v
        xz = self.xz * u[:, None] * w * ((self.xy * v) @ self.yz)
        yz = self.yz * v[:, None] * w * ((self.xy * u[:, None]).T @ self.xz)
        return xy, xz, yz


class Whole:
    """E entry by entry, block by block."""

    def __init__(
        self, problem: Multimarginal, found: Potentials, relative: float, progress: Callable[[float], None]
    ) -> None:
        self.problem, self.found, self.relative, self.progress = problem, found, relative, progress
        self.held: list[Array] | None = None
        self.highest = -np.inf
        rows, m, n = problem.sizes
        if rows * m * n <= HELD:
            self.held = [block for _, block in self._made()]

    @property
    def fits(self) -> bool:
        """Whether no exponent that was met is too large."""
        return self.highest <= TOP

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """(some of the first side, (some of l, m, n) E)."""
        if self.held is None:
            return self._made()
        return zip(slices(self.problem), self.held, strict=True)

    def _made(self) -> Iterator[tuple[slice, Array]]:
        for some in slices(self.problem):
            z = exponents(self.problem, self.found, some)
            self.highest = max(self.highest, float(z.max()))
            yield some, exp(z)
            self.progress(some.stop / self.problem.sizes[0])

    def over_third(self, w: Array) -> Array:
        """See `Sums`."""
        return np.concatenate([block @ w for _, block in self.blocks()])

    def third(self, u: Array, v: Array) -> Array:
        """See `Sums`."""
        total = np.zeros(self.problem.sizes[2])
        for some, block in self.blocks():
            total += u[some] @ np.matmul(v, block)
        return total

    def pairs(self, u: Array, v: Array, w: Array) -> tuple[Array, Array, Array]:
        """See `Sums`."""
        xy, xz, yz = [], [], np.zeros(self.problem.sizes[1:])
        for some, block in self.blocks():
            weighted = block * u[some, None, None] * v[:, None] * w
            xy.append(weighted.sum(axis=2))
            xz.append(weighted.sum(axis=1))
            yz += weighted.sum(axis=0)
        return np.concatenate(xy), np.concatenate(xz), yz


def slices(problem: Multimarginal) -> Iterator[slice]:
    """Blocks of the first side."""
    rows, m, n = problem.sizes
    step = max(1, BLOCK // (m * n))
    return (slice(first, min(rows, first + step)) for first in range(0, rows, step))


def exponents(problem: Multimarginal, found: Potentials, some: slice) -> Array:
    """(some of l, m, n): f + g + h - C over reg."""
    f, g, h = found
    return np.asarray((f[some, None, None] + g[:, None] + h - problem.costs(some)) / problem.reg)


def exp(z: Array) -> Array:
    """Those below LOWEST as of LOWEST, those above TOP as of TOP: whoever asks finds out about these."""
    found, _ = exp_pair(np.clip(z, LOWEST, TOP))
    return found


def make(problem: Multimarginal, found: Potentials, progress: Callable[[float], None] = unheard) -> Sums | None:
    """The sums of these potentials, by products of matrices where they fit; None where they are far from any plan."""
    size = sum(float(np.abs(one).max()) for one in found) + problem.largest
    rows, m, n = problem.sizes
    off = 64 * UNIT * size / problem.reg
    if not off <= COARSEST:
        return None
    relative = 1.01 * float(expm1_up(np.array(off))) + 2.0**-45 + 4 * UNIT * (rows + m + n + 32)
    if problem.tensor is None:
        factored = Factored(problem, found, relative)
        if factored.fits:
            return factored
    whole = Whole(problem, found, relative, progress)
    if whole.held is None:
        for _ in whole.blocks():  # looks at every exponent
            pass
    return whole if whole.fits else None
