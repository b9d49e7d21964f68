"""Transports of several jobs swept in one launch: each answer is the one that its job gets alone, or is left to it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, Solution, Termination, solve_and_prove
from kernels.on_device import Certifier
from kernels.uot import joint
from kernels.uot.batch import gpu_sweeps
from tests.kernels.no_device import ENOUGH, STUCK, swept_each, without_device

CARD = SOLVERS["uot"]
LOOP: dict[str, Any] = {"output": "potentials", "tolerance": 1e-3, "reg": 0.1, "reg_m": "inf"}
Answer = tuple[Solution, Certificate]


def chosen(**options: Any) -> Any:
    return CARD.options.model_validate(LOOP | options)


def clouds(seed: int, count: int = 3, m: int = 6, n: int = 5) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    x, y = rng.random((count * m, 2)), rng.random((count * n, 2))
    return {"x": x, "y": y, "sizes": np.full((count, 2), (m, n))}


def weighed(seed: int, count: int = 3, m: int = 6, n: int = 5) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    a, b = (np.concatenate([rng.dirichlet(np.full(k, 5.0)) for _ in range(count)]) for k in (m, n))
    return clouds(seed, count, m, n) | {"a": a, "b": b}


def costs(seed: int, count: int = 3, m: int = 6, n: int = 5, dtype: Any = np.float64) -> dict[str, Array]:
    given = clouds(seed, count, m, n)
    x, y = (given[name].reshape(count, -1, 2) for name in "xy")
    return {"cost": ((x[:, :, None] - y[:, None]) ** 2).sum(axis=3).astype(dtype)}


def own(seed: int, **sizes: Any) -> dict[str, Array]:
    """Costs and strengths of their own, in one proportion."""
    given = costs(seed, **sizes)
    return given | {"regs": np.linspace(0.1, 0.2, len(given["cost"])) * (1 + seed / 10)}


def built(inputs: list[dict[str, Array]], options: Any) -> list[Any]:
    return [CARD.build(one, options) for one in inputs]


def company(problems: list[Any], options: Any, deadline: Deadline | None = None) -> list[Answer | None]:
    return list(CARD.joint["gpu"](problems, options, deadline or Deadline()))


def alone(problem: Any, options: Any) -> Answer:
    return solve_and_prove(CARD, problem, options, Deadline(), "gpu")


def require_same(found: Answer | None, wanted: Answer, members: int) -> None:
    """Every bit of an answer, but for what it says of its company and its time."""
    assert found is not None
    (mine, proof), (own_, own_proof) = found, wanted
    assert mine.facts.pop("solved_together") == members
    assert mine.facts == own_.facts
    assert (mine.termination, mine.method, mine.iterations) == (own_.termination, own_.method, own_.iterations)
    assert proof == own_proof or (proof.holds is None and proof.objective == own_proof.objective)
    assert mine.arrays.keys() == own_.arrays.keys()
    for name, array in mine.arrays.items():
        np.testing.assert_array_equal(array, own_.arrays[name], err_msg=name, strict=True)
    assert {"solve", "certify"} <= mine.timings_ms.keys()


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many problems each launch of the stand-in had."""
    found: list[int] = []

    def launch(batch: Any, iterations: int, tolerance: float) -> None:
        found.append(batch.problem.batch)
        swept_each(batch, iterations, tolerance)

    without_device(monkeypatch, launch)
    return found


FORMS: dict[str, tuple[Callable[[int], dict[str, Array]], dict[str, Any]]] = {
    "points": (clouds, {}),
    "points with masses": (weighed, {}),
    "euclidean": (clouds, {"metric": "euclidean"}),
    "relaxed": (weighed, {"reg_m": 2.0, "tolerance": 1e-6}),
    "one side exact": (weighed, {"reg_m": ["inf", 1.0]}),
    "uniform": (clouds, {"reg_m": 2.0, "reference": "uniform"}),
    "costs": (costs, {}),
    "costs in float32": (lambda seed: costs(seed, dtype=np.float32), {"reg_m": 3.0}),
    "costs with regs": (own, {}),
    "of few sweeps": (costs, {"reg": 5.0}),
    "without acceleration": (costs, {"acceleration": False}),
}


