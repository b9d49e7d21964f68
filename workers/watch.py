"""What a running solve hears and says: the cancel flag and its progress, each no more often than is useful."""

import logging
import math
import time
from typing import Any

import redis

from kernels import Progress
from workers.records import Records

LOOK_S = 0.05
"""Between two looks at the cancel flag: a solver may ask far more often."""
TELL_S = 0.2
TELL_INCUMBENT_S = 0.05
log = logging.getLogger(__name__)


class Watch:
    """Serves one `Deadline`. A Redis that does not answer for a while stops no solve."""

    def __init__(self, records: Records, job_id: str, execution: str) -> None:
        self._records = records
        self._job_id = job_id
        self._execution = execution
        self._looked = 0.0
        self._stop = False
        self._told = -math.inf
        self._best: Any = None
        self._pending: tuple[str, Progress] | None = None

    def cancelled(self) -> bool:
        """True once the job is cancelled, or has been given to somebody else."""
        now = time.monotonic()
        if not self._stop and now - self._looked >= LOOK_S:
            self._looked = now
            try:
                self._stop = self._records.stop_requested(self._job_id, self._execution)
            except redis.RedisError as error:
                log.warning("cannot look at the cancel flag of %s: %s", self._job_id, error)
        return self._stop

    def progress(self, progress: Progress) -> None:
        """Publish, unless the last report was just now; the newest one is then kept for later."""
        better = progress.objective is not None and progress.objective != self._best
        kind = "incumbent" if better or (self._pending and self._pending[0] == "incumbent") else "progress"
        self._best = progress.objective if better else self._best
        self._pending = (kind, progress)
        if time.monotonic() - self._told >= (TELL_INCUMBENT_S if kind == "incumbent" else TELL_S):
            self.flush()

    def flush(self) -> None:
        """Publish what was kept."""
        if self._pending is None:
            return
        kind, progress = self._pending
        self._pending = None
        self._told = time.monotonic()
        try:
            self._records.report(self._job_id, self._execution, kind, plain(vars(progress)))
        except redis.RedisError as error:
            log.warning("cannot report progress of %s: %s", self._job_id, error)


def plain(value: Any) -> Any:
    """`value` as JSON can say it: NumPy's scalars and arrays as Python's, NaN and infinities as None."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
