"""What `solve_and_prove` does with a claim that its certificate does not support, and with too little time."""

import dataclasses
import sys
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from kernels import (
    SOLVERS,
    Certificate,
    Deadline,
    Estimate,
    Options,
    Progress,
    Solution,
    Solver,
    Termination,
    solve_and_prove,
)

GAP = 0.5


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Play:
    """A card whose parts take the seconds that they are told to, on a clock of its own."""

    clock: Clock = field(default_factory=Clock)
    solves: list[float] = field(default_factory=list)
    expired: list[Termination | None] = field(default_factory=list)
    build_s: float = 0.0
    first_s: float = 1.0
    solve_s: float = 1.0
    certify_s: float = 2.0
    expected_s: float = 2.0
    mend_s: float = 1.0
    gap: float = GAP
    beyond: float = 0.0
    mended: float | type[Exception] | None = 0.0
    heard: list[Progress] = field(default_factory=list)

    def solve(self, problem: Any, options: Any, deadline: Deadline, device: Any = "cpu") -> Solution:
        """Works in steps of a tenth of a second, and for `first_s` at least."""
        begun = self.clock.now
        while self.clock.now - begun < self.solve_s - 1e-9:
            self.clock.now += 0.1
            if self.clock.now - begun >= self.first_s - 1e-9 and (ended := deadline.expired()):
                return self.answer(ended, self.gap)
        return self.answer(Termination.OPTIMAL, self.gap)

    def answer(self, termination: Termination, gap: float) -> Solution:
        return Solution(termination, "play", {"gap": np.array(gap)})

    def certify(self, problem: Any, solution: Solution, progress: Any = lambda fraction: None) -> Certificate:
        for step in range(4):
            self.clock.now += self.certify_s / 4
            progress((step + 1) / 4)
        gap = solution.arrays["gap"].item()
        if gap < 0:
            return Certificate(None, None, None, None, 0, False, "no answer")
        if self.beyond:
            return Certificate(10.0, 10.0 + self.beyond, -self.beyond, -self.beyond / 10, 0, True, "gap")
        loose = gap > 0 and solution.termination is Termination.OPTIMAL
        return Certificate(
            10.0, 10.0 - gap, gap, gap / 10, 0, True, "gap", termination=Termination.CONVERGED if loose else None
        )

    def mend(self, problem: Any, options: Any, solution: Solution, deadline: Deadline, device: Any) -> Solution | None:
        self.expired.append(deadline.expired())
        self.clock.now += self.mend_s
        if isinstance(self.mended, type):
            raise self.mended
        if self.mended is None:
            return None
        return self.answer(Termination.OPTIMAL, self.mended)

    def run(self, limit_s: float | None = None, stopped: bool = False) -> tuple[Solution, Certificate, float]:
        deadline = Deadline(limit_s, lambda: stopped, self.heard.append, clock=self.clock)
        self.clock.now += self.build_s
        play = self

        class Card(Solver):
            def solve(self, problem: Any, options: Any, deadline: Deadline, device: Any = "cpu") -> Solution:
                return play.solve(problem, options, deadline)

        card = Card(
            name="play",
            summary="",
            inputs=(),
            options=Options,
            build=lambda inputs, options: None,
            certify=self.certify,
            estimate=lambda *_: Estimate(0, 0, self.solve_s, self.expected_s, self.first_s),
            prefers_gpu=lambda *_: False,
            modules={},
            mend=self.mend,
        )
        solution, certificate = solve_and_prove(card, None, Options(), deadline, "cpu")
        return solution, certificate, self.clock.now


def test_a_claim_that_is_earned_stands() -> None:
    play = Play(gap=0.0)
    solution, certificate, ended_s = play.run()
    assert (solution.termination, certificate.gap_abs, play.expired) == (Termination.OPTIMAL, 0, [])
    assert ended_s == pytest.approx(3)
    assert solution.timings_ms == pytest.approx({"solve": 1000, "certify": 2000})


def test_a_bound_beyond_the_objective_proves_nothing() -> None:
    """One of the two is wrong, whoever worked them out."""
    _, certificate, _ = Play(gap=0.0, beyond=1e-9).run()
    assert certificate.holds is False
    assert certificate.proved == "the bound 10.000000001 lies beyond the objective 10.0: one of them is wrong"


def test_a_claim_that_is_not_earned_is_mended() -> None:
    play = Play()
    solution, certificate, _ = play.run()
    assert (solution.termination, certificate.gap_abs) == (Termination.OPTIMAL, 0)
    assert solution.timings_ms == pytest.approx({"solve": 2000, "certify": 4000})


def test_where_nothing_mends_it_the_certificate_has_the_last_word() -> None:
    for mended in (None, GAP, 2 * GAP, -1.0, MemoryError):
        solution, certificate, _ = Play(mended=mended).run()
        assert (solution.termination, certificate.gap_abs, certificate.holds) == (Termination.CONVERGED, GAP, True)


def test_a_smaller_gap_is_taken_though_it_is_no_proof() -> None:
    solution, certificate, _ = Play(mended=GAP / 2).run()
    assert (solution.termination, certificate.gap_abs) == (Termination.CONVERGED, GAP / 2)


