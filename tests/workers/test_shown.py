"""What a worker of `allot demo` compiles: all that its jobs need, and little else."""

import functools
import json
import os
import subprocess
import sys

import pytest

from kernels import SOLVERS

RUN = """
import gc, json, os, sys, threading
from kernels import SOLVERS, Deadline, solve_and_prove
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from workers.runtime.shown import inputs_of, solve_shown

def work(card):
    if sys.argv[1] == "worker":
        solve_shown(card, "cpu")
        return
    for one in card.demonstrations():
        options = card.options.model_validate_json(json.dumps(dict(one.options)), strict=True)
        deadline = Deadline(one.seconds, on_progress=lambda _: None)
        solve_and_prove(card, card.build(inputs_of(one), options), options, deadline, "cpu")

cpu_target.typing_context.refresh(), cpu_target.target_context.refresh()
for card in SOLVERS.values():  # each in a process of its own, which need not import all anew
    if pid := os.fork():
        if os.waitpid(pid, 0)[1]:
            sys.exit(card.name)
        continue
    work(card)
    for thread in threading.enumerate():
        if thread.daemon:
            thread.join(120)
    loops = [(one, one.py_func) for one in gc.get_objects() if isinstance(one, Dispatcher)]
    ours = [(one, of) for one, of in loops if of.__module__.startswith("kernels.")]
    forms = sorted(f"{of.__module__}.{of.__qualname__}{types}" for one, of in ours for types in one.overloads)
    print(json.dumps({card.name: forms}), flush=True)
    sys.exit()
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


@functools.cache
def forms(what: str) -> dict[str, set[str]]:
    """Those that the work of each solver has called, compiled now or before."""
    environ = os.environ | {"NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=environ)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {name: set(loops) for one in told for name, loops in one.items()}


@pytest.mark.timeout(1300)
@pytest.mark.parametrize("solver", SOLVERS)
def test_jobs_of_the_demonstration_find_all_compiled(solver: str) -> None:
    ahead = forms("worker")[solver]
    assert min(1, MOST_FORMS[solver]) <= len(ahead) <= MOST_FORMS[solver], sorted(ahead)
    assert forms("job")[solver] <= ahead
