"""No auction's answer says more than is proved: exact arithmetic, strange starts, spoilt answers, other scales."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Csr, Deadline, Device, Solution, Termination, solve_and_prove
from kernels.certificates import auction_rows
from tests.instances import auction as instances
from tests.instances.auction_strange import KINDS, Strange, strange
from tests.oracles import auction as oracle

CARD = SOLVERS["auction"]
ENDS = (Termination.OPTIMAL, Termination.GAP_REACHED, Termination.CONVERGED)


def answer(
    device: Device, inputs: dict[str, Any], limit: float | None = None, **given: Any
) -> tuple[Solution, Certificate]:
    options = CARD.options(**given)
    return solve_and_prove(CARD, CARD.build(inputs, options), options, Deadline(limit), device)


def hold_to(case: Strange, solution: Solution, certificate: Certificate, note: Any) -> None:
    """Compare an answer with the exact optimum."""
    best = oracle.exact_optimum(case.benefit, case.permitted, case.reject)
    assert certificate.holds, note
    if best is None:
        assert solution.termination is Termination.INFEASIBLE, note
        return
    assignment = solution.arrays["assignment"]
    value = oracle.exact_objective(case.benefit, case.permitted, case.reject, assignment)
    assert value is not None, note
    assert certificate.objective == (value if case.integral else float(value)), note
    assert certificate.bound is not None, note
    assert certificate.gap_abs is not None, note
    assert Fraction(certificate.bound) >= best, note
    assert value + Fraction(certificate.gap_abs) >= best, note
    if case.integral:
        assert isinstance(certificate.bound, int), note
    if solution.termination is Termination.OPTIMAL and case.integral:
        assert certificate.gap_abs == 0, note
    elif solution.termination is Termination.OPTIMAL:
        allowed = oracle.exact_allowance(case.benefit, case.permitted, case.reject, value)
        assert Fraction(certificate.gap_abs) <= allowed, note
    elif solution.termination is Termination.GAP_REACHED:
        assert Fraction(certificate.gap_abs) <= len(assignment) * Fraction(solution.facts["epsilon"]), note


@pytest.mark.parametrize("kind", KINDS)
def test_strange_problems_end_as_exact_arithmetic_says(kind: str, device: Device) -> None:
    loose = 0
    for seed in range(90):
        case = strange(seed, kind)
        solution, certificate = answer(device, case.inputs, **case.options)
        hold_to(case, solution, certificate, (kind, seed))
        assert solution.termination in (*ENDS, Termination.INFEASIBLE)
        loose += solution.termination is Termination.CONVERGED
    assert loose <= (3 if kind in ("wide", "rows", "big-m") else 0)


@pytest.mark.parametrize("limit", [0.0, 1e-4])
def test_no_time_costs_neither_answer_nor_bound(limit: float, device: Device) -> None:
    for seed in range(150):
        case = strange(1000 + seed)
        solution, certificate = answer(device, case.inputs, limit, **case.options)
        hold_to(case, solution, certificate, seed)


def test_spoilt_answers_are_refused_or_covered_by_the_stated_gap() -> None:
    spoil = np.random.default_rng(0)
    for seed in range(250):
        case = strange(5000 + seed)
        options = CARD.options(**case.options)
        problem = CARD.build(case.inputs, options)
        solution = CARD.solve(problem, options, Deadline(), "cpu")
        if solution.termination is Termination.INFEASIBLE:
            continue
        for name in ("prices", "profits", "assignment"):
            for _ in range(4):
                arrays = solution.arrays | {name: _spoilt(spoil, solution.arrays[name])}
                false = Solution(solution.termination, "spoilt", arrays, facts=solution.facts)
                certificate = CARD.certify(problem, false)
                if certificate.holds:
                    false.termination = certificate.termination or false.termination
                    hold_to(case, false, certificate, (seed, name, arrays[name]))
                else:
                    assert name == "assignment", (seed, certificate.proved)


def _spoilt(rng: np.random.Generator, array: Array) -> Array:
    """The same with one entry changed by as little as possible, or a lot."""
    array, at = array.copy(), int(rng.integers(array.size))
    if array.dtype.kind == "i":
        array[at] += int(rng.choice([-1, 1, 2, 10**6, -(10**6)]))
        return array
    changes = [np.nextafter(array[at], np.inf), np.nextafter(array[at], -np.inf), array[at] * (1 + 1e-9), -1.0]
    array[at] = rng.choice([*changes, array[at] + 1, 0.0, 1e300, -1e300, np.nan, np.inf, -np.inf])
    return array


def test_violators_are_counted_exactly() -> None:
    benefit = np.array([[1.0, -math.inf, -math.inf], [2.0, -math.inf, -math.inf], [1.0, 1.0, 1.0]])
    problem = CARD.build({"benefit": benefit}, CARD.options())
    for rows, holds in (([0, 1], True), ([0, 1, 2], False), ([0, 0], False), ([0, 7], False), ([], False)):
        claim = Solution(Termination.INFEASIBLE, "spoilt", {"hall_rows": np.array(rows, np.int64)})
        assert CARD.certify(problem, claim).holds is holds, rows


@pytest.mark.parametrize("k", [-900, -300, -40, 57, 333, 850])
def test_a_power_of_two_changes_nothing(k: int) -> None:
    compared = 0
    for seed in range(120):
        case = strange(7000 + seed, ["uniform", "ties", "big-m", "equal", "zero"][seed % 5])
        prices = case.inputs.get("prices0")
        if case.benefit.dtype.kind != "f" or (prices is not None and not 1e-20 < prices.max() < 1e30):
            continue
        if k < 0 and case.options.get("epsilon", 1.0) < 1e-10:
            continue
        one, two = (answer("cpu", *scaled_inputs(case, shift)[:1], **scaled_inputs(case, shift)[1]) for shift in (0, k))
        assert one[0].termination is two[0].termination, seed
        np.testing.assert_array_equal(one[0].arrays["assignment"], two[0].arrays["assignment"])
        if one[0].termination is not Termination.INFEASIBLE:
            for name in ("objective", "bound", "gap_abs"):
                assert math.ldexp(getattr(one[1], name), k) == getattr(two[1], name), (seed, name)
        compared += 1
    assert compared > 40


def scaled_inputs(case: Strange, k: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Everything that has the unit of a benefit, times 2^k."""
    inputs: dict[str, Any] = {}
    for name, given in case.inputs.items():
        if isinstance(given, Csr):
            inputs[name] = Csr(given.indptr, given.indices, np.ldexp(given.values, k), given.shape)
        else:
            inputs[name] = given if name == "assignment0" else np.ldexp(given.astype(np.float64), k)
    options = dict(case.options)
    if "epsilon" in options:
        options["epsilon"] = math.ldexp(options["epsilon"], k)
    return inputs, options


