"""Assignments whose lines may be left at a price, and problems of any sizes in one call."""

from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, Device, InvalidProblem, Solution, recheck, solve_and_prove
from kernels.certificates.rejecting import certify
from kernels.lap import extended
from kernels.lap.cpu import solver as cpu
from kernels.lap.mending.rejecting import mend_rejecting
from kernels.problems import FORBIDDEN, Rejecting
from tests.fuzz.judge import claim_of

CARD = SOLVERS["lap"]


def answered(
    inputs: dict[str, Any], device: Device = "cpu", limit_s: float = 30, **options: Any
) -> tuple[Rejecting, Solution, Certificate]:
    chosen = CARD.options(**options)
    problem = CARD.build({name: np.asarray(value) for name, value in inputs.items()}, chosen)
    solution, certificate = solve_and_prove(CARD, problem, chosen, Deadline(limit_s), device)
    assert certificate.holds, certificate.proved
    if np.size(inputs["cost"]) < 20_000:
        said = recheck(
            "lap", {name: np.asarray(value) for name, value in inputs.items()}, options, claim_of(solution, certificate)
        )
        assert [statement for statement in said if statement.holds is not True] == []
    return problem, solution, certificate


def least(cost: Array, rows: Any, cols: Any, sign: int = 1) -> Fraction:
    """Every choice of pairs, priced in fractions."""
    n, m = cost.shape
    best = None
    for size in range(min(n, m) + 1):
        for taken in combinations(range(n), size):
            for seats in permutations(range(m), size):
                costs = [cost[i, j] for i, j in zip(taken, seats, strict=True)]
                if any(not np.isfinite(c) or (cost.dtype == np.int64 and c == FORBIDDEN) for c in costs):
                    continue
                left = [rows[i] for i in range(n) if i not in taken] + [cols[j] for j in range(m) if j not in seats]
                total = sign * sum((Fraction(c.item() if hasattr(c, "item") else c) for c in costs + left), Fraction(0))
                best = total if best is None else min(best, total)
    assert best is not None
    return sign * best


def boxes(rng: np.random.Generator, rows: int, cols: int) -> Array:
    """1 - intersection over union of boxes, as trackers have it."""
    sides = []
    for count in (rows, cols):
        corner, size = rng.uniform(0, 80, (count, 2)), rng.uniform(10, 30, (count, 2))
        sides.append((corner, corner + size))
    (low, high), (low2, high2) = sides
    common = np.clip(np.minimum(high[:, None], high2) - np.maximum(low[:, None], low2), 0, None).prod(axis=2)
    areas = (high - low).prod(axis=1)[:, None] + (high2 - low2).prod(axis=1)
    return np.asarray(1 - common / (areas - common))


def frames(seed: int, count: int, low: int = 10, high: int = 60) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [boxes(rng, *rng.integers(low, high + 1, 2)) for _ in range(count)]


def flat(matrices: list[Array]) -> dict[str, Array]:
    sizes = np.array([one.shape for one in matrices], np.int64).reshape(-1, 2)
    return {"cost": np.concatenate([one.reshape(-1) for one in matrices] + [np.zeros(0)]), "sizes": sizes}


def per_problem(problem: Rejecting, flat_rows: Array) -> list[Array]:
    return np.split(flat_rows, problem.starts[1:-1, 1])


@pytest.mark.parametrize("kind", ["floats", "integers", "ties", "forbidden", "maximised"])
def test_prices_of_lines_against_every_choice(kind: str, device: Device) -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        shape = tuple(rng.integers(1, 5, 2))
        cost = rng.normal(size=shape) * 3 if kind in ("floats", "maximised") else rng.integers(-3, 9, shape)
        if kind == "forbidden":
            cost = np.where(rng.random(shape) < 0.4, FORBIDDEN, cost)
        prices = [rng.integers(-2, 6, n) for n in shape]
        if kind == "floats":
            prices = [rng.normal(size=n) for n in shape]
        maximize = kind == "maximised"
        inputs = {"cost": cost, "reject_rows": prices[0], "reject_cols": prices[1]}
        _, solution, certificate = answered(inputs, device, maximize=maximize)
        best = least(cost, prices[0].tolist(), prices[1].tolist(), -1 if maximize else 1)
        assert solution.termination == "optimal", certificate
        assert certificate.objective == pytest.approx(float(best), rel=1e-14, abs=1e-14)
        sign = -1 if maximize else 1
        assert sign * Fraction(certificate.bound) <= sign * best  # type: ignore[arg-type]
        if cost.dtype.kind == "i":
            assert certificate.objective == best == certificate.bound


