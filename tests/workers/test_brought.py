"""What came with a job goes with it, and counts no longer; nothing goes that another job or an upload has."""

import numpy as np
import pytest

from tests.workers.test_fair import Office
from workers.jobs.job import InputRef, State, Submission
from workers.jobs.queue import Jobs
from workers.jobs.records import Ending
from workers.store.names import name_of
from workers.store.shorts import Short

COST = np.arange(4000.0).reshape(50, 80)


def stored(jobs: Jobs) -> float:
    """Bytes that count for ann once the janitor has been there."""
    jobs.store.sweep()
    return jobs.quotas.used("ann")["bytes_store"]


def name(reference: InputRef) -> str:
    return name_of(reference["blob"], "ann")


def submit(jobs: Jobs, reference: InputRef, brought: bool) -> str:
    kept_for_it = [name(reference)] if brought else []
    asked = Submission("ann", "lap", {"cost": reference}, queue="cpu", brought=kept_for_it)
    return jobs.submit(asked)[0].id


def brought(jobs: Jobs) -> InputRef:
    return jobs.store.put(COST, "ann", brought=True)


def test_inputs_count_no_longer_once_their_job_is_deleted(jobs: Jobs) -> None:
    job = submit(jobs, brought(jobs), True)
    assert stored(jobs) > COST.nbytes
    jobs.delete(job, "ann")
    assert stored(jobs) == 0
    assert not jobs._redis.exists("allot:brought")


def test_inputs_stay_while_another_job_holds_them(jobs: Jobs) -> None:
    first, second = submit(jobs, brought(jobs), True), submit(jobs, brought(jobs), True)
    third = submit(jobs, brought(jobs), False)  # names what the others brought, and was counted on by nobody
    for job in (first, third):
        jobs.delete(job, "ann")
        assert stored(jobs) > COST.nbytes
    jobs.delete(second, "ann")
    assert stored(jobs) > COST.nbytes  # kept for a third that never came: it has its time
    jobs.store.delete(jobs.store.put(COST, "ann")["blob"], "ann")
    assert stored(jobs) == 0


@pytest.mark.parametrize("before", [True, False])
def test_an_upload_by_itself_stays_for_its_time(jobs: Jobs, before: bool) -> None:
    if before:
        jobs.store.put_array(COST, "ann")
    job = submit(jobs, brought(jobs), True)
    if not before:
        jobs.store.put_array(COST, "ann")
    jobs.delete(job, "ann")
    assert stored(jobs) > COST.nbytes
    assert jobs.store.stat(jobs.store.put_array(COST, "ann")["blob"], "ann")


def test_what_is_kept_for_a_job_that_is_just_coming_stays(jobs: Jobs) -> None:
    first = submit(jobs, brought(jobs), True)
    coming = brought(jobs)
    jobs.delete(submit(jobs, coming, False), "ann")  # one that names it, and did not bring it
    jobs.delete(first, "ann")
    assert stored(jobs) > COST.nbytes
    second = submit(jobs, coming, True)
    np.testing.assert_array_equal(jobs.store.resolve(coming, "ann"), COST)
    jobs.delete(second, "ann")
    assert stored(jobs) == 0


def test_arrays_of_an_answer_go_with_it(jobs: Jobs) -> None:
    office = Office(jobs)
    made = [submit(jobs, brought(jobs), True) for _ in range(2)]
    plan = Short.of(COST + 1)
    assert plan is not None
    jobs.store.put_shorts([plan, plan], "ann")  # of both answers, in one trip
    for order in office.take() + office.take():
        ending = Ending(order.job_id, order.execution, State.SUCCEEDED, {}, "{}", [name(plan.reference)])
        assert jobs._records.finish([ending], "cpu") == [True]
    assert stored(jobs) > 2 * COST.nbytes
    jobs.delete(made[0], "ann")
    assert stored(jobs) > 2 * COST.nbytes
    np.testing.assert_array_equal(jobs.store.open_array(plan.reference, "ann"), COST + 1)
    jobs.delete(made[1], "ann")
    assert stored(jobs) == 0
