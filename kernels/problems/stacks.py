"""Several transport problems: what `transport` looks for in each is looked for in all of them at once.

A call of NumPy takes a microsecond, however little there is to do. A stack of 32 small problems is 32 times as many.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from kernels.problems.arrays import Array, Floats, Indices, Inputs, InvalidProblem
from kernels.problems.transport import (
    LARGEST_DIMENSION,
    METRICS,
    REFERENCES,
    UnbalancedTransport,
    bounds_between,
    check_range,
    exact_sums,
    in_range,
    mass_factors,
    norms,
    real,
    start_of,
)

Strengths = tuple[float, tuple[float, float]]
Settle = Callable[[int, UnbalancedTransport], UnbalancedTransport]
OF_ROWS, OF_COLUMNS = ("x", "a", "f0"), ("y", "b", "g0")


def clouds(
    inputs: Inputs,
    sizes: Sequence[tuple[int, int]],
    strengths: Sequence[Strengths],
    metric: str,
    reference: str,
    settle: Settle | None = None,
) -> tuple[UnbalancedTransport, ...] | None:
    """The problems whose points x, y, masses a, b and potentials f0, g0 follow one another in `inputs`.

    Args:
        sizes: rows and columns of each; they add up to the lines of the inputs.
        strengths: reg and reg_m of each.
        settle: gives a problem, told by its number, strengths that follow from its costs.

    Returns:
        What `transport` returns for each; None where it would raise for one, or what it would say is not known here.
    """
    lengths = [rows for rows, _ in sizes], [columns for _, columns in sizes]
    try:
        if not (metric in METRICS and reference in REFERENCES and "x" in inputs and "y" in inputs):
            return None
        x, y = (real(name, inputs[name], (2,)) for name in ("x", "y"))
        if x.shape[1] != y.shape[1] or x.shape[1] > LARGEST_DIMENSION:
            return None
        dtype = np.result_type(x, y)
        whole: dict[str, Array] = {"x": x.astype(dtype, copy=False), "y": y.astype(dtype, copy=False)}
        for names, side in ((OF_ROWS, lengths[0]), (OF_COLUMNS, lengths[1])):
            whole |= _beside(inputs, names, side)
        cut = {name: _cut(lines, lengths[name in OF_COLUMNS]) for name, lines in whole.items()}
        for name, side in (("a", lengths[0]), ("b", lengths[1])):
            cut.setdefault(name, _uniform(side))
        factors = _scale(cut, strengths, lambda name, some: _exact_sums([cut[name][k] for k in some]))
        bounds = _bounds(whole, lengths, metric)
        return _problems(cut, strengths, factors, bounds, (metric, reference), settle)
    except InvalidProblem:
        return None


def matrices(
    whole: UnbalancedTransport,
    strengths: Sequence[Strengths],
    metric: str,
    reference: str,
    settle: Settle | None = None,
) -> tuple[UnbalancedTransport, ...] | None:
    """The problems of a batch of costs, each with its own strengths; arguments and answer are those of `clouds`."""
    assert whole.cost is not None
    arrays = {name: getattr(whole, name) for name in ("a", "b", "cost", "f0", "g0")}
    cut = {name: list(array) for name, array in arrays.items() if array is not None}
    flat = whole.cost.reshape(len(whole.cost), -1)
    low, high = flat.min(axis=1).tolist(), flat.max(axis=1).tolist()
    bounds = [None if math.isinf(top) else (least, top) for least, top in zip(low, high, strict=True)]
    try:
        factors = _scale(cut, strengths, lambda name, some: exact_sums(arrays[name][some]))
        return _problems(cut, strengths, factors, bounds, (metric, reference), settle)
    except InvalidProblem:
        return None


def _problems(
    cut: Mapping[str, Sequence[Array]],
    strengths: Sequence[Strengths],
    factors: Sequence[float],
    bounds: Sequence[tuple[float, float] | None],
    kinds: tuple[str, str],
    settle: Settle | None,
) -> tuple[UnbalancedTransport, ...]:
    """Of their arrays, one by one. Raises InvalidProblem."""
    reg, reg_m = strengths[0]
    first: dict[str, Any] = {name: lines[0] for name, lines in cut.items()}
    like = UnbalancedTransport(reg=reg, reg_m=reg_m, metric=kinds[0], reference=kinds[1], **first)
    fine = settle is None and _all_in_range(strengths, bounds)
    found = []
    for k, (reg, reg_m) in enumerate(strengths):
        own: dict[str, Any] = {name: lines[k] for name, lines in cut.items()}
        own |= {"reg": reg, "reg_m": reg_m, "mass_factor": factors[k]}
        if bounds[k] is not None:
            own["cost_bounds"] = bounds[k]  # as the property would work them out
        problem = _one_more(like, own)
        found.append(problem if fine else _checked(k, problem, bounds[k], settle))
    return tuple(found)


def _one_more(like: UnbalancedTransport, own: Mapping[str, Any]) -> UnbalancedTransport:
    """A problem with other values of some fields; `replace` takes as long as the checks of all."""
    problem = object.__new__(UnbalancedTransport)
    vars(problem).update(vars(like), **own)
    return problem


def _all_in_range(strengths: Sequence[Strengths], bounds: Sequence[tuple[float, float] | None]) -> bool:
    """Whether `_checked` surely refuses none, told from what is widest of problems with the same strengths."""
    known = [one for one in bounds if one is not None]
    if len(known) < len(bounds) or any(one != strengths[0] for one in strengths):
        return False
    reg, reg_m = strengths[0]
    strong = 0 < reg < math.inf and min(reg_m) > 0
    return strong and in_range((min(low for low, _ in known), max(high for _, high in known)), reg, reg_m)


def _cut(lines: Any, lengths: Sequence[int]) -> list[Any]:
    """One piece for each length, which add up to all."""
    ends = list(accumulate(lengths))
    return [lines[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _beside(inputs: Inputs, names: tuple[str, str, str], lengths: Sequence[int]) -> dict[str, Array]:
    """The masses and potentials of one side that are given. Raises InvalidProblem."""
    _, mass, potential = names
    found: dict[str, Array] = {}
    total = (sum(lengths),)
    if mass in inputs:
        masses = real(mass, inputs[mass], (1,)).astype(np.float64)
        if masses.shape != total or (masses < 0).any() or not np.isfinite(_sums(masses, lengths)).all():
            raise InvalidProblem(mass, "is not what masses are")
        found[mass] = masses
    if potential in inputs:
        found[potential] = start_of(potential, inputs[potential], total)
    return found


def _uniform(lengths: Sequence[int]) -> list[Floats]:
    """Masses that were left out; problems of one size share them."""
    of_size = {length: np.full(length, 1.0 / length) for length in set(lengths)}
    return [of_size[length] for length in lengths]


def _bounds(
    whole: Mapping[str, Array], lengths: tuple[Sequence[int], Sequence[int]], metric: str
) -> list[tuple[float, float]]:
    """Bounds on the costs of each problem."""
    farthest = [
        np.maximum.reduceat(norms(whole[name]), _starts(side)).tolist()
        for name, side in zip(("x", "y"), lengths, strict=True)
    ]
    return [bounds_between(of_x, of_y, metric) for of_x, of_y in zip(*farthest, strict=True)]


def _sums(lines: Floats, lengths: Sequence[int]) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.add.reduceat(lines, _starts(lengths)))


def _starts(lengths: Sequence[int]) -> Indices:
    return np.cumsum([0, *lengths[:-1]])


def _scale(
    cut: dict[str, list[Array]], strengths: Sequence[Strengths], sums: Callable[[str, list[int]], Floats]
) -> list[float]:
    """Bring b to the mass of a, in `cut`, where both sides are exact; the factors. Raises InvalidProblem.

    `sums` takes a or b and numbers of problems.
    """
    exact = [k for k, (_, reg_m) in enumerate(strengths) if reg_m == (np.inf, np.inf)]
    factors = np.ones(len(strengths))
    if exact:
        factors[exact] = mass_factors(sums("a", exact), sums("b", exact))
    for k in np.flatnonzero(factors != 1).tolist():
        cut["b"][k] = cut["b"][k] * factors[k]
    found: list[float] = factors.tolist()
    return found


def _exact_sums(masses: list[Floats]) -> Floats:
    """Of each; what several share is added up once."""
    own = {id(one): one for one in masses}
    sums = {name: exact_sums(one[None])[0] for name, one in own.items()}
    return np.array([sums[id(one)] for one in masses])


def _checked(
    k: int,
    problem: UnbalancedTransport,
    bounds: tuple[float, float] | None,
    settle: Settle | None,
) -> UnbalancedTransport:
    """Problem k with its strengths, if float64 can answer it with these. Raises InvalidProblem."""
    if not (0 < problem.reg < np.inf and min(problem.reg_m) > 0):
        raise InvalidProblem("reg", "is not what strengths are")
    if settle is not None:
        problem = settle(k, problem)
        if bounds is not None:
            vars(problem)["cost_bounds"] = bounds
    check_range(problem)
    return problem