def test_a_bug_in_mending_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        Play(mended=ZeroDivisionError).run()


def test_an_answer_that_was_stopped_is_not_mended() -> None:
    play = Play(solve_s=0.0)
    assert play.run(stopped=True)[0].termination is Termination.CONVERGED
    assert play.expired == []


@pytest.mark.parametrize(
    ("limit_s", "mended"),
    [
        (0, False),
        (5.9, False),  # 1 s of solving, 2 s of certificate, and as much again
        (6.1, True),
        (None, True),
    ],
)
def test_mending_keeps_the_limit(limit_s: float | None, mended: bool) -> None:
    play = Play()
    solution, _, ended_s = play.run(limit_s)
    assert (play.expired == [None]) is mended
    assert ended_s <= max(3.0, np.inf if limit_s is None else limit_s) + 1e-9
    if limit_s == 0:
        assert solution.termination is Termination.TIME_LIMIT


def test_a_certificate_that_was_slower_than_expected_is_believed() -> None:
    play = Play(certify_s=8.0)
    play.run(12.0)
    assert play.expired == []  # 1 + 8 are gone, and another 1 + 8 would not fit


@pytest.mark.parametrize(("build_s", "limit_s"), [(0, 0), (0, 4), (3, 4), (9, 4), (0, 20), (2, 6.5), (0, 2)])
@pytest.mark.parametrize("certify_s", [0.5, 2.0])
def test_an_answer_is_there_in_time(build_s: float, limit_s: float, certify_s: float) -> None:
    play = Play(build_s=build_s, solve_s=1e9, certify_s=certify_s, expected_s=certify_s)
    solution, _, ended_s = play.run(limit_s)
    assert solution.termination is Termination.TIME_LIMIT
    assert ended_s <= max(limit_s, build_s + 1.0 + certify_s) + 0.11  # it looks every tenth of a second


def test_phases_come_in_order() -> None:
    play = Play()
    play.run()
    phases = [told.phase for told in play.heard]
    assert [phase for k, phase in enumerate(phases) if k == 0 or phases[k - 1] != phase] == ["solve", "certify"] * 2
    fractions = [told.fraction for told in play.heard if told.phase == "certify"]
    assert fractions == [0.0, 0.25, 0.5, 0.75, 1.0] * 2


@pytest.mark.parametrize("cost", [[[4, 1], [2, 0]], [[1.5, 2.0], [0.0, 3.0]]])
def test_what_a_gpu_answers_wrongly_is_solved_again_on_the_cpu(cost: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def both_rows_take_column_0(problem: Any, options: Any, deadline: Deadline) -> Solution:
        zeros = np.zeros(2, problem.weights.dtype)
        arrays = {"assignment": np.zeros(2, np.int64), "u": zeros, "v": zeros}
        return Solution(Termination.OPTIMAL, "broken", arrays)

    broken = types.ModuleType("broken")
    vars(broken)["solve"] = both_rows_take_column_0
    monkeypatch.setitem(sys.modules, "broken", broken)
    card = dataclasses.replace(SOLVERS["lap"], modules={"cpu": "kernels.lap.cpu.solver", "gpu": "broken"})
    options = card.options()
    problem = card.build({"cost": np.array(cost)}, options)
    solution, certificate = solve_and_prove(card, problem, options, Deadline(5), "gpu")
    assert certificate.holds
    assert certificate.objective == min(cost[0][0] + cost[1][1], cost[0][1] + cost[1][0])
    assert solution.method.endswith("(cpu)")
    assert "assigned twice" in solution.facts["solved_again"]
    only_gpu = dataclasses.replace(card, runs_on=lambda problem, options: ("gpu",))
    assert not solve_and_prove(only_gpu, problem, options, Deadline(5), "gpu")[1].holds


def test_a_problem_of_a_batch_without_an_objective_is_solved_again_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_in_the_second(problem: Any, options: Any, deadline: Deadline) -> Solution:
        solution = SOLVERS["uot"].solve(problem, options, deadline, "cpu")
        solution.arrays["f"][1] += 1e-6  # the plan is P(f, g), and carries too much then
        return solution

    broken = types.ModuleType("broken")
    vars(broken)["solve"] = off_in_the_second
    monkeypatch.setitem(sys.modules, "broken", broken)
    card = dataclasses.replace(SOLVERS["uot"], modules={"cpu": "kernels.uot.cpu.solver", "gpu": "broken"})
    options = card.options.model_validate({"reg": 0.5, "reg_m": (1.0, "inf"), "output": "potentials"})
    problem = card.build({"cost": np.array([[[4.0, 1.0], [2.0, 0.0]]] * 2)}, options)
    assert card.certify(problem, card.solve(problem, options, Deadline(5), "gpu")).objective is not None
    solution, certificate = solve_and_prove(card, problem, options, Deadline(5), "gpu")
    objectives = certificate.facts["problems"]["objectives"]
    assert objectives[0] is not None
    assert objectives[0] == objectives[1]
    assert solution.method.endswith("(cpu)")
