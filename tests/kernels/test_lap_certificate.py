"""What the certificate of an assignment says is true: against exact optima, spoiled answers, scales and garbage."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import (
    Device,
    Termination,
)
from kernels.certificates import assignment_bound as dual
from tests.instances import assignment
from tests.kernels.lap_cases import FAMILIES, LAP, cancelling, draw, is_true, prove, taken
from tests.oracles.assignment import exact_optimum


@pytest.mark.parametrize("family", FAMILIES)
def test_every_word_is_true(family: str, device: Device) -> None:
    rng = np.random.default_rng(list(family.encode()))
    for _ in range(120):
        cost, maximize, start = draw(family, rng)
        _, solution, certificate = prove(cost, maximize, None, device, **start)
        assert certificate.holds, certificate
        is_true(certificate, cost, maximize, solution)
        infeasible = exact_optimum(cost, maximize) is None
        assert solution.termination is (Termination.INFEASIBLE if infeasible else Termination.OPTIMAL)
        if cost.dtype.kind == "i" and not infeasible:
            assert certificate.gap_abs == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_no_time_gives_a_true_answer(family: str, device: Device) -> None:
    rng = np.random.default_rng(list(family.encode()))
    for _ in range(30):
        cost, maximize, start = draw(family, rng)
        _, solution, certificate = prove(cost, maximize, 0.0, device, **start)
        assert certificate.holds, certificate
        is_true(certificate, cost, maximize, solution)
        assert (certificate.objective is None) == (exact_optimum(cost, maximize) is None)
        assert certificate.objective is None or certificate.bound is not None


GARBAGE = np.array(
    [[0.484585504, 1e15, 0.0735810579], [0.735563935, 0.67018682, 1e15], [0.524678466, 0.395431957, 0.406447254]]
)


def test_a_price_of_1e15_does_not_hide_a_wrong_optimum(device: Device) -> None:
    _, solution, certificate = prove(
        GARBAGE, device=device, v0=np.array([-1.88332234e15, -1.42817004e15, 3.45313405e14])
    )
    assert solution.termination is Termination.OPTIMAL
    best = exact_optimum(GARBAGE) or Fraction(0)
    assert Fraction(certificate.objective or 0) >= best
    assert taken(GARBAGE, solution) == best
    assert certificate.objective == pytest.approx(1.20458, abs=1e-5)
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-15


@pytest.mark.parametrize("big", [1e9, 1e12, 1e15])
def test_garbage_starts_give_the_optimum(big: float, device: Device) -> None:
    rng = np.random.default_rng(int(np.log10(big)))
    for _ in range(300):
        n, m = rng.integers(2, 6, 2).tolist()
        cost = np.where(rng.random((n, m)) < 0.25, big, rng.random((n, m)))
        _, solution, certificate = prove(cost, device=device, v0=rng.normal(size=m) * big)
        assert solution.termination is Termination.OPTIMAL
        is_true(certificate, cost, False, solution)
        assert taken(cost, solution) == exact_optimum(cost)


def test_a_large_garbage_start_gives_the_optimum(device: Device) -> None:
    cost = assignment.spatial(150, 150)
    cost[np.random.default_rng(3).random(cost.shape) < 0.6] = 1e15  # the middle entry is one of them
    _, _, cold = prove(cost)
    for v0 in (np.random.default_rng(4).normal(size=150) * 1e15, np.random.default_rng(5).normal(size=150) * 1e19):
        _, solution, warm = prove(cost, device=device, v0=v0)
        assert solution.termination is Termination.OPTIMAL
        assert warm.objective == pytest.approx(cold.objective, rel=1e-14)


class TestSpoiled:
    """An answer that is changed afterwards: `holds` is False, or the gap covers what it lost."""

    STEPS = (0.0, 1e-300, 1e-18, 1e-12, 1e-6, 1.0, 1e6, 1e18, 1e300, np.inf, -np.inf, np.nan)

    @pytest.mark.parametrize("family", ["uniform", "ties", "scales", "big-m", "distances", "float32", "tiny", "huge"])
    @pytest.mark.parametrize("side", ["u", "v"])
    def test_float_duals(self, family: str, side: str) -> None:
        rng = np.random.default_rng([7, *family.encode()])
        for _ in range(12):
            cost, maximize, _ = draw(family, rng)
            problem, solution, _ = prove(cost, maximize)
            if solution.termination is Termination.INFEASIBLE:
                continue
            right = solution.arrays[side]
            for step in self.STEPS:
                wrong = right.copy()
                k = int(rng.integers(len(wrong)))
                wrong[k] = np.nextafter(wrong[k], np.inf) if step == 0 else wrong[k] + step * rng.choice([-1, 1])
                solution.arrays[side] = wrong
                certificate = LAP.certify(problem, solution)
                assert certificate.holds
                is_true(certificate, cost, maximize, solution)
            solution.arrays[side] = right

    @pytest.mark.parametrize("step", [1, -1, 2**40, -(2**40), 2**62, -(2**62), 2**63 - 1, -(2**63)])
    @pytest.mark.parametrize("side", ["u", "v"])
    def test_integer_duals(self, step: int, side: str) -> None:
        rng = np.random.default_rng(8)
        for _ in range(40):
            cost, maximize, _ = draw("int", rng)
            problem, solution, _ = prove(cost, maximize)
            if solution.termination is Termination.INFEASIBLE:
                continue
            wrong = solution.arrays[side].copy()
            k = int(rng.integers(len(wrong)))
            wrong[k] = wrong[k] + step if abs(step) < 2**62 else step
            solution.arrays[side] = wrong
            certificate = LAP.certify(problem, solution)
            assert certificate.holds
            is_true(certificate, cost, maximize, solution)
            assert (certificate.termination is None) == (certificate.gap_abs == 0)

    @pytest.mark.parametrize("family", ["uniform", "ties", "big-m", "int", "near-ties"])
    def test_assignments(self, family: str) -> None:
        rng = np.random.default_rng([9, *family.encode()])
        for _ in range(80):
            cost, maximize, _ = draw(family, rng)
            problem, solution, _ = prove(cost, maximize)
            if solution.termination is Termination.INFEASIBLE:
                continue
            answer = solution.arrays["assignment"]
            k = int(rng.integers(len(answer)))
            kind = int(rng.integers(4))
            if kind == 0:
                rng.shuffle(answer)
            else:
                answer[k] = (-1, cost.shape[1], int(rng.integers(cost.shape[1])))[kind - 1]
            certificate = LAP.certify(problem, solution)
            if certificate.holds:
                is_true(certificate, cost, maximize, solution)

    def test_further_words_of_a_price(self) -> None:
        rng = np.random.default_rng(10)
        for shape in ((5, 5), (4, 6), (6, 4)):
            cost = cancelling(rng, shape)
            problem, solution, _ = prove(cost)
            name = "u_finer" if shape[0] > shape[1] else "v_finer"
            for step in (1e-300, 1.0, 1e299, np.nan, np.inf):
                extent = max(shape)
                solution.arrays[name] = rng.normal(size=(2, extent)) * step
                is_true(LAP.certify(problem, solution), cost, False, solution)

    def test_a_violator_of_a_batch(self) -> None:
        cost = np.random.default_rng(0).random((4, 5, 5))
        cost[2, :, 1] = np.inf
        problem, solution, certificate = prove(cost)
        assert certificate.holds
        solution.arrays["hall_rows"][2, 0] = False
        assert not LAP.certify(problem, solution).holds


class TestScales:
    """Times a power of two: the same assignment and word, and the objective and the gap times it."""

    @pytest.mark.parametrize("power", [-900, -60, -1, 1, 60, 900])
    @pytest.mark.parametrize("shape", [(40, 40), (30, 45), (45, 30), (3, 3)])
    @pytest.mark.parametrize("warm", [False, True])
    def test_same_answer(self, power: int, shape: tuple[int, int], warm: bool, device: Device) -> None:
        rng = np.random.default_rng(power + 1000)
        factor = 2.0**power
        for family in ("uniform", "distances", "zero-lines", "big-m"):
            cost = FAMILIES[family](rng, shape)
            start: dict[str, Any] = {"v0": rng.normal(size=shape[1])} if warm else {}
            _, one, plain = prove(cost, device=device, **start)
            larger: dict[str, Any] = {name: given * factor for name, given in start.items()}
            _, other, scaled = prove(cost * factor, device=device, **larger)
            assert one.termination is other.termination
            np.testing.assert_array_equal(one.arrays["assignment"], other.arrays["assignment"])
            assert [plain.objective * factor, plain.bound * factor] == [scaled.objective, scaled.bound]

    def test_transposed(self) -> None:
        rng = np.random.default_rng(11)
        for _ in range(60):
            cost, maximize, _ = draw("scales", rng)
            words = [prove(turned, maximize)[1].termination for turned in (cost, np.ascontiguousarray(cost.T))]
            assert words[0] is words[1]
            assert dual.natural_scale(cost) == dual.natural_scale(cost.T)

    def test_the_natural_scale_is_the_datas(self) -> None:
        cost = np.array([[0.0, -3.0, np.inf], [5.0, 4.0, 1e15], [0.0, 0.0, 0.0]])
        assert dual.natural_scale(cost) == 7.0  # 3 + 4 by rows; 5 + 3 + 1e15 by columns


class TestBound:
    def test_it_is_exact_for_its_prices(self) -> None:
        rng = np.random.default_rng(12)
        for _ in range(200):
            cost, maximize, _ = draw("scales", rng)
            if not np.isfinite(cost).all():
                continue
            sign, turned = -1 if maximize else 1, cost.shape[0] > cost.shape[1]
            price = dual.usable(rng.normal(size=max(cost.shape)), cost.shape[0] != cost.shape[1])
            lines = dual.smallest(cost[None], sign, price[None], lambda fraction: None)
            entries = sign * (cost.T if turned else cost)
            exact: Any = sum(min(Fraction(c) - Fraction(v) for c, v in zip(row, price, strict=True)) for row in entries)
            exact += sum(map(Fraction, price))
            bound = dual.bound(lines, price[None], 0)
            assert bound is not None
            assert Fraction(bound) <= exact < Fraction(np.nextafter(bound, np.inf))

    @pytest.mark.parametrize("shape", [(300, 300), (200, 300), (300, 200)])
    def test_two_words_by_blocks_and_in_rational_numbers(self, shape: tuple[int, int], monkeypatch: Any) -> None:
        monkeypatch.setattr(dual, "BLOCK_BYTES", 1 << 16)
        rng = np.random.default_rng(13)
        cost = rng.random(shape)
        words = np.stack([-rng.random(300), 1e-17 * rng.normal(size=300)])
        free = shape[0] != shape[1]
        quick = dual.finer_bound(cost, 1, words, free, lambda fraction: None)
        monkeypatch.setattr(dual, "EXACT_ENTRIES", 1 << 20)
        slow = dual.finer_bound(cost, 1, words, free, lambda fraction: None)
        assert quick is not None
        assert slow is not None
        assert 0 <= slow - quick <= 2 * np.spacing(abs(slow))

    def test_a_line_without_entries_has_none(self) -> None:
        cost = np.array([[np.inf, np.inf], [1.0, 2.0]])
        lines = dual.smallest(cost[None], 1, np.zeros((1, 2)), lambda fraction: None)
        assert dual.bound(lines, np.zeros((1, 2)), 0) is None
        assert dual.finer_bound(cost, 1, np.zeros((2, 2)), False, lambda fraction: None) is None
