"""Proofs of many problems in compiled loops, beside the same proofs one problem after the other."""

from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, InvalidProblem, Solution, counter
from kernels.certificates.rejecting import certify, many
from kernels.certificates.rejecting.many import judged_together
from kernels.certificates.rejecting.proof import judged
from kernels.certificates.rejecting.reading import answer_of, endings
from kernels.certificates.rejecting.table import Table
from kernels.certificates.rejecting.whole import certificate
from kernels.certificates.rounded import down, up
from kernels.problems import FORBIDDEN, Rejecting
from tests.kernels.test_rejecting import flat, frames

CARD = SOLVERS["lap"]
KINDS = ["boxes", "float32", "normal", "wide", "integers", "ties", "large", "forbidden", "forbidden integers", "strict"]


def inputs_of(kind: str, rng: np.random.Generator, count: int) -> tuple[dict[str, Array], dict[str, Any]]:
    """Problems of 0 to 9 lines a side."""
    matrices: list[Array] = []
    for _ in range(count):
        shape = tuple(rng.integers(0, 10, 2))
        if kind in ("integers", "ties", "forbidden integers", "strict"):
            matrices.append(rng.integers(-3, 4 if kind == "ties" else 500, shape))
        elif kind == "large":
            matrices.append(rng.integers(-(2**53), 2**53, shape))
        else:
            scale = 10.0 ** rng.integers(-250, 250) if kind == "wide" else 1.0
            matrices.append(rng.normal(size=shape) * scale)
    if kind == "boxes":
        matrices = frames(int(rng.integers(1 << 30)), count, 1, 12)
    inputs = flat(matrices)
    whole = kind in ("integers", "ties", "large", "forbidden integers", "strict")
    cost = inputs["cost"].astype(np.int64 if whole else np.float64)
    if kind.startswith("forbidden"):
        cost = np.where(rng.random(cost.shape) < 0.3, FORBIDDEN if whole else np.inf, cost)
    inputs["cost"] = cost.astype(np.float32) if kind == "float32" else cost
    if kind == "strict":
        return inputs, {}
    if rng.random() < 0.5 and kind != "large":
        return inputs, {"cost_limit": 3.0 if whole else 0.8}
    for name, side in (("reject_rows", 0), ("reject_cols", 1)):
        lines = int(inputs["sizes"][:, side].sum())
        inputs[name] = rng.integers(-5, 200, lines) if whole else rng.normal(size=lines)
    return inputs, {}


def answered(kind: str, seed: int, maximize: bool, count: int = 40) -> tuple[Rejecting, Solution]:
    rng = np.random.default_rng(seed)
    inputs, options = inputs_of(kind, rng, count)
    if maximize:
        options.pop("cost_limit", None)
        known = inputs["cost"] != FORBIDDEN if inputs["cost"].dtype.kind == "i" else np.isfinite(inputs["cost"])
        inputs["cost"] = np.where(
            known, inputs["cost"], inputs["cost"] if inputs["cost"].dtype.kind == "i" else -np.inf
        )
    chosen = CARD.options(maximize=maximize, **options)
    problem = CARD.build(inputs, chosen)
    return problem, CARD.solve(problem, chosen, Deadline(), "cpu")


def corrupted(solution: Solution, rng: np.random.Generator) -> None:
    """Other columns, duals that are too large, too small, or no number."""
    for name, array in solution.arrays.items():
        if name not in ("assignment", "u", "v") or not len(array):
            continue
        other = array.copy()
        at = rng.integers(len(array), size=3)
        if array.dtype.kind == "i":
            other[at] += rng.choice([-(2**62), -2, -1, 1, 2, 10**6], 3)
        else:
            other[at] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -0.0, 7.5], 3)
        solution.arrays[name] = other


