"""What a worker of `allot demo` compiles: all that its jobs need, and little else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import SOLVERS

COUNT = """
import json, sys, threading
from kernels import SOLVERS, Deadline, solve_and_prove
from numba.core import event
from workers.runtime.shown import inputs_of, solve_shown

card = SOLVERS[sys.argv[1]]
with event.install_recorder("numba:compile") as compiled:
    if sys.argv[2] == "worker":
        solve_shown(card, "cpu")
    else:
        for one in card.demonstrations():
            options = card.options.model_validate_json(json.dumps(dict(one.options)), strict=True)
            deadline = Deadline(one.seconds, on_progress=lambda _: None)
            solve_and_prove(card, card.build(inputs_of(one), options), options, deadline, "cpu")
    for thread in threading.enumerate():
        if thread.daemon:
            thread.join(120)
started = [one.data["dispatcher"].py_func for _, one in compiled.buffer if one.data and one.is_start]
print(json.dumps([f.__qualname__ for f in started if f.__module__.startswith("kernels.")]))
"""
MOST_FORMS = {
    "lap": 50,
    "auction": 36,
    "uot": 20,
    "qap": 32,
    "gromov": 12,
    "barycenter": 12,
    "lowrank": 12,
    "multimarginal": 0,
    "lawler": 16,
}
"""Loops in all their types. Each takes a tenth of a second to three seconds. 0: it compiles nothing."""


def compiled(solver: str, what: str, cache: Path) -> list[str]:
    environ = os.environ | {"NUMBA_CACHE_DIR": str(cache), "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", COUNT, solver, what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environ)
    assert done.returncode == 0, done.stderr
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


@pytest.mark.timeout(1300)
@pytest.mark.parametrize("solver", SOLVERS)
def test_jobs_of_the_demonstration_find_all_compiled(solver: str, tmp_path: Path) -> None:
    ahead = compiled(solver, "worker", tmp_path)
    assert min(1, MOST_FORMS[solver]) <= len(ahead) <= MOST_FORMS[solver], sorted(ahead)
    assert compiled(solver, "job", tmp_path) == []
