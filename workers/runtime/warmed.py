"""What a child need not run before it is ready: a solver all of whose compiled code is on the disk.

numba keeps what it compiles in a folder, too (loops.py). A child that finds notes of both loads the solver once it has
nothing else to do, or with the first job of its kind.

CuPy keeps what it compiles in the folder CUPY_CACHE_DIR. A service has one of its own, which may outlive the container
that a user's goes with. It begins as a copy of the user's, which `allot warm` fills. A note in the folder says of a
solver that every form of it was run there, by these sources on such a device; it goes with the folder.
"""

import contextlib
import functools
import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import kernels
from kernels import Device
from workers.runtime import gpu_memory, loops

OF_USER = Path("~/.cupy/kernel_cache")
"""Where CuPy keeps what it compiles, unless it is told otherwise."""


def folder() -> Path:
    """Where this process keeps what CuPy compiles."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or OF_USER).expanduser()


def begin_with(other: Path) -> None:
    """Copy what `other` has and this process's folder has not. Files that cannot be read or written are left out."""
    there = folder()
    if not other.is_dir() or other.resolve() == there.resolve():
        return
    there.mkdir(parents=True, exist_ok=True)
    for file in other.iterdir():
        if not (there / file.name).exists() and file.is_file():
            with contextlib.suppress(OSError):
                begun = there / f"{file.name}.{os.getpid()}"
                shutil.copyfile(file, begun)
                begun.replace(there / file.name)  # whole, whoever reads it or copies it too


def ready(solvers: Iterable[str], device: Device) -> set[str]:
    """Those that compile nothing for a job that their own warm-up covers; on a GPU for no job at all."""
    return {solver for solver in loops.kept(solvers, device) if device == "cpu" or is_warm(solver)}


def is_warm(solver: str) -> bool:
    """Whether `note` was called for it by these sources, on such a device, with these compilers."""
    return _note(solver).exists()


def note(solver: str) -> None:
    """Every form of this solver was run: what is compiled for it is in the folder."""
    with contextlib.suppress(OSError):
        _note(solver).parent.mkdir(parents=True, exist_ok=True)
        _note(solver).touch()


def all_is_run(solver: str, device: Device) -> None:
    """This solver was warmed up, and every form of it was run: all that is compiled for it is on the disk."""
    loops.note(solver, device)
    if device == "gpu":
        note(solver)


def _note(solver: str) -> Path:
    digest = hashlib.sha256(f"{_sources()}\0{gpu_memory.compiled_for()}".encode()).hexdigest()[:32]
    return folder() / f"allot-{solver}-{digest}"


@functools.cache
def _sources() -> str:
    """A digest of what the kernels are made of."""
    whole = hashlib.sha256()
    root = Path(kernels.__file__).parent
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".cu", ".cuh")):
        whole.update(f"{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()
