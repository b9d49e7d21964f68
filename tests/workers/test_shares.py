"""Links to a job: as many as one may have, none of a job that is gone, and nothing left of them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.workers.test_janitor import submitted
from workers.jobs.job import State, UnknownJob
from workers.jobs.queue import Jobs
from workers.jobs.shares import MOST, Shares, TooMany
from workers.runtime.config import Settings


def ended(jobs: Jobs) -> str:
    job_id = submitted(jobs)
    jobs._redis.hset(f"allot:job:{job_id}", "state", State.SUCCEEDED.value)
    return job_id


def links(jobs: Jobs) -> list[str]:
    return sorted(jobs._redis.scan_iter("allot:share*"))


def test_many_at_once_make_no_more_than_one_may_have(jobs: Jobs, settings: Settings) -> None:
    job_id, shares = ended(jobs), Shares(settings, jobs)

    def make(_: int) -> bool:
        try:
            shares.create(job_id, "ann", 60.0, False)
        except TooMany:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(make, range(3 * MOST))) == MOST
    assert len(shares.list(job_id, "ann")) == MOST
    shares.revoke(job_id, "ann", shares.list(job_id, "ann")[0].id)
    assert make(0)
    assert not make(0)


def test_those_that_have_expired_do_not_count(jobs: Jobs, settings: Settings) -> None:
    job_id, shares = ended(jobs), Shares(settings, jobs)
    for _ in range(MOST):
        shares.create(job_id, "ann", 60.0, False)
    for digest in jobs._redis.hvals(f"allot:shares:{job_id}"):
        jobs._redis.delete(f"allot:share:{digest}")
    shares.create(job_id, "ann", 60.0, False)
    assert jobs._redis.hlen(f"allot:shares:{job_id}") == 1


def test_links_go_with_the_job(jobs: Jobs, settings: Settings) -> None:
    job_id, shares = ended(jobs), Shares(settings, jobs)
    secret, _ = shares.create(job_id, "ann", 60.0, False)
    jobs.delete(job_id, "ann")
    assert links(jobs) == []
    with pytest.raises(UnknownJob):
        shares.open(secret)


def test_a_job_that_goes_while_a_link_is_made_leaves_nothing(
    jobs: Jobs, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, shares, get = ended(jobs), Shares(settings, jobs), jobs.get

    def gone(*asked: Any) -> Any:
        found = get(*asked)
        jobs._records.discard(job_id)
        return found

    monkeypatch.setattr(jobs, "get", gone)
    with pytest.raises(UnknownJob):
        shares.create(job_id, "ann", 60.0, False)
    assert links(jobs) == []