@pytest.mark.parametrize("sides", [("reject_rows",), ("reject_cols",)])
def test_lines_without_a_price_are_left_for_nothing(sides: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    for shape in ((3, 4), (4, 3), (3, 3)):
        cost = rng.integers(-6, 6, shape)
        prices = {"reject_rows": rng.integers(-3, 3, shape[0]), "reject_cols": rng.integers(-3, 3, shape[1])}
        _, _, certificate = answered({"cost": cost, **{name: prices[name] for name in sides}})
        zeros = [prices[name] if name in sides else np.zeros(n, int) for name, n in zip(prices, shape, strict=True)]
        assert certificate.objective == least(cost, zeros[0].tolist(), zeros[1].tolist())


def test_a_thousand_frames_are_those_of_lapx() -> None:
    lap = pytest.importorskip("lap")
    matrices, limit = frames(0, 1000), 0.8
    problem, solution, certificate = answered(flat(matrices), cost_limit=limit)
    found = per_problem(problem, solution.arrays["assignment"])
    for cost, own in zip(matrices, found, strict=True):
        rows, _ = lap.lapjv(cost, extend_cost=True, cost_limit=limit, return_cost=False)
        assert own.tolist() == rows.tolist()
    assert solution.termination == "optimal"
    assert set(certificate.facts["problems"]["terminations"]) == {"optimal"}


def test_frames_are_those_of_the_extended_matrix() -> None:
    """The square of all rows and columns, each with half the limit to stay alone, solved as an ordinary assignment."""
    from scipy.optimize import linear_sum_assignment

    limit = 0.75
    for cost in frames(1, 40):
        n, m = cost.shape
        square = np.full((n + m, n + m), limit / 2)
        square[:n, :m], square[n:, m:] = cost, 0
        _, columns = linear_sum_assignment(square)
        _, solution, certificate = answered({"cost": cost}, cost_limit=limit)
        assert solution.arrays["assignment"].tolist() == [j if j < m else -1 for j in columns[:n].tolist()]
        half = square[np.arange(n + m), columns].sum() - abs(n - m) * limit / 2
        assert certificate.objective == pytest.approx(half, rel=1e-12)


def test_no_pair_is_above_the_limit_and_one_at_it_may_be_formed(device: Device) -> None:
    cost = np.array([[5, 9], [9, 6]])
    _, solution, certificate = answered({"cost": cost}, device, cost_limit=5)
    assert solution.arrays["assignment"].tolist()[1] == -1
    assert (certificate.objective, certificate.bound) == (10, 10)
    assert certificate.facts["left"] in (2, 4)
    _, solution, certificate = answered({"cost": cost}, device, cost_limit=5.5)
    assert solution.arrays["assignment"].tolist() == [0, -1]
    assert certificate.objective == 10.5


@pytest.mark.parametrize("options", [{}, {"cost_limit": 0.7}])
def test_a_ragged_batch_is_its_problems_one_by_one(options: dict[str, Any], device: Device) -> None:
    matrices = [*frames(2, 12, 1, 9), np.zeros((0, 4)), np.zeros((3, 0)), np.zeros((0, 0)), np.array([[0.25]])]
    problem, solution, certificate = answered(flat(matrices), device, **options)
    listed = certificate.facts["problems"]
    for k, (cost, own) in enumerate(zip(matrices, per_problem(problem, solution.arrays["assignment"]), strict=True)):
        if not cost.size:
            assert listed["objectives"][k] == 0
            continue
        _, _, proof = answered({"cost": cost}, device, **options)
        pairs = np.flatnonzero(own >= 0)
        lost = (min(cost.shape) - len(pairs)) * options.get("cost_limit", np.inf) if len(pairs) < min(cost.shape) else 0
        assert cost[pairs, own[pairs]].sum() + lost == pytest.approx(proof.objective, rel=1e-13)
        assert listed["objectives"][k] == pytest.approx(proof.objective, rel=1e-13)
        assert listed["terminations"][k] == "optimal"
        assert listed["bounds"][k] <= listed["objectives"][k]
        assert listed["gaps"][k] <= 1e-12


def test_a_batch_with_prices_keeps_its_form() -> None:
    rng = np.random.default_rng(8)
    cost, sizes = rng.integers(0, 9, (3, 4, 5)), np.array([[4, 5], [2, 5], [3, 0]])
    rows, cols = rng.integers(0, 5, (3, 4)), rng.integers(0, 5, (3, 5))
    _, solution, certificate = answered({"cost": cost, "sizes": sizes, "reject_rows": rows, "reject_cols": cols})
    assert {name: array.shape for name, array in solution.arrays.items()} == {
        "assignment": (3, 4),
        "u": (3, 4),
        "v": (3, 5),
    }
    for k, (n, m) in enumerate(sizes.tolist()):
        best = least(cost[k, :n, :m], rows[k, :n].tolist(), cols[k, :m].tolist())
        assert certificate.facts["problems"]["objectives"][k] == best
        assert (solution.arrays["assignment"][k, n:] == -1).all()


def test_one_infeasible_frame_loses_no_other(device: Device) -> None:
    inf = np.inf
    matrices = [np.array([[1.0, 2], [3, 5]]), np.array([[inf, inf], [1, 2]]), np.array([[5.0, 1, 2]])]
    problem, solution, certificate = answered(flat(matrices), device)
    assert certificate.facts["problems"]["terminations"] == ["optimal", "infeasible", "optimal"]
    assert certificate.facts["problems"]["objectives"] == [5.0, None, 1.0]
    assert certificate.objective == 6.0
    assert [own.tolist() for own in per_problem(problem, solution.arrays["assignment"])] == [[1, 0], [-1, -1], [1]]
    tall = np.array([[inf, 1.0], [inf, 2], [inf, 3]])
    _, solution, certificate = answered(flat([tall, tall.T]), device)
    assert certificate.facts["problems"]["terminations"] == ["infeasible", "infeasible"]
    assert (certificate.objective, certificate.bound, certificate.gap_abs) == (None, None, None)


def test_the_form_with_more_columns_is_the_same_problem() -> None:
    """What a GPU is given, solved by the CPU's solver of ordinary assignments."""
    rng = np.random.default_rng(11)
    options = CARD.options()
    for kind in ("integers", "floats", "strict"):
        matrices = [rng.integers(0, 50, tuple(rng.integers(0, 9, 2))) for _ in range(25)]
        inputs = flat(matrices)
        inputs["cost"] = inputs["cost"].astype(float if kind == "floats" else int)
        if kind != "strict":
            inputs["reject_rows"] = rng.integers(-5, 30, inputs["sizes"][:, 0].sum())
            inputs["reject_cols"] = rng.integers(-5, 30, inputs["sizes"][:, 1].sum())
        problem = CARD.build(inputs, options)
        longer = extended.solve_extended(problem, options, Deadline(), cpu.solve)
        direct = cpu.solve(problem, options, Deadline())
        assert certify(problem, longer).objective == certify(problem, direct).objective
        assert certify(problem, longer).termination is None
        assert certify(problem, longer).holds


def test_corrupted_answers_are_refused_or_covered() -> None:
    rng = np.random.default_rng(13)
    refused = covered = 0
    for trial in range(400):
        shape = tuple(rng.integers(1, 5, 2))
        whole = trial % 2 == 0
        cost = rng.integers(0, 9, shape) if whole else rng.random(shape)
        prices = [rng.integers(0, 6, n) if whole else rng.random(n) for n in shape]
        problem, solution, _ = answered({"cost": cost, "reject_rows": prices[0], "reject_cols": prices[1]})
        best = least(cost, prices[0].tolist(), prices[1].tolist())
        name = ("assignment", "u", "v")[trial % 3]
        array = solution.arrays[name].copy()
        at = rng.integers(len(array))
        if array.dtype.kind == "i":
            array[at] += rng.choice([-2, -1, 1, 2, 10**6, -(2**62)])
        else:
            array[at] = rng.choice(
                [np.nextafter(array[at], 9), array[at] * 1.001, array[at] + 1, np.nan, -np.inf, 1e300]
            )
        solution.arrays[name] = array
        proof = certify(problem, solution)
        if not proof.holds:
            refused += 1
            continue
        assert proof.objective is not None
        if proof.bound is not None:
            covered += 1
            assert Fraction(proof.bound) <= best
            assert Fraction(proof.objective) - best <= Fraction(proof.gap_abs or 0) + Fraction(proof.objective) / 2**50
        if (proof.termination or solution.termination) == "optimal":
            assert abs(Fraction(proof.objective) - best) <= Fraction(1, 10**12) * (not whole)
    assert refused > 30
    assert covered > 100


@pytest.mark.parametrize("scale", [-900, 900])
def test_the_word_does_not_depend_on_the_units(scale: int) -> None:
    cost = frames(4, 1)[0]
    _, plain, first = answered({"cost": cost}, cost_limit=0.5)
    _, scaled, second = answered({"cost": np.ldexp(cost, scale)}, cost_limit=float(np.ldexp(0.5, scale)))
    assert scaled.arrays["assignment"].tolist() == plain.arrays["assignment"].tolist()
    assert second.objective == np.ldexp(float(first.objective or 0), scale)


def test_prices_that_do_not_prove_an_optimum_are_mended() -> None:
    """Small problems in whole numbers; larger ones, where columns cost nothing, by the ordinary form."""
    rng = np.random.default_rng(17)
    count = 0
    shapes = [tuple(rng.integers(2, 6, 2)) for _ in range(40)] + [(90, 70), (70, 90)]
    for shape in shapes:
        cost = rng.normal(size=shape) * 10.0 ** rng.integers(-15, 16, shape) if max(shape) < 9 else rng.random(shape)
        prices = [rng.normal(size=n) * 10.0 ** rng.integers(-15, 16, n) for n in shape]
        inputs = {"cost": cost, "reject_rows": prices[0], "reject_cols": prices[1]}
        options: dict[str, Any] = {}
        if max(shape) > 9:
            inputs, options = {"cost": cost}, {"cost_limit": 0.02}
        problem, solution, _ = answered(inputs, **options)
        for name in "uv":
            solution.arrays[name] = solution.arrays[name] * rng.normal(size=len(solution.arrays[name]))
        loose = certify(problem, solution)
        if not loose.loose:
            continue
        count += 1
        mended = mend_rejecting(problem, solution, loose, Deadline())
        assert mended is not None
        proof = certify(problem, mended)
        assert proof.termination is None
        if max(shape) < 9:
            best = least(cost, prices[0].tolist(), prices[1].tolist())
            assert Fraction(proof.bound) <= best <= Fraction(proof.objective)  # type: ignore[arg-type]
    assert count > len(shapes) // 2


def test_a_stopped_solve_has_an_answer_and_a_bound() -> None:
    rng = np.random.default_rng(19)
    for cost in (rng.random((700, 800)), *frames(5, 3)):
        problem = CARD.build({"cost": cost}, options := CARD.options(cost_limit=0.9))
        solution = CARD.solve(problem, options, Deadline(0))
        proof = certify(problem, solution)
        assert proof.holds
        assert solution.termination == "time_limit"
        assert proof.bound is not None
        assert proof.objective is not None
        assert proof.bound <= proof.objective


@pytest.mark.parametrize(
    ("inputs", "options", "field"),
    [
        ({"cost": [[1.0]], "reject_rows": [1.0, 2.0]}, {}, "reject_rows"),
        ({"cost": [[1.0]], "reject_cols": [np.nan]}, {}, "reject_cols"),
        ({"cost": [[1.0]], "reject_rows": [1.0]}, {"cost_limit": 1.0}, "cost_limit"),
        ({"cost": [[1.0]]}, {"cost_limit": 1.0, "maximize": True}, "cost_limit"),
        ({"cost": [[1.0]]}, {"cost_limit": 1.0, "method": "tree"}, "method"),
        ({"cost": [[1.0]], "v0": [0.0]}, {"cost_limit": 1.0}, "v0"),
        ({"cost": [1.0, 2.0, 3.0], "sizes": [[1, 2]]}, {}, "cost"),
        ({"cost": [1.0, 2.0]}, {"cost_limit": 1.0}, "cost"),
        ({"cost": [1.0, 2.0], "sizes": [[-1, -2]]}, {}, "sizes"),
        ({"cost": [1.0] * 4, "sizes": [[2**31 - 1] * 2] * 4 + [[2**17] * 2]}, {"cost_limit": 1.0}, "cost"),
        ({"cost": [], "sizes": [[2**31 - 1, 0]]}, {"cost_limit": 1.0}, "sizes"),
        ({"cost": [], "sizes": [[0, 2**22], [1, 0]]}, {}, "sizes"),
        ({"cost": np.empty((2**31, 0))}, {"cost_limit": 1.0}, "cost"),
        ({"cost": np.empty((2**40, 0, 0)), "sizes": np.empty((0, 2), int)}, {}, "cost"),
        ({"cost": np.empty((1, 2**31, 0)), "sizes": [[0, 0]]}, {}, "cost"),
        ({"cost": [[2**60]], "reject_rows": [1]}, {}, "cost"),
        ({"cost": [[2**54]]}, {"cost_limit": 0.5}, "cost"),
        ({"cost": [[np.nan]]}, {"cost_limit": 0.5}, "cost"),
    ],
)
def test_wrong_input_is_named(inputs: dict[str, Any], options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as error:
        CARD.build({name: np.array(value) for name, value in inputs.items()}, CARD.options(**options))
    assert error.value.field == field
