"""How long a worker waits for its child before it takes it for hung and kills it. Pure: no Redis, no clock.

A time limit is the solver's to keep. The worker only ends what has gone wrong, so it must not take an honest job for
a hung one. An honest job answers by

    max(limit, load + build + first answer) + certificate

The child estimates the parts that the limit does not bound, once it has built the problem. The worker allows each of
them SLACK times its estimate, and `hard_margin_s` over all. Later than that, it lets a child live only while the child
certifies or stores and its fraction has grown within the last `hard_margin_s`.

Inputs come from the store at whatever speed it has, which no estimate knows: LOAD_S is for them.

A cancelled job has `cancel_grace_s` to stop solving. A certificate that has begun is not cut short, as no answer
leaves without one: cancelling keeps the best answer found. A job that is deleted has the same grace and no more.
"""

from dataclasses import dataclass

from workers.jobs.failure import CANCELLED, Failure, overran

SLACK = 3.0
"""Estimates of seconds are within this factor."""
LOAD_S = 600.0
"""At least so long for the inputs, whatever the time limit; the store's client has timeouts of its own."""
ENDING = ("certify", "store")
"""Phases that end by themselves, and whose fraction never falls."""
WAITING = "wait"
"""The answer is there, and there is no room to store it in. That ends when an operator makes room."""


@dataclass(frozen=True)
class Awaited:
    """What is known of a running job. `first_s`, from the job's start, and `certify_s` are its child's estimates."""

    time_limit_s: float
    first_s: float = 0.0
    certify_s: float = 0.0
    cancelled_at: float | None = None
    discarded: bool = False
    phase: str = "solve"
    fraction: float | None = None


class Patience:
    """With one run of one job. Every time is in seconds."""

    def __init__(self, hard_margin_s: float, cancel_grace_s: float) -> None:
        self._margin_s = hard_margin_s
        self._grace_s = cancel_grace_s
        self._seen: tuple[str, float | None] = ("", None)
        self._moved_s = 0.0

    def over(self, ran_s: float, now: float, job: Awaited) -> Failure | None:
        """Why the child is to be killed, None while it is not.

        Args:
            ran_s: since the child was given the job.
            now: the same moment in the time of `job.cancelled_at`.
        """
        if (job.phase, job.fraction) != self._seen:
            self._seen, self._moved_s = (job.phase, job.fraction), ran_s
        if job.phase == WAITING:
            late = job.cancelled_at is not None and now - job.cancelled_at > self._grace_s
            return CANCELLED if late else None
        ending = job.phase in ENDING
        moves = ending and ran_s - self._moved_s <= self._margin_s
        least_s = LOAD_S if job.phase == "load" else SLACK * job.first_s
        owed_s = max(job.time_limit_s, least_s) + SLACK * job.certify_s + self._margin_s
        if ran_s > owed_s and not moves:
            return overran(owed_s)
        if job.cancelled_at is None:
            return None
        late_s = now - job.cancelled_at - self._grace_s
        if not ending or job.discarded:
            return CANCELLED if late_s > 0 else None
        return CANCELLED if late_s > SLACK * job.certify_s and not moves else None
