import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Csr, Deadline, InvalidProblem, recheck, solve_and_prove
from tests.fuzz.judge import claim_of
from tests.instances import auction as instances
from tests.oracles import auction as oracle

CARD = SOLVERS["auction"]


def csr(**changed: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "indptr": np.array([0, 2, 4]),
        "indices": np.array([0, 1, 0, 1]),
        "values": np.array([1.0, 2.0, 3.0, 4.0]),
        "shape": (2, 2),
    }
    return {"benefit": Csr(**(parts | changed))}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no benefit": ({}, "benefit"),
    "flat": ({"benefit": np.ones(4)}, "benefit"),
    "empty": ({"benefit": np.ones((0, 4))}, "benefit"),
    "NaN": ({"benefit": np.array([[1.0, math.nan]])}, "benefit"),
    "+inf": ({"benefit": np.array([[1.0, math.inf]])}, "benefit"),
    "complex": ({"benefit": np.ones((2, 2), complex)}, "benefit"),
    "too many rows": ({"benefit": np.ones((3, 2))}, "benefit"),
    "overflow": ({"benefit": np.full((2, 2), 2**61)}, "benefit"),
    "pointer falls": (csr(indptr=np.array([0, 3, 2])), "benefit.indptr"),
    "pointer falls inside": (csr(indptr=np.array([0, 5, 4])), "benefit.indptr"),
    "pointer starts late": (csr(indptr=np.array([1, 2, 4])), "benefit.indptr"),
    "pointer too short": (csr(indptr=np.array([0, 4])), "benefit.indptr"),
    "pointer of floats": (csr(indptr=np.array([0.0, 2.0, 4.0])), "benefit.indptr"),
    "column too large": (csr(indices=np.array([0, 2, 0, 1])), "benefit.indices"),
    "column below 0": (csr(indices=np.array([-1, 1, 0, 1])), "benefit.indices"),
    "column twice": (csr(indices=np.array([1, 1, 0, 1])), "benefit.indices"),
    "columns of floats": (csr(indices=np.array([0.0, 1.0, 0.0, 1.0])), "benefit.indices"),
    "a value short": (csr(values=np.array([1.0, 2.0, 3.0])), "benefit"),
    "sparse NaN": (csr(values=np.array([1.0, math.nan, 3.0, 4.0])), "benefit.values"),
    "sparse -inf": (csr(values=np.array([1.0, -math.inf, 3.0, 4.0])), "benefit.values"),
    "no rows": (csr(shape=(0, 2), indptr=np.array([0])), "benefit"),
    "reject too short": ({"benefit": np.ones((2, 2)), "reject": np.ones(1)}, "reject"),
    "reject sparse": ({"benefit": np.ones((2, 2)), "reject": csr()["benefit"]}, "reject"),
    "x alone": ({"x": np.ones((2, 2))}, "y"),
    "flat points": ({"x": np.ones(2), "y": np.ones((2, 2))}, "x"),
    "points of two dimensions": ({"x": np.ones((2, 3)), "y": np.ones((2, 2))}, "y"),
    "NaN point": ({"x": np.full((2, 2), math.nan), "y": np.ones((2, 2))}, "x"),
    "more points than places": ({"x": np.ones((3, 2)), "y": np.ones((2, 2))}, "benefit"),
    "negative price": ({"benefit": np.ones((2, 2)), "prices0": np.array([1, -1])}, "prices0"),
    "two rows on a column": ({"benefit": np.ones((2, 2)), "assignment0": np.array([1, 1])}, "assignment0"),
    "no such column": ({"benefit": np.ones((2, 2)), "assignment0": np.array([0, 2])}, "assignment0"),
    "half a column": ({"benefit": np.ones((2, 2)), "assignment0": np.array([0, 0.5])}, "assignment0"),
    "NaN price": ({"benefit": np.ones((2, 2)), "prices0": np.array([1, math.nan])}, "prices0"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_input_is_refused_by_name(name: str) -> None:
    inputs, field = BAD[name]
    with pytest.raises(InvalidProblem) as caught:
        CARD.build(inputs, CARD.options())
    assert caught.value.field == field
    assert "expected" in caught.value.message


@pytest.mark.parametrize("given", [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": math.nan}, {"finish": "x"}, {"eps": 1}])
def test_wrong_options_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        CARD.options(**given)


def test_unsorted_columns_are_sorted() -> None:
    graph = instances.planted(30, 30, 0.3, 1)
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)])
    shuffled = Csr(graph.indptr, graph.indices[order], graph.values[order], graph.shape)
    problems = [CARD.build({"benefit": given}, CARD.options()) for given in (shuffled, graph)]
    answers = [CARD.solve(problem, CARD.options(), Deadline()) for problem in problems]
    found = [CARD.certify(*pair).objective for pair in zip(problems, answers, strict=True)]
    assert found[0] == found[1] == oracle.scipy_optimum(graph)


