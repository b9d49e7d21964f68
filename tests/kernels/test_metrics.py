"""Assignments between points: every metric against fractions, its certificate against wrong and strange numbers."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Claim, Deadline, InvalidProblem, Solution, Termination, recheck
from kernels.certificates.exact import points as exact
from kernels.certificates.metrics.coarsely import Costs
from kernels.proving import solve_and_prove
from tests.fuzz.draw import Seeded
from tests.fuzz.families.points import METRICS, clouds
from tests.fuzz.judge import claim_of

LAP, AUCTION = SOLVERS["lap"], SOLVERS["auction"]
NEW = ("cosine", "correlation", "inner", "iou")


def points(metric: str, m: int, n: int, d: int = 3, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    if metric != "iou":
        return {"x": rng.normal(size=(m, d)), "y": rng.normal(size=(n, d))}
    corners = [rng.random((k, 2)) for k in (m, n)]
    x, y = (np.concatenate([corner, corner + rng.random(corner.shape)], axis=1) for corner in corners)
    return {"x": x, "y": y}


def solved(solver: str, inputs: dict[str, Array], **options: Any) -> tuple[Any, Solution, Certificate]:
    card = SOLVERS[solver]
    given = card.options(**options)
    problem = card.build(inputs, given)
    solution, certificate = solve_and_prove(card, problem, given, Deadline(60), "cpu")
    return problem, solution, certificate


def best_of(table: list[list[Fraction]]) -> Fraction:
    if len(table) > len(table[0]):
        table = [list(line) for line in zip(*table, strict=True)]
    chosen = permutations(range(len(table[0])), len(table))
    return min(sum((row[j] for row, j in zip(table, columns, strict=True)), Fraction(0)) for columns in chosen)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", [(5, 5), (4, 6), (6, 4), (1, 3)])
@pytest.mark.parametrize("maximize", [False, True])
def test_the_optimum_is_that_of_the_real_costs(metric: str, shape: tuple[int, int], maximize: bool) -> None:
    inputs = points(metric, *shape, seed=sum(shape))
    _, solution, certificate = solved("lap", inputs, metric=metric, maximize=maximize)
    sign = -1 if maximize else 1
    table, _ = exact.table(inputs, {"metric": metric})
    best = sign * best_of([[sign * c for c in row] for row in table])
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective is not None
    assert certificate.bound is not None
    assert abs(Fraction(certificate.objective) - best) <= abs(best) / 2**50
    assert sign * Fraction(certificate.bound) <= sign * best + abs(best) / 2**150
    assert sign * Fraction(certificate.objective) >= sign * best - abs(best) / 2**150
    statements = recheck("lap", inputs, {"metric": metric, "maximize": maximize}, claim_of(solution, certificate))
    assert [one for one in statements if one.holds is not True] == []


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("allow_unassigned", [False, True])
def test_auctions_have_the_same_metrics(metric: str, allow_unassigned: bool) -> None:
    inputs = points(metric, 5, 6)
    options = {"metric": metric, "allow_unassigned": allow_unassigned}
    _, solution, certificate = solved("auction", inputs, **options)
    table, _ = exact.table(inputs, {"metric": metric})
    free = Fraction(0)
    extended = [[*row, *([free] * len(table) if allow_unassigned else [])] for row in table]
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(-float(best_of(extended)), rel=1e-15, abs=1e-300)
    statements = recheck("auction", inputs, options, claim_of(solution, certificate))
    assert [one for one in statements if one.holds is not True] == []


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [2, 9, 33])
def test_every_cost_lies_within_the_stated_errors(metric: str, d: int) -> None:
    """The coarse sweep and the words against fractions, on the fuzzer's clouds of every size."""
    for seed in range(30):
        x, y = (cloud.astype(np.float64) for cloud in clouds(Seeded(seed, d), 4, 5, metric))
        if d > 8 and metric != "iou":
            x, y = (np.tile(cloud, (1, 1 + d // cloud.shape[1]))[:, :d] for cloud in (x, y))
        try:
            AUCTION.build({"x": x, "y": np.concatenate([y, x])}, AUCTION.options(metric=metric))
        except InvalidProblem:
            continue
        table, slack = exact.table({"x": x, "y": y}, {"metric": metric})
        costs = Costs(x, y, metric)
        rows, columns = (index.ravel() for index in np.indices((4, 5)))
        known = costs.exact(rows, columns)
        block = costs.block(0)
        errors = np.broadcast_to(block.error, block.values.shape)
        for k, (i, j) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            true = table[i][j]
            off = abs(Fraction(float(known.high[k])) + Fraction(float(known.low[k])) - true)
            assert off <= Fraction(float(known.error[k])) + slack, (seed, i, j)
            assert abs(Fraction(float(block.values[i, j])) - true) <= Fraction(float(errors[i, j])) + slack, (
                seed,
                i,
                j,
            )


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "iou"])
def test_points_matched_with_themselves_cost_nothing(metric: str) -> None:
    x = points(metric, 40, 40, 12)["x"]
    order = np.random.default_rng(4).permutation(40)
    _, solution, certificate = solved("lap", {"x": x, "y": x[order]}, metric=metric)
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == 0
    assert certificate.gap_abs is not None
    assert certificate.gap_abs < 1e-12
    assert (order[solution.arrays["assignment"]] == np.arange(40)).all()


def test_ties_of_whole_coordinates_are_closed_exactly() -> None:
    rng = np.random.default_rng(2)
    inputs = {"x": rng.integers(0, 3, (300, 9)), "y": rng.integers(0, 3, (300, 9))}
    for metric in ("sqeuclidean", "cityblock", "inner"):
        _, solution, certificate = solved("lap", inputs, metric=metric)
        assert solution.termination is Termination.OPTIMAL
        assert certificate.gap_abs == 0


def test_more_pairs_than_are_worked_out_exactly_still_give_a_true_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.certificates.metrics import assignment

    inputs = points("sqeuclidean", 12, 12, 9)
    problem, solution, certificate = solved("lap", inputs)
    monkeypatch.setattr(assignment, "MOST", 0)
    monkeypatch.setattr(assignment, "SMALL", 0)
    rough = LAP.certify(problem, solution)
    table, _ = exact.table(inputs, {})
    assert certificate.bound is not None
    assert rough.bound is not None
    assert rough.bound < certificate.bound
    assert Fraction(rough.bound) <= sum((table[i][j] for i, j in enumerate(solution.arrays["assignment"])), Fraction(0))


@pytest.mark.parametrize("metric", METRICS)
def test_a_wrong_answer_is_refused_or_told_as_it_is(metric: str) -> None:
    inputs = points(metric, 6, 6)
    problem, solution, certificate = solved("lap", inputs, metric=metric)
    assert certificate.objective is not None

    def certified(**arrays: Array) -> Certificate:
        return LAP.certify(problem, replace(solution, arrays={**solution.arrays, **arrays}))

    twice = solution.arrays["assignment"].copy()
    twice[0] = twice[1]
    assert not certified(assignment=twice).holds
    assert not certified(assignment=np.full(6, 9)).holds
    assert not certified(u=np.zeros(5)).holds
    assert not LAP.certify(problem, replace(solution, termination=Termination.INFEASIBLE)).holds
    swapped = solution.arrays["assignment"][[1, 0, 2, 3, 4, 5]]
    worse = certified(assignment=swapped)
    assert worse.termination is Termination.CONVERGED
    assert worse.objective is not None
    assert worse.objective > certificate.objective
    for garbage in (np.full(6, np.nan), np.full(6, 1e300), np.full(6, -np.inf)):
        loose = certified(v=garbage)
        assert loose.bound is None or loose.bound <= certificate.objective
        assert loose.holds


@pytest.mark.parametrize(
    ("inputs", "options", "field", "words"),
    [
        ({"x": np.ones((2, 2)), "y": np.ones((2, 3))}, {}, "y", "dimension"),
        ({"x": np.ones((2, 2))}, {}, "y", "missing"),
        ({"x": np.ones((2, 2)), "y": np.full((2, 2), np.nan)}, {}, "y", "finite"),
        ({"x": np.ones((2, 2)), "y": np.full((2, 2), 1e101)}, {}, "x", "1e100"),
        ({"x": np.full((2, 2), 2**53 + 1), "y": np.ones((2, 2))}, {}, "x", r"2\^53"),
        ({"x": np.ones((2, 2)), "y": np.zeros((2, 2))}, {"metric": "cosine"}, "y", "zeros alone"),
        ({"x": np.eye(2), "y": np.ones((2, 2))}, {"metric": "correlation"}, "y", "same coordinate"),
        ({"x": np.ones((2, 3)), "y": np.ones((2, 3))}, {"metric": "iou"}, "x", "x1, y1, x2, y2"),
        ({"x": np.array([[1, 0, 0, 1]]), "y": np.ones((1, 4))}, {"metric": "iou"}, "x", "x1 <= x2"),
        ({"x": np.ones((2, 2)), "y": np.ones((2, 2)), "cost": np.ones((2, 2))}, {}, "cost", "beside x or y"),
        ({"x": np.ones((2, 2)), "y": np.ones((2, 2)), "v0": np.ones(3)}, {}, "v0", "shape"),
        ({"x": np.ones((2, 2)), "y": np.ones((2, 2))}, {"method": "hungarian"}, "method", "matrix of costs"),
    ],
)  # fmt: skip
def test_wrong_points_are_refused_with_their_name(
    inputs: dict[str, Array], options: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(InvalidProblem, match=words) as wrong:
        LAP.build(inputs, LAP.options(**options))
    assert wrong.value.field == field


def test_neighbours_belong_to_distances_in_space() -> None:
    with pytest.raises(InvalidProblem, match="neighbours"):
        AUCTION.build(points("cosine", 4, 5), AUCTION.options(metric="cosine", neighbours=2))


def test_no_time_still_gives_an_answer_with_a_bound() -> None:
    options = LAP.options(metric="euclidean")
    problem = LAP.build(points("euclidean", 30, 20), options)
    solution, certificate = solve_and_prove(LAP, problem, options, Deadline(0.0), "cpu")
    assert certificate.holds
    assert solution.termination is Termination.TIME_LIMIT
    assert certificate.objective is not None


def test_duals_of_an_earlier_answer_are_taken() -> None:
    inputs = points("sqeuclidean", 50, 50)
    _, first, before = solved("lap", inputs)
    _, second, after = solved("lap", {**inputs, "u0": first.arrays["u"], "v0": first.arrays["v"]})
    assert before.objective == after.objective
    assert second.termination is Termination.OPTIMAL


def test_an_estimate_counts_the_matrix_that_is_written_out() -> None:
    problem = LAP.build(points("cosine", 400, 300, 20), LAP.options(metric="cosine"))
    for device in ("cpu", "gpu"):
        needs = LAP.estimate(problem, LAP.options(metric="cosine"), device)
        assert needs.host_bytes > 400 * 300 * 8
        assert needs.seconds > 0
        assert (needs.device_bytes > 400 * 300 * 8) == (device == "gpu")


def test_boxes_without_shared_area_cost_one() -> None:
    boxes = np.array([[0.0, 0, 1, 1], [1, 0, 2, 1], [3, 3, 3, 3]])
    table, _ = exact.table({"x": boxes, "y": boxes}, {"metric": "iou"})
    assert [[float(c) for c in row] for row in table] == [[0, 1, 1], [1, 0, 1], [1, 1, 1]]
    _, _, certificate = solved("lap", {"x": boxes, "y": boxes}, metric="iou")
    assert certificate.objective == 1 == certificate.bound


def test_claims_that_are_too_good_are_refuted_by_fractions() -> None:
    inputs = points("correlation", 4, 4)
    _, solution, certificate = solved("lap", inputs, metric="correlation")
    claim = claim_of(solution, certificate)
    assert claim.bound is not None

    def refuted(changed: Claim) -> set[str]:
        return {one.name for one in recheck("lap", inputs, {"metric": "correlation"}, changed) if not one.holds}

    assert refuted(claim) == set()
    assert "bound" in refuted(replace(claim, bound=claim.bound + 1e-9))
    assert "objective" in refuted(replace(claim, objective=(claim.objective or 0) - 1e-9))