@pytest.mark.parametrize("certificate", ["full", "none"])
@pytest.mark.parametrize("form", FORMS)
def test_each_answer_is_that_of_a_solve_by_itself(form: str, certificate: str, launches: list[int]) -> None:
    make, more = FORMS[form]
    options = chosen(certificate=certificate, **more)
    problems = built([make(seed) for seed in range(4)], options)
    found = company(problems, options)
    assert set(launches) == {12}
    for problem, answer in zip(problems, found, strict=True):
        require_same(answer, alone(problem, options), 4)


def test_no_member_has_anothers_rest(launches: list[int]) -> None:
    """What a plan is beside its potentials stands in an answer only where one of its own problems has it."""
    options = chosen(tolerance=1e-2, certificate="none")
    even = costs(0) | {"cost": np.full((3, 6, 5), 0.5)}
    problems = built([even, weighed_costs(1), even], options)
    found = company(problems, options)
    assert ["rest_a" in answer[0].arrays for answer in found if answer] == [False, True, False]
    for problem, answer in zip(problems, found, strict=True):
        require_same(answer, alone(problem, options), 3)


def weighed_costs(seed: int) -> dict[str, Array]:
    given = weighed(seed)
    return costs(seed) | {"a": given["a"].reshape(3, -1), "b": given["b"].reshape(3, -1)}


def test_who_has_not_converged_is_left_to_itself(launches: list[int]) -> None:
    hard = costs(1)
    hard["cost"][1] *= 8
    options = chosen(iterations=40)
    problems = built([costs(0), hard, costs(2)], options)
    found = company(problems, options)
    assert found[1] is None
    for k in (0, 2):
        require_same(found[k], alone(problems[k], options), 3)
    assert alone(problems[1], options)[0].termination is not Termination.GAP_REACHED


def test_who_would_be_given_up_alone_is_not_saved_by_company(launches: list[int]) -> None:
    """Launches go on for another member for so long that the gap falls at last; alone it is not waited for."""
    stuck, slow = costs(0), costs(1)
    stuck["cost"][:, 0, 0] = STUCK
    slow["cost"][0] *= 40
    options = chosen(reg_m=50.0, iterations=100_000)
    problems = built([stuck, slow], options)
    first, second = company(problems, options)
    assert second is not None
    assert second[0].iterations > ENOUGH
    assert first is None
    require_same(second, alone(problems[1], options), 2)


def test_who_is_slow_beside_a_slower_problem_of_its_own_is_waited_for(launches: list[int]) -> None:
    """As alone: a member is over when all of its problems are."""
    mixed = costs(1)
    mixed["cost"][0, 0, 0] = STUCK
    mixed["cost"][1] *= 40
    options = chosen(reg_m=50.0, iterations=100_000)
    problems = built([costs(0), mixed], options)
    for problem, answer in zip(problems, company(problems, options), strict=True):
        require_same(answer, alone(problem, options), 2)
        assert answer is not None
    assert alone(problems[1], options)[0].facts["iterations"][0] >= ENOUGH


def test_what_float32_cannot_hold_is_left_to_itself(launches: list[int]) -> None:
    closed = costs(1)
    closed["cost"][2, 0, 0] = np.inf
    options = chosen()
    problems = built([costs(0), closed, costs(2), costs(3)], options)
    found = company(problems, options)
    assert found[1] is None
    for k in (0, 2, 3):
        require_same(found[k], alone(problems[k], options), 3)
    closed["regs"] = np.array([0.1, 0.1, 0.1])
    problems = built([costs(0) | {"regs": np.full(3, 0.1)}, closed], options)
    before = len(launches)
    found = company(problems, options)
    assert found[1] is None
    assert set(launches[before:]) == {3}


@pytest.mark.parametrize("form", ["points", "costs"])
def test_a_job_of_one_problem_is_a_batch_of_one(form: str, launches: list[int]) -> None:
    options = chosen(certificate="full")
    inputs = [{name: given[name][: 6 if name == "x" else 5] for name in "xy"} if form == "points"
              else {"cost": given["cost"][0]} for given in ((clouds if form == "points" else costs)(seed)
                                                            for seed in range(3))]  # fmt: skip
    problems = built(inputs, options)
    found = company(problems, options)
    assert set(launches) == {3}
    for given, problem, answer in zip(inputs, problems, found, strict=True):
        assert answer is not None
        solution, certificate = answer
        sizes = {"sizes": np.array([[6, 5]])}
        one = given | sizes if form == "points" else {"cost": given["cost"][None], "regs": np.array([0.1])}
        batch, _ = alone(CARD.build(one, options), options)
        for name, array in solution.arrays.items():
            np.testing.assert_array_equal(array, batch.arrays[name].reshape(array.shape), err_msg=name)
        assert {array.ndim for array in solution.arrays.values()} == {1}
        assert solution.iterations == batch.iterations
        wanted, proof = solve_and_prove(CARD, problem, options, Deadline(), "cpu")
        assert certificate.holds
        assert certificate.objective == pytest.approx(proof.objective, rel=2e-3)
        assert solution.facts.keys() == wanted.facts.keys() | {"solved_together"}
        assert (solution.termination, solution.method) == (Termination.GAP_REACHED, "batch")
        assert (solution.facts["reg"], solution.facts["reg_m"]) == (0.1, ["inf", "inf"])


