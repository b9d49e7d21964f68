"""Entropic unbalanced optimal transport."""

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
    name="uot",
    summary="Entropic unbalanced optimal transport.",
    inputs=(InputSpec("cost", "(m, n)"), InputSpec("a", "(m,)"), InputSpec("b", "(n,)")),
    options=Options,
    build=_build,
    certify=_certify,
    estimate=_estimate,
    prefers_gpu=lambda problem, options: False,
    modules={"cpu": "kernels.uot.cpu"},
)
