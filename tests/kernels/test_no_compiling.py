"""A worker that starts with warm files compiles nothing in a job: neither with numba nor with NVRTC."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernels import SOLVERS

ROOT = Path(__file__).parents[2]
WARMED_WORKER = """
import sys
import threading
from pathlib import Path
from kernels import SOLVERS, keep_cubins, shelf, solve_each_form
from numba.core import event

keep_cubins(Path(sys.argv[3]))
card, device = SOLVERS[sys.argv[1]], sys.argv[2]
card.warm_up(device)
if device == "gpu":  # a worker does so before it is ready
    solve_each_form(card, device)
before = len(shelf.compiled)
with event.install_recorder("numba:compile") as compiled:
    solve_each_form(card, device)
names = [data["dispatcher"].py_func.__qualname__ for _, one in compiled.buffer if (data := one.data) and one.is_start]
for thread in threading.enumerate():  # bounds of a search that has ended; CUDA does not outlive the interpreter
    if thread.daemon:
        thread.join(120)
print(len(shelf.compiled) - before, before, *names)
"""


NOTHING = ["0", "0"]


def compiled_in_a_new_process(solver: str, device: str, folder: Path) -> list[str]:
    """CUDA kernels compiled after the warm-up and in it, and the names of functions that numba compiled after it."""
    command = [sys.executable, "-c", WARMED_WORKER, solver, device, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_warmed_worker_compiles_nothing_in_a_job(solver: str, device: str, tmp_path: Path) -> None:
    if device not in SOLVERS[solver].modules:
        pytest.skip(f"{solver} has no {device} solver")
    told = compiled_in_a_new_process(solver, device, tmp_path)
    if told != NOTHING:  # it has compiled what `allot warm` does, where nobody had yet
        told = compiled_in_a_new_process(solver, device, tmp_path)
    assert told == NOTHING