def test_a_job_of_one_problem_is_not_waited_for_long(launches: list[int]) -> None:
    """Alone it has epsilon scaling and acceleration, and takes fewer sweeps."""
    slow = {"cost": costs(1)["cost"][0] * 40}
    options = chosen()
    quick, left = company(built([{"cost": costs(0)["cost"][0]}, slow], options), options)
    assert quick is not None
    assert left is None
    assert len(launches) == 3  # of 32, 64 and 128 sweeps


@pytest.mark.parametrize("more", [
    {"output": "plan"}, {"top_k": 2}, {"gradients": True}, {"method": "fused"}, {"method": "map-uot"},
    {"storage": "float64"}, {"storage": "bfloat16"}, {"divergence": True}, {"tolerance": 1e-8, "reg_m": 1.0},
    {"tolerance": 1e-6},
], ids=str)  # fmt: skip
def test_what_is_asked_for_otherwise_is_not_begun(more: dict[str, Any], launches: list[int]) -> None:
    options = chosen(**more)
    problems = built([clouds(seed) for seed in range(3)], options)
    assert company(problems, options) == [None] * 3
    assert not launches


@pytest.mark.parametrize("more", [{"method": "log"}, {"storage": "float32"}, {"acceleration": False}], ids=str)
def test_a_job_of_one_problem_whose_way_is_said_is_not_begun(more: dict[str, Any], launches: list[int]) -> None:
    options = chosen(**more)
    problems = built([{"cost": costs(seed)["cost"][0]} for seed in range(3)], options)
    assert company(problems, options) == [None] * 3
    assert not launches


def not_for_company() -> Iterator[tuple[str, list[dict[str, Array]], dict[str, Any]]]:
    start = {"g0": np.zeros(15)}
    yield "starts", [clouds(seed) | start for seed in range(2)], {}
    yield "starts of a batch", [costs(seed) | {"g0": np.zeros((3, 5)), "f0": np.zeros((3, 6))} for seed in range(2)], {}
    labels = {"labels": np.arange(5)}
    yield "labels", [{"cost": costs(seed)["cost"][0]} | labels for seed in range(2)], {}
    yield "barycentric", [{"x": clouds(seed)["x"], "y": clouds(seed)["y"]} for seed in range(2)], {"barycentric": True}
    sizes = np.array([[6, 5], [5, 6], [7, 4]])
    yield "sizes of their own", [clouds(seed) | {"sizes": sizes} for seed in range(2)], {}
    yield "inner", [clouds(seed) for seed in range(2)], {"metric": "inner"}
    yield "no mass", [weighed(seed) | {"a": np.repeat([0.0, 0.5, 0.5], 6) / 6} for seed in range(2)], {"reg_m": 1.0}
    yield "too large", [clouds(seed, 1, 257, 3) for seed in range(2)], {}
    yield "other strengths", [costs(seed) | {"regs": np.array([0.1, 0.2, 0.3])} for seed in range(2)], {"reg_m": 1.0}
    yield "a part of the mass", [{"cost": costs(seed)["cost"][0]} for seed in range(2)], {"reg_m": "auto", "mass": 0.5}
    yield "alone of its kind", [clouds(0), costs(0), clouds(0, 2, 5, 5)], {}


@pytest.mark.parametrize("case", list(not_for_company()), ids=lambda case: case[0])
def test_what_is_another_problem_is_not_begun(case: Any, launches: list[int]) -> None:
    name, inputs, more = case
    options = chosen(**more) if name != "a part of the mass" else CARD.options.model_validate({"mass": 0.5, "reg": 0.1})
    problems = built(inputs, options)
    assert company(problems, options) == [None] * len(problems)
    assert not launches


