"""The transitions of a job's record, each a Lua file of its name beside this one.

Redis runs a script as one step, so that no reader sees half of one. Each is loaded once and then named by its digest;
a Redis that has forgotten it is sent the text again. Times are seconds since 1970, passed in by the caller. The keys
are drawn in workers/jobs/job.py; they are built inside the scripts, which rules out Redis Cluster and nothing else.
"""

import functools
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.jobs.seconds import OBSERVE
from workers.rq import LUA
from workers.runtime.kept import nothing

PLAIN = ("condemn", "keep", "seconds")
"""These know nothing of jobs."""
REFUSED = ("submit", "keep", "progress", "annotate", "share")
"""A Redis at its maxmemory refuses these: they bring something new."""
LOOKS = ("position", "waiting", "lined", "seconds")
"""These change nothing. They go the way of reads, so that a Redis that takes no writes answers them, without a wait for
replicas. Redis 7 has EVALSHA_RO for such scripts; Redis 6.2 does not, and neither refuses one that does not write."""
SHARED = ("quotas", "lines", "shared")
"""Files of definitions for the scripts of a job's record, in the order in which they build on each other."""
RESERVE = "redis.call('DEL', 'allot:nothing')\n"
"""In front of all others. Redis lets a script go on that has written, and a deletion it always lets pass: so what was
accepted can end, and what ended can go, when there is no memory for anything else."""


LOCAL = re.compile(r"^local (?:function )?(\w+(?:, \w+)*)")
"""How a definition begins. It goes on while lines are indented, or end what is."""
REMARK = re.compile(r"(?:^|  )--.*$", re.MULTILINE)


@functools.cache
def text(name: str) -> str:
    """A script whole: what it needs of that which all share, in front of its own lines."""
    own = _file(name)
    if name not in PLAIN:
        own = "\n".join([*needed("\n".join([LUA, OBSERVE, *map(_file, SHARED)]), own), own])
    return own if name in REFUSED or name in LOOKS else RESERVE + own


def needed(shared: str, own: str) -> list[str]:
    """Of the definitions in `shared` those that `own` names, and those that these name, in their order.

    A script makes every function anew each time it runs, and throws it away: of some seventy it calls a few.
    """
    found: list[str] = []
    named = _words(own)
    for definition in reversed(_definitions(shared)):
        begins = LOCAL.match(definition)
        if begins is None or named.intersection(begins[1].split(", ")):
            found.append(definition)
            named |= _words(definition)
    return found[::-1]


def _definitions(shared: str) -> list[str]:
    """Each with all of its lines, and without remarks."""
    found: list[str] = []
    for line in REMARK.sub("", shared).splitlines():
        if not line.strip():
            continue
        if line.startswith((" ", "end", "}")) and found:
            found[-1] += "\n" + line
        else:
            found.append(line)
    return found


def _words(lua: str) -> set[str]:
    return set(re.findall(r"\w+", REMARK.sub("", lua)))


def _file(name: str) -> str:
    return Path(__file__).with_name(f"{name}.lua").read_text()


@dataclass(frozen=True)
class Script:
    """A script's text, and the digest by which Redis knows it."""

    text: str
    digest: str


@functools.cache
def script(name: str) -> Script:
    """A script, for a connection that runs it by itself."""
    whole = text(name)
    return Script(whole, hashlib.sha1(whole.encode(), usedforsecurity=False).hexdigest())


class Scripts:
    """The scripts on one client of Redis; each is read when first run."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis

    def run(self, name: str, *arguments: Any, meanwhile: Callable[[], object] = nothing) -> Any:
        """What the script answers. What is to be done `meanwhile` may be left undone."""
        one = script(name)
        if name in LOOKS:
            return self._redis.look(one.digest, one.text, arguments)
        return self._redis.run(one.digest, one.text, arguments, meanwhile)
