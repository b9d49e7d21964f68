"""Small auctions that are solved together: each answer is the one that its problem gets alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Csr, Deadline, Solution, Termination, solve_and_prove
from kernels.auction import joint
from kernels.auction.joint import solve_jointly

AUCTION = SOLVERS["auction"]
COUNT = 7
MAYBE_WITHOUT_ANSWER = {"sparse whole", "sparse floats", "forbidden"}


def graphs(n_rows: int, n_cols: int, degree: int, dtype: Any) -> list[Csr]:
    """Graphs of one shape with different numbers of edges; of some, no assignment takes all rows."""
    rng = np.random.default_rng(degree)
    found: list[Csr] = []
    for _ in range(COUNT):
        edges = rng.random((n_rows, n_cols)) < degree / n_cols
        edges[np.arange(n_rows), rng.permutation(n_cols)[:n_rows]] = True
        if len(found) == 3:
            edges[:2] = False
            edges[:2, 0] = True
        rows, columns = np.nonzero(edges)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
        values = rng.integers(-40, 1000, columns.size) if dtype is np.int64 else rng.random(columns.size)
        found.append(Csr(starts, columns.astype(np.int32), values.astype(dtype), (n_rows, n_cols)))
    return found


def families(n_rows: int, n_cols: int) -> dict[str, list[dict[str, Array | Csr]]]:
    rng = np.random.default_rng(n_rows * 1000 + n_cols)
    forbidden = rng.random((COUNT, n_rows, n_cols))
    forbidden[rng.random(forbidden.shape) < 0.2] = -np.inf
    forbidden[3, :2, 1:] = -np.inf  # two rows for one column
    x, y = rng.random((COUNT, n_rows, 2)), rng.random((COUNT, n_cols, 2))
    lines = np.arange(n_rows)[:, None] * np.arange(n_cols)
    wide = rng.random((COUNT, n_rows, n_cols)) * 2.0**-300
    wide[:, 0] = np.ldexp(wide[:, 0], 1200)  # what is brought near 1 loses the other rows
    benefits: dict[str, list[Array] | list[Csr]] = {
        "floats": list(rng.random((COUNT, n_rows, n_cols))),
        "halves": list(rng.random((COUNT, n_rows, n_cols)).astype(np.float32)),
        "whole": list(rng.integers(-500, 500, (COUNT, n_rows, n_cols))),
        "narrow": list(rng.integers(-500, 500, (COUNT, n_rows, n_cols)).astype(np.int32)),
        "ties": list(rng.integers(0, 3, (COUNT, n_rows, n_cols))),
        "lines": [lines * k for k in range(COUNT)],
        "far off": list(rng.random((COUNT, n_rows, n_cols)) * 2.0**-600),
        "some far off": [rng.random((n_rows, n_cols)) * 2.0 ** (300 * k) for k in range(3)],
        "wide": list(wide),
        "forbidden": list(forbidden),
        "sparse whole": graphs(n_rows, n_cols, 4, np.int64),
        "sparse floats": graphs(n_rows, n_cols, 4, np.float64),
    }
    reject = rng.integers(-200, 200, (COUNT, n_rows))
    return {
        **{family: [{"benefit": one} for one in those] for family, those in benefits.items()},
        "reject": [{"benefit": b, "reject": r} for b, r in zip(benefits["whole"], reject, strict=True)],
        "points": [{"x": a, "y": b} for a, b in zip(x, y, strict=True)],
    }


def alone(problem: Any, options: Any) -> tuple[Solution, Certificate]:
    return solve_and_prove(AUCTION, problem, options, Deadline(), "cpu")


def together(problems: list[Any], options: Any) -> list[Any]:
    return list(solve_jointly(problems, options, Deadline(), "cpu"))


def same(found: tuple[Solution, Certificate], wanted: tuple[Solution, Certificate], company: int) -> None:
    (solution, certificate), (other, proof) = found, wanted
    assert certificate == proof
    assert [type(value) for value in vars(certificate).values()] == [type(value) for value in vars(proof).values()]
    ends = [(one.termination, one.method, one.iterations, one.seed) for one in (solution, other)]
    assert ends[0] == ends[1]
    assert solution.facts == other.facts | {"solved_together": company}
    assert solution.arrays.keys() == other.arrays.keys()
    for name, array in solution.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name], err_msg=name, strict=True)


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (5, 9), (32, 32), (70, 70)])
@pytest.mark.parametrize("said", [{"seed": 3}, {"finish": "paths", "trace": True}, {"finish": "auction"}])
def test_each_answer_is_that_of_a_solve_by_itself(shape: tuple[int, int], said: dict[str, Any]) -> None:
    options = AUCTION.options(**said)
    for family, inputs in families(*shape).items():
        problems = [AUCTION.build(one, options) for one in inputs]
        given = [np.array(problem.weights) for problem in problems if isinstance(problem.weights, np.ndarray)]
        answers = together(problems, options)
        for problem, found in zip(problems, answers, strict=True):
            wanted = alone(problem, options)
            if found is not None:
                same(found, wanted, len(problems))
            else:  # then it is solved by itself
                assert wanted[0].termination is not Termination.OPTIMAL, family
        assert any(answers) or shape == (1, 1), family
        assert all(answers) or family in MAYBE_WITHOUT_ANSWER, family
        for problem, before in zip(problems, given, strict=False):
            np.testing.assert_array_equal(problem.weights, before)


def test_problems_of_many_entries_are_answered_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "MOST_ENTRIES", 150)  # two of 8 x 8
    options = AUCTION.options()
    problems = [AUCTION.build(one, options) for one in families(8, 8)["whole"]]
    for problem, found in zip(problems, together(problems, options), strict=True):
        same(found, alone(problem, options), len(problems))


def test_members_of_different_forms_are_none_of_each_others_business() -> None:
    options = AUCTION.options()
    inputs = [families(*shape)[kind][0] for shape in ((8, 8), (5, 9)) for kind in ("whole", "floats", "sparse whole")]
    problems = [AUCTION.build(one, options) for one in inputs]
    for problem, found in zip(problems, together(problems, options), strict=True):
        same(found, alone(problem, options), len(problems))


def test_what_is_large_is_left_to_itself() -> None:
    """Company saves little of its time, and it would make the others wait."""
    options = AUCTION.options()
    sizes = (8, 91, 9, 90)
    problems = [AUCTION.build({"benefit": np.eye(n)}, options) for n in sizes]
    answers = together(problems, options)
    assert [found is None for found in answers] == [n * n > joint.LARGEST for n in sizes]
    same(answers[0], alone(problems[0], options), 3)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_what_has_no_proved_optimum_is_left_to_itself(dtype: Any) -> None:
    options = AUCTION.options()
    problems = [AUCTION.build({"benefit": graph}, options) for graph in graphs(9, 9, 4, dtype)]
    answers = together(problems, options)
    assert [found is None for found in answers] == [k == 3 for k in range(COUNT)]
    assert alone(problems[3], options)[0].termination is Termination.INFEASIBLE


def test_a_wrong_answer_among_others_is_not_called_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof of all together is no proof of one that is wrong, and each of the others still has its own."""
    options = AUCTION.options()
    problems = [AUCTION.build(one, options) for one in families(8, 8)["whole"]]
    solved = joint._solved

    def spoiled(*arguments: Any) -> list[Solution]:
        solutions = solved(*arguments)
        for k, name in ((1, "prices"), (3, "profits"), (5, "assignment")):
            array = solutions[k].arrays[name].copy()
            array[:2] = array[1::-1] if name == "assignment" else array[:2] + np.array([1, 0])
            solutions[k].arrays[name] = array
        return solutions

    monkeypatch.setattr(joint, "_solved", spoiled)
    answers = together(problems, options)
    assert [found is None for found in answers] == [k in (1, 3, 5) for k in range(COUNT)]
    for k in (0, 2, 4, 6):
        same(answers[k], alone(problems[k], options), COUNT)


