"""`allot serve` from outside: several processes on one port, and the way out."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
import redis as redis_py

from app.cli.api import Front
from app.cli.serve import CannotServe, bound, suitable
from tests.app.conftest import LAP
from tests.workers.service import allowed, eventually
from workers.runtime.config import Settings
from workers.runtime.redis_server import running_url

API = "app.cli.api"


@dataclass
class Served:
    url: str
    process: "subprocess.Popen[str]"

    def apis(self) -> list[psutil.Process]:
        found = psutil.Process(self.process.pid).children()
        return [one for one in found if one.status() != psutil.STATUS_ZOMBIE and API in " ".join(one.cmdline())]


@contextmanager
def served(folder: Path, *more: str, **environ: str) -> Iterator[Served]:
    """A service without workers, which believes to have one: its jobs wait until they are cancelled."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")} | environ
    command = [sys.executable, "-m", "app.cli.main", "serve", "--port", "0", "--workers", "0"]
    command += ["--data-dir", str(folder), *more]
    with (
        folder.with_name(f"{folder.name}.log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env) as process,
    ):
        try:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None
            client = redis_py.Redis.from_url(running_url(folder) or "")
            worker = {"device": "cpu", "queue": "cpu", "state": "idle", "heartbeat": time.time() + 1000}
            client.hset("allot:workers", "cpu-1-1", json.dumps(worker | {"host_bytes": 1 << 30}))
            eventually(lambda: httpx.get(f"{address[0]}/readyz", timeout=30).status_code == 200, 30)
            yield Served(address[0], process)
        finally:
            process.kill()


def test_several_processes_answer_on_one_port(tmp_path: Path) -> None:
    with served(tmp_path, "--api-workers", "2") as service:
        assert len(service.apis()) == 2
        job = httpx.post(f"{service.url}/v1/jobs", json=LAP, timeout=20).json()["links"]

        async def wait_and_cancel() -> None:
            async with httpx.AsyncClient(base_url=service.url, timeout=40) as client:
                polls = [asyncio.create_task(client.get(f"{job['self']}?wait=30")) for _ in range(30)]
                await asyncio.sleep(1)
                await client.post(job["cancel"])
                assert {answer.json()["state"] for answer in await asyncio.gather(*polls)} == {"cancelled"}

        asyncio.run(wait_and_cancel())  # whichever process each of them hit
        eventually(lambda: answered(service, "/v1/jobs/{job_id}") == 30)  # counted behind the answer
        eventually(lambda: answered(service, "/v1/jobs/{job_id}/cancel") == 1)
        assert [answered(service, "/v1/jobs/{job_id}/cancel") for _ in range(8)] == [1] * 8

        eventually(lambda: min(shares(service, 8)) > 0, 30)  # both accept
        # four each; two of a port's sockets have 5.1 in the mean
        assert sum(max(shares(service, 8)) for _ in range(5)) <= 5 * 5

        before = {one.pid for one in service.apis()}
        os.kill(before.pop(), signal.SIGKILL)
        for _ in range(10):  # connections, none of which waits for a successor
            assert httpx.get(f"{service.url}/livez", timeout=30).status_code == 200
        assert len({one.pid for one in service.apis()} & before) == 1
        until = time.monotonic() + allowed(30)
        while len({one.pid for one in service.apis()} - before) < 1:
            assert time.monotonic() < until, "the process was not started again"
            time.sleep(0.1)
        assert answered(service, "/v1/jobs/{job_id}/cancel") == 1  # what the dead has counted still counts
        assert leaves(service) == 0


def shares(service: Served, connections: int) -> list[int]:
    """How many of so many connections at once each process has."""
    with ExitStack() as stack:
        held = [stack.enter_context(httpx.Client(base_url=service.url, timeout=30)) for _ in range(connections)]
        assert {client.get("/livez").status_code for client in held} == {200}
        found = [[one for one in api.net_connections("tcp") if one.status == psutil.CONN_ESTABLISHED]
                 for api in service.apis()]  # fmt: skip
    return [len(one) for one in found]


def test_there_are_as_many_processes_as_suit_the_cores() -> None:
    assert [suitable(cores) for cores in (1, 2, 4, 7, 8, 12, 16, 32, 128)] == [1, 1, 1, 1, 2, 3, 4, 4, 4]


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_no_service_takes_a_share_of_anothers_port(first: int, second: int) -> None:
    with bound("127.0.0.1", 0, first) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(CannotServe, match=f"port {port}"), bound("127.0.0.1", port, second):
            pass
    with bound("127.0.0.1", port, second) as listener:
        assert listener.getsockname()[1] == port


def answered(service: Served, route: str) -> int:
    text = httpx.get(f"{service.url}/metrics", timeout=30).text
    found = re.findall(rf'^allot_http_requests_total{{[^}}]*route="{re.escape(route)}"[^}}]*}} (\S+)', text, re.M)
    return int(sum(map(float, found)))


def test_every_process_writes_the_lines_that_were_asked_for(tmp_path: Path) -> None:
    for count in ("1", "2"):
        with served(tmp_path / count, "--api-workers", count, "--log-format", "json") as service:
            for _ in range(10):
                assert httpx.post(f"{service.url}/v1/jobs", json=LAP, timeout=20).status_code == 202
            assert leaves(service) == 0
        lines = [json.loads(line) for line in (tmp_path / f"{count}.log").read_text().splitlines()]
        asked = [line for line in lines if line["logger"] == "allot.access" and line["message"].startswith("POST")]
        assert len(asked) == 10
        assert all(line["job_id"] and line["request_id"] and line["traceparent"] for line in asked)
        assert sum(line["logger"] == "allot.audit" for line in lines) == 10


def leaves(service: Served) -> int:
    family = psutil.Process(service.process.pid).children(recursive=True)
    service.process.terminate()
    code = service.process.wait(30)
    assert psutil.wait_procs(family, timeout=10)[1] == []
    return code


def test_a_lame_duck_answers_and_takes_nothing_new(tmp_path: Path) -> None:
    for count in ("1", "2"):
        with served(tmp_path / count, ALLOT_API_WORKERS=count, ALLOT_LAME_S=str(allowed(8))) as service:
            job = httpx.post(f"{service.url}/v1/jobs", json=LAP, timeout=20).json()["links"]
            service.process.terminate()
            eventually(lambda: httpx.get(f"{service.url}/readyz", timeout=20).status_code == 503, 3)
            # the processes are told one after the other
            eventually(lambda: httpx.post(f"{service.url}/v1/jobs", json=LAP, timeout=20).status_code == 503, 3)
            for _ in range(8):  # connections, to either of two processes
                refused = httpx.post(f"{service.url}/v1/jobs", json=LAP, timeout=20)
                assert refused.headers["retry-after"] == "5"
            assert httpx.get(f"{service.url}{job['self']}", timeout=20).json()["state"] == "queued"
            begun = time.monotonic()
            poll = httpx.get(f"{service.url}{job['self']}?wait=60", timeout=70)  # is answered when HTTP ends
            assert (poll.status_code, time.monotonic() - begun < allowed(30)) == (200, True)
            assert service.process.wait(allowed(40)) == 0


def test_a_process_that_is_still_starting_becomes_a_lame_duck_too(tmp_path: Path) -> None:
    with served(tmp_path / "1") as service, bound("127.0.0.1", 0) as listener:
        told = Settings(data_dir=tmp_path / "1", redis_url=running_url(tmp_path / "1") or "").to_env()
        front = Front(listener, 1, {**os.environ, **told})
        front.start()
        eventually(lambda: bool(front.pids()))
        front.lame_duck()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            asked = {"allot": service.url, "starting": url}
            states = {name: httpx.get(f"{one}/readyz", timeout=30).status_code for name, one in asked.items()}
            assert states == {"allot": 200, "starting": 503}
        finally:
            front.stop(10)
