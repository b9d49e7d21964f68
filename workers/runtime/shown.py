"""Compiling what `allot demo` shows and no more: its problems are solved here as its jobs will be.

All that a solver can compile takes minutes of processor time on a machine that has never run it. What the demonstration
needs of it takes a fifth of that.
"""

import json
from typing import Any

import numpy as np

from kernels import Deadline, Demonstration, Device, Solver, solve_and_prove
from workers.store.codec import Form, decode

LONGEST_S = 120.0
"""Of one problem, its compiling included."""


def solve_shown(card: Solver, device: Device) -> None:
    """Solve and certify every problem that shows this solver, or warm it up where none does."""
    problems = card.demonstrations()
    for one in problems:
        if one.ahead and device == "cpu":
            one.ahead()
        deadline = Deadline(LONGEST_S, on_progress=lambda _: None)  # what is reported of a job is compiled, too
        options = card.options.model_validate_json(json.dumps(dict(one.options)), strict=True)
        solve_and_prove(card, card.build(inputs_of(one), options), options, deadline, device)
    if not problems:
        card.warm_up(device)


def inputs_of(one: Demonstration) -> dict[str, Any]:
    """What is sent, as a solver gets it."""
    given: dict[str, Any] = {name: np.array(lists) for name, lists in one.inputs.items()}
    if one.data:
        decoded = decode(one.data, Form(filename=one.filename))
        given |= decoded if isinstance(decoded, dict) else {one.name: decoded}
    return given
