"""What a person calls the rows and columns of a job: a JSON document that is kept with the job, and goes with it.

Its bytes lie in the store, held by the job; the record has the reference in `note`.
"""

import json
import logging
from typing import Any

import numpy as np

from workers.jobs.job import JobError, Unavailable, UnknownJob
from workers.jobs.queue import Jobs
from workers.jobs.scripts import Scripts
from workers.runtime.config import Settings
from workers.runtime.connection import connect, guarded
from workers.store.reference import names

LOG = logging.getLogger(__name__)


class NoNote(UnknownJob):
    """The job is there, and nobody has put a note beside it."""


class Notes:
    """Puts notes beside jobs, and gives them back."""

    def __init__(self, settings: Settings, jobs: Jobs) -> None:
        self._redis: Any = connect(settings.redis_url)
        self._run = Scripts(self._redis).run
        self._jobs = jobs

    @guarded
    def put(self, job_id: str, owner: str, document: bytes) -> None:
        """Keep `document` in the place of whatever was there. Raises UnknownJob, Expired, StoreFull."""
        self._jobs.get(job_id, owner)
        reference = self._jobs.store.put(np.frombuffer(document, dtype=np.uint8), owner, brought=True)
        (name,) = names({"note": reference}, owner)
        if not self._run("annotate", job_id, owner, json.dumps(reference), name):
            raise UnknownJob(f"there is no job {job_id[:40]}")

    @guarded
    def get(self, job_id: str, owner: str) -> bytes:
        """The document. Raises UnknownJob, NoNote, Expired."""
        self._jobs.get(job_id, owner)
        reference = self._redis.hget(f"allot:job:{job_id}", "note")
        if reference is None:
            raise NoNote(f"job {job_id} has no note")
        try:
            told = json.loads(reference)
            return self._jobs.store.open_array(told, owner).tobytes()
        except (ValueError, TypeError, KeyError, JobError) as wrong:
            if isinstance(wrong, Unavailable):
                raise
            LOG.error("the note of job %s cannot be read: %s", job_id, wrong)
            raise NoNote(f"job {job_id} has no note that can be read") from None
