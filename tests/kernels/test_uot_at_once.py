"""A stack of transports is checked, answered and valued all at once: with the bits of each by itself, and few calls."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, InvalidProblem, Solution
from kernels.problems import stacks, transport
from kernels.problems.several import SeveralTransports
from kernels.problems.transport import UnbalancedTransport
from kernels.unproved import unproved
from kernels.uot import gpu as on_gpu
from kernels.uot.batch import gpu_sweeps
from kernels.uot.batch.answers import Answered, joined
from tests.kernels.no_device import swept_blindly, without_device

CARD = SOLVERS["uot"]
build, claimed = (importlib.import_module(f"kernels.uot.{name}") for name in ("build", "claimed"))
LOOP: dict[str, Any] = {"output": "potentials", "certificate": "none", "tolerance": 1e-3, "reg": 0.1}
CALLS = {"build": 60, "solve": 25, "value": 12}
"""Of Python and of C, for one more member of a stack. By itself it takes 170, 90 and 65."""


def ragged(seed: int = 0, **more: Array | None) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    sizes = np.array([[5, 7], [1, 4], [12, 3], [5, 7]])
    m, n = sizes.sum(axis=0)
    found = {"x": rng.normal(size=(m, 3)), "y": rng.normal(size=(n, 3)), "sizes": sizes, **more}
    return {name: value for name, value in found.items() if value is not None}


def masses(seed: int = 1) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    lines = [rng.dirichlet(np.ones(k)) for side in (0, 1) for k in ragged()["sizes"][:, side]]
    return {"a": np.concatenate(lines[:4]), "b": np.concatenate(lines[4:]) * (1 + 1e-9)}


def one_by_one(monkeypatch: pytest.MonkeyPatch, inputs: dict[str, Array], **options: Any) -> Any:
    with monkeypatch.context() as alone:
        alone.setattr(build, "clouds", lambda *_: None)
        alone.setattr(build, "matrices", lambda *_: None)
        return CARD.build(inputs, CARD.options.model_validate(options))


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, {}),
        ({}, {"reg": 0.1, "reg_m": "inf"}),
        (masses(), {"reg": 0.1, "reg_m": "inf"}),
        (masses(), {"reg": 0.1, "reg_m": [1.0, "inf"], "metric": "euclidean"}),
        ({}, {"reg": 0.1, "reg_m": 3.0, "metric": "inner", "reference": "uniform"}),
        ({}, {"reg": 0.1, "reg_scale": "median"}),
        ({}, {"divergence": True}),
        ({"f0": np.arange(23.0), "g0": np.append(np.arange(20.0), -np.inf)}, {"reg": 0.1}),
        ({"regs": np.array([0.1, 0.2, 0.3, 0.4]), "regs_m": np.array([1.0, np.inf, 2.0, np.inf])}, {}),
        ({"y": np.arange(63).reshape(21, 3)}, {"reg": 0.5}),
        ({"x": ragged()["x"].astype(np.float32)}, {"reg": 0.5}),
    ],
)
def test_points_are_built_as_if_alone(
    more: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = ragged(**more)
    same(CARD.build(inputs, CARD.options.model_validate(options)), one_by_one(monkeypatch, inputs, **options))


def same(found: Any, wanted: Any) -> None:
    """Every field of every problem has the same bits."""
    assert isinstance(found, SeveralTransports)
    assert len(found.parts) == len(wanted.parts)
    for mine, alone in zip(found.parts, wanted.parts, strict=True):
        assert mine.cost_bounds == alone.cost_bounds
        for field in fields(UnbalancedTransport):
            one, other = getattr(mine, field.name), getattr(alone, field.name)
            if isinstance(other, np.ndarray):
                assert one.dtype == other.dtype, field.name
                assert np.array_equal(one, other), field.name
            else:
                assert one == other, field.name


def batch(**more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {"cost": rng.random((3, 5, 4)), **more}


FORBIDDEN = batch()["cost"].copy()
FORBIDDEN[1, 2, 0] = np.inf
FORBIDDEN[2] = np.inf


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, {}),
        ({"regs": np.array([0.1, 0.2, 0.3])}, {"reg_m": "inf"}),
        ({"regs": np.array([0.1, 0.2, 0.3]), "a": np.full(5, 0.2), "b": np.full((3, 4), 0.25 * (1 + 1e-9))},
         {"reg_m": "inf"}),
        ({"regs_m": np.array([[1.0, np.inf], [np.inf, np.inf], [2.0, 3.0]])}, {"reg": 0.1, "reference": "uniform"}),
        ({"f0": np.ones((3, 5)), "g0": np.full((3, 4), -np.inf)}, {"reg_scale": "median", "reg": 0.2}),
        ({"cost": FORBIDDEN}, {}),
        ({"cost": (batch()["cost"] * 9).astype(np.int32)}, {}),
        ({"cost_xx": np.ones((3, 5, 5)), "cost_yy": np.ones((3, 4, 4))}, {"divergence": True}),
    ],
)  # fmt: skip
def test_costs_are_built_as_if_alone(
    more: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = batch(**more)
    same(CARD.build(inputs, CARD.options.model_validate(options)), one_by_one(monkeypatch, inputs, **options))


def wrong_as_alone(monkeypatch: pytest.MonkeyPatch, inputs: dict[str, Array], options: dict[str, Any]) -> None:
    """Of several at once the same is said that is said where each is built by itself."""
    with pytest.raises(InvalidProblem) as together:
        CARD.build(inputs, CARD.options.model_validate(options))
    with pytest.raises(InvalidProblem) as alone:
        one_by_one(monkeypatch, inputs, **options)
    assert str(together.value) == str(alone.value)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"regs": np.array([0.1, 1e-14, 0.3])}, {}),
        ({"regs": np.array([0.1, 0.2, 0.3]), "a": np.ones((3, 5))}, {"reg_m": "inf"}),
        ({"cost": -1e6 * batch()["cost"], "regs": np.full(3, 10.0)}, {"reg_m": 1.0}),
        ({"cost_xx": np.ones((3, 5, 4)), "cost_yy": np.ones((3, 4, 4))}, {"divergence": True}),
        ({"regs_m": np.array([1.0, 1e300, 1.0])}, {}),
    ],
)
def test_what_is_wrong_with_one_matrix_is_told_of_it(
    more: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong_as_alone(monkeypatch, batch(**more), options)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"x": np.full((23, 3), np.nan)}, {}),
        ({"y": np.ones((21, 2))}, {}),
        ({"x": None, "y": None}, {}),
        ({"x": np.ones(23)}, {}),
        ({"a": -np.ones(23)}, {}),
        ({"a": np.full(23, 1e308)}, {}),
        ({"a": np.ones(23)}, {"reg": 0.1, "reg_m": "inf"}),
        ({"f0": np.full(23, np.nan)}, {}),
        ({"regs": np.array([0.1, 1e-14, 1.0, 1.0])}, {}),
        ({}, {"reg": 1e-14}),
        ({"x": np.full((23, 3), 1e200)}, {"reg": 1.0}),
    ],
)
def test_what_is_wrong_with_one_is_told_of_it(
    more: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong_as_alone(monkeypatch, ragged(**more), options)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    without_device(monkeypatch, swept_blindly)


def stack(count: int, form: str) -> dict[str, Array]:
    rng = np.random.default_rng(2)
    x, y = rng.random((2, count, 6, 2))
    if form == "points":
        return {"x": x.reshape(-1, 2), "y": y.reshape(-1, 2), "sizes": np.full((count, 2), 6)}
    cost = ((x[:, :, None] - y[:, None]) ** 2).sum(axis=3)
    return {"cost": cost} | ({"regs": np.linspace(0.1, 0.2, count)} if form == "own" else {})


class Doubtful:
    """A mask that has nobody, and says otherwise."""

    def any(self) -> bool:
        return True

    def __getitem__(self, k: int) -> bool:
        return False


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("form", ["points", "costs", "own"])
@pytest.mark.parametrize("reg_m", ["inf", 1.0])
def test_a_stack_is_answered_as_its_problems(form: str, reg_m: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options = CARD.options.model_validate({**LOOP, "reg_m": "inf" if form == "own" else reg_m})
    problem = CARD.build(stack(5, form), options)
    whole = on_gpu.solve(problem, options, Deadline())
    at_once = claimed.claims(problem, whole)

    def doubtful(parts: Any) -> Any:
        found = joined(parts)
        return Answered(found.arrays, found.rest, Doubtful())  # type: ignore[arg-type]

    monkeypatch.setattr(gpu_sweeps, "joined", doubtful)
    parts = on_gpu.solve(problem, options, Deadline())
    monkeypatch.setattr(claimed, "_values", lambda *_: None)
    assert at_once == claimed.claims(problem, parts)
    assert (whole.termination, whole.method, whole.iterations) == (parts.termination, parts.method, parts.iterations)
    assert whole.facts == parts.facts
    assert whole.arrays.keys() == parts.arrays.keys()
    for name, array in parts.arrays.items():
        assert array.dtype == whole.arrays[name].dtype
        assert np.array_equal(array, whole.arrays[name]), name


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("reg_m", ["inf", 1.0])
def test_and_as_the_cpu_answers_them(reg_m: Any) -> None:
    options, exact = (CARD.options.model_validate({**LOOP, "reg_m": reg_m, **more})
                      for more in ({}, {"tolerance": 1e-6}))  # fmt: skip
    problem = CARD.build(stack(4, "points"), options)
    solution = on_gpu.solve(problem, options, Deadline())
    wanted = CARD.solve(problem, exact, Deadline())
    assert claimed.claims(problem, solution) == pytest.approx(claimed.claims(problem, wanted), rel=1e-4)
    for name in ("row_marginal", "column_marginal"):
        np.testing.assert_allclose(solution.arrays[name], wanted.arrays[name], rtol=1e-3)


def test_a_problem_without_value_has_none_in_a_stack() -> None:
    options = CARD.options.model_validate({**LOOP, "reg_m": "inf"})
    problem = CARD.build(stack(3, "costs"), options)
    solution = CARD.solve(problem, options, Deadline())
    solution.arrays["f"][1] = np.inf
    values = claimed.claims(problem, solution)
    assert [value is None for value in values] == [False, True, False]


def calls(run: Callable[[], Any]) -> int:
    """How many functions of Python and of C it calls."""
    found = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    run()  # what is imported or kept at the first call
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("form", ["points", "costs"])
def test_one_more_member_costs_few_calls(form: str) -> None:
    options = CARD.options.model_validate({**LOOP, "reg_m": "inf"})
    taken: dict[int, list[int]] = {}
    for count in (8, 40):
        inputs = stack(count, form)
        problem = CARD.build(inputs, options)
        solution: Solution = on_gpu.solve(problem, options, Deadline())
        taken[count] = [
            calls(lambda inputs=inputs: CARD.build(inputs, options)),  # type: ignore[misc]
            calls(lambda problem=problem: on_gpu.solve(problem, options, Deadline())),  # type: ignore[misc]
            calls(lambda problem=problem, solution=solution: unproved(CARD, problem, solution)),  # type: ignore[misc]
        ]
    more = [(many - few) / 32 for few, many in zip(taken[8], taken[40], strict=True)]
    assert all(one <= most for one, most in zip(more, CALLS.values(), strict=True)), more


def test_what_is_widest_of_problems_tells_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is looked for in each, each would have been let pass; and ordinary problems are not looked at."""
    rng, sure = np.random.default_rng(0), 0
    for _ in range(2000):
        reg, strong = 10.0 ** rng.uniform(-12, 4), 10.0 ** rng.uniform(-4, 14, 2)
        of_a, of_b = (float(one) if rng.random() < 0.7 else np.inf for one in strong)
        reg_m = of_a, of_b
        ends = np.sort(rng.choice([-1, 1], (4, 2)) * 10.0 ** rng.uniform(-3, 6, (4, 2)), axis=1).tolist()
        if not transport.in_range((min(low for low, _ in ends), max(high for _, high in ends)), reg, reg_m):
            continue
        sure += 1
        for low, high in ends:
            cost = np.array([[low, high]])
            transport.check_range(UnbalancedTransport(np.ones(1), np.ones(2), reg, reg_m, cost))
    assert 100 < sure < 1900

    def look(*_: Any) -> None:
        raise AssertionError("a problem was looked at by itself")

    monkeypatch.setattr(stacks, "check_range", look)
    assert CARD.build(ragged(), CARD.options(reg=0.1, reg_m="inf")).batch == 4


@pytest.mark.parametrize("far", [1e8, 1e200])
def test_one_that_is_out_of_range_is_named_among_others(far: float, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = ragged()
    inputs["x"][6] *= far
    wrong_as_alone(monkeypatch, inputs, {"reg": 0.1})
