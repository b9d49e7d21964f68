"""Couplings of low rank on each device: what factors are worth, how they compare, and what their bound is worth."""

import copy
from typing import Any

import numpy as np
import ot
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernels import (
    SOLVERS,
    Array,
    Certificate,
    Claim,
    Deadline,
    Device,
    InvalidProblem,
    Solution,
    Termination,
    recheck,
    solve_and_prove,
)
from kernels.lowrank.search import LowRankSearch
from kernels.problems import lowrank as problems
from tests.conftest import need_gpu
from tests.instances import lowrank as instances
from tests.kernels.strict_arrays import STRICT
from tests.kernels.test_corrupted_answers import corruptions
from tests.workers.service import allowed

CARD = SOLVERS["lowrank"]
FEW = instances.cloud(5, 2, 3)
FAMILIES = {case.label: case for case in instances.CASES}


def solved(inputs: Any, device: Device = "cpu", limit_s: float = 60, **options: Any) -> tuple[Solution, Any]:
    asked = CARD.options(**options)
    problem = CARD.build(inputs, asked)
    solution, certificate = solve_and_prove(CARD, problem, asked, Deadline(limit_s), device)
    assert certificate.holds, certificate
    return solution, certificate


def plan_of(solution: Solution) -> Array:
    q, r, g = (solution.arrays[name] for name in ("q", "r", "g"))
    return np.asarray((q / g) @ r.T)


def costs_of(inputs: Any) -> Array:
    if "cost" in inputs:
        return np.asarray(inputs["cost"])
    if "row_factors" in inputs:
        return np.asarray(inputs["row_factors"] @ inputs["column_factors"].T)
    return np.asarray(((inputs["x"][:, None] - inputs["y"]) ** 2).sum(axis=2))


def weights_of(inputs: Any) -> tuple[Array, Array]:
    m, n = costs_of(inputs).shape
    a, b = (np.asarray(inputs.get(name, np.ones(size)), float) for name, size in (("a", m), ("b", n)))
    return a / a.sum(), b / b.sum()


def optimum(inputs: Any) -> float:
    """Of optimal transport, by POT's network simplex."""
    return float(ot.emd2(*weights_of(inputs), costs_of(inputs)))


def said_of(inputs: Any, options: Any, solution: Solution, certificate: Certificate) -> dict[str, bool | None]:
    """Each statement of an answer, checked in fractions."""
    claim = Claim(
        str(certificate.termination or solution.termination), certificate.objective, certificate.bound,
        certificate.gap_abs, certificate.gap_rel, certificate.max_violation, solution.arrays, solution.facts,
    )  # fmt: skip
    return {one.name: one.holds for one in recheck("lowrank", inputs, options, claim)}


@pytest.mark.parametrize("label", ["points", "weights", "costs", "factors"])
def test_factors_are_a_coupling_and_cost_what_is_said(label: str, device: Device) -> None:
    case = FAMILIES[label]
    inputs = case.inputs()
    solution, certificate = solved(inputs, device, **case.options)
    plan, (a, b), cost = plan_of(solution), weights_of(inputs), costs_of(inputs)
    np.testing.assert_allclose(plan.sum(axis=1), a, atol=1e-13)
    np.testing.assert_allclose(plan.sum(axis=0), b, atol=1e-13)
    for name in ("q", "r"):
        np.testing.assert_allclose(solution.arrays[name].sum(axis=0), solution.arrays["g"], atol=1e-13)
    assert np.linalg.matrix_rank(plan, tol=1e-9) <= case.options["rank"]
    assert certificate.objective == pytest.approx((plan * cost).sum(), rel=1e-10)
    assert certificate.objective >= (plan * cost).sum() - 1e-14
    best = optimum(inputs)
    assert certificate.bound == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert certificate.bound <= best + 1e-14 * abs(cost).max()


@pytest.mark.parametrize("label", ["points", "weights", "costs", "factors"])
def test_a_rank_that_is_no_constraint_reaches_optimal_transport(label: str, device: Device) -> None:
    inputs = FAMILIES[label].inputs()
    solution, certificate = solved(inputs, device, rank=4096)
    assert certificate.objective == pytest.approx(optimum(inputs), rel=1e-9)
    assert solution.termination is Termination.OPTIMAL


