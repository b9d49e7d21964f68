"""Answers that a GPU certified, certified again on the CPU: which are drawn, what is counted, what is logged."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Certificate, Deadline, Solution, Termination, disagreement
from tests.workers.test_records import Held
from workers.jobs.job import Submission
from workers.jobs.queue import Jobs
from workers.jobs.records import Limits, Order, Records
from workers.runtime import child
from workers.runtime.audit import Auditor
from workers.runtime.config import Settings
from workers.runtime.document import Bench
from workers.store.inline import carried
from workers.store.reference import of_array

LAP = SOLVERS["lap"]


def answer(cost: Any) -> tuple[Any, Solution, Certificate]:
    """A problem, its answer, and a certificate that says it comes from a GPU."""
    options = LAP.options()
    problem = LAP.build({"cost": cost}, options)
    solution = LAP.solve(problem, options, Deadline(), "cpu")
    certificate = LAP.certify(problem, solution)
    return problem, solution, replace(certificate, facts=certificate.facts | {"certified_on": "gpu"})


@pytest.fixture
def held(jobs: Jobs) -> Held:
    return Held(jobs)


def audited(jobs: Jobs, held: Held, certificate: Certificate, solution: Solution, share: float = 1.0) -> dict[str, Any]:
    """The audits counted after one answer."""
    auditor = Auditor(share, held.records, jobs.store, draw=lambda: 0.5)
    auditor.note(order_of(held), solution, certificate)
    auditor.answered(held.id, done=True)
    auditor.settle()
    return {name: value for name, value in jobs.counts().items() if name.startswith("audits")}


def order_of(held: Held, **changes: str) -> Order:
    return Order(held.id, "one-1", 1, held.records.read(held.id) | changes)


def of_job(held: Held, jobs: Jobs) -> tuple[Solution, Certificate]:
    """The answer of the job that is held."""
    import json

    record = held.records.read(held.id)
    inputs = {name: jobs.store.resolve(ref, record["owner"]) for name, ref in json.loads(record["inputs"]).items()}
    _, solution, certificate = answer(inputs["cost"])
    return solution, certificate


def test_certificates_that_agree_are_counted(jobs: Jobs, held: Held) -> None:
    solution, certificate = of_job(held, jobs)
    assert audited(jobs, held, certificate, solution) == {"audits_agreed": {"lap": 1}}


def test_a_contradiction_is_counted_and_logged(jobs: Jobs, held: Held, caplog: pytest.LogCaptureFixture) -> None:
    solution, certificate = of_job(held, jobs)
    wrong = replace(certificate, objective=(certificate.objective or 0) - 1)
    with caplog.at_level(logging.CRITICAL):
        assert audited(jobs, held, wrong, solution) == {"audits_differed": {"lap": 1}}
    assert f"certificates of {held.id} contradict" in caplog.text


def test_answers_without_a_certificate_and_those_not_drawn_are_left_alone(jobs: Jobs, held: Held) -> None:
    solution, certificate = of_job(held, jobs)
    assert audited(jobs, held, certificate, solution, share=0.5) == {}
    assert audited(jobs, held, replace(certificate, holds=None), solution) == {}
    assert audited(jobs, held, replace(certificate, facts={}), solution) == {"audits_agreed": {"lap": 1}}


def test_an_answer_of_another_problem_is_found_though_its_certificate_holds(jobs: Jobs, held: Held) -> None:
    """As where an input was overwritten between its arrival and the solve, and the certificate read what was there."""
    _, solution, certificate = answer(np.array([[5, 0], [1, 7]]))
    assert certificate.holds
    assert audited(jobs, held, certificate, solution) == {"audits_differed": {"lap": 1}}


def test_inputs_that_travelled_with_their_job_are_audited(jobs: Jobs) -> None:
    cost = np.array([[3.0, 1.0], [1.0, 5.0]])
    inputs = {"cost": carried(of_array(cost), cost)}
    job, _ = jobs.submit(Submission("ann", "lap", inputs, queue="cpu"))
    jobs._redis.lpush("rq:queue:cpu", job.id)
    records = Records(jobs._redis)
    (order,) = records.take("cpu", "a worker", "a cpu", "one", Limits.of(jobs.settings))
    assert order.data
    auditor = Auditor(1.0, records, jobs.store)
    bench = Bench(records, jobs.store, "cpu", "a device", auditor=auditor)
    assert child.work([order], "a worker", bench)[0] == {job.id: "done"}
    auditor.settle()
    assert jobs.counts()["audits_agreed"] == {"lap": 1}


def test_an_audit_that_cannot_be_made_is_no_contradiction(
    jobs: Jobs, held: Held, caplog: pytest.LogCaptureFixture
) -> None:
    solution, certificate = of_job(held, jobs)
    solution.arrays.clear()
    auditor = Auditor(1.0, held.records, jobs.store)
    auditor.note(order_of(held, inputs='{"cost": {"blob": "sha256:gone"}}'), solution, certificate)
    auditor.answered(held.id, done=True)
    auditor.settle()
    assert "could not be audited" in caplog.text
    assert not [name for name in jobs.counts() if name.startswith("audits")]


def test_a_job_is_audited_once_it_is_answered(jobs: Jobs, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a child's own code: its certificate says that it comes from a GPU."""
    certify = LAP.certify

    def on_gpu(problem: Any, solution: Solution, *heard: Any) -> Certificate:
        found = certify(problem, solution)
        return replace(found, facts=found.facts | {"certified_on": "gpu"})

    monkeypatch.setitem(SOLVERS, "lap", replace(LAP, certify=on_gpu))
    auditor = Auditor(1.0, held.records, jobs.store)
    order = held.take("one")
    assert order is not None
    bench = Bench(held.records, jobs.store, "cpu", "a device", auditor=auditor)
    assert child.work([order], "a worker", bench)[0] == {held.id: "done"}
    auditor.settle()
    assert jobs.counts()["audits_agreed"] == {"lap": 1}


