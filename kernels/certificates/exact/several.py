"""Transport answers of several problems, and of strengths in units of the costs: each problem is checked by itself.

An answer says which strengths it had (`facts.reg`, `facts.reg_m`). Where these were asked for as shares of the mean or
median cost, that size is worked out again here, and the stated one must be within a part in a million of it.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from kernels.certificates.exact import flow, transport
from kernels.certificates.exact.stated import together, worst
from kernels.certificates.exact.statement import Claim, Inputs, Statement, gap_statements, plain, rational
from kernels.problems.arrays import Array
from kernels.problems.several import GROUPS, cut_apart
from kernels.problems.worked_out import WORKED_OUT, worked_out

MOST = 1 << 20
"""Entries beyond which the size of the costs is not worked out again."""
CLOSE = 1e-6
SHARES = (0.05, 1.0, 1.0)
"""Of the size of the costs: reg, and reg_m of both sides, where they were left open."""


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of an answer to one or several transport problems."""
    if options.get("certificate") == "none":
        if (
            claim.termination in ("optimal", "gap_reached")
            or (claim.bound, claim.gap_abs, claim.gap_rel) != (None,) * 3
        ):
            return [Statement("certificate", False, "the job asked for none, and what only one earns is stated")]
        return [Statement("certificate", None, "the job asked for none, so nothing is stated that could be checked")]
    if options.get("method") == "exact":
        return flow.check(inputs, options, claim)
    if options.get("metric") in WORKED_OUT and "x" in inputs:
        return _of_costs(inputs, options, claim)
    if not _are_several(inputs, options):
        strengths = _strengths(options, claim.facts)
        return [*_sized(inputs, options, claim.facts), *transport.check(inputs, {**options, **strengths}, claim)]
    said = []
    parts, claims = _problems(inputs, options), _claims(inputs, options, claim)
    for k, (given, part) in enumerate(zip(parts, claims, strict=True)):
        own = k % (len(parts) // 3) if options.get("divergence") else k
        facts, asked = _of_one(claim.facts, own), {**options, **_of_inputs(inputs, own)}
        chosen = {**asked, **_strengths(asked, facts)}
        found = [*(_sized(given, asked, facts) if own == k else ()), *transport.check(given, chosen, part)]
        said += [replace(one, name=f"problem {k}: {one.name}") for one in found]
    return [*said, *_together(inputs, options, claim)]


def _of_costs(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """The answer says that its problem is that of the costs which float64 makes of the points."""
    told = claim.facts.get("costs")
    listed = told if isinstance(told, list) else [told]
    words = f"the answer says of its costs: {listed[0]}"
    said = [Statement("costs", all(one == "worked out in float64" for one in listed), words)]
    if "sizes" in inputs:
        return [*said, Statement("answer", None, "several problems of this metric are not checked here")]
    metric = options["metric"]
    sides = {"cost": ("x", "y")} | ({"cost_xx": ("x", "x"), "cost_yy": ("y", "y")} if options.get("divergence") else {})
    given: dict[str, Any] = {name: value for name, value in inputs.items() if name not in ("x", "y")}
    for name, (left, right) in sides.items():
        given[name] = worked_out(np.asarray(inputs[left]), np.asarray(inputs[right]), metric)
    plain_options = {name: value for name, value in options.items() if name != "metric"}
    return [*said, *check(given, plain_options, claim)]


def _are_several(inputs: Inputs, options: Mapping[str, Any]) -> bool:
    cost = inputs.get("cost")
    return bool(options.get("divergence")) or "sizes" in inputs or (isinstance(cost, np.ndarray) and cost.ndim == 3)


def _between(inputs: Inputs) -> list[dict[str, Any]]:
    """The inputs of each problem, without those of a divergence's other two groups."""
    cost, sizes = inputs.get("cost"), inputs.get("sizes")
    if isinstance(sizes, np.ndarray):
        ends = np.vstack([[0, 0], np.cumsum(sizes, axis=0)]).tolist()
        sides = {"x": 0, "a": 0, "y": 1, "b": 1}
        return [
            {name: inputs[name][start[side] : end[side]] for name, side in sides.items() if name in inputs}  # type: ignore[index]
            for start, end in pairwise(ends)
        ]
    if isinstance(cost, np.ndarray) and cost.ndim == 3:
        return [_line(inputs, k) for k in range(len(cost))]
    return [{name: value for name, value in inputs.items() if not name.startswith(("cost_", "f0", "g0"))}]


def _line(inputs: Inputs, k: int) -> dict[str, Any]:
    """The inputs of problem k of a batch; masses may be given for all of them."""
    found: dict[str, Any] = {}
    for name in ("cost", "a", "b"):
        value = inputs.get(name)
        if isinstance(value, np.ndarray):
            found[name] = value[k] if name == "cost" or value.ndim == 2 else value
    return found


def _problems(inputs: Inputs, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The inputs of all problems, group by group."""
    between = _between(inputs)
    if not options.get("divergence"):
        return between
    found = list(between)
    for points, mass, name in (("x", "a", "cost_xx"), ("y", "b", "cost_yy")):
        costs = inputs.get(name)
        for k, one in enumerate(between):
            if isinstance(costs, np.ndarray):
                part: dict[str, Any] = {"cost": costs[k] if costs.ndim == 3 else costs}
            else:
                part = {"x": one[points], "y": one[points]}
            found.append(part | ({"a": one[mass], "b": one[mass]} if mass in one else {}))
    return found


def _shape(inputs: Mapping[str, Any]) -> tuple[int, int]:
    rows, columns = inputs["cost"].shape if "cost" in inputs else (len(inputs["x"]), len(inputs["y"]))
    return int(rows), int(columns)


def _claims(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Claim]:
    """What is said of each problem, with its arrays."""
    listed, parts = claim.facts.get("problems"), _problems(inputs, options)
    if not isinstance(listed, dict) or len(listed["terminations"]) != len(parts):
        raise KeyError(f"the certificate's facts do not list {len(parts)} problems")
    suffixes = GROUPS if options.get("divergence") else GROUPS[:1]
    each = len(parts) // len(suffixes)
    arrays = []
    for g, suffix in enumerate(suffixes):
        group = parts[g * each : (g + 1) * each]
        arrays += _arrays(claim.arrays, suffix, group, "sizes" in inputs, np.ndim(inputs.get("cost")) == 3)  # type: ignore[arg-type]
    return [
        Claim(
            listed["terminations"][k], listed["objectives"][k], listed["bounds"][k], listed["gaps"][k], None,
            listed.get("violations", [None] * len(parts))[k], arrays[k], {},
        )
        for k in range(len(parts))
    ]  # fmt: skip


def _arrays(
    arrays: Mapping[str, Array], suffix: str, group: list[dict[str, Any]], flat: bool, stack: bool
) -> list[Mapping[str, Array]]:
    others = tuple(one for one in GROUPS if one and one != suffix)
    own = {
        name.removesuffix(suffix): array
        for name, array in arrays.items()
        if (name.endswith(suffix) if suffix else not name.endswith(others))
    }
    if flat:
        found = cut_apart([_shape(one) for one in group], own)
        if found is None:
            raise KeyError("the arrays are not those of the problems")
        return [dict(one) for one in found]
    if stack:
        if any(array.shape[:1] != (len(group),) for array in own.values()):
            raise KeyError("the arrays are not those of the problems")
        marks = own.get("hall_rows")
        parts: list[Mapping[str, Array]] = []
        for k in range(len(group)):
            one = {name: array[k] for name, array in own.items()}
            parts.append(one if marks is None else one | {"hall_rows": np.flatnonzero(marks[k])})
        return parts
    return [own]


def _of_one(facts: Mapping[str, Any], k: int) -> dict[str, Any]:
    """What the facts say of the strengths of problem k."""
    names = ("reg", "reg_m", "cost_scale")
    found = {name: facts[name] for name in names if name in facts}
    return {name: value[k] for name, value in found.items()} if isinstance(facts.get("reg"), list) else found


def _of_inputs(inputs: Inputs, k: int) -> dict[str, Any]:
    """The strengths that were asked for problem k alone."""
    found: dict[str, Any] = {}
    for name, option in (("regs", "reg"), ("regs_m", "reg_m")):
        if isinstance(given := inputs.get(name), np.ndarray):
            found[option] = given[k].tolist()
    return found


def _strengths(options: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """reg and reg_m as numbers: those of the answer's facts, or as they were asked for."""
    if "reg" in facts:
        return {"reg": facts["reg"], "reg_m": facts["reg_m"]}
    return {"reg": options.get("reg", SHARES[0]), "reg_m": options.get("reg_m", SHARES[1])}


def _sized(inputs: Inputs, options: Mapping[str, Any], facts: Mapping[str, Any]) -> list[Statement]:
    """Whether the strengths of an answer are those that were asked for."""
    if "reg" not in facts:
        open_ones = "auto" in (options.get("reg", "auto"), options.get("reg_m", "auto"))
        words = "the answer does not say which strengths it had"
        return [Statement("strengths", None, words)] if open_ones and "reg" not in options else []
    given = options.get("reg_m", "auto")
    asked = [options.get("reg", "auto"), *(given if isinstance(given, list | tuple) else (given, given))]
    kind = options.get("reg_scale", "none")
    relative = [kind != "none" or one == "auto" for one in asked]
    scale = _size(inputs, options, "mean" if kind == "none" else kind) if any(relative) else 1.0
    if scale is None:
        return [Statement("strengths", None, "the size of this many costs is not worked out here")]
    said = []
    for name, one, by, share, stated in zip(
        ("reg", "reg_m of rows", "reg_m of columns"), asked, relative, SHARES, [facts["reg"], *facts["reg_m"]],
        strict=True,
    ):  # fmt: skip
        wanted = share if one == "auto" else math.inf if one is None else float(one)
        wanted *= scale if by else 1.0
        found = math.inf if stated == "inf" else float(stated)
        same = found == wanted if math.isinf(wanted) or not by else abs(found - wanted) <= CLOSE * wanted
        said.append(Statement(name, same, f"{stated} is stated, {wanted} was asked for"))
    return said


def _size(inputs: Inputs, options: Mapping[str, Any], kind: str) -> float | None:
    """The mean, weighted by mass, or median of the sizes of the permitted costs; None where there are too many."""
    problem = transport.Problem(inputs, {**options, "reg": 1.0, "reg_m": 1.0})
    if len(problem.a) * len(problem.b) > MOST:
        return None
    entries = [(abs(float(cost)), problem.a[i] * problem.b[j]) for i, j, cost in problem.entries()]
    if not entries:
        return 1.0
    if kind == "median":
        found = float(np.median([size for size, _ in entries]))
    else:
        weights = [Fraction(weight) for _, weight in entries]
        found = float(sum(Fraction(size) * w for (size, _), w in zip(entries, weights, strict=True)) / sum(weights))
    return found if 0 < found < math.inf else 1.0


def _together(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Whether the numbers of a divergence follow from those of its three values."""
    if not options.get("divergence"):
        return together(claim)
    listed, between = claim.facts["problems"], _between(inputs)
    count, said = len(between), [worst(claim, listed["terminations"])]
    if len(claim.facts["divergences"]) != count:
        words = f"{len(claim.facts['divergences'])} are listed of {count}"
        return [*said, Statement("divergences", False, words)]
    for k, one in enumerate(between):
        stated = claim.facts["divergences"][k]
        values = [(listed["bounds"][j], listed["gaps"][j]) for j in (k, k + count, k + 2 * count)]
        if stated is None or any(number is None for value in values for number in value):
            said.append(Statement(f"divergence {k}", stated is None, "one of its values is not bounded"))
            continue
        (low, high), *rest = ((rational(bound), rational(bound) + rational(gap)) for bound, gap in values)
        for least, most in rest:
            low, high = low - most / 2, high - least / 2
        reg = Fraction(_of_one(claim.facts, k)["reg"])
        problem = transport.Problem(one, {**options, "reg": 1.0, "reg_m": 1.0})
        apart = reg / 2 * (sum(map(Fraction, problem.a)) - sum(map(Fraction, problem.b))) ** 2
        holds = rational(stated[0]) <= low + apart and rational(stated[1]) >= high + apart
        words = f"{stated} is stated, from {plain(low + apart)} to {plain(high + apart)} follows"
        said.append(Statement(f"divergence {k}", holds, words))
    numbers = [one for one in claim.facts["divergences"] if one is not None]
    if claim.objective is not None and claim.bound is not None:
        low, high = (sum((rational(one[side]) for one in numbers), Fraction(0)) for side in (0, 1))
        holds = rational(claim.bound) <= low and rational(claim.objective) >= high
        said += gap_statements(claim, rational(claim.objective))
        said.append(Statement("divergences", holds, f"they lie between {plain(low)} and {plain(high)} in sum"))
    return said
