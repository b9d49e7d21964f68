"""What a small job makes the service do, in counts that no load of the machine changes: see benchmarks.small_jobs.

Calls are those of the API's event loop, as cProfile sees them, from the bytes of a request to the bytes of its answer.
Commands are those that Redis counts itself; most run inside of scripts.
"""

import asyncio
import cProfile
import pstats
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from app.http.config import HttpSettings
from app.http.main import create_app
from app.http.server import Server
from benchmarks.callers import call
from benchmarks.own import service
from benchmarks.small_jobs import bodies
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.runtime.logs import configure

SHOWN = 25


class Profiled(Server):
    """An API of this process whose loop is profiled while `on` is set."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.profile, self.on = cProfile.Profile(), False

    async def main_loop(self) -> None:
        """uvicorn's, beside which the profile is switched on and off."""
        watched = asyncio.create_task(self._switch())
        await super().main_loop()
        watched.cancel()

    async def _switch(self) -> None:
        was = False
        while True:
            if was != self.on:
                was = self.on
                (self.profile.enable if was else self.profile.disable)()
            await asyncio.sleep(0.02)


def main(connections: int, seconds: float) -> None:
    """Print the counts of one connection and of many."""
    with service(workers=1) as there:
        url = f"unix://{next(there.folder.rglob('redis.sock'))}"
        with (there.folder / "lines of the API").open("w") as lines:
            configure(stream=lines)
            server = Profiled(
                create_app(Settings(redis_url=url, data_dir=there.folder), HttpSettings()), HttpSettings()
            )
            server.config.port = 0
            thread = threading.Thread(target=server.run)
            thread.start()
            while not server.started:
                time.sleep(0.05)
            port = server.servers[0].sockets[0].getsockname()[1]
            for count in (1, connections):
                _count(server, url, port, count, seconds)
            server.stop()
            thread.join()


def _count(server: Profiled, url: str, port: int, connections: int, seconds: float) -> None:
    jobs, redis = bodies(64), connect(url)
    call(port, jobs, connections, 1.0)
    redis.config_resetstat()
    server.profile.clear()
    server.on = True
    time.sleep(0.1)
    answered = len(call(port, jobs, connections, seconds)[0])
    server.on = False
    time.sleep(0.1)
    told = redis.info("commandstats")
    commands = {name.removeprefix("cmdstat_"): one["calls"] / answered for name, one in told.items()}
    calls = _by_file(pstats.Stats(server.profile), answered)
    print(f"{connections} connections, {answered} jobs; of each job:")
    print(f"{sum(calls.values()):8.1f} calls in the API, {sum(commands.values()):.1f} commands in Redis")
    for name, count in calls.most_common(SHOWN):
        print(f"{count:8.1f} calls  {name}")
    for name, count in sorted(commands.items(), key=lambda one: -one[1])[:SHOWN]:
        print(f"{count:8.2f} commands  {name}")


def _by_file(stats: pstats.Stats, jobs: int) -> Counter[str]:
    """Calls a job, each of a function that is compiled counted for its caller's file."""
    found: Counter[str] = Counter()
    for (file, _, _), (_, count, _, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        if file == "~":
            for (above, _, _), by in callers.items():
                found[_short(above)] += by[0] / jobs
        else:
            found[_short(file)] += count / jobs
    return found


def _short(file: str) -> str:
    parts = Path(file).parts
    return "/".join(parts[-3:])
