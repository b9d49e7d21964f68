"""Answers of many plans at once are those of each plan by itself."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, solve_and_prove
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Termination
from kernels.uot.batch.answers import Stack, answers
from kernels.uot.batch.steps import StackSteps
from kernels.uot.cpu.answer import answer
from kernels.uot.support import support
from tests.conftest import need_gpu

CARD = SOLVERS["uot"]


def kept(*arrays: Any) -> Any:
    return arrays


def test_the_words_of_the_problems_are_those_of_the_certificate() -> None:
    """The iteration sees a gap of 0 before rounding is bounded: its words are not what was proved."""
    cost = np.random.default_rng(1).random((3, 6, 6))
    options = CARD.options(reg=0.05, tolerance=1e-15)
    problem = CARD.build({"cost": cost}, options)
    solution, certificate = solve_and_prove(CARD, problem, options, Deadline(5), "cpu")
    proved = certificate.facts["problems"]["terminations"]
    assert "gap_reached" not in proved
    assert solution.facts["terminations"] == proved


def one_by_one(problem: UnbalancedTransport, f: Any, g: Any) -> dict[str, Any]:
    options = CARD.options.model_validate({"output": "potentials"})
    ended = Termination.GAP_REACHED, "log", {"tolerance": 1e-3}
    return dict(answer(support(problem), options, (f, g), *ended, Deadline()).arrays)


@pytest.mark.parametrize("reference", ["product", "uniform"])
@pytest.mark.parametrize("reg_m", [(np.inf, np.inf), (np.inf, 2.0), (0.7, np.inf), (1.0, 3.0)], ids=str)
def test_all_at_once_is_one_by_one(reg_m: tuple[float, float], reference: str) -> None:
    rng = np.random.default_rng(3)
    cost, reg = rng.random((5, 7, 9)), rng.random(5) * 0.3 + 0.05
    a, b = rng.random((5, 7)) + 0.1, rng.random((5, 9)) + 0.1
    b *= (a.sum(axis=1) / b.sum(axis=1))[:, None]
    f, g = rng.normal(size=(5, 7)) * 0.1, rng.normal(size=(5, 9)) * 0.1
    f[1] += 1e6
    g[1] -= 1e6  # a constant that hides all digits
    f[2] += 700 * reg[2]  # too far off for an exponential
    stack = Stack(
        cost, a, b, reg, cost.min(axis=(1, 2)), (np.isinf(reg_m[0]), np.isinf(reg_m[1])), reference == "product"
    )
    found = answers(StackSteps(np), kept, stack, f, g)
    assert found.one(2) is None
    for k in (0, 1, 3, 4) if np.isinf(reg_m).all() else (0, 3, 4):
        mine = found.one(k)
        assert mine is not None
        problem = UnbalancedTransport(a[k], b[k], float(reg[k]), reg_m, cost[k], reference=reference)
        wanted = one_by_one(problem, f[k], g[k])
        assert mine.keys() == wanted.keys()
        for name, array in wanted.items():
            np.testing.assert_allclose(mine[name], array, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("exact", [(True, True), (True, False), (False, True), (False, False)], ids=str)
def test_the_device_is_waited_for_once(exact: tuple[bool, bool]) -> None:
    rng, trips = np.random.default_rng(4), list[int]()
    cost, a, b = rng.random((3, 5, 6)), rng.random((3, 5)) + 0.1, rng.random((3, 6)) + 0.1
    b *= (a.sum(axis=1) / b.sum(axis=1))[:, None]
    f, g = rng.normal(size=(3, 5)) * 0.1, rng.normal(size=(3, 6)) * 0.1
    stack = Stack(cost, a, b, np.full(3, 0.2), cost.min(axis=(1, 2)), exact, True)

    def receive(*arrays: Any) -> Any:
        trips.append(len(arrays))
        return arrays

    found, wanted = (answers(StackSteps(np), kept, stack, f, g, *how) for how in ((receive,), ()))
    assert trips == [2 + 2 * sum(exact)]
    assert found.arrays.keys() == wanted.arrays.keys()
    for name, array in wanted.arrays.items():
        assert np.array_equal(found.arrays[name], array)


class Held(np.ndarray):
    """Stands for an array on a device."""

    get: Any


SENT: tuple[Array, ...] = (
    np.arange(35.0).reshape(5, 7),
    np.array([[True, False, True]]),
    np.array([[1.5], [2.5]], np.float32),
    np.arange(300) % 2 == 0,
    np.arange(33.0),
)
"""Whose lengths are no multiples of what they are aligned to."""


def test_what_comes_back_together_is_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_upload = pytest.importorskip("kernels.uot.gpu_upload")
    gets = list[int]()

    def get(array: Held) -> Array:
        gets.append(array.size)
        return np.array(array)

    monkeypatch.setattr(Held, "get", get, raising=False)
    cupy = SimpleNamespace(zeros=lambda *how: np.zeros(*how).view(Held), asarray=lambda array: array.view(Held))
    monkeypatch.setattr(gpu_upload, "cp", cupy)
    for found in (gpu_upload.back(*SENT), gpu_upload.together(*SENT), gpu_upload.back(*gpu_upload.together(*SENT))):
        for array, wanted in zip(found, SENT, strict=True):
            assert (array.dtype, array.shape, array.flags.aligned) == (wanted.dtype, wanted.shape, True)
            assert np.array_equal(array, wanted)
    assert len(gets) == 2


@pytest.mark.gpu
def test_what_comes_back_from_a_device_is_what_was_sent() -> None:
    need_gpu()
    from kernels.uot.gpu_upload import back, together

    for found, wanted in zip(back(*together(*SENT)), SENT, strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert np.array_equal(found, wanted)


def test_a_line_that_underflowed_is_left_to_others() -> None:
    cost = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    one = np.ones((1, 2))
    stack = Stack(cost, one, one, np.array([1e-3]), np.zeros(1), (True, True), True)
    assert answers(StackSteps(np), kept, stack, np.array([[0.0, -2.0]]), np.zeros((1, 2))).one(0) is None
    assert answers(StackSteps(np), kept, stack, np.zeros((1, 2)), np.zeros((1, 2))).one(0) is not None


@pytest.mark.gpu
def test_the_steps_of_a_device_are_those_of_the_host() -> None:
    need_gpu()
    from kernels.uot.batch.gpu_steps import DeviceSteps
    from kernels.uot.gpu_upload import together

    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(4, 9, 3)), rng.normal(size=(4, 11, 3))
    cost, units = rng.random((4, 9, 11)).astype(np.float32), rng.random(4) + 0.1
    row, column, scale = rng.normal(size=(4, 9)), rng.normal(size=(4, 11)), rng.random((4, 1)) + 0.5
    row[0, 0] = 2000.0  # beyond what an exponent may be
    sums = rng.random((4, 9))
    sums[1, 1], sums[2, 2], sums[3, 3] = 0.0, 1e-150, 1e150
    given: tuple[Any, ...] = (x, y, cost, units, row, column, scale, sums, np.abs(row))
    sent = together(*given)
    for array, there in zip(given, sent, strict=True):
        assert np.array_equal(array, there.get())
    for mine, wanted in zip(all_steps(DeviceSteps(), sent), all_steps(StackSteps(np), given), strict=True):
        assert mine.dtype == wanted.dtype
        np.testing.assert_allclose(mine.get(), wanted, rtol=1e-14)


def all_steps(steps: Any, arrays: Any) -> Any:
    x, y, cost, units, row, column, scale, sums, wanted = arrays
    yield from (steps.distances(x, y, root) for root in (False, True))
    yield steps.in_units(cost, units)
    yield steps.plan(cost, row, column, scale)
    for capped in (False, True):
        yield from steps.factors(wanted, sums, capped)
