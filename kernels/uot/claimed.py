"""The value that the solver itself has for an answer, where no certificate was asked for."""

import math

import numpy as np

from kernels.problems.arrays import Array
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.marginal_transport import MarginalTransport
from kernels.problems.several import SeveralTransports, taken_apart
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution
from kernels.uot.build import Entropic, Transport
from kernels.uot.sides.penalties import value_of


def claimed(problem: Transport, solution: Solution) -> float | None:
    """The dual value of f, g with the mass of the returned plan, summed over the problems; None where it is none."""
    if isinstance(problem, MarginalTransport):
        return value_of(problem, solution)
    if isinstance(problem, ExactTransport):
        return _cost(problem, solution)
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
    if isinstance(problem, SeveralTransports):
        apart = taken_apart(problem, solution.arrays) or []
        return [_value(part, arrays) for part, arrays in zip(problem.parts, apart, strict=True)]
    if problem.batch is None:
        return [_value(problem, solution.arrays)]
    each = ({name: array[k] for name, array in solution.arrays.items()} for k in range(problem.batch))
    return [_value(problem.one(k), arrays) for k, arrays in enumerate(each)]


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


def _side(masses: Array, potential: Array, strength: float) -> float:
    held = masses > 0
    mass, p = masses[held], potential[held]
    if math.isinf(strength):
        return float((mass * p).sum())
    with np.errstate(over="ignore"):
        return float((-strength * mass * np.expm1(-p / strength)).sum())
