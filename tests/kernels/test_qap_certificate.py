"""The certificate of a quadratic assignment: true bounds whatever the evidence, and words that are earned."""

import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, Array, Certificate, Deadline, Solution, Termination, solve_and_prove
from kernels.certificates import rounded
from kernels.certificates.quadratic_bounds import _product, _product_down, gilmore_lawler, rlt1, rlt1_rounded
from kernels.certificates.quadratic_exact import Every, objective_up, whole
from kernels.certificates.quadratic_spectrum import projection
from kernels.problems import QuadraticAssignment
from kernels.qap.bounds import lower as bounds
from kernels.qap.bounds.rlt1 import DualAscent, fits
from kernels.qap.whole import rounded as rounded_data
from tests.instances import quadratic as instances
from tests.instances import quadratic_wild as wild
from tests.oracles import quadratic_exact as oracle

CARD = SOLVERS["qap"]


def built(inputs: Any, **options: Any) -> QuadraticAssignment:
    problem: QuadraticAssignment = CARD.build(inputs, CARD.options(**options))
    return problem


def prove(
    inputs: Any, seconds: float | None = None, **options: Any
) -> tuple[QuadraticAssignment, Solution, Certificate]:
    chosen = CARD.options(**options)
    problem = CARD.build(inputs, chosen)
    return problem, *solve_and_prove(CARD, problem, chosen, Deadline(seconds), "cpu")


def answer(permutation: Any, bounds_: dict[str, Any] | None = None, **evidence: Array) -> Solution:
    facts = {"bounds": bounds_ or {}}
    arrays = {"permutation": np.asarray(permutation, np.int64)}
    return Solution(Termination.ITERATION_LIMIT, "memetic", arrays, facts=facts, evidence=evidence)


def evidence_of(problem: QuadraticAssignment) -> dict[str, dict[str, Array]]:
    """What the solver's bounds give to the certificate, by bound."""
    found = {}
    with np.errstate(all="ignore"):
        for bound in (bounds.gilmore_lawler(problem), bounds.projection(problem)):
            if bound is not None:
                found[bound.name] = bound.evidence
    near = None if problem.integer else rounded_data(problem)
    ascended = problem if near is None else near.problem
    if fits(ascended):
        ascent = DualAscent(ascended)
        for _ in range(3):
            ascent.step()
        found["rlt1"] = (ascent.bound() if near is None else near.bound(ascent.bound())).evidence
    return found


def checked(problem: QuadraticAssignment, evidence: dict[str, dict[str, Array]]) -> dict[str, Fraction]:
    """Every bound, in int64 where that fits and in float64 for floats, as fractions."""
    found: dict[str, Fraction] = {}
    data = whole(problem)
    for form in [data] if problem.integer or data is None else [data, None]:
        for name in (*bounds.NAMES, "projection", "rlt1"):
            own = evidence.get(name, {})
            value: Any = None
            if name == "projection":
                value = projection(problem, form, own)
            elif name == "rlt1" and "exponents" in own:
                exact = rlt1_rounded(problem, own)
                found |= {} if exact is None else {"rlt1, rounded": exact}
            elif name == "rlt1":
                value = None if form is None else rlt1(problem, form, own)
            else:
                value = gilmore_lawler(problem, form, name == bounds.NAMES[1], own.get("v"), lambda _: None)
            if value is not None:
                found[f"{name}, {'float64' if form is None else 'int64'}"] = (
                    Fraction(value) if form is None else form.number(value)
                )
    return found


def mutations(array: Array, rng: np.random.Generator) -> Iterator[Array]:
    """The array off by one step, by factors, signs, orders, and numbers beyond all measure."""
    if not array.size:
        return
    one = array.copy()
    at = rng.integers(array.size)
    if array.dtype.kind == "f":
        one.ravel()[at] = np.nextafter(one.ravel()[at], np.inf)
        yield one
        for beyond in (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324):
            yield np.where(np.arange(array.size).reshape(array.shape) == at, beyond, array)
    else:
        one.ravel()[at] += 1
        yield one
        for whole_ in (2**62, -(2**63), 2**63 - 1):
            yield np.where(np.arange(array.size).reshape(array.shape) == at, whole_, array)
    yield array + array.dtype.type(1)
    yield array * array.dtype.type(2)
    yield -array
    yield np.zeros_like(array)
    yield array.ravel()[::-1].reshape(array.shape).copy()
    yield array[..., None]
    with np.errstate(over="ignore"):
        yield array.astype(np.float32)
    yield array.astype(str)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("integer", [True, False], ids=["integers", "floats"])
