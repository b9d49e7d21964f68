"""What happened to a job, as its record alone tells it.

Most jobs are so short that they have no stream of events. One that gets a stream later finds the same events at its
beginning, with the same ids (open_stream in shared.lua), so whoever follows a job from one to the other misses nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from workers.jobs.job import Event, State


def of_record(record: Mapping[str, str]) -> Iterator[Event]:
    """The changes of state, oldest first; ids rise whatever the clocks of the machines say."""
    at = _ms(record["created_at"])
    yield Event(f"{at}-0", "state", {"state": "queued", "attempt": 0})
    attempt, state = int(record["attempt"]), State(record["state"])
    if record.get("begun_at"):
        at = max(at, _ms(record["begun_at"]))
        yield Event(f"{at}-1", "state", {"state": "running", "attempt": attempt})
    if state.ended:
        at = max(at, _ms(record["ended_at"]))
        word = record.get("termination")
        told: dict[str, Any] = {"state": state.value, "attempt": attempt} | ({"termination": word} if word else {})
        if record.get("verified") in ("true", "false"):
            told["verified"] = record["verified"] == "true"
        yield Event(f"{at}-2", "state", told)


def follows(event: str, since: str) -> bool:
    """Whether an event comes after another, by their ids. Raises ValueError: `since` is none."""
    return _number(event) > _number(since)


def _number(event: str) -> tuple[int, ...]:
    parts = event.split("-")
    if len(parts) != 2 or not all(part.isdecimal() and len(part) < 20 for part in parts):
        raise ValueError("an event id is two numbers joined by a hyphen")
    return tuple(map(int, parts))


def _ms(timestamp: str) -> int:
    return int(1000 * float(timestamp))
