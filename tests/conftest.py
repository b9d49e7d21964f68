import functools
import gc
import inspect
import logging
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import httpx
import pytest
from anyio import open_file  # noqa: F401  # else loaded when first used: too deep in a server to be rewritten

if TYPE_CHECKING:
    from tests.app.conftest import Service

ROOT = Path(__file__).parent.parent
# what a test starts imports this checkout, as the test does, and not what is installed
HERE = [str(ROOT), str(ROOT / "client")]
LONGEST = (
    "attack/test_live.py",
    "kernels/test_cuda_sources.py",
    "workers/test_crash.py",
    "fuzz/test_fuzz.py",
    "app/test_cli.py",
    "kernels/test_qap_levels.py",
    "workers/test_shown.py",
    "app/test_growth.py",
    "app/test_costly_bytes.py",
    "workers/test_sentinel.py",
    "kernels/test_no_compiling.py",
    "workers/test_faults.py",
    "workers/test_together.py",
    "kernels/test_estimates.py",
    "workers/test_life.py",
    "app/test_faults.py",
    "kernels/test_qap_tree.py",
    "workers/test_slow_certificate.py",
    "app/test_agents.py",
    "workers/test_audit.py",
    "workers/test_former_release.py",
    "web/test_walks.py",
    "web/test_people.py",
)
"""Files that take tens of seconds. Those that wait and those that compute take turns, so that both cores are used."""
if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # before NumPy is loaded: threads that spin take the cores from the other processes
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.disable()  # until all tests are collected: looking at them over and over took a fifth of the time
os.environ["PYTHONPATH"] = os.pathsep.join([*HERE, *filter(None, [os.environ.get("PYTHONPATH")])])


def read_certificates_once() -> None:
    """Every client of httpx reads the world's certificates: 21 ms of processor time, which thousands of tests spent."""
    made = ssl.create_default_context

    @functools.cache
    def trusting(certificates: str) -> ssl.SSLContext:
        return made(cafile=certificates)

    def create(*given: Any, **named: Any) -> ssl.SSLContext:
        if not given and named == {"cafile": certifi.where()}:
            return trusting(certifi.where())
        return made(*given, **named)

    ssl.create_default_context = create


read_certificates_once()


def be_patient() -> None:
    """A request without a timeout of its own may take a minute: beside other tests a machine pauses for seconds."""
    usual = inspect.signature(httpx.get).parameters["timeout"].default
    usual.connect = usual.read = usual.write = usual.pool = 60.0


be_patient()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Side by side, the longest files start first: else one process is still busy when the others have ended.

    The folders of the others take turns, since those of kernels/ compute, and those of app/ and workers/ wait.
    """
    if hasattr(config, "workerinput"):
        turns = {ROOT / "tests" / name: turn for turn, name in enumerate(LONGEST)}
        if lost := [str(path) for path in turns if not path.exists()]:
            raise pytest.UsageError(f"LONGEST names files that are not there: {lost}")
        folders: dict[Path, list[Path]] = {}
        for path in dict.fromkeys(item.path for item in items):
            folders.setdefault(path.parent, []).append(path)
        share = {path: k / len(files) for files in folders.values() for k, path in enumerate(files)}
        items.sort(key=lambda item: (turns.get(item.path, len(turns)), share[item.path]))


def pytest_collection_finish() -> None:
    """What has been collected stays: no collection of garbage need look at it again."""
    gc.freeze()
    gc.enable()


def gpu_is_here() -> bool:
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # no cupy, no driver or no device: each raises its own kind
        return False


def need_gpu() -> None:
    """Skip where there is no GPU; fail there under REQUIRE_GPU=1."""
    if not gpu_is_here():
        if os.environ.get("REQUIRE_GPU") == "1":
            pytest.fail("REQUIRE_GPU=1, but no CUDA device can be used here")
        pytest.skip("no CUDA device here")


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Each device in turn; "gpu" skips where there is none, and fails there under REQUIRE_GPU=1."""
    name: str = request.param
    if name == "gpu":
        need_gpu()
    return name


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Service"]:
    """One whole service: to start one takes seconds."""
    from tests.app.conftest import running_api  # which loads all of the API, and most tests need none

    yield from running_api(tmp_path_factory.mktemp("service"))


@pytest.fixture
def client(service: "Service") -> Iterator[httpx.Client]:
    """Of that service."""
    with httpx.Client(base_url=service.url, timeout=60) as client:
        yield client


@pytest.fixture(autouse=True)
def log_handlers() -> Iterator[None]:
    """A command that a test runs in this process may not leave behind where it logs to."""
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    kept = [handler for handler in logging.root.handlers if handler in handlers]
    for handler in set(logging.root.handlers) - set(kept):
        logging.root.removeHandler(handler)
    logging.root.setLevel(level)
