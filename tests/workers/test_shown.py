"""What a worker of `allot demo` compiles: all that its jobs need, and little else."""

import json
import os
import subprocess
import sys

import pytest

from kernels import SOLVERS

RUN = """
import gc, json, sys, threading
from kernels import SOLVERS, Deadline, solve_and_prove
from numba.core.dispatcher import Dispatcher
from workers.runtime.shown import inputs_of, solve_shown

card = SOLVERS[sys.argv[1]]
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
loops = [(one, one.py_func) for one in gc.get_objects() if isinstance(one, Dispatcher)]
ours = [(one, of) for one, of in loops if of.__module__.startswith("kernels.")]
print(json.dumps(sorted(f"{of.__module__}.{of.__qualname__}{types}" for one, of in ours for types in one.overloads)))
"""
MOST_FORMS = {
    "lap": 12,
    "auction": 12,
    "uot": 8,
    "qap": 16,
    "gromov": 4,
    "barycenter": 4,
    "lowrank": 4,
    "multimarginal": 0,
    "lawler": 12,
}
"""Loops that Python calls, in all their types. Each takes a tenth of a second to three seconds. 0: there are none."""


def forms(solver: str, what: str) -> set[str]:
    """Those that the work has called, compiled now or before."""
    environ = os.environ | {"NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, solver, what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environ)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.timeout(1300)
@pytest.mark.parametrize("solver", SOLVERS)
def test_jobs_of_the_demonstration_find_all_compiled(solver: str) -> None:
    ahead = forms(solver, "worker")
    assert min(1, MOST_FORMS[solver]) <= len(ahead) <= MOST_FORMS[solver], sorted(ahead)
    assert forms(solver, "job") <= ahead
