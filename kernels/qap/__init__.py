"""Quadratic assignment with a lower bound."""

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
    name="qap",
    summary="Quadratic assignment with a lower bound.",
    inputs=(
        InputSpec("flow", "(n, n)"),
        InputSpec("distance", "(n, n)"),
        InputSpec("linear", "(n, n)", required=False),
    ),
    options=Options,
    build=_build,
    certify=_certify,
    estimate=_estimate,
    prefers_gpu=lambda problem, options: False,
    modules={"cpu": "kernels.qap.cpu"},
)
