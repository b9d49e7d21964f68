"""Who may import whom (docs/architecture.md), read from the imports themselves, also those inside functions."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels import SOLVERS

ROOT = Path(__file__).parent.parent
KERNEL_ROOMS = {
    "lap",
    "auction",
    "uot",
    "qap",
    "gromov",
    "barycenter",
    "lowrank",
    "multimarginal",
    "lawler",
    "papers",
}
NEIGHBOURS = {
    ("qap", "lap"),
    ("lawler", "qap"),
    ("auction", "lap"),
    ("lap", "auction"),
    ("gromov", "uot"),
    ("barycenter", "uot"),
    ("lowrank", "uot"),
    *(("papers", room) for room in ("lap", "auction", "uot")),
}
"""Bounds of qap and the finish of auction are linear assignments. Points of lap are paired over
lists of columns, a sparse problem of auction. lawler has the dual ascent, the
assignments and the population of qap. Exact steps of gromov, barycenter and
lowrank are transport. Papers' systems stand on the solvers they are of."""
LIST_OF_PAPERS = "kernels.papers"
"""What a solver may import of the papers' systems: their names. It loads a module when a caller asks for one."""
PUBLIC_KERNELS = {"kernels", "kernels.shelf", "kernels.cubins", "kernels.qap.qaplib", "kernels.auction.files"}
"""What the floors above may import of kernels: its public names, compiled kernels, and readers of two file formats."""
PUBLIC_WORKERS = {
    "jobs.entry",
    "jobs.queue",
    "jobs.job",
    "jobs.form",
    "jobs.notes",
    "jobs.shares",
    "jobs.shown",
    "jobs.told",
    "jobs.seconds",
    "store.store",
    "store.codec",
    "store.digests",
    "store.disk",
    "store.doors",
    "store.expected",
    "store.folded",
    "store.inline",
    "store.layouts",
    "store.marks",
    "store.handles",
    "store.in_place",
    "store.outline",
    "store.sniff",
    "store.unpack",
    "store.ranges",
    "store.reference",
    "store.upload",
    "runtime.keyring",
    "runtime.logs",
    "runtime.traces",
    "runtime.version",
}
WIRING = {
    "main.py": {"runtime.config"},
    "api.py": {"runtime.config", "runtime.process"},
    "visit.py": {"runtime.config"},
    "clerks.py": {"runtime.process"},
    "weighing.py": {"runtime.devices"},
    "parsed.py": {"runtime.config"},
    "serve.py": {
        "store.opening",
        "runtime.config",
        "runtime.process",
        "runtime.redis_server",
        "runtime.signals",
        "runtime.supervisor",
    },
    "demo.py": {"runtime.config", "runtime.process", "runtime.redis_server", "runtime.supervisor"},
    "key.py": {"runtime.config", "runtime.redis_server"},
    "doctor.py": {"runtime.config", "runtime.redis_server", "runtime.devices"},
    "solve.py": {"runtime.devices", "runtime.loops"},
    "warm.py": {"runtime.devices", "runtime.warmed"},
}
"""The command line starts the floors below it, and may know them by name."""

NEVER = {
    "app": {"cupy", "cupyx", "numba", "rq", "redis"},
    "workers": {"fastapi", "starlette", "uvicorn", "app", "numba"},
    "kernels": {"redis", "rq", "fastapi", "starlette", "app", "workers"},
}
NUMBA_MAY = {
    "kernels/compiling.py",
    "kernels/counter.py",
    "kernels/loading.py",
    "kernels/ranging.py",
    "kernels/summing.py",
    "kernels/certificates/metrics/loops.py",
    "kernels/certificates/metrics/box_loops.py",
    "kernels/certificates/rejecting/loops.py",
    "kernels/certificates/rejecting/pair_loops.py",
    "kernels/certificates/rejecting/sums.py",
    "kernels/certificates/brief/loops.py",
    "kernels/certificates/swept/loops.py",
    "kernels/certificates/swept/vectors.py",
    "kernels/certificates/tree/loops.py",
}
"""Proofs of many small problems, nodes or pairs of points are looped over by compiled code; loaded when first used."""
CUPY_MAY = {
    "kernels/ahead.py",
    "kernels/cuda.py",
    "kernels/cubins.py",
    "kernels/locked.py",
    "workers/runtime/gpu_memory.py",
}


def files(floor: str) -> list[Path]:
    return sorted((ROOT / floor).rglob("*.py"))


@functools.cache
def imports(path: Path) -> list[str]:
    return list(_imports(path))


def _imports(path: Path) -> Iterator[str]:
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
        assert in_room or name in NUMBA_MAY, f"{name} imports {module}"
        assert not path.name.startswith(("__init__", "gpu")), f"{name} imports {module}"
    if top(module) in ("cupy", "cupyx"):
        assert path.name.startswith("gpu") or name in CUPY_MAY, f"{name} imports {module}"
    parts = module.split(".")
    if parts[0] == "kernels" and len(parts) > 1 and parts[1] in KERNEL_ROOMS:
        room = path.relative_to(ROOT).parts[1]
        if room in KERNEL_ROOMS:
            known = parts[1] == room or (room, parts[1]) in NEIGHBOURS or module == LIST_OF_PAPERS
            assert known, f"{name} imports {module}"
        elif room == "certificates":
            raise AssertionError(f"{name} shares code with a solver: {module}")