def test_one_proof_of_all_stands_for_no_smaller_gap_than_each_has() -> None:
    """Members whose parts would only make up an optimum together: a gap is not below 0, so none hides another's."""
    options = AUCTION.options()
    problems = [AUCTION.build(one, options) for one in families(8, 8)["ties"]]
    solutions = [alone(problem, options)[0] for problem in problems]
    proofs = joint._proved_as_one(problems, solutions)
    assert proofs == [AUCTION.certify(*pair) for pair in zip(problems, solutions, strict=True)]
    for k in range(COUNT):
        less = replace(solutions[k], arrays=solutions[k].arrays | {"prices": solutions[k].arrays["prices"] * 0})
        changed = [less if at == k else one for at, one in enumerate(solutions)]
        own = AUCTION.certify(problems[k], less)
        assert (joint._proved_as_one(problems, changed) is None) == (own.termination is not None or bool(own.gap_abs))


@pytest.mark.parametrize("name", ["assignment", "prices", "profits"])
def test_arrays_of_wrong_sizes_are_proved_by_nobody(name: str) -> None:
    """Two that are cut apart at a wrong place, so that all together are the arrays of an optimum."""
    options = AUCTION.options()
    problems = [AUCTION.build(one, options) for one in families(8, 8)["ties"]]
    solutions = [alone(problem, options)[0] for problem in problems]
    one, other = (solutions[k].arrays[name] for k in (0, 1))
    moved = other[:1] + 8 if name == "assignment" else other[:1]
    solutions[0].arrays[name], solutions[1].arrays[name] = np.append(one, moved), other[1:]
    certificates = joint._certified(problems, solutions)
    assert [bool(one.holds) for one in certificates] == [k > 1 for k in range(COUNT)]
    assert certificates == [AUCTION.certify(*pair) for pair in zip(problems, solutions, strict=True)]


@pytest.mark.parametrize("said", [{"epsilon": 0.5}, {"iteration_limit": 3}])
def test_what_may_end_short_of_the_optimum_is_left_to_itself(
    said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint, "_solved", None)  # nothing is solved in vain
    options = AUCTION.options(**said)
    problems = [AUCTION.build({"benefit": np.eye(3)}, options)] * 3
    assert together(problems, options) == [None] * 3


def test_what_there_is_no_time_for_is_left_to_itself() -> None:
    options = AUCTION.options()
    problems = [AUCTION.build({"benefit": np.eye(3)}, options)] * 3
    assert list(solve_jointly(problems, options, Deadline(0.0), "cpu")) == [None] * 3


def test_a_gpu_solves_each_by_itself() -> None:
    options = AUCTION.options()
    problems = [AUCTION.build({"benefit": np.eye(3)}, options)] * 3
    assert list(solve_jointly(problems, options, Deadline(), "gpu")) == [None] * 3


def test_the_card_has_it_for_a_cpu_alone() -> None:
    options = AUCTION.options()
    problems = [AUCTION.build(one, options) for one in families(8, 8)["floats"]]
    assert set(AUCTION.joint) == {"cpu"}
    answers = AUCTION.joint["cpu"](problems, options, Deadline())
    assert all(answers)
    assert {answer[0].facts["solved_together"] for answer in answers if answer} == {COUNT}