def test_the_share_is_a_setting() -> None:
    assert Settings().audit_share == 0.01
    assert Settings.from_env({"ALLOT_AUDIT_SHARE": "0.5"}).audit_share == 0.5


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"holds": False, "proved": "a column is used twice"}, "refutes"),
        ({"termination": Termination.CONVERGED, "gap_abs": 1.0}, "converged"),
        ({"objective": 1.5}, "objective"),
        ({"objective": None}, "objective"),
        ({"bound": 1e6}, "beyond"),
        ({"facts": {"problems": {"terminations": ["optimal"]}}}, "problems are told of"),
    ],
)
def test_what_contradicts(changes: dict[str, Any], word: str) -> None:
    _, _, certificate = answer(np.random.default_rng(1).random((9, 9)))
    assert disagreement(certificate, certificate, maximize=False) == []
    assert word in disagreement(certificate, replace(certificate, **changes), maximize=False)[0]


def test_a_problem_of_a_batch_that_ended_otherwise_contradicts() -> None:
    _, _, certificate = answer(np.random.default_rng(3).random((2, 9, 9)))
    problems = certificate.facts["problems"]
    words, gaps = ["optimal", "converged"], [problems["gaps"][0], 0.25]
    other = replace(certificate, facts={"problems": problems | {"terminations": words, "gaps": gaps}})
    assert disagreement(certificate, certificate, maximize=False) == []
    assert disagreement(certificate, other, maximize=False) == [
        "problem 1 ended optimal by the device and converged by the CPU"
    ]


def test_a_gap_just_above_what_was_asked_does_not_contradict() -> None:
    """The device's certificate reaches the tolerance, the CPU's misses it by rounding."""
    _, _, certificate = answer(np.random.default_rng(4).random((9, 9)))
    other = replace(certificate, termination=Termination.CONVERGED, gap_abs=(certificate.gap_abs or 0.0) + 1e-13)
    assert disagreement(certificate, other, maximize=False) == []


def test_a_bound_of_integers_beyond_the_objective_contradicts_by_one() -> None:
    _, _, certificate = answer(np.random.default_rng(5).integers(0, 10**15, (9, 9)))
    assert isinstance(certificate.bound, int)
    assert disagreement(certificate, certificate, maximize=False) == []
    assert "beyond" in disagreement(certificate, replace(certificate, bound=certificate.bound + 1), maximize=False)[0]


def test_rounding_does_not_contradict() -> None:
    _, _, certificate = answer(np.random.default_rng(2).random((9, 9)))
    assert isinstance(certificate.objective, float)
    assert isinstance(certificate.bound, float)
    near = replace(certificate, objective=certificate.objective * (1 + 1e-12), bound=certificate.bound * (1 - 1e-12))
    assert disagreement(certificate, near, maximize=False) == []
    assert disagreement(near, certificate, maximize=False) == []
