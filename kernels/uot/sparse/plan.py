"""From potentials to the plan that is returned: its entries, which meet exact sides up to rounding."""

from typing import cast

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import AnyIndices, Floats
from kernels.uot.sparse.flow import Network
from kernels.uot.sparse.value import logarithms

HIGHEST = 700.0
"""Of a logarithm whose exponential float64 holds."""


def finished(network: Network, f: Floats, g: Floats, deadline: Deadline, paths: bool) -> Floats | None:
    """The plan of f and g. An exact side is met, and two by a flow of what is missing.

    None where that flow is no small one, unless it may be sent along `paths`, which take longer to find.
    """
    problem = network.problem
    logs = logarithms(problem, f, g)
    plan = np.exp(np.minimum(logs, HIGHEST))
    exact = np.isinf(problem.reg_m)
    if exact.all():
        found = network.along_forest(plan, logs)
        return network.along_paths(plan, deadline) if found is None and paths else found
    for side, ends in enumerate(cast(tuple[AnyIndices, AnyIndices], (problem.entry_rows, problem.entry_columns))):
        if exact[side]:
            masses = (problem.a, problem.b)[side]
            sums = np.bincount(ends, plan, masses.size)
            plan *= np.divide(masses, sums, out=np.ones_like(sums), where=sums > 0)[ends]
    return plan
