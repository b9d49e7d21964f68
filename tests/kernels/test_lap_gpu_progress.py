"""What a search on the GPU reports while it runs: the host's share of it, and on a GPU the whole."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, Progress
from kernels.deadline import Retold
from tests.conftest import gpu_is_here
from tests.oracles import assignment as oracle

progress = pytest.importorskip("kernels.lap.auto.gpu_progress", reason="needs CuPy", exc_type=ImportError)


@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e150])
@pytest.mark.parametrize("shape", [(40, 40), (30, 50)])
def test_the_bound_is_below_the_exact_sum_and_near(scale: float, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    cost = (rng.random(shape) - 0.5) * scale
    v = (rng.random(shape[1]) - (0.5 if shape[0] == shape[1] else 1)) * scale
    least = (cost - v).min(axis=1)
    exact = sum(map(Fraction, v.tolist())) + sum(
        min(Fraction(c) - Fraction(p) for c, p in zip(row, v.tolist(), strict=True)) for row in cost.tolist()
    )
    found = progress.weak_sum(least, v, cost.dtype)
    assert Fraction(found) <= exact
    assert Fraction(found) >= exact - Fraction(scale) * 2**-40


def test_prices_that_bound_nothing_give_no_bound() -> None:
    assert progress.weak_sum(np.array([1.0, np.inf]), np.zeros(2), np.dtype(np.float64)) is None
    assert progress.weak_sum(np.array([1.0]), np.array([0.0, 0.1]), np.dtype(np.float64)) is None
    assert progress.weak_sum(np.array([3, 2]), np.array([-4, 9]), np.dtype(np.int64)) == 10


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("whole", [True, False])
def test_a_pairing_seen_in_the_middle_of_a_change_is_completed(sign: int, whole: bool) -> None:
    """A row that two columns name keeps one of them; the objective is that of a pairing."""
    rng = np.random.default_rng(8)
    for _ in range(100):
        lines: Array = rng.integers(0, 50, (5, 7)) if whole else rng.random((5, 7))
        seen = np.where(rng.random(7) < 0.6, rng.integers(0, 5, 7), -1)
        found = progress.completed(lines, seen, sign)
        best = oracle.brute_force(lines, sign < 0)
        assert best is not None
        assert sign * found >= sign * best - 1e-12
        assert sign * found <= np.sort(sign * lines.astype(float), axis=1)[:, -1].sum() + 1e-12


def test_a_pairing_that_cannot_be_completed_has_no_objective() -> None:
    lines = np.array([[1.0, np.inf], [2.0, np.inf]])
    assert progress.completed(lines, np.array([0, -1]), 1) is None
    assert progress.completed(lines, np.array([1, 0]), 1) is None


def test_a_retold_deadline_says_what_the_one_behind_says() -> None:
    heard: list[Progress] = []
    behind = Deadline(5.0, on_progress=heard.append)
    told = Retold(behind, lambda objective, bound: (None, bound))
    assert told.heard
    assert not Retold(Deadline(), lambda objective, bound: (objective, bound)).heard
    assert told.expired() is None
    assert told.allows(1.0)
    assert not told.allows(6.0)
    assert 0 < told.remaining_s <= 5.0
    assert told.elapsed_s < 5.0
    told.report(3, 7, 5, 0.5)
    assert (heard[-1].iteration, heard[-1].objective, heard[-1].bound, heard[-1].fraction) == (3, None, 5, 0.5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
@pytest.mark.parametrize(("shape", "maximize"), [((2048, 2048), False), ((1500, 1500), True), ((1100, 1600), False)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.gpu
@pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")
def test_a_search_tells_of_objective_and_bound(
    dtype: Any, shape: tuple[int, int], maximize: bool, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Costs of clustered points, watched as if they took long."""
    monkeypatch.setattr(progress, "LEAST_ENTRIES", 1)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    monkeypatch.setattr("kernels.lap.gpu.SPIN_S", 0.0)
    rng = np.random.default_rng(2)
    x, y = (rng.integers(0, 20, (k, 2)) * 500 + rng.integers(0, 30, (k, 2)) for k in shape)
    cost = ((x[:, None] - y[None]) ** 2).sum(-1).astype(dtype)
    card, heard = SOLVERS["lap"], list[Progress]()
    options = card.options.model_validate({"maximize": maximize})
    problem = card.build({"cost": cost.T if turned else cost}, options)
    for _ in range(5):  # where others use the device, a search may be over before the host has looked
        solution = card.solve(problem, options, Deadline(60.0, on_progress=heard.append), "gpu")
        if any(one.bound is not None for one in heard) and any(one.objective is not None for one in heard):
            break
    certificate = card.certify(problem, solution)
    assert solution.termination == "optimal"
    best, better = certificate.objective, -1 if maximize else 1
    assert best is not None
    bounds = [one.bound for one in heard if one.bound is not None]
    objectives = [one.objective for one in heard if one.objective is not None]
    if solution.timings_ms["solve"] > 5:
        assert bounds
        assert objectives
    assert all(better * (best - bound) >= -1e-12 * abs(best) for bound in bounds)
    assert all(better * (found - best) >= -1e-12 * abs(best) for found in objectives)
