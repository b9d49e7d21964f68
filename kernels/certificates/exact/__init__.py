"""A third, slow implementation of the certificates, to be read: whole numbers and 60 decimal digits, nothing else.

NumPy reads the arrays; all arithmetic is Python's integers, fractions and decimals. Nothing here is shared with a
solver or with the certificates that answer jobs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.certificates.exact import assignment, auction, quadratic, transport
from kernels.certificates.exact.statement import Claim, Inputs, Statement
from kernels.problems.arrays import Array, Csr

__all__ = ["Claim", "Statement", "recheck"]


def recheck(solver: str, inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Say of each statement of an answer whether it holds, from the problem as it was given.

    Args:
        inputs: arrays by name; +inf in a cost and -inf in a benefit or in a cost to maximise forbid the entry.
        options: the job's options by name; those left out have their defaults.
    """
    given = dict(options)
    if solver == "auction":
        if given.get("allow_unassigned") and "reject" not in inputs:
            inputs = {**inputs, "reject": _zeros(inputs)}
        return auction.check(inputs, given, claim)
    if solver == "uot":
        return transport.check(inputs, given, claim)
    if solver == "qap":
        fixed = {int(i): int(k) for i, k in (given.get("fixed") or {}).items()}
        return quadratic.check(inputs, fixed, claim)
    cost = inputs["cost"]
    assert not isinstance(cost, Csr)
    if cost.ndim == 2:
        return assignment.check(inputs, bool(given.get("maximize")), claim)
    return _batch(inputs, bool(given.get("maximize")), claim)


def _batch(inputs: Inputs, maximize: bool, claim: Claim) -> list[Statement]:
    """Each problem of a batch by itself, as far as the facts say what is claimed of it."""
    cost = inputs["cost"]
    assert not isinstance(cost, Csr)
    sizes = inputs.get("sizes")
    parts = _parts(claim, len(cost))
    said = []
    for k, part in enumerate(parts):
        rows, columns = cost.shape[1:] if sizes is None else sizes[k].tolist()  # type: ignore[index]
        arrays = {name: _own(array[k], rows, columns, name) for name, array in claim.arrays.items()}
        one = replace(part, arrays=arrays)
        listed = "objectives" in claim.facts
        for statement in assignment.check({"cost": cost[k, :rows, :columns]}, maximize, one):
            if listed or statement.name in ("answer", "infeasible"):
                said.append(replace(statement, name=f"problem {k}: {statement.name}"))
    return said


def _parts(claim: Claim, count: int) -> list[Claim]:
    """What is said of each problem; the certificate lists it in its facts."""
    facts = claim.facts
    words = facts.get("terminations") or [claim.termination] * count
    lists = [facts.get(name) or [None] * count for name in ("objectives", "bounds", "gaps")]
    return [
        Claim(word, objective, bound, gap, None, None, claim.arrays, facts)
        for word, objective, bound, gap in zip(words, *lists, strict=True)
    ]


def _own(array: Array, rows: int, columns: int, name: str) -> Array:
    """A problem's part of an array that is padded to the largest problem."""
    return array[: columns if name in ("v", "prices") else rows] if array.ndim == 1 else array


def _zeros(inputs: Inputs) -> Array:
    given = inputs.get("benefit", inputs.get("x"))
    assert given is not None
    return np.zeros(given.shape[0], np.int64)
