"""Proof for a debiased divergence: the interval in which it lies, from those of the three values that it is made of.

D = V(a, b) - V(a, a) / 2 - V(b, b) / 2 + reg / 2 (sum a - sum b)^2 (Sejourne, Feydy, Vialard, Trouve, Peyre, Sinkhorn
divergences for unbalanced optimal transport, 2019, definition 4). Each value lies between its certified bound and
that plus its gap. Ends are worked out in fractions, from sums of masses rounded either way, and rounded outward once.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from kernels.certificates.rounded import down, share_up, sum_down, sum_up, up
from kernels.problems.arrays import Array
from kernels.problems.several import SeveralTransports
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate

Interval = tuple[Fraction, Fraction]


def debiased(problem: SeveralTransports, found: Certificate) -> Certificate:
    """The certificate of the divergences, from that of all the problems; the objective is the upper end."""
    listed = found.facts["problems"]
    count = len(problem.parts) // 3
    ends: list[tuple[float, float] | None] = []
    for k in range(count):
        values = [_interval(listed["bounds"][j], listed["gaps"][j]) for j in (k, k + count, k + 2 * count)]
        ends.append(_divergence(problem.parts[k], [value for value in values if value is not None]))
    known = [one for one in ends if one is not None]
    facts = {**found.facts, "divergences": [None if one is None else list(one) for one in ends]}
    proved = (
        f"each of {count} divergences lies between bound and objective, by the intervals of its three values, rounded"
        f" outward; {found.proved}"
    )
    if not known:
        return replace(found, objective=None, bound=None, gap_abs=None, gap_rel=None, facts=facts, proved=proved)
    bound, objective = sum_down([low for low, _ in known]), sum_up([high for _, high in known])
    gap = up(Fraction(objective) - Fraction(bound))
    return replace(
        found,
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=share_up(gap, objective, bound),
        facts=facts,
        proved=proved,
    )


def _interval(bound: float | None, gap: float | None) -> Interval | None:
    """Where a value lies; None where an end is missing. A gap holds what it costs to meet exact sides fully."""
    if bound is None or gap is None or not np.isfinite([bound, gap]).all():
        return None
    return Fraction(bound), Fraction(bound) + Fraction(gap)


def _divergence(between: UnbalancedTransport, values: list[Interval]) -> tuple[float, float] | None:
    if len(values) < 3:
        return None
    low, high = values[0]
    for least, most in values[1:]:
        low, high = low - most / 2, high - least / 2
    least, most = _apart(between.a, between.b)
    half = Fraction(between.reg) / 2
    return down(low + half * least), up(high + half * most)


def _apart(a: Array, b: Array) -> Interval:
    """Bounds on (sum a - sum b)^2."""
    low = Fraction(sum_down(a)) - Fraction(sum_up(b))
    high = Fraction(sum_up(a)) - Fraction(sum_down(b))
    squares = (low * low, high * high)
    return (Fraction(0) if low <= 0 <= high else min(squares)), max(squares)
