"""What potentials and a plan are worth on the entries: the solver's own numbers, which nobody has to trust."""

import numpy as np

from kernels.problems.arrays import Floats
from kernels.problems.sparse_transport import SparseTransport


def logarithms(problem: SparseTransport, f: Floats, g: Floats) -> Floats:
    """log P(f, g) of each entry."""
    rows, columns = problem.entry_rows, problem.entry_columns
    logs = (f[rows] + g[columns] - problem.values) / problem.reg
    if problem.reference == "product":
        logs += np.log(problem.a)[rows] + np.log(problem.b)[columns]
    return logs


def marginals_of(problem: SparseTransport, plan: Floats) -> tuple[Floats, Floats]:
    """What the rows and the columns of the plan sum to."""
    sides = ((problem.entry_rows, problem.a.size), (problem.entry_columns, problem.b.size))
    rows, columns = (np.asarray(np.bincount(ends, plan, size), np.float64) for ends, size in sides)
    return rows, columns


def value_of(problem: SparseTransport, plan: Floats) -> float:
    """The objective of a plan, its exact sides taken as they are; lines may lack mass."""
    rows, columns = problem.entry_rows, problem.entry_columns
    if problem.reference == "product":
        with np.errstate(divide="ignore"):
            logs = np.log(problem.a)[rows] + np.log(problem.b)[columns]
        entropy = _gained(plan, logs) + float((problem.a[rows] * problem.b[columns]).sum())
    else:
        entropy = _gained(plan, np.zeros_like(plan))
    value = float(plan @ problem.values) + problem.reg * entropy
    sides = zip(marginals_of(problem, plan), (problem.a, problem.b), problem.reg_m, strict=True)
    for found, masses, strength in sides:
        if np.isfinite(strength):
            with np.errstate(divide="ignore"):
                value += strength * (_gained(found, np.log(masses)) + float(masses.sum()))
    return value


def _gained(p: Floats, log_q: Floats) -> float:
    """Sum of p log(p / q) - p over what is above 0."""
    held = p > 0
    p, log_q = p[held], log_q[held]
    return float((p * (np.log(p) - log_q - 1)).sum())