def test_wild_problems_are_solved_and_proved_exactly(integer: bool, seed: int) -> None:
    n = 1 + seed % 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem, solution, certificate = prove(wild.inputs(seed, n, integer))
    best = oracle.optimum(problem)
    assert certificate.holds
    assert certificate.facts["verified"]
    if best is None:
        assert solution.termination is Termination.INFEASIBLE
        return
    assert solution.termination is Termination.OPTIMAL
    assert oracle.objective(problem, solution.arrays["permutation"]) == best
    assert certificate.objective is not None
    assert certificate.bound is not None
    assert Fraction(certificate.bound) <= best <= Fraction(certificate.objective)
    assert certificate.bound == (best if integer else rounded.down(best))
    assert certificate.objective == (best if integer else rounded.up(best))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("integer", [True, False], ids=["integers", "floats"])
def test_no_evidence_lifts_a_bound_above_the_optimum(integer: bool, seed: int) -> None:
    problem = built(wild.inputs(seed + 100, 2 + seed % 4, integer))
    best, rng = oracle.optimum(problem), np.random.default_rng(seed)
    if best is None:
        return
    evidence = evidence_of(problem)
    for name, value in checked(problem, evidence).items():
        assert value <= best, name
    for bound, own in evidence.items():
        for key, array in own.items():
            for wrong in mutations(array, rng):
                for name, value in checked(problem, {**evidence, bound: {**own, key: wrong}}).items():
                    assert value <= best, (name, key)


@pytest.mark.parametrize("n", [9, 12])
@pytest.mark.parametrize("form", ["int64", "float64"])
def test_bounds_lose_next_to_nothing_to_rounding(n: int, form: str) -> None:
    rng = np.random.default_rng(n)
    flow, distance = rng.integers(0, 100, (2, n, n))
    inputs = {"flow": flow + flow.T, "distance": distance}
    exact = built(inputs)
    problem = exact if form == "int64" else built({k: m * 0.1 for k, m in inputs.items()})
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        values = checked(problem, evidence_of(problem))
    scale = 1 if form == "int64" else Fraction(1, 100)
    for name, found in (
        (bound.name, bound) for bound in (bounds.gilmore_lawler(exact), bounds.projection(exact)) if bound
    ):
        loss = 1e-9 if name == "projection" else 1e-14
        assert values[f"{name}, {form}"] >= Fraction(found.raw) * scale * Fraction(1 - loss), name


def test_evidence_of_an_ascent_is_worth_its_bound() -> None:
    problem = built(instances.small_grid())
    ascent = DualAscent(problem)
    for _ in range(10):
        ascent.step()
    bound, data = ascent.bound(), whole(problem)
    assert data is not None
    value = rlt1(problem, data, bound.evidence)
    assert value is not None
    assert value >= bound.value
    missing = {key: array for key, array in bound.evidence.items() if key != "rows"}
    assert rlt1(problem, data, missing) is None
    assert rlt1(problem, data, {**bound.evidence, "scale": np.array(2**60)}) is None
    assert rlt1(problem, data, {**bound.evidence, "scale": np.array(0)}) is None


@pytest.mark.parametrize("seed", range(4))
def test_floats_are_bounded_and_searched_through_by_rounded_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    flow, distance, linear = rng.normal(size=(3, 9, 9)) * 10.0 ** rng.integers(-90, 90, (3, 1, 1))
    linear = linear / np.abs(linear).max() * np.abs(flow).max() * np.abs(distance).max()
    if seed % 2:
        linear[rng.random((9, 9)) < 0.3] = np.inf
    problem, solution, certificate = prove({"flow": flow + flow.T, "distance": distance, "linear": linear}, 20.0)
    every = Every(problem)
    least = every.least()
    assert least is not None
    best = Fraction(least) * Fraction(2) ** every.exponent
    assert solution.termination is Termination.OPTIMAL
    assert certificate.facts["verified"] is True
    assert oracle.objective(problem, solution.arrays["permutation"]) == best
    assert "branch and bound" in solution.facts["bounds"]
    assert certificate.bound is not None
    assert certificate.facts["bounds_checked"]["rlt1"] <= Fraction(certificate.bound) <= best
    assert best - Fraction(certificate.bound) <= abs(best) / 2**52
    assert all(Fraction(value) <= best for value in solution.facts["bounds"].values())