@pytest.mark.parametrize(
    ("given", "kept"), [("int16", "i"), ("uint32", "i"), ("float16", "f"), ("float32", "f"), ("int64", "i")]
)
def test_a_graph_without_edges_has_a_type_that_solvers_know(given: str, kept: str) -> None:
    graph = Csr(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, given), (1, 3))
    problem = CARD.build({"benefit": graph, "reject": np.array([1])}, CARD.options())
    assert isinstance(problem.weights, Csr)
    assert problem.weights.values.dtype.str[1:] == f"{kept}8"


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_duplicates_are_added_up_when_that_is_asked_for(dtype: Any) -> None:
    indptr, indices = np.array([0, 4, 6]), np.array([1, 0, 1, 1, 0, 1])
    graph = Csr(indptr, indices, np.array([1, 9, 4, 5, 3, 2], dtype), (2, 2))
    card = SOLVERS["auction"]
    with pytest.raises(InvalidProblem, match="sum_duplicates"):
        card.build({"benefit": graph}, card.options())
    options = card.options(sum_duplicates=True)
    problem = card.build({"benefit": graph}, options)
    solution, certificate = solve_and_prove(card, problem, options, Deadline(), "cpu")
    assert solution.arrays["assignment"].tolist() == [1, 0]
    assert certificate.objective == 13
    said = recheck("auction", {"benefit": graph}, {"sum_duplicates": True}, claim_of(solution, certificate))
    assert all(statement.holds for statement in said)


def test_seats_of_a_graph_with_many_columns_are_few() -> None:
    card, many = SOLVERS["auction"], 2**31 - 1  # a count of each column would take 16 GiB
    graph = Csr(np.array([0, 1, 2]), np.array([0, many - 1]), np.ones(2), (2, many))
    tracemalloc.start()
    problem = card.build({"benefit": graph, "assignment0": np.array([-1, many - 1])}, card.options())
    with pytest.raises(InvalidProblem, match=f"assignment0: gives column {many - 1} to two rows"):
        card.build({"benefit": graph, "assignment0": np.array([many - 1] * 2)}, card.options())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem.assignment0.tolist() == [-1, many - 1]
    assert peak < 1 << 20


THIRD = (2**64 + 2) // 3
WRAPPED = [0, THIRD, 2 * THIRD - 2**64, 2]
"""Row pointers that go round int64 once, each step a rise of a third of it."""


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Csr(np.array(WRAPPED), np.array([0, 1]), np.array([1, 1]), (3, 3)), r"benefit.indptr: falls from .* at row 1"),
        (Csr(np.array([0, 1]), np.array([0]), np.array([1]), (1, 10**400)), "benefit: has shape 1 x 10000"),
        (Csr(np.array([0, 1]), np.array([0]), np.array([1]), (1, 2**63)), "less than 2[*][*]31 rows and columns"),
        (Csr(np.array([0, 2]), np.array([0, 0]), np.array([-(2**63)] * 2), (1, 3)), "benefit.values: holds integers"),
    ],
)
@pytest.mark.parametrize("sum_duplicates", [False, True])
def test_numbers_that_leave_int64_are_refused(graph: Csr, message: str, sum_duplicates: bool) -> None:
    card = SOLVERS["auction"]
    wanted = message if sum_duplicates or "values" not in message else "benefit.indices: lists column 0 twice"
    with pytest.raises(InvalidProblem, match=wanted):
        card.build({"benefit": graph}, card.options(sum_duplicates=sum_duplicates))
