"""Integers and floats that forbid whole rows, columns, problems, or everything: the same answers, and right ones."""

from typing import Any

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, Array, Csr, recheck
from tests.fuzz.case import Case
from tests.fuzz.judge import claim_of, judge
from tests.fuzz.outcome import Outcome, run

FORBIDDEN_WHERE: dict[str, list[list[int | None]]] = {
    "the one entry": [[None]],
    "every entry": [[None, None], [None, None]],
    "every entry, wide": [[None, None, None]],
    "a row": [[None, None], [1, 2]],
    "a column": [[None, 1], [None, 2]],
    "a row and a column": [[None, None, None], [None, 1, 2], [None, 3, 4]],
    "a column that is not needed": [[None, 1, 2], [None, 2, 1]],
}


def whole(rows: list[list[int | None]]) -> Array:
    return np.array([[FORBIDDEN if x is None else x for x in row] for row in rows], np.int64)


def real(rows: list[list[int | None]], sign: int) -> Array:
    return np.array([[sign * np.inf if x is None else x for x in row] for row in rows], float)


def answered(solver: str, inputs: dict[str, Any], **options: Any) -> Outcome:
    """The outcome, after the judge found nothing and `allot verify`'s arithmetic agreed with all that is stated."""
    case = Case(solver, "forbidden", inputs, options)
    outcome = run(case, limit_s=10.0)
    assert not outcome.error
    assert not outcome.turned_away
    assert judge(case, outcome) == []
    assert outcome.solution is not None
    assert outcome.certificate is not None
    statements = recheck(solver, inputs, options, claim_of(outcome.solution, outcome.certificate))
    assert [one for one in statements if one.holds is False] == []
    return outcome


def same(*outcomes: Outcome) -> str:
    """The word that they all end with; objectives, bounds and gaps are the same."""
    found = set()
    for outcome in outcomes:
        assert outcome.solution is not None
        assert outcome.certificate is not None
        certificate = outcome.certificate
        problems = str(certificate.facts.get("problems"))
        numbers = certificate.objective, certificate.bound, certificate.gap_abs, problems.replace(".0", "")
        found.add((outcome.solution.termination.value, certificate.holds, *numbers))
    assert len(found) == 1
    word, holds, *_ = found.pop()
    assert holds
    return str(word)


@pytest.mark.parametrize("where", FORBIDDEN_WHERE)
@pytest.mark.parametrize("maximize", [False, True])
def test_an_assignment(where: str, maximize: bool) -> None:
    rows = FORBIDDEN_WHERE[where]
    masked = np.ma.masked_equal(whole(rows), FORBIDDEN)
    costs: list[Array] = [whole(rows), real(rows, -1 if maximize else 1), masked]
    word = same(*(answered("lap", {"cost": cost}, maximize=maximize) for cost in (costs[:2])))
    assert word == ("optimal" if where == "a column that is not needed" else "infeasible")
    built = SOLVERS["lap"].build({"cost": masked}, SOLVERS["lap"].options())
    assert (built.weights == whole(rows)).all()


@pytest.mark.parametrize("where", FORBIDDEN_WHERE)
@pytest.mark.parametrize("beside", [False, True])
def test_a_batch(where: str, beside: bool) -> None:
    """Alone, and beside a problem that has an answer."""
    rows = FORBIDDEN_WHERE[where]
    batches = [np.stack([cost, np.ones_like(cost) if beside else cost]) for cost in (whole(rows), real(rows, 1))]
    outcomes = [answered("lap", {"cost": batch}) for batch in batches]
    assert same(*outcomes) == ("optimal" if where == "a column that is not needed" else "infeasible")
    assert outcomes[0].certificate is not None
    infeasible = where != "a column that is not needed"
    if infeasible and not beside:
        assert outcomes[0].certificate.proved.startswith("problem 0: infeasible")
    expected = [
        *(["infeasible"] if infeasible else ["optimal"]),
        "optimal" if beside or not infeasible else "infeasible",
    ]
    assert outcomes[0].certificate.facts["problems"]["terminations"] == expected


@pytest.mark.parametrize("where", FORBIDDEN_WHERE)
def test_an_auction(where: str) -> None:
    rows = FORBIDDEN_WHERE[where]
    dense = [whole(rows), real(rows, -1)]
    allowed = dense[0] != FORBIDDEN
    indptr, columns = np.concatenate([[0], np.cumsum(allowed.sum(1))]), np.nonzero(allowed)[1].astype(np.int32)
    graphs = [Csr(indptr, columns, matrix[allowed], matrix.shape) for matrix in dense]
    forms = [*dense, *graphs]
    word = same(*(answered("auction", {"benefit": form}) for form in forms))
    assert word == ("optimal" if where == "a column that is not needed" else "infeasible")
    assert same(*(answered("auction", {"benefit": form}, allow_unassigned=True) for form in forms)) == "optimal"
    reject = np.arange(len(rows)) - 1
    assert same(*(answered("auction", {"benefit": form, "reject": reject}) for form in forms)) == "optimal"


def test_a_quadratic_assignment() -> None:
    rows = FORBIDDEN_WHERE["every entry"]
    inputs = {"flow": np.eye(2), "distance": np.eye(2)}
    for linear in (whole(rows), real(rows, 1)):
        assert same(answered("qap", {**inputs, "linear": linear})) == "infeasible"


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 2.0**-1060])
@pytest.mark.parametrize("finish", ["auto", "auction", "paths"])
def test_no_gap_is_an_optimum_however_small_the_numbers(tiny: float, finish: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        benefit = rng.integers(0, 3, (3, 4)) * tiny
        outcome = answered("auction", {"benefit": benefit}, finish=finish)
        assert outcome.certificate is not None
        assert outcome.solution is not None
        assert outcome.certificate.gap_abs == 0
        assert outcome.solution.termination == "optimal"
