"""The value that the solver itself has for an answer, where no certificate was asked for."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kernels.problems.arrays import Array, Floats
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.marginal_transport import MarginalTransport
from kernels.problems.several import SeveralTransports, taken_apart
from kernels.problems.sparse_transport import SparseTransport
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution
from kernels.uot.build import Entropic, Transport
from kernels.uot.sides.penalties import value_of
from kernels.uot.sparse.value import value_of as value_of_entries


def claimed(problem: Transport, solution: Solution) -> float | None:
    """The dual value of f, g with the mass of the returned plan, summed over the problems; None where it is none."""
    if isinstance(problem, MarginalTransport):
        return value_of(problem, solution)
    if isinstance(problem, ExactTransport):
        return _cost(problem, solution)
    if isinstance(problem, SparseTransport):
        masses = solution.arrays.get("entry_values")
        return None if masses is None else value_of_entries(problem, masses)
    values = claims(problem, solution)
    if problem.batch is not None:
        solution.facts["objectives"] = values
    if isinstance(problem, SeveralTransports) and problem.divergence:
        values = _debiased(problem, values)
        solution.facts["divergences"] = values
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def _debiased(problem: SeveralTransports, values: list[float | None]) -> list[float | None]:
    """The divergences, from the values of the three groups."""
    found: list[float | None] = []
    count = len(values) // 3
    for part, *three in zip(
        problem.parts, values[:count], values[count : 2 * count], values[2 * count :], strict=False
    ):
        known = [value for value in three if value is not None]
        apart = part.reg / 2 * float(part.a.sum() - part.b.sum()) ** 2
        found.append(known[0] - known[1] / 2 - known[2] / 2 + apart if len(known) == 3 else None)
    return found


def claims(problem: Entropic, solution: Solution) -> list[float | None]:
    """The same of each problem."""
    if (at_once := _values(problem, solution.arrays)) is not None:
        return at_once
    if isinstance(problem, SeveralTransports):
        apart = taken_apart(problem, solution.arrays) or []
        return [_value(part, arrays) for part, arrays in zip(problem.parts, apart, strict=True)]
    if problem.batch is None:
        return [_value(problem, solution.arrays)]
    each = ({name: array[k] for name, array in solution.arrays.items()} for k in range(problem.batch))
    return [_value(problem.one(k), arrays) for k, arrays in enumerate(each)]


def _values(problem: Entropic, arrays: Mapping[str, Array]) -> list[float | None] | None:
    """The values of problems of one shape from their potentials and marginals; None where each has to be looked at.

    The sums are those of `_value`, in the same order.
    """
    parts = _alike(problem)
    if parts is None or "plan" in arrays or not {"f", "g", "row_marginal"} <= arrays.keys():
        return None
    vectors, count = _vectors(problem, parts), len(parts)
    f, g, marginal = (arrays[name].reshape(count, -1) for name in ("f", "g", "row_marginal"))
    sides = [_sides(*side) for side in zip(vectors[:2], (f, g), np.array([p.reg_m for p in parts]).T, strict=True)]
    if sides[0] is None or sides[1] is None:
        return None
    reg = np.array([part.reg for part in parts])
    value = sides[0] + sides[1] - reg * marginal.sum(axis=1)
    if parts[0].reference == "product":
        value += reg * vectors[0].sum(axis=1) * vectors[1].sum(axis=1)
    return [one if math.isfinite(one) else None for one in value.tolist()]


def _alike(problem: Entropic) -> Sequence[UnbalancedTransport] | None:
    """Problems of one shape, by their strengths; None where they are not."""
    if isinstance(problem, UnbalancedTransport):
        return None if problem.batch is None else [problem] * problem.batch
    same = len({part.shape for part in problem.parts}) == 1 and problem.form != "one" and not problem.divergence
    return problem.parts if same else None


def _vectors(problem: Entropic, parts: Sequence[UnbalancedTransport]) -> tuple[Floats, Floats]:
    """Their masses, (batch, m) and (batch, n)."""
    if isinstance(problem, UnbalancedTransport):
        return problem.a, problem.b
    return np.stack([part.a for part in parts]), np.stack([part.b for part in parts])


def _sides(masses: Floats, potentials: Floats, strengths: Floats) -> Floats | None:
    """As `_side`, of each problem; None where one has a line without mass, or exact sides beside others."""
    exact = np.isinf(strengths)
    if not (masses > 0).all() or exact.any() != exact.all():
        return None
    if exact.all():
        return np.asarray((masses * potentials).sum(axis=1))
    with np.errstate(over="ignore"):
        return np.asarray((-strengths[:, None] * masses * np.expm1(-potentials / strengths[:, None])).sum(axis=1))


def _cost(problem: ExactTransport, solution: Solution) -> float | None:
    arrays = solution.arrays
    if "plan" in arrays:
        rows, columns = np.nonzero(arrays["plan"])
        masses = arrays["plan"][rows, columns]
    elif "entry_values" in arrays:
        rows, columns, masses = (arrays[name] for name in ("entry_rows", "entry_columns", "entry_values"))
    else:
        return None
    return float((masses * problem.cost[rows, columns].astype(np.float64)).sum())


def _value(problem: UnbalancedTransport, arrays: dict[str, Array]) -> float | None:
    if "f" not in arrays or ("plan" not in arrays and "row_marginal" not in arrays):
        return None
    mass = float(arrays["plan"].sum(dtype=np.float64) if "plan" in arrays else arrays["row_marginal"].sum())
    sides = zip((problem.a, problem.b), (arrays["f"], arrays["g"]), problem.reg_m, strict=True)
    value = sum(_side(*side) for side in sides) - problem.reg * mass
    if problem.reference == "product":
        value += problem.reg * float(problem.a.sum()) * float(problem.b.sum())
    return value if math.isfinite(value) else None


def _side(masses: Floats, potential: Floats, strength: float) -> float:
    held = masses > 0
    mass, p = masses[held], potential[held]
    if math.isinf(strength):
        return float((mass * p).sum())
    with np.errstate(over="ignore"):
        return float((-strength * mass * np.expm1(-p / strength)).sum())
