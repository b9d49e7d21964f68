"""The profits of an auction: what prices p leave to each row, u_i = max(reject_i, max_j b_ij - p_j).

Whole profits are that number. Those of an optimum in floats may be off by what limits its gap. Other words promise
nothing of profits, so these may lose what a solver's arithmetic loses. That is a share of float64, or a step of a fixed
point with room for the prices of m rows and n columns: both are below 2^-50 (m + n + 2) of the largest number. Beside
such a word profits may also fall short by the stated violation, which says just that.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any

from kernels.certificates.exact.points import allowed, clouds
from kernels.certificates.exact.statement import Claim, Inputs, Statement, plain, rational

Rows = list[dict[int, Fraction]]
"""By row: its permitted columns and their benefits."""
STEPWISE = {"sqeuclidean": Fraction(0), "euclidean": Fraction(1, 2**530), "cityblock": Fraction(0)}
"""Metrics whose costs float64 knows to a share of each, and what squares that underflow lose for each coordinate."""
SMALLEST = Fraction(1, 2**1060)


@dataclass(frozen=True)
class Priced:
    """An auction at some prices, of which those below 0 count as 0. `reject` None: no row may stay free."""

    rows: Rows
    prices: list[Fraction]
    reject: list[Fraction] | None

    @cached_property
    def nets(self) -> list[Fraction | None]:
        """max(reject_i, max_j b_ij - p_j) of every row; None for one that has nothing to take."""
        prices = [max(price, Fraction(0)) for price in self.prices]
        found: list[Fraction | None] = []
        for i, row in enumerate(self.rows):
            offers = [benefit - prices[j] for j, benefit in row.items()]
            offers += [] if self.reject is None else [self.reject[i]]
            found.append(max(offers, default=None))
        return found

    def bound(self) -> Fraction | None:
        """sum_j p_j + sum_i max(reject_i, max_j b_ij - p_j); None where a row has nothing to take."""
        nets, known = self.nets, sum((max(price, Fraction(0)) for price in self.prices), Fraction(0))
        return None if None in nets else sum((net for net in nets if net is not None), known)


def check(
    claim: Claim, priced: Priced, inputs: Inputs, options: dict[str, Any], exact: bool, gap: Fraction
) -> Statement:
    """Whether the profits are what the prices leave. `gap` is what limits that of an optimum in floats.

    `exact` says that benefits and reject prices are integers. A row that has nothing to take may say anything.
    """
    profits, nets = claim.arrays["profits"], priced.nets
    if profits.shape != (len(nets),):
        return Statement("profits", False, f"they have the shape {profits.shape}, and there are {len(nets)} rows")
    told = [(profit, net) for profit, net in zip(profits.tolist(), nets, strict=True) if net is not None]
    if not all(isfinite(profit) for profit, _ in told):
        return Statement("profits", False, "the profit of a row is no number")
    off = [Fraction(profit) - net for profit, net in told]
    above, below = max([Fraction(0), *off]), -min([Fraction(0), *off])
    room, is_most = Fraction(0), True
    if not exact or any(claim.arrays[name].dtype.kind == "f" for name in ("prices", "profits")):
        room, is_most = _room(claim, priced, inputs, options, exact, gap)
    stated = 0 if claim.optimal else claim.max_violation or 0
    short = max(Fraction(0), rational(stated)) if isfinite(stated) else below if stated > 0 else Fraction(0)
    holds = below <= room + short and (above <= room or not is_most)
    words = f"the largest is {plain(above)} above what the prices leave, the least {plain(below)} below"
    return Statement("profits", holds, words)


def _room(
    claim: Claim, priced: Priced, inputs: Inputs, options: dict[str, Any], exact: bool, gap: Fraction
) -> tuple[Fraction, bool]:
    """What profits in floats may be off by, and whether that is said of those that are too large."""
    sizes = [abs(one) for row in priced.rows for one in row.values()]
    largest = max([*sizes, *map(abs, priced.reject or []), *map(abs, priced.prices), Fraction(int(exact))])
    room = largest * (len(priced.rows) + len(priced.prices) + 2) / 2**50 + SMALLEST
    gap = gap * 5 / 4  # a certificate may round the difference that it looks at, by an eighth of this at most
    if "benefit" in inputs:
        return gap if claim.optimal and not exact else max(gap, room), True
    points, _, metric = clouds(inputs, options)
    least = min((one for one in sizes if one), default=Fraction(1))
    lost = allowed(inputs, options, largest * len(priced.rows), least)
    if claim.optimal:
        return gap + lost, True
    if metric not in STEPWISE:  # sums that nearly vanish may lose any share of what is left
        return room + lost, False
    dimension = len(points[0])  # the box around all points, which a fixed point has room for, is so much wider
    return 4 * (dimension + 8) * room + dimension * STEPWISE[metric], True
