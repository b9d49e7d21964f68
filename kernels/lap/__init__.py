"""Dense linear assignment with certified duals."""

from typing import Any

from kernels.card import Device, Estimate, InputSpec, Options, Solver
from kernels.problems import Inputs
from kernels.solution import Certificate, Solution


def _build(inputs: Inputs, options: Any) -> Any:
    raise NotImplementedError


def _certify(problem: Any, solution: Solution) -> Certificate:
    raise NotImplementedError


def _estimate(problem: Any, options: Any, device: Device) -> Estimate:
    raise NotImplementedError


CARD = Solver(
    name="lap",
    summary="Dense linear assignment with certified duals.",
    inputs=(InputSpec("cost", "(n_rows, n_cols) or (batch, n_rows, n_cols); null or +inf forbids an entry"),),
    options=Options,
    build=_build,
    certify=_certify,
    estimate=_estimate,
    prefers_gpu=lambda problem, options: False,
    modules={"cpu": "kernels.lap.cpu"},
)