@pytest.mark.parametrize("path", files("kernels"), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_compiled_is_kept_safely(path: Path) -> None:
    """numba's own decorators keep files that two processes may spoil."""
    text = path.read_text()
    if path != ROOT / "kernels/compiling.py":
        assert not re.search(r"numba\.(njit|jit|vectorize|guvectorize)\b|from numba import .*njit", text)


DEVICE_CERTIFICATES = ROOT / "kernels/certificates/gpu"
PLAIN_DATA = {"kernels.problems", "kernels.solution", "kernels.cuda"}
"""What certificates on a device may import beside their own folder: types of data, and what compiles a source."""


def test_device_certificates_include_nothing_but_their_own() -> None:
    """No solver's source, no common header: neither by an #include nor by what kernels/cuda.py puts in front."""
    paths = [path for path in DEVICE_CERTIFICATES.parent.rglob("*.cu*") if path.suffix in (".cu", ".cuh")]
    assert {path.parent.name for path in paths} == {"gpu", "metrics"}
    for path in paths:
        for line in path.read_text().splitlines():
            if line.lstrip().startswith("#include"):
                header = line.split()[1].strip('"<>')
                assert header.startswith("certificates/gpu/"), f"{path.name} includes {header}"
                assert (ROOT / "kernels" / header).parent == DEVICE_CERTIFICATES


def test_device_certificates_are_compiled_without_the_common_header() -> None:
    cuda = pytest.importorskip("kernels.cuda", reason="cupy is not installed")
    common = (ROOT / "kernels/common.cuh").read_text()
    sources = [path for path in cuda.sources() if path.startswith("certificates/")]
    assert sources
    for path in sources:
        assert common not in cuda.source(path), path
    assert common in cuda.source("lap/proof/certify.cu")


@pytest.mark.parametrize("path", sorted(DEVICE_CERTIFICATES.glob("*.py")), ids=lambda path: path.name)
def test_device_certificates_import_no_other_certificate_and_no_solver(path: Path) -> None:
    for module in imports(path):
        if top(module) == "kernels":
            own = module.startswith("kernels.certificates.gpu.")
            assert own or any(f"{module}.".startswith(f"{name}.") for name in PLAIN_DATA), f"{path.name}: {module}"


@pytest.mark.parametrize("path", [*files("kernels")], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_solver_imports_a_device_certificate(path: Path) -> None:
    if path.relative_to(ROOT).parts[1] in KERNEL_ROOMS:
        assert not [module for module in imports(path) if module.startswith("kernels.certificates.gpu")]


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


@pytest.mark.parametrize(
    ("programs", "foreign"),
    [
        ("workers.runtime.worker, workers.runtime.supervisor", ("numba", "cupy")),
        ("app.intake.clerk", ("numba", "cupy", "fastapi", "uvicorn", "redis")),
    ],
)
def test_a_process_never_loads_what_it_has_no_use_for(programs: str, foreign: tuple[str, ...]) -> None:
    code = f"import sys, {programs}\nprint(*[name for name in {foreign} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert told.stdout.split() == []


def test_kernels_import_no_circle() -> None:
    """Imports at the top of a file, as they run when it is loaded; those inside functions wait until all is loaded."""
    modules = set(map(module_of, files("kernels")))
    needs = {module_of(path): set(loaded(path)) & modules for path in files("kernels")}
    settled: set[str] = set()
    while ready := {name for name in needs.keys() - settled if needs[name] <= settled}:
        settled |= ready
    assert not needs.keys() - settled


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def loaded(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                is_module = (ROOT / inner.replace(".", "/")).with_suffix(".py").exists()
                is_package = (ROOT / inner.replace(".", "/") / "__init__.py").exists()
                yield inner if is_module or is_package else node.module


def spoken(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string of a file but its docstrings."""
    tree = ast.parse(path.read_text())
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


@pytest.mark.parametrize("path", files("app"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_app_knows_no_solver_by_name(path: Path) -> None:
    """What a solver takes and gives is on its card."""
    known = set(SOLVERS)
    for card in SOLVERS.values():
        known |= {*card.specs, *card.files, *card.groups.values(), *(companion.option for companion in card.companions)}
    assert [(line, text) for line, text in spoken(path) if text in known] == []


@pytest.mark.parametrize("package", sorted((ROOT / "kernels").rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_no_name_of_a_package_is_lost_to_a_folder(package: Path) -> None:
    """Whoever imports a package's folder binds its name there: what had the name before is gone."""
    folders = {path.parent.name for path in package.parent.glob("*/__init__.py")}
    bound = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(package.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module != ".".join(package.relative_to(ROOT).parent.parts)
        for alias in node.names
    }
    assert not folders & bound
