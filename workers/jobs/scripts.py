"""The transitions of a job's record, each a Lua file of its name beside this one.

Redis runs a script as one step, so that no reader sees half of one. Each is loaded once and then named by its digest;
a Redis that has forgotten it is sent the text again. Times are seconds since 1970, passed in by the caller. The keys
are drawn in workers/jobs/job.py; they are built inside the scripts, which rules out Redis Cluster and nothing else.
"""

import functools
from pathlib import Path
from typing import Any

from workers.jobs.seconds import OBSERVE
from workers.rq import LUA

PLAIN = ("condemn", "keep")
"""These know nothing of jobs."""


@functools.cache
def text(name: str) -> str:
    """A script whole: what all share in front of its own lines."""
    if name in PLAIN:
        return _file(name)
    return "\n".join([LUA, OBSERVE, _file("lines"), _file("shared"), _file(name)])


def _file(name: str) -> str:
    return Path(__file__).with_name(f"{name}.lua").read_text()


class Scripts:
    """The scripts on one client of Redis; each is read when first run."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis
        self._known: dict[str, Any] = {}

    def run(self, name: str, *arguments: Any) -> Any:
        """What the script answers."""
        script = self._known.get(name)
        if script is None:
            script = self._known[name] = self._redis.register_script(text(name))
        return script(args=arguments)
