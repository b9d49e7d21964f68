"""`verified` stands beside `optimal` wherever an answer is read: document, terminal, table and client."""

import json
from typing import Any

import httpx
import numpy as np
import pytest
from allot_client.results import Home, read_result

from app.cli import demo
from app.cli.solve import describe
from app.http.schemas import CertificateView
from kernels import SOLVERS, Solution, Termination


def document(word: Termination) -> dict[str, Any]:
    """The answer of a branch and bound of order 9 that says to have ended, or to have ended otherwise."""
    rng = np.random.default_rng(6)
    flow, distance = (np.triu(m, 1) + np.triu(m, 1).T for m in rng.integers(0, 10, (2, 9, 9)))
    card = SOLVERS["qap"]
    problem = card.build({"flow": flow, "distance": distance}, card.options())
    permutation = np.arange(9)
    facts = {"proved": True, "bounds": {"gilmore-lawler": 0}}
    solution = Solution(word, "memetic", {"permutation": permutation}, facts=facts)
    certificate = card.certify(problem, solution)
    assert certificate.gap_abs is not None
    assert certificate.gap_abs > 0
    return {
        "solver": "qap",
        "termination": word,
        "objective": certificate.objective,
        "certificate": certificate.stated(word),
        "method": "memetic",
        "device": "cpu",
        "iterations": 1,
        "timings_ms": {"solve": 1.0},
        "facts": facts,
        "permutation": permutation,
    }


@pytest.mark.parametrize(
    ("word", "verified"), [(Termination.OPTIMAL, False), (Termination.TIME_LIMIT, None), (Termination.STOPPED, None)]
)
def test_an_unchecked_search_is_not_shown_as_a_proof(word: Termination, verified: bool | None) -> None:
    found = document(word)
    assert found["certificate"]["verified"] is verified
    assert set(found["certificate"]) == set(CertificateView.model_fields)
    assert ("(not verified)" in describe(found)) is (verified is False)
    assert "(verified)" not in describe(found)
    line = demo.table([demo.Row("qap", "9", found)]).splitlines()[3]
    assert ("  no  " if verified is False else f"  {word.value}  ") in line
    answer = read_result(
        {**found, "id": "1", "permutation": found["permutation"].tolist()}, None, Home(lambda array: array)
    )
    assert answer.optimal is (word is Termination.OPTIMAL)
    assert answer.verified is verified
    assert f"verified={verified}" in repr(answer)


def test_an_answer_says_that_it_is_verified(client: httpx.Client) -> None:
    for cost, word, verified in (
        ([[4, 1], [2, 0]], "optimal", True),
        ([[None, None], [2, 0]], "infeasible", True),
    ):
        body = {"solver": "lap", "inputs": {"cost": cost}}
        found = client.post("/v1/jobs", json=body, headers={"Prefer": "wait=30"}).json()
        assert found["termination"] == word
        assert found["certificate"]["verified"] is verified
        assert set(found["certificate"]) == set(CertificateView.model_fields)
        shown = client.get(f"/v1/jobs/{found['id']}").json()
        assert (shown["termination"], shown["verified"]) == (word, verified)
        with client.stream("GET", shown["links"]["events"], headers={"Accept": "text/event-stream"}) as events:
            told = [json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: ")]
        assert (told[-1]["termination"], told[-1]["verified"]) == (word, verified)
    schema = client.get("/openapi.json").json()["components"]["schemas"]["CertificateView"]
    assert "verified" in schema["properties"]
    assert "objective" not in schema["properties"]
