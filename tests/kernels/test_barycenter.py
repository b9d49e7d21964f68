"""Barycenters: against other libraries and other ways to work them out, and what must not change the answer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, InvalidProblem, Solution, Termination, solve_and_prove
from kernels.certificates.exact.every import recheck
from kernels.certificates.exact.statement import Claim
from tests.fuzz.between import linear
from tests.instances.barycenter import clouds, grid, histograms, masses, own_costs

CARD = SOLVERS["barycenter"]


def solved(inputs: Any, device: Any = "cpu", **options: Any) -> tuple[Solution, Certificate]:
    chosen = CARD.options(**options)
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, Deadline(30), device)
    assert certificate.holds, certificate
    assert certificate.max_violation < 1e-11
    return solution, certificate


@pytest.mark.parametrize("reg", [0.2, 0.02])
def test_entropic_as_pot(reg: float, device: Any) -> None:
    ot = pytest.importorskip("ot")
    inputs = histograms(4, 25)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    solution, certificate = solved({**inputs, "measure_weights": weights}, device, reg=reg, tolerance=1e-9)
    theirs = ot.bregman.barycenter(
        inputs["histograms"].T, inputs["cost"], reg, weights, method="sinkhorn_log", stopThr=1e-13, numItermax=2000
    )  # its method sinkhorn begins at potentials whose weighted sum is not 0, and keeps what they are off
    assert np.abs(solution.arrays["barycenter"] - theirs).sum() < 1e-7
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-9


def test_small_reg_in_the_log_domain(device: Any) -> None:
    """Where exp(-C / reg) is 0, and the value comes near that without an entropic term."""
    inputs = histograms(3, 20)
    solution, certificate = solved(inputs, device, reg=5e-4, tolerance=1e-4)
    assert "log" in solution.method
    best = linear(CARD.build(inputs, CARD.options(reg=0)))
    assert best is not None
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert best < certificate.bound <= certificate.objective < best + 5e-4 * np.log(20 * 20)


def test_exact_as_a_linear_programme_and_as_pot() -> None:
    ot = pytest.importorskip("ot")
    for inputs in (histograms(3, 9), own_costs(3, 5, 6)):
        solution, certificate = solved(inputs, reg=0)
        best = linear(CARD.build(inputs, CARD.options(reg=0)))
        assert solution.termination is Termination.OPTIMAL
        assert certificate.objective == pytest.approx(best, abs=1e-8)
        assert certificate.bound == pytest.approx(best, abs=1e-8)
        spare = solution.arrays["f"][:, :, None] + solution.arrays["g"][:, None]
        assert (spare <= CARD.build(inputs, CARD.options(reg=0)).cost + 1e-12).all()
    inputs = histograms(3, 9)
    theirs = ot.lp.barycenter(inputs["histograms"].T, inputs["cost"], solver="highs")
    cost = sum(ot.emd2(theirs / theirs.sum(), a, inputs["cost"]) for a in inputs["histograms"]) / 3
    assert solved(inputs, reg=0)[1].objective == pytest.approx(cost, abs=1e-8)


def test_moving_points_as_pot() -> None:
    ot = pytest.importorskip("ot")
    x = clouds(3, 12)["x"]
    solution, certificate = solved({"x": x, "support": x[0]}, method="free")
    even = np.full(12, 1 / 12)
    theirs = ot.lp.free_support_barycenter(list(x), [even] * 3, x[0].copy(), numItermax=99, stopThr=1e-14)
    cost = sum(ot.emd2(even, even, ot.dist(theirs, one)) for one in x) / 3
    assert certificate.objective == pytest.approx(cost, rel=1e-9)
    pairs = sum(ot.emd2(even, even, ot.dist(x[i], x[j])) for i, j in ((0, 1), (0, 2), (1, 2))) / 9
    assert certificate.bound == pytest.approx(pairs, rel=1e-9)
    assert solution.termination is Termination.CONVERGED


def test_debiased_as_pot_and_as_sharp_as_the_measures(device: Any) -> None:
    ot = pytest.importorskip("ot")
    places = np.linspace(0, 1, 40)
    shapes = np.exp(-((places - np.array([[0.3], [0.6]])) ** 2) / 0.01)
    inputs = {"histograms": shapes, "x": places[:, None]}
    solution, certificate = solved(inputs, device, reg=0.01, tolerance=1e-6, debiased=True)
    cost = (places[:, None] - places) ** 2
    shapes = shapes / shapes.sum(axis=1, keepdims=True)
    theirs = ot.bregman.barycenter_debiased(shapes.T, cost, 0.01, method="sinkhorn_log", stopThr=1e-12)
    assert np.abs(solution.arrays["barycenter"] - theirs).sum() < 1e-3  # both creep at the end
    plain = solved(inputs, device, reg=0.01)[0].arrays["barycenter"]
    widths = [float(b @ (places - places @ b) ** 2) for b in (shapes[0], solution.arrays["barycenter"], plain)]
    assert widths[1] == pytest.approx(widths[0], rel=0.05)
    assert widths[2] > 1.3 * widths[0]
    assert solution.termination is Termination.CONVERGED
    assert certificate.bound is None


def test_the_bound_of_two_clouds_is_attained() -> None:
    """The middle of an optimal transport is a barycenter, and costs w_1 w_2 of it."""
    _, certificate = solved({**clouds(2, 9), "measure_weights": np.array([3.0, 1.0])})
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-12


@pytest.mark.parametrize("reg", [0.1, 0])
def test_order_and_units_do_not_matter(reg: float) -> None:
    inputs = histograms(4, 12)
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    one, told = solved({**inputs, "measure_weights": weights}, reg=reg)
    turned = {**inputs, "histograms": inputs["histograms"][::-1] * 4, "measure_weights": weights[::-1] * 8}
    other, same = solved(turned, reg=reg)
    assert same.objective == pytest.approx(told.objective, rel=1e-6)
    if reg:
        assert np.abs(one.arrays["barycenter"] - other.arrays["barycenter"]).sum() < 1e-6
    for power in (-60, 40):
        moved, scaled = solved({**inputs, "measure_weights": weights, "cost": np.ldexp(inputs["cost"], power)},
                               reg=float(np.ldexp(reg, power)))  # fmt: skip
        assert told.objective is not None
        assert told.bound is not None
        assert scaled.objective == np.ldexp(told.objective, power)
        assert scaled.bound == np.ldexp(told.bound, power)
        np.testing.assert_array_equal(moved.arrays["barycenter"], one.arrays["barycenter"])


def test_one_measure_again_and_again_is_its_own_barycenter() -> None:
    same = np.repeat(masses(1, 8), 3, axis=0)
    solution, certificate = solved({"histograms": same, "cost": grid(8)}, reg=0)
    np.testing.assert_allclose(solution.arrays["barycenter"], same[0], atol=1e-9)
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(0, abs=1e-12)


def test_what_has_no_mass_and_no_weight_has_no_say() -> None:
    inputs = histograms(3, 10)
    more = np.vstack([inputs["histograms"], masses(1, 10, 9)])
    for reg in (0.1, 0):
        _, told = solved(inputs, reg=reg)
        _, same = solved({**inputs, "histograms": more, "measure_weights": np.array([1, 1, 1, 0])}, reg=reg)
        assert same.objective == pytest.approx(told.objective, rel=1e-6)


def test_a_hundred_measures_and_a_stop() -> None:
    inputs = histograms(100, 15)
    assert solved(inputs, reg=0.1)[0].termination is Termination.GAP_REACHED
    chosen = CARD.options(reg=0.1)
    heard: list[Any] = []
    deadline = Deadline(30, cancelled=lambda: len(heard) >= 2, on_progress=heard.append)
    solution = CARD.solve(CARD.build(inputs, CARD.options(reg=1e-3)), chosen, deadline)
    assert solution.termination is Termination.STOPPED
    assert heard[-1].bound < heard[-1].objective
    assert CARD.certify(CARD.build(inputs, CARD.options(reg=1e-3)), solution).holds


def test_a_programme_without_time_is_answered_by_projections() -> None:
    problem = CARD.build(histograms(6, 40), CARD.options(reg=0))
    solution = CARD.solve(problem, CARD.options(reg=0), Deadline(0.0))
    certificate = CARD.certify(problem, solution)
    assert solution.termination is Termination.TIME_LIMIT
    assert certificate.holds
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert 0 < certificate.bound < certificate.objective < 2 * certificate.bound


def test_without_time_costs_that_are_nearly_the_same_have_a_plan() -> None:
    """Their spread is lost in the rounding of potentials."""
    inputs = histograms(2, 30)
    inputs["cost"] = 4 + 1e-15 * np.random.default_rng(1).standard_normal((30, 30))
    problem = CARD.build(inputs, CARD.options(reg=0))
    solution = CARD.solve(problem, CARD.options(reg=0), Deadline(0.0))
    assert solution.termination is Termination.TIME_LIMIT
    certificate = CARD.certify(problem, solution)
    assert certificate.holds
    assert certificate.objective == pytest.approx(4, rel=1e-9)


def test_a_gap_is_not_a_word() -> None:
    """What claims more than its potentials prove is renamed."""
    problem = CARD.build(histograms(3, 12), CARD.options(reg=0.01))
    solution = CARD.solve(problem, CARD.options(reg=0.01), Deadline())
    solution.arrays["f"] = solution.arrays["f"] + np.array([[0.1], [0.0], [-0.3]])
    certificate = CARD.certify(problem, solution)
    assert certificate.holds
    assert certificate.termination is Termination.CONVERGED
    solution.arrays["barycenter"] = solution.arrays["barycenter"][::-1] * 1.01
    assert not CARD.certify(problem, solution).holds


@pytest.mark.parametrize(
    ("inputs", "options"),
    [(histograms(3, 6), {"reg": 0.05}), (histograms(3, 6), {"reg": 0}), (clouds(2, 4), {"method": "free"})],
)
def test_the_second_check_reads_the_word(inputs: Any, options: dict[str, Any]) -> None:
    """What `allot verify` says of a word that the gap does not earn, and of the word that was given."""
    solution, certificate = solved(inputs, **options)
    claim = Claim(
        solution.termination, certificate.objective, certificate.bound, certificate.gap_abs, certificate.gap_rel,
        certificate.max_violation, solution.arrays,
    )  # fmt: skip
    assert all(one.holds for one in recheck("barycenter", inputs, options, claim))
    assert certificate.bound is not None
    assert certificate.gap_abs is not None
    loose = replace(claim, bound=certificate.bound - 1, gap_abs=certificate.gap_abs + 1, gap_rel=1e9)
    for word in ("optimal", "gap_reached"):
        told = {one.name: one.holds for one in recheck("barycenter", inputs, options, replace(loose, termination=word))}
        assert told[word.replace("_", " ")] is False
        assert [name for name, holds in told.items() if not holds] == [word.replace("_", " ")]
        none = replace(claim, termination=word, bound=None, gap_abs=None, gap_rel=None)
        assert {one.name for one in recheck("barycenter", inputs, options, none) if not one.holds} == {
            word.replace("_", " ")
        }


def test_one_dear_cost_does_not_make_a_gap_small() -> None:
    """A gap is measured against what is near: a cost that nobody takes says nothing about rounding."""
    inputs = histograms(3, 6)
    inputs["cost"] = np.array(inputs["cost"])
    inputs["cost"][0, 5] = 1e15
    problem = CARD.build(inputs, CARD.options(reg=0))
    b = np.eye(6)[2]
    plan = b[None, :, None] * problem.masses[:, None]
    for claim in (Termination.OPTIMAL, Termination.GAP_REACHED):
        arrays = {"barycenter": b, "f": np.zeros((3, 6)), "g": np.zeros((3, 6)), "plan": plan}
        certificate = CARD.certify(problem, Solution(claim, "", arrays, facts={"tolerance": 1e-6}))
        assert certificate.gap_rel is not None
        assert certificate.gap_rel > 0.99
        assert certificate.termination is Termination.CONVERGED


def test_a_far_point_without_mass_does_not_make_a_gap_small() -> None:
    x = clouds(2, 9)["x"]
    x[:, 0] += 1e9
    masses_ = np.full((2, 9), 1 / 8) * (np.arange(9) > 0)
    problem = CARD.build({"x": x, "histograms": masses_, "support": x[0, 1:2]}, CARD.options(method="free"))
    arrays = {"points": problem.start, "plan": problem.masses[:, None], "pair_potentials": np.zeros((1, 9))}
    certificate = CARD.certify(problem, Solution(Termination.OPTIMAL, "", arrays))
    assert certificate.holds
    assert certificate.gap_rel is not None
    assert certificate.gap_rel > 0.1
    assert certificate.termination is Termination.CONVERGED


def test_costs_of_0_and_tiny_ones_are_proved() -> None:
    inputs = {"histograms": masses(3, 6), "cost": np.zeros((6, 6))}
    solution, certificate = solved(inputs, reg=0)
    assert solution.termination is Termination.OPTIMAL
    assert certificate.gap_abs == 0
    solution, certificate = solved({**inputs, "cost": np.ldexp(grid(6) + 0.5, -990)}, reg=0)
    assert solution.termination is Termination.OPTIMAL
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-9


def test_what_rounding_may_leave_grows_with_the_points() -> None:
    """Sums of thousands of masses cannot be told to be as near as those of a few."""
    n = 4300
    problem = CARD.build({"histograms": np.ones((2, n)), "cost": np.ones((1, n))}, CARD.options(reg=1.0))
    arrays = {"barycenter": np.ones(1), "f": np.zeros((2, 1)), "g": np.ones((2, n))}
    assert CARD.certify(problem, Solution(Termination.CONVERGED, "", arrays)).holds
    x = np.repeat(np.linspace(0, 1, n)[None, :, None], 2, axis=0)
    moving = CARD.build({"x": x, "support": np.full((1, 1), 0.5)}, CARD.options(method="free"))
    arrays = {"points": moving.start, "plan": np.full((2, 1, n), 1 / n), "pair_potentials": np.zeros((1, n))}
    assert CARD.certify(moving, Solution(Termination.CONVERGED, "", arrays)).holds


X = np.random.default_rng(0).random((3, 4, 2))
A = np.full((3, 4), 0.25)
C = np.ones((5, 4))
HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "nothing": ({}, {}, "x"),
    "no histograms": ({"cost": C}, {}, "histograms"),
    "one measure": ({"histograms": A[:1], "cost": C}, {}, "histograms"),
    "too many": ({"histograms": np.ones((101, 4)), "cost": C}, {}, "histograms"),
    "negative": ({"histograms": A - [0.5, 0, 0, 0], "cost": C}, {}, "histograms"),
    "no mass": ({"histograms": A * [[1], [0], [1]], "cost": C}, {}, "histograms"),
    "other sums": ({"histograms": A * [[1], [2], [1]], "cost": C}, {}, "histograms"),
    "nan": ({"histograms": A * np.nan, "cost": C}, {}, "histograms"),
    "forbidden": ({"histograms": A, "cost": C * np.inf}, {}, "cost"),
    "huge": ({"histograms": A, "cost": C * 1e200}, {}, "cost"),
    "shape": ({"histograms": A, "cost": C[:, :3]}, {}, "histograms"),
    "count": ({"histograms": A, "cost": np.ones((2, 5, 4))}, {}, "histograms"),
    "weights": ({"histograms": A, "cost": C, "measure_weights": np.array([1.0, -1, 1])}, {}, "measure_weights"),
    "no weight": ({"histograms": A, "cost": C, "measure_weights": np.zeros(3)}, {}, "measure_weights"),
    "both": ({"histograms": A, "cost": C, "x": X}, {"method": "entropic"}, "x"),
    "free with reg": ({"x": X}, {"reg": 0.1}, "reg"),
    "free with a metric": ({"x": X}, {"metric": "cosine"}, "metric"),
    "dimension": ({"x": X, "support": np.ones((2, 3))}, {}, "support"),
    "support twice": ({"x": X, "support": np.ones((2, 2))}, {"method": "free", "support_points": 3}, "support_points"),
    "exact with reg": ({"histograms": A, "cost": C}, {"method": "exact", "reg": 1.0}, "reg"),
    "large programme": ({"histograms": np.ones((50, 100)), "cost": np.ones((100, 100))}, {"reg": 0}, "reg"),
    "debiased rectangle": ({"histograms": A, "cost": C}, {"debiased": True}, "debiased"),
    "debiased clouds": ({"x": X}, {"debiased": True}, "debiased"),
    "debiased without": ({"histograms": A, "cost": np.ones((4, 4))}, {"debiased": True, "reg": 0}, "debiased"),
    "tiny reg": ({"histograms": A, "cost": C}, {"reg": 1e-200}, "reg"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_wrong_input_is_named(name: str) -> None:
    inputs, options, field = HOSTILE[name]
    with pytest.raises(InvalidProblem) as raised:
        CARD.build(inputs, CARD.options(**options))
    assert raised.value.field == field


def dual(cost: Array, a: Array, w: Array, f: Array, reg: float) -> float:
    """Of row potentials whose weighted sum is 0, by NumPy alone."""
    terms = (f[:, :, None] - cost) / reg - np.log(cost.size)
    with np.errstate(divide="ignore"):
        g = reg * (np.log(a) - np.log(np.exp(terms).sum(axis=1)))
    return float((w[:, None] * a * np.where(a > 0, g, 0)).sum())


def test_the_bound_is_the_dual_value_and_below_the_optimum() -> None:
    inputs = histograms(3, 14)
    solution, certificate = solved(inputs, reg=0.05, tolerance=1e-10)
    w = np.full(3, 1 / 3)
    f = solution.arrays["f"]
    assert np.abs(w @ f).max() < 1e-12
    best = dual(inputs["cost"], inputs["histograms"], w, f, 0.05)
    assert certificate.bound == pytest.approx(best, rel=1e-12)
    assert certificate.objective is not None
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = f + rng.normal(size=f.shape) * 0.05
        other -= w @ other
        assert dual(inputs["cost"], inputs["histograms"], w, other, 0.05) < certificate.objective
