import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import open_file  # noqa: F401  # else loaded when first used: too deep in a server to be rewritten

ROOT = Path(__file__).parent.parent
# what a test starts imports this checkout, as the test does, and not what is installed
HERE = [str(ROOT), str(ROOT / "client")]
os.environ["PYTHONPATH"] = os.pathsep.join([*HERE, *filter(None, [os.environ.get("PYTHONPATH")])])


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


@pytest.fixture(autouse=True)
def log_handlers() -> Iterator[None]:
    """A command that a test runs in this process may not leave behind where it logs to."""
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    kept = [handler for handler in logging.root.handlers if handler in handlers]
    for handler in set(logging.root.handlers) - set(kept):
        logging.root.removeHandler(handler)
    logging.root.setLevel(level)
