"""How soon a service can solve: seconds from `allot serve` to an API that answers, a worker, and all of them.

    python -m app.cli.main warm ; python -m benchmarks.ready [--device gpu] [--runs 5] [--workers 1] [--solvers lap,uot]

Compiled files must be there (`allot warm`): the first run, which may write some, is left out. A row also says when the
last worker and its child were started, and the processor seconds of each kind of process until all were idle.
"""

import argparse
import collections
import json
import time
from http.client import HTTPConnection, HTTPException
from typing import Any

import psutil

from benchmarks.own import READY_S, Service, started
from benchmarks.rows import Rows, on_gpu

LOOK_S = 0.02
ROLES = {"app.cli.main": "serve", "app.cli.api": "api", "workers.runtime.worker": "worker"}
ROLES |= {"workers.runtime.child": "child", "app.intake.clerk": "clerk"}


def main() -> None:
    """Write a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1, help="on CPUs; each GPU has one besides")
    parser.add_argument("--solvers", default="", help="all when left out")
    asked = parser.parse_args()
    rows = Rows(on_gpu("ready") if asked.device == "gpu" else "ready")
    for run in range(-1, asked.runs):
        found = measured(asked.workers, asked.solvers, asked.device)
        if run >= 0:
            told = {"case": "ready", "device": asked.device, "solvers": asked.solvers or "all", "run": run}
            rows.add(**told, cpu_workers=asked.workers, **found)


def measured(workers: int, solvers: str, device: str) -> dict[str, Any]:
    """Start a service, wait until each of its workers is idle, and stop it.

    Raises:
        SystemExit: they are not within READY_S, or there is none of that device.
    """
    begun = time.monotonic()
    with started(workers, solvers) as service:
        found: dict[str, Any] = {}
        while "all_s" not in found:
            now = round(time.monotonic() - begun, 2)
            if now > READY_S:
                raise SystemExit("the service is not ready")
            states = _states(service)
            if states or _status(service, "/livez"):
                found.setdefault("api_s", now)
            for kind in ("cpu", "gpu"):
                if "idle" in (state for of, state in states if of == kind):
                    found.setdefault(f"first_{kind}_s", now)
            if states and {state for _, state in states} == {"idle"} and len(states) >= _workers(service):
                found["all_s"] = now
            time.sleep(LOOK_S)
        if f"first_{device}_s" not in found:
            raise SystemExit(f"there is no {device} worker here")
        return found | _processes(service)


def _states(service: Service) -> list[tuple[str, str]]:
    told = _status(service, "/v1/devices")
    return [(one["device"], one["state"]) for one in json.loads(told)["workers"]] if told else []


def _status(service: Service, path: str) -> bytes:
    """The body, empty where the answer is not 200."""
    line = HTTPConnection("127.0.0.1", service.port, timeout=5)
    try:
        line.request("GET", path)
        answer = line.getresponse()
        body = answer.read()
        return body if answer.status == 200 else b""
    except (OSError, HTTPException):
        return b""
    finally:
        line.close()


def _role(process: psutil.Process) -> str:
    try:
        command = process.cmdline()
    except psutil.Error:
        return ""
    if "redis-server" in " ".join(command[:1]):
        return "redis"
    return next((ROLES[part] for part in command if part in ROLES), "")


def _workers(service: Service) -> int:
    return sum(_role(process) == "worker" for process in service.process.children(recursive=True))


def _processes(service: Service) -> dict[str, Any]:
    """When workers and children were started, the last of each, and the most processor seconds of a process."""
    began: dict[str, float] = {}
    taken: dict[str, float] = collections.defaultdict(float)
    for process in [service.process, *service.process.children(recursive=True)]:
        if role := _role(process):
            times = process.cpu_times()
            taken[role] = round(max(taken[role], times.user + times.system), 2)
            began[role] = round(max(began.get(role, 0.0), process.create_time() - service.process.create_time()), 2)
    return {f"{role}_began_s": began[role] for role in ("worker", "child")} | {"cpu_s": dict(taken)}


if __name__ == "__main__":
    main()
