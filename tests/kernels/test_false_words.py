"""What a hostile answer may say beside true numbers is found false: by `allot verify`, and by the certificates."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Claim, Deadline, recheck, solve_and_prove
from tests.instances.lowrank import points
from tests.instances.multimarginal import tensor, weighed

Options = dict[str, Any]
LOW_RANK = ({"x": points(6, 5)["x"], "y": points(6, 5)["y"]}, {"rank": 2})
EXACT: tuple[Options, Options] = (weighed(4, 5, 3), {"reg": 0})
ENTROPIC: tuple[Options, Options] = (weighed(4, 5, 3), {"reg": 0.1, "output": "marginals"})
WHOLE: tuple[Options, Options] = (tensor(4, 5, 3), {"reg": 0.1, "output": "plan"})


def claimed(solver: str, inputs: Options, options: Options) -> Claim:
    """What the solver's own answer claims."""
    card = SOLVERS[solver]
    asked = card.options(**options)
    solution, found = solve_and_prove(card, card.build(inputs, asked), asked, Deadline(60), "cpu")
    word, violation = str(found.termination or solution.termination), found.max_violation
    numbers = found.objective, found.bound, found.gap_abs, found.gap_rel, violation
    return Claim(word, *numbers, solution.arrays, solution.facts)


def wrong(solver: str, inputs: Options, options: Options, claim: Claim) -> set[str]:
    """Statements that do not hold."""
    return {one.name for one in recheck(solver, inputs, options, claim) if not one.holds}


def apart(claim: Claim, bound: float) -> Claim:
    """The same answer, with a true bound that is further off, and the gap that follows."""
    assert claim.objective is not None
    gap = float(np.nextafter(claim.objective - bound, np.inf))
    return replace(claim, bound=bound, gap_abs=gap, gap_rel=2 * gap / max(abs(claim.objective), abs(bound)))


@pytest.mark.parametrize(
    ("solver", "case"),
    [("lowrank", LOW_RANK), ("multimarginal", EXACT), ("multimarginal", ENTROPIC), ("multimarginal", WHOLE)],
)
def test_no_word_is_believed(solver: str, case: tuple[Options, Options]) -> None:
    claim = claimed(solver, *case)
    assert not wrong(solver, *case, claim)
    assert wrong(solver, *case, replace(claim, termination="infeasible")) == {"infeasible"}
    for word in ("optimal", "gap_reached"):
        for bound in (-1.0, -1e300):
            said = wrong(solver, *case, replace(apart(claim, bound), termination=word))
            assert said == {word}, bound


@pytest.mark.parametrize("word", ["optimal", "gap_reached"])
def test_no_optimum_without_a_bound(word: str) -> None:
    claim = replace(claimed("lowrank", *LOW_RANK), termination=word, bound=None, gap_abs=None, gap_rel=None)
    assert wrong("lowrank", *LOW_RANK, claim) == {word}


def test_a_plan_has_the_marginals() -> None:
    """Without mass a plan, once repaired, is a coupling and has an objective: not its own."""
    claim = claimed("multimarginal", *EXACT)
    none = {**claim.arrays, "plan": np.zeros_like(claim.arrays["plan"])}
    assert {"answer", "violation"} <= wrong("multimarginal", *EXACT, replace(claim, arrays=none))
    assert wrong("multimarginal", *EXACT, replace(claim, max_violation=0.0)) <= {"violation"}


@pytest.mark.parametrize(("case", "names"), [(ENTROPIC, ("plan_xy", "plan_xz", "plan_yz")), (WHOLE, ("plan",))])
def test_what_is_returned_is_that_of_the_potentials(case: tuple[Options, Options], names: tuple[str, ...]) -> None:
    claim = claimed("multimarginal", *case)
    for name in names:
        other = {**claim.arrays, name: np.roll(claim.arrays[name], 1, axis=0)}
        assert wrong("multimarginal", *case, replace(claim, arrays=other)) == {name}


def test_costs_that_float64_does_not_hold_are_not_free() -> None:
    inputs = {"row_factors": np.full((3, 1), 1e-200), "column_factors": np.full((2, 1), 1e-200)}
    claim = claimed("lowrank", inputs, {"rank": 1})
    assert claim.objective is not None
    assert Fraction(claim.objective) >= Fraction(1e-200) ** 2
    assert not wrong("lowrank", inputs, {"rank": 1}, claim)


RNG = np.random.default_rng(4)
STACK = {"cost": RNG.random((2, 3, 4))}
FRAMES = {"cost": RNG.random(12), "sizes": np.array([[2, 3], [3, 2]])}
SEVERAL: dict[str, tuple[str, Options, Options]] = {
    "stack": ("lap", STACK, {}),
    "limit": ("lap", STACK, {"cost_limit": 0.4}),
    "frames": ("lap", FRAMES, {}),
    "transport": ("uot", STACK, {"reg": 0.1}),
    "divergence": ("uot", {"x": RNG.random((3, 2)), "y": RNG.random((4, 2))}, {"reg": 0.1, "divergence": True}),
}


def of_several(name: str) -> Claim:
    """The claim about a batch, with what its certificate tells of each problem."""
    solver, inputs, options = SEVERAL[name]
    card = SOLVERS[solver]
    asked = card.options(**options)
    solution, found = solve_and_prove(card, card.build(inputs, asked), asked, Deadline(60), "cpu")
    word, facts = str(found.termination or solution.termination), {**solution.facts, **found.facts}
    numbers = found.objective, found.bound, found.gap_abs, found.gap_rel, found.max_violation
    return Claim(word, *numbers, solution.arrays, facts)


@pytest.mark.parametrize("name", SEVERAL)
def test_a_problem_that_is_not_there_adds_nothing(name: str) -> None:
    """Objective and bound of one more problem, behind the last, were added to those of all."""
    claim = of_several(name)
    assert not wrong(*SEVERAL[name], claim)
    assert claim.objective is not None
    assert claim.bound is not None
    bound = float(np.nextafter(claim.bound + 1, 0))
    higher: Options = {"objective": claim.objective + 1, "bound": bound, "gap_rel": 1.0}
    if name == "divergence":
        more: Options = {"divergences": [*claim.facts["divergences"], [1.0, 1.0]]}
    else:
        listed, own = claim.facts["problems"], {"objectives": 1.0, "bounds": 1.0, "gaps": 0.0}
        more = {"problems": {**listed, **{key: [*listed[key], value] for key, value in own.items()}}}
    gap = claim.gap_abs + 1e-9 if claim.gap_abs is not None else None
    assert wrong(*SEVERAL[name], replace(claim, facts={**claim.facts, **more}, gap_abs=gap, **higher))


@pytest.mark.parametrize("name", ["stack", "limit", "frames"])
def test_arrays_are_as_long_as_the_problems(name: str) -> None:
    claim = of_several(name)
    for array, values in claim.arrays.items():
        for longer in (np.concatenate([values, values[..., :1]], axis=-1), values[..., :-1], np.stack([values] * 3)):
            said = wrong(*SEVERAL[name], replace(claim, arrays={**claim.arrays, array: longer}))
            assert said == {"answer"}, (array, longer.shape)
