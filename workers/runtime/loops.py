"""Which solvers' loops, compiled by numba, are on the disk: notes that this processor's warm-up of a solver has run.

numba keeps what it compiles in NUMBA_CACHE_DIR, beside the sources, or in the user's cache, by the time of the source,
the processor and numba's own version. A note is named by all of these, and lies in the same folder. It lists the files
that were there: once one of them is gone, the note counts for nothing.
"""

import contextlib
import functools
import hashlib
import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import kernels
from kernels import Device

SUFFIXES = (".nbi", ".nbc")
TREE = Path(kernels.__file__).parent
IRRELEVANT = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
OF_PROCESSOR = ("model name", "flags", "Features", "CPU part")
"""Lines of /proc/cpuinfo by which code differs."""


def kept(solvers: Iterable[str], device: Device) -> set[str]:
    """Those for which `note` was called by these sources on such a processor, while all files are still there."""
    digest, files = _digest(), _files()
    return {solver for solver in solvers if _listed(_file(solver, device, digest)) <= files}


def note(solver: str, device: Device) -> None:
    """This solver was warmed up: what numba compiled for it is in the folder."""
    file = _file(solver, device, _digest())
    half = file.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        half.write_text("\n".join(sorted(_files())))
        half.replace(file)


def folder() -> Path:
    """Where numba keeps what it compiles of the kernels."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(named)
    if os.access(TREE, os.W_OK):
        return TREE
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"


def _files() -> set[str]:
    base = folder()
    return {str(file.relative_to(base)) for file in base.rglob("*.nb?") if file.suffix in SUFFIXES}


def _listed(note: Path) -> set[str]:
    """The files that a note lists; one that is nowhere, where there is no note."""
    try:
        return set(note.read_text().splitlines())
    except OSError:
        return {""}


def _digest() -> str:
    return hashlib.sha256("\0".join((*_sources(), *_compiler())).encode()).hexdigest()[:32]


def _file(solver: str, device: Device, digest: str) -> Path:
    base = folder()
    return (base / "__pycache__" if base == TREE else base) / f"allot-{solver}-{device}-{digest}"


def _sources() -> list[str]:
    """What numba goes by to tell whether a source has changed."""
    found = [(path, path.stat()) for path in sorted(TREE.rglob("*.py"))]
    return [str(TREE), *(f"{path.relative_to(TREE)} {stat.st_mtime_ns} {stat.st_size}" for path, stat in found)]


@functools.cache
def _compiler() -> list[str]:
    """What compiles, for which processor, and how it is told to."""
    told = [f"{name}={text}" for name, text in sorted(os.environ.items()) if name.startswith("NUMBA_")]
    return [
        sys.version,
        platform.machine(),
        *(_version(name) for name in ("numba", "llvmlite", "numpy")),
        *(line for line in told if line.partition("=")[0] not in IRRELEVANT),
        *_processor(),
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> list[str]:
    try:
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        return [platform.processor()]
    return [line for line in first if line.partition(":")[0].strip() in OF_PROCESSOR]
