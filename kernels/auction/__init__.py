"""Assignment by auction, dense or sparse, with prices."""

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
    name="auction",
    summary="Assignment by auction, dense or sparse, with prices.",
    inputs=(InputSpec("benefit", "(n_rows, n_cols) or CSR; null or -inf forbids an entry", sparse=True),),
    options=Options,
    build=_build,
    certify=_certify,
    estimate=_estimate,
    prefers_gpu=lambda problem, options: False,
    modules={"cpu": "kernels.auction.cpu"},
)