def test_prices_are_read_in_the_arithmetic_of_the_benefits() -> None:
    """Any prices bound the optimum; those that are no prices count as 0."""
    benefit = np.array([[7, 4], [6, 3]])
    problem = CARD.build({"benefit": benefit}, CARD.options())
    wild: list[Any] = [[1e19, 0], [np.inf, np.nan], [-5.0, 2.0], [2.5, 0.25], [1e-300, 0], [2**62, 7]]
    for prices in wild:
        arrays = {"assignment": np.array([1, 0]), "prices": np.array(prices), "profits": np.array([4, 3])}
        found = CARD.certify(problem, Solution(Termination.TIME_LIMIT, "given", arrays))
        assert found.holds
        assert found.objective == 10
        assert isinstance(found.bound, int)
        assert found.bound >= 10


def test_the_certificate_says_how_far_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one thread: who calls may find that others have done all."""
    monkeypatch.setattr("kernels.certificates.threads.THREADS", 1)
    rng = np.random.default_rng(1)
    for benefit in (rng.random((500, 700)), rng.integers(0, 9, (500, 700)), instances.planted(900, 900, 0.5, 1)):
        problem = CARD.build({"benefit": benefit}, CARD.options())
        heard: list[float] = []
        CARD.certify(problem, CARD.solve(problem, CARD.options(), Deadline(), "cpu"), heard.append)
        assert len(heard) > 1
        assert heard == sorted(heard)
        assert heard[-1] == 1


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_in_several_threads_are_those_in_one(dtype: Any, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is looked at once, whoever does it, and what is heard only grows."""
    rng = np.random.default_rng(3)
    n = 700
    benefit: Any = rng.integers(0, 10**6, (n, n)).astype(dtype)
    if sparse:
        keep = (rng.random((n, n)) < 0.3) | np.eye(n, dtype=bool)
        keep[5:9] = np.eye(n, dtype=bool)[5:9]
        at = np.flatnonzero(keep)
        benefit = Csr(np.concatenate([[0], np.cumsum(keep.sum(axis=1))]), at % n, benefit.reshape(-1)[at], (n, n))
    problem = CARD.build({"benefit": benefit}, CARD.options())
    prices = rng.integers(0, 10**5, n).astype(np.float64) / 4
    given = Solution(
        Termination.TIME_LIMIT, "auction", {"assignment": np.arange(n), "prices": prices, "profits": np.zeros(n)}
    )
    told = []
    for threads in (1, 8):
        monkeypatch.setattr(auction_rows, "ENTRIES", 2000)
        monkeypatch.setattr("kernels.certificates.threads.THREADS", threads)
        heard: list[float] = []
        told.append(CARD.certify(problem, given, heard.append))
        assert heard == sorted(heard)
        assert heard[-1] == 1.0
    assert told[0] == told[1]
    rows = problem.weights
    least = 0.0
    for i in range(n):
        row = rows.indices[rows.indptr[i] : rows.indptr[i + 1]] if isinstance(rows, Csr) else np.arange(n)
        values = rows.values[rows.indptr[i] : rows.indptr[i + 1]] if isinstance(rows, Csr) else rows[i]
        least += float((values.astype(np.float64) - prices[row]).max())
    assert told[0].bound is not None
    assert float(told[0].bound) == pytest.approx(least + prices.sum(), abs=1.0)
