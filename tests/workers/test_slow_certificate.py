"""A certificate that takes longer than everything else, on a running service: it is awaited, unless it hangs."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.workers.service import OWNER, Service, allowed, eventually, running_service
from workers.jobs.job import Job, State

PLANT = '''
"""Python runs this first: in a solving child, lap's certificate takes its time. cost[0, 0] says how."""
import dataclasses, sys, time

if "workers.runtime.child" in sys.orig_argv:
    from kernels import SOLVERS

    card = SOLVERS["lap"]

    def certify(problem, solution, progress=lambda fraction: None):
        for step in range(80 if problem.weights.size > 1 and problem.weights[0, 0] < 100 else 0):
            time.sleep(0.1)
            if problem.weights[0, 0] == 1:
                progress((step + 1) / 80)
        return card.certify(problem, solution)

    def build(inputs, options):
        time.sleep(0.1)  # phases of shorter jobs are told to nobody
        return card.build(inputs, options)

    SOLVERS["lap"] = dataclasses.replace(card, build=build, certify=certify)
'''
ADVANCES, HANGS, QUICK = 1, 2, 100


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("plant")
    (folder / "sitecustomize.py").write_text(PLANT)
    with pytest.MonkeyPatch.context() as patch:
        found = [str(folder), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, found)))
        folder = tmp_path_factory.mktemp("allot")
        for service in running_service(folder, cpu_workers=1, hard_margin_s=3.0, cancel_grace_s=0.5):
            service.ended(
                service.submit("lap", {"cost": np.full((3, 3), QUICK)})
            )  # what the first loads takes its time
            yield service


def certifying(service: Service, how: int) -> Job:
    job = service.submit("lap", {"cost": np.full((3, 3), how)}, time_limit_s=2.0)

    def there() -> bool:
        progress = service.jobs.get(job.id, OWNER).progress
        return progress is not None and progress["phase"] == "certify"

    eventually(there)
    return job


def test_a_slow_certificate_is_awaited(service: Service) -> None:
    job = certifying(service, ADVANCES)
    done = service.ended(job)
    assert (done.state, done.termination, done.attempt) == (State.SUCCEEDED, "optimal", 1)
    events = [event.data for event in service.jobs.events(job.id, OWNER) if event.kind == "progress"]
    fractions = [data["fraction"] for data in events if data["phase"] == "certify"]
    assert len(fractions) > 5
    assert fractions == sorted(fractions)


def test_a_certificate_that_hangs_is_not(service: Service) -> None:
    start = time.monotonic()
    failed = service.ended(certifying(service, HANGS))
    assert failed.state is State.FAILED
    assert failed.error is not None
    assert failed.error["code"] == "deadline"
    assert time.monotonic() - start < allowed(7.5)


def test_a_stop_does_not_cut_a_certificate_short(service: Service) -> None:
    service.ready()
    job = certifying(service, ADVANCES)
    service.jobs.cancel(job.id, OWNER)
    done = service.ended(job)
    assert (done.state, done.termination) == (State.SUCCEEDED, "optimal")
    assert service.jobs.result(job.id, OWNER)["certificate"]["gap_abs"] == 0


def test_a_deletion_does(service: Service) -> None:
    service.ready()
    job = certifying(service, ADVANCES)
    service.jobs.delete(job.id, OWNER)
    eventually(lambda: not service.jobs._redis.exists(f"allot:job:{job.id}"), within_s=3.0)  # of 4 s and more
