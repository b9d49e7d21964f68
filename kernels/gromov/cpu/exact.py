"""Conditional gradient: exact linear steps through the network simplex, exact steps along the line to their plan.

Along P + t D the objective is a parabola, value + t <G, D> + t^2 q(D), q(D) = <quadratic(D), D> / 2, so the best t in
[0, 1] is known (Vayer, Courty, Tavenard, Flamary 2019, algorithms 1 and 2). Where q(D) is not positive the step goes
all the way or not at all, and plans stay vertices. No linear step is better than the plan: a first-order optimum.
"""

from typing import Any

from kernels.gromov.iteration import rounded
from kernels.gromov.lower import exact_transport
from kernels.gromov.search import NOTHING, GromovSearch


def finish(search: GromovSearch, plan: Any) -> Any:
    """The local optimum that exact steps from `plan` lead to."""
    objective, asked = search.objective, search.options
    plan = rounded(plan, objective.a, objective.b, search.xp)
    quadratic = objective.quadratic(plan)
    for _ in range(asked.max_iterations):
        search.ended = search.deadline.expired()
        if search.ended is not None:
            return plan
        costs = objective.derivative(quadratic)
        _, vertex = exact_transport(costs, objective.a, objective.b, search.deadline)
        direction = vertex - plan
        slope = float((costs * direction).sum())
        value = objective.value(plan, quadratic)
        search.note(plan)
        if -slope <= max(asked.tolerance * abs(value), NOTHING * search.size):
            return plan
        of_direction = objective.quadratic(direction)
        curve = 0.5 * float((of_direction * direction).sum())
        step = 1.0 if curve <= 0 else min(1.0, -slope / (2 * curve))
        plan, quadratic = plan + step * direction, quadratic + step * of_direction
        if step == 1.0:
            plan, quadratic = vertex, objective.quadratic(vertex)
    search.unsettled += 1
    return plan
