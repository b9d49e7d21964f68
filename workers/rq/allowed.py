"""RQ's job, cut down to the one thing that Allot queues, so that whoever writes to Redis cannot run code here.

RQ imports by name whatever a job's hash says: its function, its callbacks, its webhooks' hosts. This class reads a
hash as data, and takes anything but our function with one argument, the job's own id, for a job that is not there.
"""

import logging
from typing import Any

from rq.exceptions import NoSuchJobError
from rq.executions import Execution
from rq.job import Job
from rq.timeouts import BaseDeathPenalty

JOB_FUNCTION = "workers.runtime.run.run"
"""The one function name that a worker accepts. It is a label: the child calls the function itself."""
log = logging.getLogger(__name__)


class AllowedJob(Job):  # type: ignore[misc]
    """A job that does nothing but carry an id."""

    def restore(self, raw_data: Any) -> None:
        """Read the hash.

        Raises:
            NoSuchJobError: it is not one that Allot wrote.
        """
        try:
            super().restore(raw_data)
            self._deserialize_data()
            ours = self._func_name == JOB_FUNCTION and list(self._args) == [self.id] and not self._kwargs
        except NoSuchJobError:
            raise
        except Exception as error:  # a stranger's bytes may break any parser on the way
            log.warning("dropped a job that cannot be read: %s", error)
            raise NoSuchJobError(f"job {self.id} cannot be read") from error
        if not ours or self._instance is not None:
            log.warning("dropped a job that is not ours: %.100r", self._func_name)
            raise NoSuchJobError(f"job {self.id} is not Allot's")
        self._success_callback_name = self._failure_callback_name = self._stopped_callback_name = None
        self.webhooks: list[Any] = []
        self._dependency_ids: list[str] = []
        self.repeats_left = None
        self.retry_intervals = None
        self.group_id = None
        self.rate_limit_key = self.rate_limit_concurrency = None

    def get_executions(self) -> list[Execution]:
        """Every execution that the registry names, also those of dead workers.

        RQ reads each one's hash and raises where it has expired, which would end the worker that cleans up after a
        job which another one lost; all that RQ needs of an execution here is its key.
        """
        ids = self.execution_registry.get_execution_ids()
        return [Execution(execution_id, self.id, self.connection) for execution_id in ids]

    def perform(self) -> Any:
        """Never in this process."""
        raise NotImplementedError("jobs are solved by workers.child")


class NoPenalty(BaseDeathPenalty):  # type: ignore[misc]
    """RQ's alarm, silenced: waiting for the child has a timeout of its own, and nothing else here runs long."""

    def setup_death_penalty(self) -> None:
        """Set no alarm."""

    def cancel_death_penalty(self) -> None:
        """Nothing to cancel."""