def test_mutated_answers_do_not_hold_or_show_their_gap() -> None:
    problem, solution, certificate = prove(instances.small_grid(), rounds=2)
    p = solution.arrays["permutation"]
    for wrong in (p[:-1], np.r_[p[:-1], p[0]], p + 1, p.astype(float), -p, p[None, :-1]):
        solution.arrays["permutation"] = wrong
        assert not CARD.certify(problem, solution).holds
    del solution.arrays["permutation"]
    assert not CARD.certify(problem, solution).holds
    solution.arrays["permutation"] = p[::-1].copy()
    solution.termination = Termination.OPTIMAL
    worse = CARD.certify(problem, solution)
    assert worse.objective == problem.objective(p[::-1])
    assert worse.bound == certificate.bound
    assert worse.termination is Termination.CONVERGED


def test_claims_of_bounds_and_trees_are_shown_as_claims() -> None:
    problem = built(instances.small_grid())
    p = np.arange(9)
    plain = CARD.certify(problem, answer(p))
    assert plain.bound is not None
    for claim in (plain.bound, plain.bound + 1, 10**9, -5):
        certificate = CARD.certify(problem, answer(p, {"gilmore-lawler": claim}))
        assert certificate.bound == plain.bound
        assert ("claimed_bound" in certificate.facts) == (claim > plain.bound)
    claimed = answer(p)
    claimed.termination, claimed.facts["proved"] = Termination.OPTIMAL, True
    certificate = CARD.certify(problem, claimed)
    assert certificate.holds
    assert certificate.termination is None
    assert certificate.facts["verified"] is False
    assert certificate.facts["claimed_bound"] == certificate.objective == problem.objective(p)
    assert certificate.bound == plain.bound
    assert certificate.gap_abs == problem.objective(p) - plain.bound
    assert "not checked" in certificate.proved


def test_a_gap_that_the_bound_closes_is_optimal_whatever_the_solver_said() -> None:
    n = 12
    rng = np.random.default_rng(5)
    linear = rng.random((n, n)) * rng.choice([1e-3, 1.0, 1e6], (n, n))
    for scale in (1.0, 2.0**-700, 2.0**500):
        problem, solution, certificate = prove(
            {"flow": np.zeros((n, n)), "distance": rng.random((n, n)), "linear": linear * scale}
        )
        assert solution.termination is Termination.OPTIMAL
        assert certificate.facts["verified"]
        silent = Solution(**{**vars(solution), "termination": Termination.TIME_LIMIT})
        assert CARD.certify(problem, silent).termination is Termination.OPTIMAL
        stopped = Solution(**{**vars(solution), "termination": Termination.STOPPED})
        assert CARD.certify(problem, stopped).termination is None


@pytest.mark.parametrize("n", [5, 8, 10])
@pytest.mark.parametrize("label", [k for k in wild.FLOATS if k not in ("tiny", "huge", "all scales")])
def test_scale_changes_nothing_but_the_scale(label: str, n: int) -> None:
    rng = np.random.default_rng(n)
    flow, linear = (wild.FLOATS[label](rng, n) for _ in range(2))
    inputs = {"flow": flow, "distance": rng.random((n, n)), "linear": linear}

    def run(flows: float, distances: float) -> tuple[Termination, Any, Any, list[int], bool]:
        scaled = {
            "flow": flow * flows,
            "distance": inputs["distance"] * distances,
            "linear": linear * flows * distances,
        }
        _, solution, certificate = prove(scaled, rounds=2, starts=3, iterations=50, seed=1)
        found = solution.arrays["permutation"].tolist()
        return solution.termination, certificate.objective, certificate.bound, found, certificate.facts["verified"]

    plain = run(1.0, 1.0)
    for exponent in (-600, -52, 1, 300):
        factor = 2.0**exponent
        for pair in ((factor, 1.0), (1.0, factor)):
            ended, objective, bound, found, verified = run(*pair)
            assert (ended, found, verified) == (plain[0], plain[3], plain[4])
            assert (objective, bound) == (plain[1] * factor, plain[2] * factor)


def test_what_is_an_ulp_above_the_least_of_all_permutations_is_not_optimal() -> None:
    zeros, linear = np.zeros((2, 2)), np.array([[1.0, 1.0], [1.0, np.nextafter(1.0, 2.0)]])
    problem = QuadraticAssignment(zeros, zeros, linear)
    words = {}
    for permutation in ([0, 1], [1, 0]):
        solution = Solution(Termination.OPTIMAL, "enumeration", {"permutation": np.array(permutation)})
        words[permutation[0]] = CARD.certify(problem, solution)
    assert words[1].facts["verified"]
    assert words[1].termination is None
    assert not words[0].facts["verified"]
    assert words[0].termination is Termination.CONVERGED
    assert words[0].gap_abs is not None
    assert words[0].gap_abs > 0