def test_a_cpu_solves_nothing_together(launches: list[int]) -> None:
    options = chosen()
    assert "cpu" not in CARD.joint
    assert joint.solve_jointly(built([costs(0), costs(1)], options), options, Deadline(), "cpu") == [None, None]
    assert not launches


def test_kinds_share_no_launch_and_each_keeps_its_place(launches: list[int]) -> None:
    options = chosen()
    inputs = [clouds(0), costs(1), clouds(2), {"cost": costs(3)["cost"][0]}, costs(4), clouds(5, 2)]
    problems = built(inputs, options)
    found = company(problems, options)
    assert [answer is not None for answer in found] == [True, True, True, False, True, True]
    for k, members in ((0, 3), (1, 2), (2, 3), (4, 2), (5, 3)):
        require_same(found[k], alone(problems[k], options), members)


def test_a_launch_holds_whole_members_and_no_more_than_it_may(
    launches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint, "LARGEST", 200)  # two members of 90 entries
    options = chosen()
    problems = built([costs(seed) for seed in range(5)], options)
    found = company(problems, options)
    assert set(launches) == {6}
    assert found[4] is None  # who is left over has no company
    for k in range(4):
        require_same(found[k], alone(problems[k], options), 2)


def test_nothing_is_begun_when_the_time_is_over(launches: list[int]) -> None:
    options = chosen()
    problems = built([costs(0), costs(1)], options)
    assert company(problems, options, Deadline(0)) == [None, None]
    assert not launches


def test_who_had_not_converged_when_the_time_was_over_is_left_to_itself(
    launches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class OneLaunch(Deadline):
        """Over after the first launch, and not for the certificates."""

        looks = 0

        def expired(self) -> Termination | None:
            self.looks += 1
            return Termination.TIME_LIMIT if self.looks == 2 else None

    slow = costs(1)
    slow["cost"][0] *= 8
    options = chosen()
    problems = built([costs(0), slow], options)
    quick, left = company(problems, options, OneLaunch())
    assert launches == [6]
    assert left is None
    require_same(quick, alone(problems[0], options), 2)


@pytest.mark.parametrize("change", [
    {"holds": False}, {"loose": True}, {"termination": Termination.CONVERGED}, {"objective": None},
    {"facts": {"problems": {"objectives": [1.0, None, 1.0]}}},
], ids=str)  # fmt: skip
def test_a_certificate_that_doubts_leaves_that_member_alone(
    change: dict[str, Any], launches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = chosen(tolerance=1e-2)
    problems = built([costs(0), costs(1)], options)
    true = Certifier.certify

    def doubting(self: Any, solution: Solution, heard: Any) -> Certificate:
        found = true(self, solution, heard)
        return replace(found, **change) if self._problem is problems[1] else found

    with monkeypatch.context() as doubted:
        doubted.setattr(Certifier, "certify", doubting)
        first, second = company(problems, options)
    assert second is None
    require_same(first, alone(problems[0], options), 2)


def test_what_rounding_may_hide_leaves_that_member_alone(launches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    options = chosen()
    problems = built([costs(0), costs(1)], options)
    monkeypatch.setattr(gpu_sweeps, "_hidden", lambda *_: np.array([0.0, 0, 0, 0, 1, 0]))
    first, second = company(problems, options)
    assert first is not None
    assert second is None


def test_nobody_waits_for_certificates_beyond_the_time(launches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    class OneCertificate(Deadline):
        """Over once a certificate has been made."""

        def expired(self) -> Termination | None:
            return Termination.TIME_LIMIT if made else None

    made: list[Any] = []
    true = Certifier.certify

    def counted(self: Any, *given: Any) -> Certificate:
        made.append(self)
        return true(self, *given)

    monkeypatch.setattr(Certifier, "certify", counted)
    options = chosen()
    found = company(built([costs(seed) for seed in range(3)], options), options, OneCertificate())
    assert [answer is not None for answer in found] == [True, False, False]


def test_the_inputs_are_noted_before_a_launch_may_change_them(
    launches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    begun = Certifier.__init__

    def init(self: Any, *given: Any) -> None:
        made.append(len(launches))
        begun(self, *given)

    monkeypatch.setattr(Certifier, "__init__", init)
    options = chosen()
    company(built([costs(0), costs(1)], options), options)
    assert made == [0, 0]


def test_launches_are_cut_as_those_of_one_job() -> None:
    """On which it rests that company changes no bit: a launch begins anew with references of its own."""
    assert sum(gpu_sweeps.FIRST_SWEEPS << k for k in range(3)) == joint.LONE_SWEEPS
