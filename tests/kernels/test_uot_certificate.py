"""The transport certificate against 60 decimal digits: its functions, its bounds, and answers that were corrupted."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import Array, Certificate, Deadline, Solution, Termination
from kernels.certificates import transport_elementary as elementary
from kernels.certificates.transport import certify
from kernels.certificates.transport_divergence import _sum
from kernels.problems import UnbalancedTransport
from kernels.problems.transport import transport
from tests.kernels.test_uot import run
from tests.oracles import transport_exact as exact

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-308, -1e-17, 0.34657, -0.34658, 0.5, 1.0, -1.0, 708.9, -699.9]


def arguments(size: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    wide, near = rng.uniform(-700, 709, size), rng.uniform(-2, 2, size)
    tiny = rng.normal(size=size) * 10.0 ** rng.uniform(-300, 0, size)
    return np.concatenate([EXTREMES, wide, near, tiny])


def exp(x: Decimal) -> Decimal:
    return x.exp()


def expm1(x: Decimal) -> Decimal:
    return x.exp() - 1 if abs(x) > Decimal("1e-20") else x + x * x / 2 + x * x * x / 6


@pytest.mark.parametrize(("name", "truth"), [("exp", exp), ("expm1", expm1)])
def test_exponentials_are_enclosed(name: str, truth: Callable[[Decimal], Decimal]) -> None:
    x = arguments(4000, 1)
    low, high = (getattr(elementary, f"{name}_{side}")(x) for side in ("down", "up"))
    with localcontext(prec=60):
        for at, least, most in zip(x.tolist(), low.tolist(), high.tolist(), strict=True):
            true = truth(Decimal(at))
            assert Decimal(least) <= true <= Decimal(most), at
            assert abs(Decimal(most) - Decimal(least)) <= abs(true) * Decimal(2.0**-46) + Decimal(2.0**-1018), at


def test_exponentials_beyond_float64() -> None:
    x = np.array([-np.inf, -1e300, -745.0, 710.0, 1e300, np.inf])
    assert elementary.exp_down(x).tolist()[:3] == [0, 0, 0]
    assert (elementary.exp_up(x)[:3] < 1e-303).all()
    assert elementary.expm1_down(x).tolist()[:3] == [-1, -1, -1]
    assert elementary.exp_up(x).tolist()[3:] == [np.inf] * 3
    assert elementary.expm1_up(x).tolist()[3:] == [np.inf] * 3
    assert (elementary.exp_down(x)[3:] > 1e307).all()


def test_logarithms_are_enclosed() -> None:
    rng = np.random.default_rng(2)
    near = 1 + rng.normal(size=4000) * 10.0 ** rng.uniform(-16, -1, 4000)
    x = np.concatenate([[1.0, 5e-324, 1e-308, 1.7e308, 0.5, 2.0], np.exp(rng.uniform(-700, 700, 4000)), near])
    low, high = elementary.log_down(x), elementary.log_up(x)
    with localcontext(prec=60):
        for at, least, most in zip(x.tolist(), low.tolist(), high.tolist(), strict=True):
            true = Decimal(at).ln()
            assert Decimal(least) <= true <= Decimal(most), at
            assert abs(Decimal(most) - Decimal(least)) <= abs(true) * Decimal(2.0**-46), at
    assert elementary.log_down(np.array([0.0]))[0] == -np.inf


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a wider float to compare with")
def test_errors_of_a_million_arguments_are_within_their_bounds() -> None:
    z = arguments(333_000, 3)
    e, m = elementary.exp_pair(z)
    wide = z.astype(np.longdouble)
    assert (abs(e - np.exp(wide)) <= elementary.EXP_ERROR * np.exp(wide)).all()
    assert (abs(m - np.expm1(wide)) <= elementary.EXPM1_ERROR * abs(np.expm1(wide)) + 1e-307).all()


def problem(seed: int) -> tuple[UnbalancedTransport, np.random.Generator]:
    """Random, small, of any form: costs, points, forbidden entries, zero masses, balanced sides, both references."""
    rng = np.random.default_rng([7, seed])
    m, n = (int(size) for size in rng.integers(1, 5, 2))
    strengths = [float("inf") if rng.random() < 0.3 else float(10.0 ** rng.uniform(-2, 4)) for _ in range(2)]
    kind, metric = seed % 4, ("sqeuclidean", "euclidean", "inner")[seed % 3]
    inputs: dict[str, Any] = {"a": rng.random(m) + 0.01, "b": rng.random(n) + 0.01}
    if kind < 3:
        cost = rng.random((m, n)) * 10.0 ** rng.uniform(-2, 2)
        cost[rng.random((m, n)) < (0.2 if kind == 1 else 0)] = np.inf
        inputs["cost"] = cost.astype(np.float32) if kind == 2 else cost
    else:
        d = int(rng.choice([1, 3, 9, 40]))
        inputs |= {"x": rng.normal(size=(m, d)), "y": rng.normal(size=(n, d))}
    if rng.random() < 0.2 and m > 1:
        inputs["a"][0] = 0
    inputs["b"] *= inputs["a"].sum() / inputs["b"].sum()
    reg, reference = float(10.0 ** rng.uniform(-2, 2)), ("product", "uniform")[seed % 2]
    return transport(inputs, reg=reg, reg_m=(strengths[0], strengths[1]), metric=metric, reference=reference), rng


def claim(of: UnbalancedTransport, arrays: dict[str, Array]) -> Certificate:
    return certify(of, Solution(Termination.GAP_REACHED, "test", arrays, facts={"tolerance": 1e-6}))


@pytest.mark.parametrize("seed", range(120))
def test_bound_and_objective_are_on_their_sides_of_the_truth(seed: int) -> None:
    of, rng = problem(seed)
    f, g = (rng.normal(size=k) * 10.0 ** rng.uniform(-3, 1) for k in of.shape)
    true = exact.potential_plan(of, f, g)
    arrays = {"f": f, "g": g}
    if max(max(row) for row in true) > Decimal("1e30"):
        f, g = -abs(f), -abs(g)
        true, arrays = exact.potential_plan(of, f, g), {"f": f, "g": g}
    if seed % 5:  # else the plan that the potentials stand for
        arrays["plan"] = abs(np.array(true, float) * (1 + rng.normal(size=of.shape) * 10.0 ** rng.uniform(-16, -1)))
        arrays["plan"] = arrays["plan"].astype(np.float32) if seed % 3 == 0 else arrays["plan"]
        true = arrays["plan"]
    found = claim(of, arrays)
    assert found.holds
    assert found.bound is not None
    lower = exact.dual(of, f, g)
    assert Decimal(found.bound) <= lower
    assert Decimal(found.bound) >= lower - abs(lower) * Decimal("1e-9") - Decimal(of.reg) * Decimal("1e-9")
    if found.objective is not None:
        assert Decimal(found.objective) >= exact.primal(of, true)


def solved(seed: int, **options: Any) -> tuple[UnbalancedTransport, Solution]:
    rng = np.random.default_rng([8, seed])
    inputs = {"cost": rng.random((3, 4)), "a": rng.random(3) + 0.1, "b": rng.random(4) + 0.1}
    inputs["b"] *= inputs["a"].sum() / inputs["b"].sum()
    options = {"reg": 0.05, "reg_m": (1.0, ("inf", 1.0), "inf")[seed % 3], "tolerance": 1e-9} | options
    of, solution, _ = run(inputs, **options)
    return of, solution


@pytest.mark.parametrize("name", ["plan", "f", "g"])
@pytest.mark.parametrize("seed", range(9))
def test_a_corrupted_answer_is_refused_or_its_gap_covers_it(name: str, seed: int) -> None:
    of, solution = solved(seed)
    rng = np.random.default_rng([9, seed])
    for step in (0.0, 1e-15, 1e-12, 1e-8, 1e-4, 0.1, 1.0, 10.0, 1e6, -1.0, -2.0, np.nan, np.inf):
        arrays = {key: value.copy() for key, value in solution.arrays.items()}
        at = tuple(int(rng.integers(size)) for size in arrays[name].shape)
        arrays[name][at] = np.nextafter(arrays[name][at], 9.0) if step == 0 else arrays[name][at] * (1 + step)
        found = claim(of, arrays)
        if not found.holds:
            assert name == "plan"
            assert not arrays[name][at] >= 0 or np.isinf(arrays[name][at])
            continue
        assert name != "plan" or arrays[name][at] >= 0
        check(of, arrays, found)


def check(of: UnbalancedTransport, arrays: dict[str, Array], found: Certificate) -> None:
    """Whatever a certificate states is true."""
    if found.bound is not None:
        lower = exact.dual(of, arrays["f"], arrays["g"])
        assert Decimal(found.bound) <= lower
    if found.objective is None:
        assert found.termination is Termination.CONVERGED
        return
    value = exact.primal(of, arrays["plan"])
    assert Decimal(found.objective) >= value
    assert Decimal(found.objective) <= value + abs(value) * Decimal("1e-11")
    if found.gap_abs is not None:
        assert Decimal(found.gap_abs) >= value - Decimal(found.bound or 0)
    reached = found.gap_rel is not None and found.gap_rel <= 1e-6
    assert found.termination is (None if reached else Termination.CONVERGED)


@pytest.mark.parametrize("step", [1e-9, 1e-6, 1e-3])
def test_a_plan_that_breaks_an_exact_side_has_no_objective(step: float) -> None:
    of, solution = solved(2)
    solution.arrays["plan"][1, 2] += step
    found = claim(of, solution.arrays)
    assert found.holds
    assert found.objective is None
    assert found.bound is not None
    assert found.max_violation >= step
    assert found.termination is Termination.CONVERGED


def test_negative_mass_and_forbidden_entries_are_no_plan() -> None:
    cost = np.array([[0.1, np.inf], [0.3, 0.2]])
    of, solution, certificate = run({"cost": cost})
    assert certificate.holds
    for at, value in (((0, 1), 1e-300), ((0, 0), -1e-300), ((1, 1), np.nan), ((1, 1), np.inf)):
        arrays = {name: array.copy() for name, array in solution.arrays.items()}
        arrays["plan"][at] = value
        assert not claim(of, arrays).holds


def test_marginals_and_top_entries_are_held_against_the_plan() -> None:
    of, solution = solved(1, output="potentials", top_k=2)
    facts = claim(of, solution.arrays).facts
    assert facts["row_marginal_within"] < 1e-12
    assert facts["column_marginal_within"] < 1e-12
    assert facts["top_values_within"] < 1e-12
    solution.arrays["row_marginal"][1] += 0.01
    solution.arrays["top_values"][0, 0] *= 1.5
    facts = claim(of, solution.arrays).facts
    assert facts["row_marginal_within"] == pytest.approx(0.01)
    assert facts["top_values_within"] == pytest.approx(0.5)


def test_entries_that_name_a_column_twice_are_not_the_largest() -> None:
    of, solution = solved(1, output="potentials", top_k=2)
    for name in ("top_columns", "top_values"):
        solution.arrays[name][0, 1] = solution.arrays[name][0, 0]
    assert claim(of, solution.arrays).facts["top_values_within"] is None


def test_progress_reaches_one() -> None:
    of, solution, _ = run({"cost": np.random.default_rng(0).random((900, 1200))}, tolerance=0.1)
    heard: list[float] = []
    certify(of, solution, heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1.0


@pytest.mark.parametrize("size", [1, 255, 256, 257, 5000, 65536])
def test_the_sum_of_divergences_is_an_upper_bound_and_a_close_one(size: int) -> None:
    rng = np.random.default_rng([13, size])
    for terms in (rng.random(size), 10.0 ** rng.uniform(-300, 300, size), np.full(size, 0.1)):
        true = sum(map(Fraction, terms.tolist()), Fraction(0))
        found = Fraction(_sum(terms))
        assert true <= found <= true * (1 + Fraction(2) ** -42)
    assert math.isnan(_sum(np.full(size, np.nan)))


@pytest.mark.parametrize("marginals", ["exact", "kl", "tv", "l2"])
@pytest.mark.parametrize("reg", [3e-283, 3e-307, 7e290])
def test_the_relative_gap_is_that_of_the_stated_numbers(reg: float, marginals: str) -> None:
    """Once it was worked out in units in which reg is near 1, before objective, bound and gap were rounded to theirs.

    Beside a reg of 3e-283 that was too small by 2^-34, as many smallest numbers as had been added to the gap by then.
    """
    options = {"reg_m": math.inf} if marginals == "exact" else {"reg_m": reg, "marginals": marginals}
    found = run({"cost": np.zeros((4, 2))}, deadline=Deadline(1.0), reg=reg, **options)[2]
    assert found.holds
    assert found.gap_rel is not None
    objective, bound, gap = (Fraction(one or 0) for one in (found.objective, found.bound, found.gap_abs))
    assert gap <= Fraction(found.gap_rel) * max(abs(objective), abs(bound))