def test_enumeration_takes_every_permutation_once() -> None:
    rng = np.random.default_rng(3)
    for n in range(1, 9):
        every = Every(QuadraticAssignment(rng.integers(0, 9, (n, n)), rng.integers(0, 9, (n, n))))
        assert every._costs().shape[1] == np.prod(np.arange(1, n + 1))
    every = Every(QuadraticAssignment(*rng.normal(size=(2, 8, 8)) * 10.0 ** rng.integers(-140, 140, (2, 8, 8))))
    least = every.least()
    assert least is not None
    for _ in range(300):
        assert every.price(rng.permutation(8)) >= least


def test_objectives_of_floats_are_rounded_once() -> None:
    rng = np.random.default_rng(4)
    for scale in (1.0, 1e-150, 1e140, 1e-290):
        flow, distance, linear = rng.normal(size=(3, 12, 12)) * scale**0.5
        problem = QuadraticAssignment(flow, distance, linear * scale**0.5)
        p = rng.permutation(12)
        assert objective_up(problem, p) == rounded.up(oracle.objective(problem, p))


def test_products_are_exact_in_integers_and_below_in_floats() -> None:
    rng = np.random.default_rng(6)
    for bits in ((3, 3), (30, 20), (55, 3), (3, 55)):
        x, y = (rng.integers(-(2**b), 2**b, (7, 7)) for b in bits)
        np.testing.assert_array_equal(_product(x, y)[0].astype(object), x.astype(object) @ y.T.astype(object))
    for spread in (1.0, 1e30, 1e140):
        a, b = rng.normal(size=(2, 9, 9)) * rng.choice([1 / spread, 1.0, spread], (2, 9, 9))
        a[3] = 0
        high, low = _product_down(a, b)
        for i in range(9):
            for j in range(9):
                terms = [Fraction(s) * Fraction(t) for s, t in zip(a[i].tolist(), b[j].tolist(), strict=True)]
                largest = Fraction(float(np.abs(a[i]).max() * np.abs(b[j]).max()))
                off = sum(terms, Fraction(0)) - Fraction(high[i, j].item()) - Fraction(low[i, j].item())
                assert 0 <= off <= largest * Fraction(1, 2**75)


def test_integers_are_found_in_floats() -> None:
    rng = np.random.default_rng(8)
    flow, distance, linear = rng.integers(-99, 99, (3, 9, 9))
    for exponents in ((0, 0, 0), (-3, 5, 1), (-500, 20, -481), (7, -7, -2), (300, 300, 590)):
        parts = [np.ldexp(m, e) for m, e in zip((flow, distance, linear), exponents, strict=True)]
        problem = QuadraticAssignment(*parts)
        data = whole(problem)
        assert data is not None
        p = rng.permutation(9)
        price = int((data.flow * data.distance[np.ix_(p, p)]).sum() + data.linear[np.arange(9), p].sum())
        assert data.number(price) == oracle.objective(problem, p)
        assert price % data.step == 0


def test_progress_of_a_certificate_rises_to_the_end() -> None:
    seen: list[float] = []
    problem, solution, _ = prove({"flow": np.random.default_rng(0).random((40, 40)), "distance": np.eye(40)}, 1.0)
    CARD.certify(problem, solution, seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_best_known_values_are_never_bounds() -> None:
    for best_known in (10**18, -(10**18), 0.5, 1e300):
        _, _, certificate = prove(instances.small_grid(), rounds=1, best_known=best_known)
        assert certificate.holds
        assert certificate.bound is not None
        assert certificate.bound < (certificate.objective or 0)
        assert certificate.facts["best_known"] == best_known


def test_infeasible_answers_name_facilities_with_too_few_locations() -> None:
    rng = np.random.default_rng(2)
    linear = rng.integers(0, 9, (12, 12)).astype(float)
    linear[np.ix_([1, 4, 7, 9], [j for j in range(12) if j not in (2, 3, 8)])] = np.inf
    problem, solution, certificate = prove({"flow": np.eye(12), "distance": np.eye(12), "linear": linear})
    rows, columns = solution.arrays["hall_rows"], solution.arrays["hall_cols"]
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds
    assert set(rows.tolist()) <= {1, 4, 7, 9}
    assert len(columns) < len(rows)
    solution.arrays["hall_rows"] = np.array([0])
    assert CARD.certify(problem, solution).holds  # a matching of its own says so too
    free = built({"flow": np.eye(3), "distance": np.eye(3)})
    assert not CARD.certify(free, solution).holds


def test_masked_integers_stay_exact() -> None:
    big = 2**53 + 1
    linear = np.array([[big, FORBIDDEN], [FORBIDDEN, 2]])
    _, solution, certificate = prove(
        {"flow": np.zeros((2, 2), int), "distance": np.zeros((2, 2), int), "linear": linear}
    )
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == certificate.bound == big + 2
