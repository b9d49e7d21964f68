"""`recheck`: which of the slow implementations says of each statement whether it holds."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.certificates.exact import (
    assignment,
    auction,
    barycenter,
    gromov,
    marginals,
    points,
    quadratic,
    ranked,
    rejecting,
    selected,
    several,
    stated,
)
from kernels.certificates.exact.statement import Claim, Inputs, Statement
from kernels.problems.arrays import Array, Csr
from kernels.problems.sparse import summed


def recheck(solver: str, inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Say of each statement of an answer whether it holds, from the problem as it was given.

    Args:
        inputs: arrays by name; +inf in a cost and -inf in a benefit or in a cost to maximise forbid the entry.
        options: the job's options by name; those left out have their defaults.
    """
    if uneven := stated.uneven(claim):
        return uneven
    said = _of_solver(solver, inputs, dict(options), claim)
    listed = claim.facts.get("problems")
    if claim.termination == "infeasible" and not (isinstance(listed, dict) and "terminations" in listed):
        said += stated.nothing(claim) if all(one.holds for one in said) else []
    elif not any(one.name == "relative gap" for one in said):
        said += stated.relative(claim)
    return said


def _of_solver(solver: str, inputs: Inputs, given: dict[str, Any], claim: Claim) -> list[Statement]:
    if solver == "auction":
        if given.get("allow_unassigned") and "reject" not in inputs:
            inputs = {**inputs, "reject": _zeros(inputs)}
        benefit = inputs.get("benefit")
        if given.get("sum_duplicates") and isinstance(benefit, Csr):
            inputs = {**inputs, "benefit": summed("benefit", benefit)}
        return auction.check(inputs, given, claim)
    if solver == "qap":
        fixed = {int(i): int(k) for i, k in (given.get("fixed") or {}).items()}
        return [*quadratic.check(inputs, fixed, claim), *stated.target(claim, given.get("target"))]
    if solver == "lap" and claim.termination == "gap_reached":
        return [Statement("termination", False, "an assignment has its least cost or not, and no gap is asked for")]
    if solver == "lap" and "x" in inputs and not rejecting.is_priced(inputs, given):
        return points.check(inputs, given, claim)
    if solver == "lap" and given.get("k_best") is not None:
        return ranked.check(inputs, given, claim)
    if solver == "lap" and selected.is_selected(given):
        return selected.check(inputs, given, claim)
    if solver == "lap" and rejecting.is_priced(inputs, given):
        return rejecting.check(inputs, given, claim)
    if solver == "uot" and marginals.has_other_marginals(given) and given.get("certificate") != "none":
        return marginals.check(inputs, given, claim)
    if solver == "uot":
        return several.check(inputs, given, claim)
    if solver == "barycenter":
        return barycenter.check(inputs, given, claim)
    if solver == "gromov":
        return gromov.check(inputs, given, claim)
    cost = inputs.get("cost")
    if isinstance(cost, np.ndarray) and cost.ndim == 3:
        return _batch(solver, inputs, given, claim)
    return _one(solver, inputs, given, claim)


def _one(solver: str, inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    return assignment.check(inputs, bool(options.get("maximize")), claim)


def _batch(solver: str, inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Each problem of a batch by itself: what the facts list of it."""
    cost = inputs["cost"]
    assert isinstance(cost, np.ndarray)
    said, count = stated.misshapen(claim, cost.shape[1:], len(cost)), len(cost)
    if said:
        return said
    for k, part in enumerate(problems_of(claim, count)):
        given = problem_of(inputs, k)
        rows, columns = given["cost"].shape
        arrays = {name: _own(name, array, k, rows, columns) for name, array in claim.arrays.items()}
        for statement in _one(solver, given, options, replace(part, arrays=arrays)):
            said.append(replace(statement, name=f"problem {k}: {statement.name}"))
    return said + stated.together(claim, bool(options.get("maximize")), stated.OF_ASSIGNMENTS)


def problem_of(inputs: Inputs, k: int) -> dict[str, Any]:
    """The inputs of problem k of a batch, without what pads them."""
    cost, sizes = inputs["cost"], inputs.get("sizes")
    assert not isinstance(cost, Csr)
    assert not isinstance(sizes, Csr)
    rows, columns = cost.shape[1:] if sizes is None else sizes[k].tolist()
    found: dict[str, Any] = {"cost": cost[k, :rows, :columns]}
    for name in ("a", "b"):
        masses = inputs.get(name)
        if isinstance(masses, np.ndarray):
            found[name] = masses[k] if masses.ndim == 2 else masses
    return found


def problems_of(claim: Claim, count: int) -> list[Claim]:
    """What is said of each problem of a batch."""
    listed = claim.facts.get("problems")
    if not isinstance(listed, dict):
        raise KeyError("the certificate's facts list no problems")
    if len(listed["terminations"]) != count:
        raise KeyError(f"the certificate's facts list {len(listed['terminations'])} problems of {count}")
    return [
        Claim(
            termination=listed["terminations"][k],
            objective=listed["objectives"][k],
            bound=listed["bounds"][k],
            gap_abs=listed["gaps"][k],
            gap_rel=None,
            max_violation=listed.get("violations", [None] * count)[k],
            arrays={},
        )
        for k in range(count)
    ]


def _own(name: str, array: Array, k: int, rows: int, columns: int) -> Array:
    """A problem's part of an array of a batch, without what pads it to the largest problem."""
    if name.startswith("hall_"):
        return np.flatnonzero(array[k, : columns if name == "hall_cols" else rows])
    own: Array = array[:, k] if name.endswith("_finer") else array[k]
    if name in ("assignment", "u", "v", "u_finer", "v_finer"):
        return own[..., : columns if name.startswith("v") else rows]
    return own


def _zeros(inputs: Inputs) -> Array:
    given = inputs.get("benefit", inputs.get("x"))
    assert given is not None
    return np.zeros(given.shape[0], np.int64)
