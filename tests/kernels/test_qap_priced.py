"""A quadratic assignment as prices, for a tree on a device: no permutation pays less than they say."""

import itertools

import numpy as np
import pytest

from kernels import SOLVERS, Array
from kernels.problems import QuadraticAssignment
from kernels.qap.bounds import rlt1
from kernels.qap.bounds.relaxed.ascent import Ascent
from kernels.qap.exact.priced import Priced, of_ascent, of_semidefinite
from tests.instances import quadratic as instances

CARD = SOLVERS["qap"]


def forms_of(problem: QuadraticAssignment, steps: int) -> list[tuple[Priced, float]]:
    """Both forms after so many steps, and what their bounds are."""
    ascent, relaxed = rlt1.DualAscent(problem), Ascent(problem)
    for _ in range(steps):
        ascent.step()
        relaxed.step()
    relaxed.measure()
    assert relaxed.best is not None
    return [(of_ascent(ascent), ascent.total / ascent.scale), (of_semidefinite(relaxed.best), relaxed.best.raw)]


def pays(form: Priced, permutation: Array) -> int:
    """What a permutation pays in a form."""
    n = len(permutation)
    total = form.total + sum(int(form.leaders[i, permutation[i]]) for i in range(n))
    for at, (i, k) in enumerate(itertools.combinations(range(n), 2)):
        total += int(form.prices[at, permutation[i], permutation[k]])
    return total


@pytest.mark.parametrize("label", ["one-sided-8", "asymmetric-7", "negative-5"])
@pytest.mark.parametrize("steps", [1, 5, 60])
def test_no_permutation_pays_less(label: str, steps: int) -> None:
    problem = CARD.build(instances.SMALL[label](), CARD.options())
    assert isinstance(problem, QuadraticAssignment)
    for form, bound in forms_of(problem, steps):
        assert form.leaders.min() >= 0
        assert form.prices.min() >= 0
        assert form.total / form.scale == pytest.approx(bound, rel=1e-6)
        for permutation in itertools.permutations(range(problem.n)):
            found = np.array(permutation)
            assert pays(form, found) <= form.scale * int(problem.objective(found))


def test_the_ascent_leaves_nothing_out_and_the_relaxation_is_closer() -> None:
    problem = CARD.build(instances.SMALL["one-sided-8"](), CARD.options())
    (whole, first), (_, second) = forms_of(problem, 60)
    for permutation in itertools.islice(itertools.permutations(range(problem.n)), 0, None, 997):
        found = np.array(permutation)
        assert pays(whole, found) == whole.scale * int(problem.objective(found))
    assert second > first