def test_more_rank_costs_no_more() -> None:
    inputs = instances.points(80, 70, 3)
    values = [solved(inputs, rank=rank)[1].objective for rank in (1, 2, 4, 8, 16, 70)]
    assert values == sorted(values, reverse=True)
    a, b = weights_of(inputs)
    assert values[0] == pytest.approx(a @ costs_of(inputs) @ b, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_worse_than_pot(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.random((60, 2)), rng.random((70, 2)) ** 2
    a, b = np.full(60, 1 / 60), np.full(70, 1 / 70)
    q, r, g = ot.lowrank_sinkhorn(x, y, a, b, rank=6, init="random", seed_init=seed, numItermax=300, warn=False)
    theirs = float((((q / g) @ r.T) * ((x[:, None] - y) ** 2).sum(axis=2)).sum())
    _, certificate = solved({"x": x, "y": y}, rank=6)
    assert certificate.objective <= theirs * (1 + 1e-6)


def test_clusters_are_found(device: Device) -> None:
    """Clusters that lie apart, moved: what the best coupling of that rank costs is known but for their widths."""
    rng = np.random.default_rng(1)
    centres = 10 * np.eye(5)[:, :3] + 20 * rng.random((5, 3))
    x, y = (np.repeat(centres, 12, axis=0) + 1e-3 * rng.normal(size=(60, 3)) for _ in "xy")
    for init in ("pairs", "random"):
        solution, certificate = solved({"x": x, "y": y + 1}, device, rank=5, init=init, starts=4)
        assert certificate.objective == pytest.approx(3, rel=1e-2)
        assert len(solution.arrays["g"]) == 5
    assert certificate.gap_rel < 1e-2


def test_points_are_their_costs(device: Device) -> None:
    inputs = instances.weighted()
    by_points = solved(inputs, device, rank=3, seed=5)[1]
    by_costs = solved({"cost": costs_of(inputs), "a": inputs["a"], "b": inputs["b"]}, device, rank=3, seed=5)[1]
    assert by_points.objective == pytest.approx(by_costs.objective, rel=1e-6)
    assert by_points.bound == pytest.approx(by_costs.bound, rel=1e-9)
    inner = solved({"x": inputs["x"], "y": inputs["y"]}, device, rank=3, metric="inner")[1]
    same = solved({"row_factors": -inputs["x"], "column_factors": inputs["y"]}, device, rank=3)[1]
    assert inner.objective == same.objective


def test_order_and_units_do_not_matter() -> None:
    inputs = instances.weighted()
    plain = solved(inputs, rank=4)[1]
    moved = {"x": 2.0**40 * inputs["x"], "y": 2.0**40 * inputs["y"], "a": 3 * inputs["a"], "b": inputs["b"] / 2**7}
    scaled = solved(moved, rank=4)[1]
    assert scaled.objective == pytest.approx(2.0**80 * plain.objective, rel=1e-6)
    assert scaled.bound == pytest.approx(2.0**80 * plain.bound, rel=1e-9)
    far = solved(inputs | {"x": inputs["x"] + 1e6, "y": inputs["y"] + 1e6}, rank=4)[1]
    assert far.objective == pytest.approx(plain.objective, rel=1e-6)
    assert far.bound == pytest.approx(plain.bound, rel=1e-6)


def test_a_sample_is_enough_for_many_points(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few points drawn, starts are spread from the sample, and its potentials still bound all."""
    monkeypatch.setattr("kernels.lowrank.starts.LARGEST_SIMPLEX", 50)
    monkeypatch.setattr("kernels.lowrank.starts.SAMPLE", 40)
    inputs = instances.points(150, 170, 2) | {"a": instances.weights(150, 1)}
    best = optimum(inputs)
    for options in ({"rank": 5}, {"rank": 45, "starts": 1}):
        _, certificate = solved(inputs, device, **options)
        assert 0.5 * best < certificate.bound <= best * (1 + 1e-12) <= certificate.objective * (1 + 1e-9)


def test_too_many_pairs_have_no_bound_and_the_answer_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "MOST_PAIRS", 599)
    inputs = instances.points(30, 20)
    solution, certificate = solved(inputs, rank=3)
    assert (certificate.bound, certificate.gap_abs, certificate.gap_rel) == (None, None, None)
    assert "30 x 20 pairs are more than" in certificate.proved
    assert solution.termination is Termination.CONVERGED
    assert not solution.arrays["f"].any()
    said = said_of(inputs, {"rank": 3}, solution, certificate)
    assert all(said.values()), said


@pytest.mark.parametrize("label", FAMILIES)
def test_claims_are_true_in_fractions(label: str) -> None:
    case = FAMILIES[label]
    inputs = case.inputs()
    solution, certificate = solved(inputs, **case.options)
    said = said_of(inputs, case.options, solution, certificate)
    assert {"answer", "violation", "objective", "bound", "gap"} <= said.keys()
    assert all(said.values()), said


@pytest.mark.parametrize("label", ["points", "costs", "factors"])
@pytest.mark.filterwarnings("ignore")
def test_no_corruption_fools_or_breaks_the_certificate(label: str) -> None:
    case = {
        "points": ({"x": instances.cloud(5, 2, 1), "y": instances.cloud(6, 2, 2)}, {"rank": 2}),
        "costs": ({"cost": np.random.default_rng(2).normal(size=(5, 6))}, {"rank": 3}),
        "factors": (
            {"row_factors": instances.cloud(5, 2, 3), "column_factors": -instances.cloud(6, 2, 4)},
            {"rank": 2},
        ),
    }
    inputs, options = case[label]
    problem = CARD.build(inputs, CARD.options(**options))
    solution = CARD.solve(problem, CARD.options(**options), Deadline(20))
    seen = 0
    for name, array in solution.arrays.items():
        for what, bad in corruptions(array):
            broken = copy.deepcopy(solution)
            broken.arrays[name] = bad
            certificate = CARD.certify(problem, broken)
            if certificate.holds:
                seen += 1
                wide = {k: np.asarray(v, float) for k, v in broken.arrays.items() if v.dtype.kind in "fiub"}
                broken.arrays = {**wide, "f": used(broken.arrays["f"], 5)}
                said = said_of(inputs, options, broken, certificate)
                assert all(said.values()), (name, what, said)
    assert seen > 3


def used(f: Array, size: int) -> Array:
    """The potentials that the certificate goes by."""
    if f.shape != (size,) or f.dtype.kind != "f":
        return np.zeros(size)
    return np.where(np.isfinite(f) & (abs(f) < 1e250), f, 0.0).astype(np.float64)


@example(534383662, 3, 5, 1, "factors", -58)  # no cost comes near the product of the largest factors
@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 5), st.integers(1, 4),
    st.sampled_from(["points", "factors", "cost"]), st.integers(-300, 300),
)  # fmt: skip
def test_any_factors_and_any_potentials_are_refused_or_told_the_truth(
    seed: int, m: int, n: int, rank: int, kind: str, power: int
) -> None:
    """Factors off by a little or by a lot, potentials from nowhere, sizes of any order: all in fractions."""
    rng = np.random.default_rng(seed)
    scale = 2.0 ** (power if kind == "cost" else power // 2)
    if kind == "cost":
        inputs: dict[str, Any] = {"cost": scale * rng.normal(size=(m, n))}
    else:
        names = ("x", "y") if kind == "points" else ("row_factors", "column_factors")
        offset, d = rng.choice([0.0, 1e5]), int(rng.choice([1, 2, 40]))
        inputs = {name: scale * (rng.normal(size=(k, d)) + offset) for name, k in zip(names, (m, n), strict=True)}
    inputs |= {"a": rng.integers(0, 4, m) + np.eye(m)[0], "b": rng.random(n) + 1e-3}
    options = {"rank": rank}
    problem = CARD.build(inputs, CARD.options(**options))
    (a, b), k = weights_of(inputs), problem.rank
    g = rng.dirichlet(np.ones(k))
    arrays = {"q": a[:, None] * g, "r": b[:, None] * g, "g": g, "f": scale**2 * rng.normal(size=m)}
    broken = rng.choice(["q", "r", "g"])
    arrays[broken] = arrays[broken] * (
        1 + rng.choice([0.0, 1e-16, 1e-12, 1e-10, 1e-3]) * rng.random(arrays[broken].shape)
    )
    solution = Solution(Termination.OPTIMAL, "", arrays, facts={"tolerance": 1e-6})
    certificate = CARD.certify(problem, solution)
    if certificate.holds:
        said = said_of(inputs, options, solution, certificate)
        assert all(said.values()), said
    else:
        assert certificate.max_violation > 1e-10


def test_wrong_potentials_make_a_weaker_bound() -> None:
    inputs = instances.weighted()
    problem = CARD.build(inputs, CARD.options(rank=3))
    solution = CARD.solve(problem, CARD.options(rank=3), Deadline(20))
    truth = CARD.certify(problem, solution).bound
    assert truth is not None
    rng = np.random.default_rng(0)
    for f in (np.nan * problem.a, -solution.arrays["f"], rng.normal(size=25), np.full(25, 1e300)):
        found = CARD.certify(problem, Solution(Termination.OPTIMAL, "", solution.arrays | {"f": f}))
        assert found.bound is not None
        assert found.bound < truth
        assert found.termination is Termination.CONVERGED


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "cost"),
    ({"cost": np.ones((2, 2)), "x": np.ones((2, 2)), "y": np.ones((2, 2))}, "x"),
    ({"x": np.ones((2, 2))}, "y"),
    ({"column_factors": np.ones((2, 2))}, "row_factors"),
    ({"x": np.ones((2, 2)), "y": np.ones((2, 3))}, "y"),
    ({"row_factors": np.ones((2, 2)), "column_factors": np.ones((2, 3))}, "column_factors"),
    ({"x": np.full((2, 2), np.nan), "y": np.ones((2, 2))}, "x"),
    ({"cost": np.array([[np.inf, 1.0]])}, "cost"),
    ({"cost": np.array([[1e201, 1.0]])}, "cost"),
    ({"x": np.full((2, 2), 1e101), "y": np.ones((2, 2))}, "x"),
    ({"x": np.ones((2, 2000)), "y": np.ones((2, 2000))}, "x"),
    ({"cost": np.ones((2, 2)), "a": np.array([1, -1])}, "a"),
    ({"cost": np.ones((2, 2)), "a": np.array([0, 0])}, "a"),
    ({"cost": np.ones((2, 2)), "b": np.ones(3)}, "b"),
    ({"cost": np.ones((2, 2)), "b": np.array([np.nan, 1])}, "b"),
]


@pytest.mark.parametrize(("inputs", "field"), BAD)
def test_wrong_inputs_are_named(inputs: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        CARD.build(inputs, CARD.options())
    assert caught.value.field == field


def test_extremes_are_answered(device: Device) -> None:
    """Costs of 0, of one value, of all sizes; a weight that has nearly all; points on one spot."""
    rng = np.random.default_rng(3)
    wide = {"cost": rng.normal(size=(8, 9)) * 10.0 ** rng.integers(-150, 150, (8, 9))}
    one = {"x": np.ones((6, 2)), "y": np.ones((7, 2))}
    steep = instances.points(10, 12) | {"a": np.array([1.0] + [1e-200] * 9)}
    for inputs in (wide, one, steep, {"cost": np.zeros((5, 5))}, {"cost": np.full((5, 4), -3.5)}):
        _, certificate = solved(inputs, device, rank=3)
        assert certificate.bound is not None
        assert certificate.bound <= certificate.objective


def test_a_time_limit_is_kept_with_a_coupling() -> None:
    rng = np.random.default_rng(2)
    deadline = Deadline(0.5)
    asked = CARD.options(rank=30, starts=50)
    problem = CARD.build({"x": rng.random((8000, 3)), "y": rng.random((9000, 3))}, asked)
    solution, certificate = solve_and_prove(CARD, problem, asked, deadline, "cpu")
    assert certificate.holds
    assert solution.termination is Termination.TIME_LIMIT
    assert deadline.elapsed_s < allowed(4)


def test_every_report_is_better() -> None:
    heard: list[float] = []
    asked = CARD.options(rank=5, starts=3, seed=4)
    problem = CARD.build(instances.points(60, 50), asked)
    told = Deadline(20, on_progress=lambda p: heard.append(p.objective) if p.objective is not None else None)
    first, again = (CARD.solve(problem, asked, one).arrays["q"] for one in (told, Deadline(20)))
    assert len(heard) > 5
    assert heard == sorted(heard, reverse=True)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("kind", ["points", "costs"])
@pytest.mark.parametrize("is_all", [True, False])
def test_the_search_of_a_device_mixes_no_arrays_of_the_host_in(
    kind: str, is_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a stand-in for CuPy: the same answer as with NumPy."""
    if not is_all:
        monkeypatch.setattr("kernels.lowrank.starts.LARGEST_SIMPLEX", 10)
        monkeypatch.setattr("kernels.lowrank.starts.SAMPLE", 12)
    inputs = FAMILIES[kind].inputs()
    for init in ("pairs", "random"):
        asked = CARD.options(rank=3, init=init, max_iterations=30, starts=2)
        problem = CARD.build(inputs, asked)
        here, there = (LowRankSearch(problem, asked, Deadline(60), xp).run() for xp in (np, STRICT))
        for name in ("q", "r", "g", "f"):
            np.testing.assert_allclose(there.arrays[name], here.arrays[name], atol=1e-9)
        assert CARD.certify(problem, there).holds


@pytest.mark.gpu
def test_the_gpu_finds_as_good_factors_at_size() -> None:
    need_gpu()
    rng = np.random.default_rng(6)
    inputs = {"x": rng.random((5000, 3)), "y": rng.random((6000, 3)) ** 2}
    there, here = solved(inputs, "gpu", rank=12, starts=1)[1], solved(inputs, rank=12, starts=1)[1]
    assert there.objective <= 1.05 * here.objective
    assert there.bound == pytest.approx(here.bound, rel=1e-6)
