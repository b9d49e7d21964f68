"""What a running solve hears and says: the cancel flag and its progress, each no more often than is useful."""

import logging
import math
import time
from dataclasses import replace
from typing import Any

import redis

from kernels import Progress
from workers.jobs.records import Records, Report

LOOK_S = 0.05
"""Between two looks at the cancel flag: a solver may ask far more often."""
TELL_S = 0.2
TELL_SOON_S = 0.05
"""Of a new incumbent. Another phase is told of at once."""
TELL_FROM_S = 0.1
"""A job that is done sooner tells of nothing; of one that is not, all is told that was to be told since its start."""
MOST_KEPT = 100
KINDS = ("phase", "progress", "incumbent")
"""Of reports, by how much they matter; the first is published as "progress", and only while its phase lasts."""
log = logging.getLogger(__name__)


class Watch:
    """Serves one `Deadline`. A Redis that does not answer for a while stops no solve."""

    def __init__(self, records: Records, job_id: str, execution: str) -> None:
        self._records = records
        self._job_id = job_id
        self._execution = execution
        self._looked = time.monotonic()
        self._stop = False
        self._began = time.monotonic()
        self._told = -math.inf
        self._best: Any = None
        self._last: Progress | None = None
        self._pending: tuple[str, Progress] | None = None
        self._kept: list[Report] = []

    def cancelled(self) -> bool:
        """True once the job is cancelled, or has been given to somebody else."""
        now = time.monotonic()
        if not self._stop and now - self._looked >= LOOK_S:
            self._looked = now
            try:
                self._stop = self._records.stop_requested(self._job_id, self._execution)
            except redis.RedisError as error:
                log.warning("cannot look at the cancel flag of %s: %s", self._job_id, error)
            self._publish()  # what a report kept that came too early
        return self._stop

    def progress(self, progress: Progress) -> None:
        """Publish, unless the last report was just now; the newest one is then kept for later."""
        better = progress.objective is not None and progress.objective != self._best
        self._best = progress.objective if better else self._best
        last, self._last = self._last, progress
        turned = last is None or progress.phase != last.phase
        kind = _kind(progress, last, better)
        shown = self._pending[1].permutation if self._pending is not None else None
        if shown is not None and progress.permutation is None:
            progress = replace(progress, permutation=shown)
        self._pending = (max(kind, self._pending[0], key=KINDS.index) if self._pending else kind, progress)
        now = time.monotonic()
        long = now - self._began >= TELL_SOON_S
        due = now - self._told >= (TELL_SOON_S if self._pending[0] == "incumbent" else TELL_S)
        if (long and (turned or due)) or (due and kind != "phase"):
            self._keep()
            self._publish()

    def flush(self) -> None:
        """Publish what was kept, if it is about the answer."""
        if self._pending is not None and self._pending[0] != "phase":
            self._keep()
        self._pending = None
        self._publish()

    def _keep(self) -> None:
        assert self._pending is not None
        kind, progress = self._pending
        self._pending = None
        self._told = time.monotonic()
        told = "progress" if kind == "phase" else kind
        self._kept.append((int(1000 * time.time()), told, plain(vars(progress))))
        if len(self._kept) > MOST_KEPT:  # the newest stays
            del self._kept[-2::-2]

    def _publish(self) -> None:
        if not self._kept or time.monotonic() - self._began < TELL_FROM_S:
            return
        kept, self._kept = self._kept, []
        try:
            self._records.report(self._job_id, self._execution, kept)
        except redis.RedisError as error:
            log.warning("cannot report progress of %s: %s", self._job_id, error)


def _kind(progress: Progress, last: Progress | None, better: bool) -> str:
    """What a report brings: a better answer, news of the solve, or nothing but the phase and its fraction."""
    if better:
        return "incumbent"
    known = None if last is None else (last.iteration, last.objective, last.bound)
    return "phase" if known in (None, (progress.iteration, progress.objective, progress.bound)) else "progress"


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
