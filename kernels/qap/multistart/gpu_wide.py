"""The population for n beyond what a block holds: the tabu searches of multistart.cu, their starts bred on the host."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.cuda import attribute
from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Indices
from kernels.qap.cpu.population import Population
from kernels.qap.form import search_form
from kernels.qap.multistart.gpu_multistart import Searches, tuned, watch
from kernels.qap.outcome import Searched
from kernels.solution import Number, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions

ELITE, PATIENCE, ROUNDS_WITHOUT_LIMIT = 32, 20, 20
"""Of the population for large n: members, rounds without a record before all but it are dropped, rounds."""


def evolve(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, start: Indices, target: Number | None
) -> Searched:
    """Rounds of n tabu iterations until the target, the rounds asked for, or the deadline."""
    form, n = search_form(problem), problem.n
    chosen = tuned(form, options.threads_per_block)
    resident = chosen.blocks * attribute("MultiProcessorCount")
    count = options.starts or resident
    population = Population(n, min(count, ELITE), np.random.default_rng(options.seed), PATIENCE, max(2, n // 10))
    starts = population.rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
    starts[0] = start
    searches = Searches(form, chosen, starts, options.seed)
    tenure = options.tenure or (max(1, n // 10), max(2, n // 3))
    limit = options.rounds or (None if deadline.remaining_s < float("inf") else ROUNDS_WITHOUT_LIMIT)
    termination = None
    while termination is None:
        searches.launch(options.iterations or n, tenure, starts)
        best = watch(searches, deadline)
        population.insert(searches.elite(ELITE))
        starts = np.array([population.breed() for _ in range(count)])
        if target is not None and best is not None and best <= target:
            termination = Termination.GAP_REACHED
        elif searches.round == limit:
            termination = Termination.ITERATION_LIMIT
        termination = termination or deadline.expired()
    return searches.searched(termination, options.population)