def both(problem: Rejecting, solution: Solution) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    words, answer = endings(problem, solution), answer_of(problem, solution)
    assert not isinstance(words, str)
    assert not isinstance(answer, str)
    found = judged_together(problem, answer, words, lambda done: None)
    alone = judged(problem, answer, words, lambda done: None)
    told = [repr(certificate(problem, solution, table)) for table in (found, Table.of(alone))]  # types and all
    assert told[0] == told[1]
    return [asdict(one) for one in found], [asdict(one) for one in alone]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_loops_prove_what_one_by_one_is_proved(kind: str, maximize: bool) -> None:
    for seed in range(12):
        problem, solution = answered(kind, seed, maximize)
        if solution.termination == "infeasible":
            continue
        together, alone = both(problem, solution)
        assert together == alone
        rng = np.random.default_rng(seed)
        for _ in range(4):
            corrupted(solution, rng)
            together, alone = both(problem, solution)
            assert together == alone


@pytest.mark.parametrize("kind", ["boxes", "normal", "integers"])
def test_few_problems_need_a_second_look(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solution = answered(kind, 3, False, 300)
    again: list[int] = []
    original = many._one

    def noted(*given: Any) -> Any:
        again.append(given[-1])
        return original(*given)

    monkeypatch.setattr(many, "_one", noted)
    assert certify(problem, solution).holds
    assert len(again) < 30


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("kind", ["boxes", "normal", "wide"])
def test_sums_over_all_problems_are_rounded_once(kind: str, maximize: bool) -> None:
    problem, solution = answered(kind, 11, maximize, 300)
    words, answer = endings(problem, solution), answer_of(problem, solution)
    assert not isinstance(words, str)
    assert not isinstance(answer, str)
    found = judged_together(problem, answer, words, lambda done: None)
    assert found.sums is not None
    if kind == "boxes":
        assert found.sums.rounded is not None  # else this is about nothing
    if found.sums.rounded is not None:
        exact = [sum(map(Fraction, values), Fraction(0)) for values in (found.objectives, found.bounds)]  # type: ignore[arg-type]
        weak = (down(exact[0]), up(exact[1])) if maximize else (up(exact[0]), down(exact[1]))
        assert found.sums.rounded == weak
    found[3] = judged(problem, answer, words, lambda done: None)[3]
    assert found.sums is None  # nobody has added up what is there now


@pytest.mark.parametrize("taken", [2, 10**6])
@pytest.mark.parametrize("kind", ["boxes", "integers"])
def test_what_no_thread_took_is_proved_one_by_one(kind: str, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that is wrong costs time, and no proof says more than it may."""
    problem, solution = answered(kind, 13, False)
    monkeypatch.setattr(many, "PIECE", 1)
    monkeypatch.setattr(counter, "new_counter", lambda: np.array([taken]))
    together, alone = both(problem, solution)
    assert together == alone


def test_words_of_a_stopped_batch_are_kept() -> None:
    problem, solution = answered("boxes", 5, False)
    options = CARD.options(cost_limit=0.8)
    stopped = CARD.solve(problem, options, Deadline(0), "cpu")
    together, alone = both(problem, stopped)
    assert together == alone
    assert {proof["ended"] for proof in together} == {"time_limit"}
    assert certify(problem, solution).termination is None


def test_further_words_of_duals_are_read_problem_by_problem() -> None:
    problem, solution = answered("boxes", 7, False)
    for name in "uv":
        whole = solution.arrays[name]
        solution.arrays[name] = whole.astype(np.float32).astype(np.float64)
        solution.arrays[f"{name}_finer"] = (whole - solution.arrays[name])[None]
    together, alone = both(problem, solution)
    assert together == alone
    assert any(proof["bound"] is not None for proof in together)


def test_costs_that_were_seen_as_they_came_are_not_read_to_be_checked() -> None:
    """A thousand frames are built between two requests; their numbers were looked at piece by piece."""
    from kernels.problems.seen import Seen, note

    inputs = flat(frames(1, 20))
    cost = inputs["cost"]
    cost.flags.writeable = True
    note(cost, Seen(0.0, 1.0))
    cost[5] = np.nan  # what is not read is not noticed
    assert isinstance(CARD.build(inputs, CARD.options(cost_limit=0.8)), Rejecting)
    note(cost, Seen(0.0, 1e308))
    with pytest.raises(InvalidProblem, match="overflow"):
        CARD.build(inputs, CARD.options(cost_limit=0.8))
    note(cost, None)
    with pytest.raises(InvalidProblem, match=r"nan in matrix 0 at \[0, 5\]"):
        CARD.build(inputs, CARD.options(cost_limit=0.8))
