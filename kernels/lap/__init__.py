"""Dense linear assignment with certified duals."""

from typing import Literal

import numpy as np
from pydantic import Field

from kernels.card import Device, Estimate, InputSpec, Options, Solver
from kernels.certificates.assignment import certify_dense
from kernels.problems import Assignment, Inputs
from kernels.problems.assignment import dense_assignment

Method = Literal["auto", "sap", "hungarian", "tree"]
GPU_METHODS = ("hungarian", "tree")
CROSSOVER = 400
"""Lines from which the GPU answers a whole call sooner than the CPU."""


class LapOptions(Options):
    """Options of the dense linear assignment solver."""

    maximize: bool = Field(default=False, description="maximise the sum of `cost` instead; then -inf forbids an entry")
    method: Method = Field(
        default="auto",
        description="sap: shortest augmenting paths; hungarian, tree: the systems of Lopes et al. (2019) and of "
        "Date and Nagi (2016), on a GPU only; auto: the fastest",
    )
    iteration_limit: int | None = Field(
        default=None, ge=0, description="augmenting paths (cpu) or phases (gpu) per problem"
    )
    deterministic: bool = Field(default=False, description="same input, same assignment (on the cpu always)")
    seed: int | None = Field(default=None, ge=0, description="reported back; no method draws random numbers")


def _build(inputs: Inputs, options: LapOptions) -> Assignment:
    return dense_assignment(inputs, options.maximize)


def _estimate(problem: Assignment, options: LapOptions, device: Device) -> Estimate:
    """Time of uniform costs; distances between points take about 20 times as long."""
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    n_rows, n_cols = weights.shape[-2:]
    batch = weights.size // (n_rows * n_cols)
    short, long = sorted((n_rows, n_cols))
    transposed = weights.nbytes if n_rows > n_cols else 0
    if device == "gpu":
        buffers = 768 * (n_rows + n_cols) * batch + (1 << 16)
        seconds = 1e-3 + batch * short * long * 1e-10 + weights.nbytes / 2e9
        return Estimate(weights.nbytes, weights.nbytes + transposed + buffers, seconds)
    widened = 8 * weights.size if weights.dtype.itemsize < 8 else 0
    lists = widened + short * (64 * 12 + 64) + 64 * long
    seconds = batch * (short * long * 3e-9 + short * np.log2(short + 1) * 2e-6)
    return Estimate(weights.nbytes + transposed + lists + 24 * batch * (n_rows + n_cols), 0, float(seconds))


def _prefers_gpu(problem: Assignment, options: LapOptions) -> bool:
    """Whole calls cross near n = 400 for uniform float64 costs (a 2-core CPU, an H200 with pageable copies)."""
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    if options.method != "auto":
        return options.method in GPU_METHODS
    if weights.ndim == 3:  # its crossover has not been measured: a batch goes to a GPU when asked to
        return False
    return weights.size >= CROSSOVER**2 and min(weights.shape) >= 64


CARD = Solver(
    name="lap",
    summary="Dense linear assignment, exact, with certified duals.",
    inputs=(
        InputSpec(
            "cost", "(n_rows, n_cols) or (batch, n_rows, n_cols); null or +inf (-inf to maximise) forbids an entry"
        ),
        InputSpec("u0", "(n_rows,) or (batch, n_rows): row duals to start from", required=False),
        InputSpec("v0", "(n_cols,) or (batch, n_cols): column duals to start from", required=False),
        InputSpec("sizes", "(batch, 2): rows and columns in use of each problem of a ragged batch", required=False),
    ),
    options=LapOptions,
    build=_build,
    certify=certify_dense,
    estimate=_estimate,
    prefers_gpu=_prefers_gpu,
    modules={"cpu": "kernels.lap.cpu", "gpu": "kernels.lap.gpu"},
    warm_start={"u": "u0", "v": "v0"},
    example={
        "solver": "lap",
        "inputs": {"cost": [[4, 1, 3], [2, 0, 5], [3, 2, 2]]},
        "options": {"maximize": False},
    },
)
