"""Who may import whom (docs/architecture.md), read from the imports themselves, also those inside functions."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KERNEL_ROOMS = {"lap", "auction", "uot", "qap"}
NEIGHBOURS = {("qap", "lap"), ("auction", "lap")}
"""Bounds of qap and the finish of auction are linear assignments."""
PUBLIC_KERNELS = {"kernels", "kernels.qap.qaplib", "kernels.auction.files"}
"""What the floors above may import of kernels: its public names, and the readers of two file formats."""
PUBLIC_WORKERS = {
    "jobs.queue",
    "jobs.job",
    "store.store",
    "store.codec",
    "store.inline",
    "store.reference",
    "store.upload",
    "runtime.keyring",
    "runtime.logs",
    "runtime.traces",
}
WIRING = {
    "main.py": {"runtime.config"},
    "service.py": {"runtime.config"},
    "submit.py": {"runtime.config"},
    "serve.py": {"runtime.config", "runtime.redis_server", "runtime.supervisor"},
    "demo.py": {"runtime.config", "runtime.redis_server", "runtime.supervisor"},
    "key.py": {"runtime.config", "runtime.redis_server"},
    "doctor.py": {"runtime.config", "runtime.redis_server", "runtime.devices"},
    "solve.py": {"runtime.devices"},
    "warm.py": {"runtime.devices"},
}
"""The command line starts the floors below it, and may know them by name."""

SOFT_LINES = 300
NEVER = {
    "app": {"cupy", "cupyx", "numba", "rq", "redis"},
    "workers": {"fastapi", "starlette", "uvicorn", "app", "numba"},
    "kernels": {"redis", "rq", "fastapi", "starlette", "app", "workers"},
}
CUPY_MAY = {"kernels/cuda.py", "workers/runtime/gpu_memory.py"}


def files(floor: str) -> list[Path]:
    return sorted((ROOT / floor).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are written in full"
            for name in node.names:
                inner = ROOT / node.module.replace(".", "/") / f"{name.name}.py"
                package = inner.with_suffix("") / "__init__.py"
                yield f"{node.module}.{name.name}" if inner.exists() or package.exists() else node.module


def top(module: str) -> str:
    return module.split(".")[0]


ALL = [path for floor in NEVER for path in files(floor)]


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    floor = top(name.replace("/", "."))
    for module in imports(path):
        assert top(module) not in NEVER[floor], f"{name} imports {module}"
        _floor_rules(floor, path, name, module)


def _floor_rules(floor: str, path: Path, name: str, module: str) -> None:
    if top(module) == "workers" and floor == "app" and module != "workers":
        known = PUBLIC_WORKERS | WIRING.get(path.name, set())
        assert module.removeprefix("workers.") in known, f"{name} imports {module}"
    if top(module) == "kernels" and floor != "kernels":
        assert module in PUBLIC_KERNELS or (floor == "app" and module == "kernels.qap"), f"{name} imports {module}"
    if floor == "kernels":
        _kernel_rules(path, name, module)
    elif top(module) in ("cupy", "cupyx"):
        assert name in CUPY_MAY, f"{name} imports {module}"


def _kernel_rules(path: Path, name: str, module: str) -> None:
    in_room = len(path.relative_to(ROOT).parts) > 2 and path.relative_to(ROOT).parts[1] in KERNEL_ROOMS
    if top(module) == "numba":  # a CPU solver may fill several files; a card must load without it
        assert in_room, f"{name} imports {module}"
        assert not path.name.startswith(("__init__", "gpu")), f"{name} imports {module}"
    if top(module) in ("cupy", "cupyx"):
        assert path.name.startswith("gpu") or name in CUPY_MAY, f"{name} imports {module}"
    parts = module.split(".")
    if parts[0] == "kernels" and len(parts) > 1 and parts[1] in KERNEL_ROOMS:
        room = path.relative_to(ROOT).parts[1]
        if room in KERNEL_ROOMS:
            assert parts[1] == room or (room, parts[1]) in NEIGHBOURS, f"{name} imports {module}"
        elif room == "certificates":
            raise AssertionError(f"{name} shares code with a solver: {module}")


def test_kernels_read_no_environment() -> None:
    for path in files("kernels"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")), path


def test_rq_stays_in_its_room() -> None:
    """Only workers/rq knows RQ; the rest of workers/ knows the public names of that room, and app/ not even those."""
    users = {path.parent.relative_to(ROOT).as_posix() for path in files("workers") if "rq" in map(top, imports(path))}
    assert users == {"workers/rq"}
    for path in (*files("app"), *files("workers")):
        inside = path.is_relative_to(ROOT / "workers/rq")
        for module in (name for name in imports(path) if name.startswith("workers.rq") and not inside):
            assert module == "workers.rq", f"{path} imports {module}"
            assert path.is_relative_to(ROOT / "workers"), f"{path} imports {module}"


def test_only_that_room_spells_out_keys_of_rqs() -> None:
    for path in (*files("app"), *files("workers")):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.Constant) and "'rq:" in repr(node.value)), f"{path}: {node.value!r}"


def test_a_worker_process_never_loads_numba_or_cupy() -> None:
    code = (
        "import sys, workers.runtime.worker, workers.runtime.supervisor\n"
        "sys.exit(any(name in sys.modules for name in ('numba', 'cupy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_are_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 1.1 * SOFT_LINES
    assert path.stem not in ("utils", "helpers", "base", "manager")
