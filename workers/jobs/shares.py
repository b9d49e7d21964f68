"""Links that show one finished job to whoever has them: made by its owner, revoked by them, and gone with the job.

A link's secret is 32 random bytes, of which only the SHA-256 is kept. Redis holds

    allot:share:<sha256>   hash: id, job, owner, inputs, created_at, expires_at  (gone once it expires, or with the job)
    allot:shares:<job>     hash: id -> sha256, gone with the job
"""

import json
import logging
import secrets
from dataclasses import dataclass
from typing import Any

from workers.jobs.job import Job, JobError, NotEnded, State, UnknownJob
from workers.jobs.queue import Jobs
from workers.jobs.scripts import Scripts
from workers.runtime.config import Settings
from workers.runtime.connection import connect, guarded
from workers.runtime.keyring import digest_of
from workers.runtime.logs import audit

LOG = logging.getLogger(__name__)
MOST = 20
"""Links of one job at a time."""


class TooMany(JobError):
    """A job has as many links as one may have."""


@dataclass(frozen=True)
class Share:
    """What is known of a link. Times are seconds since 1970 by Redis's clock."""

    id: str
    job_id: str
    owner: str
    inputs: bool
    created_at: float
    expires_at: float


class Shares:
    """The links in one Redis."""

    def __init__(self, settings: Settings, jobs: Jobs) -> None:
        self._redis: Any = connect(settings.redis_url)
        self._run = Scripts(self._redis).run
        self._jobs = jobs

    @guarded
    def create(self, job_id: str, owner: str, lifetime_s: float, inputs: bool) -> tuple[str, Share]:
        """Make a link to a job that has an answer: (the secret, which is not kept, and what is).

        Raises:
            UnknownJob, Expired.
            NotEnded: there is no answer (yet).
            TooMany: some must be revoked first.
        """
        job = self._jobs.get(job_id, owner)
        if job.state is not State.SUCCEEDED:
            raise NotEnded(f"job {job_id} is {job.state.value}; a link shows an answer")
        now, secret = float(self._redis.now()), secrets.token_urlsafe(32)
        share = Share(secrets.token_hex(8), job_id, owner, inputs, now, now + lifetime_s)
        digest = digest_of(secret)
        fields = ("id", share.id, "job", job_id, "owner", owner, "inputs", str(int(inputs)),
                  "created_at", repr(now), "expires_at", repr(share.expires_at))  # fmt: skip
        told = (MOST, digest, int(1000 * lifetime_s), share.id, json.dumps(fields))
        made = self._run("share", job_id, owner, *told)
        if made < 0:
            raise TooMany(f"job {job_id} has {MOST} links; revoke one first")
        if not made:
            raise UnknownJob(f"there is no job {job_id[:40]}")
        audit("share.create", share_id=share.id, job_id=job_id, owner=owner)
        return secret, share

    @guarded
    def list(self, job_id: str, owner: str) -> list[Share]:
        """The links of a job that are good now, oldest first. Raises UnknownJob, Expired."""
        self._jobs.get(job_id, owner)
        return sorted(self._known(job_id).values(), key=lambda share: share.created_at)

    @guarded
    def revoke(self, job_id: str, owner: str, share_id: str) -> None:
        """Take a link back at once. Raises UnknownJob, Expired."""
        self._jobs.get(job_id, owner)
        digest = self._redis.hget(f"allot:shares:{job_id}", share_id)
        if digest is None:
            raise UnknownJob(f"job {job_id} has no link {share_id[:40]}")
        with self._redis.pipeline() as pipe:
            pipe.delete(f"allot:share:{digest}").hdel(f"allot:shares:{job_id}", share_id).execute()
        audit("share.revoke", share_id=share_id, job_id=job_id, owner=owner)

    @guarded
    def open(self, secret: str) -> tuple[Share, Job]:
        """The job that a link shows. Raises UnknownJob for every link that is not good, whatever the reason."""
        share = _read(self._redis.hgetall(f"allot:share:{digest_of(secret)}"))
        if share is None or share.expires_at <= float(self._redis.now()):
            raise UnknownJob("this link shows nothing (any more)")
        try:
            return share, self._jobs.get(share.job_id, share.owner)
        except JobError:
            raise UnknownJob("this link shows nothing (any more)") from None

    def _known(self, job_id: str) -> dict[str, Share]:
        found = {}
        for share_id, digest in self._redis.hgetall(f"allot:shares:{job_id}").items():
            share = _read(self._redis.hgetall(f"allot:share:{digest}"))
            if share is None:  # expired, or junk
                self._redis.hdel(f"allot:shares:{job_id}", share_id)
            else:
                found[share_id] = share
        return found


def _read(fields: dict[str, str]) -> Share | None:
    """The link of a record; None where there is none, or junk."""
    try:
        times = float(fields["created_at"]), float(fields["expires_at"])
        return Share(fields["id"], fields["job"], fields["owner"], fields["inputs"] == "1", *times)
    except (KeyError, ValueError):
        if fields:
            LOG.error("the record of a link cannot be read; the link shows nothing")
        return None
