"""Dense linear assignment with certified duals."""

from typing import Literal

import numpy as np
from pydantic import Field

from kernels.card import Device, InputSpec, Options, Solver
from kernels.certificates.assignment import certify_dense
from kernels.deadline import Deadline
from kernels.lap.estimate import estimate
from kernels.lap.joint import solve_jointly
from kernels.lap.mend import mend
from kernels.outline import dense
from kernels.problems import Array, Assignment, Inputs, InvalidProblem
from kernels.problems.assignment import dense_assignment
from kernels.solution import Solution, Termination

Method = Literal["auto", "sap", "hungarian", "tree"]
GPU_METHODS = ("hungarian", "tree")
CROSSOVER = 300
"""Lines from which the GPU answers a whole call sooner than the CPU (benchmarks/lap_crossover.py)."""
SMALLEST_BATCH = 10 * 16 * 16
"""Entries of the smallest batch that was measured: the GPU answers it eight times sooner."""
FEW = 80
"""Batches of fewer problems than their longer side over this are solved one by one on a GPU, each by all of it."""


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
    problem = dense_assignment(inputs, options.maximize)
    assert isinstance(problem.weights, np.ndarray)
    if options.method in GPU_METHODS and problem.weights.ndim == 3:
        raise InvalidProblem("method", f'is "{options.method}", which solves one problem; for a batch expected "auto"')
    return problem


def _outline(inputs: Inputs, options: LapOptions) -> Assignment:
    return Assignment(dense(inputs, "cost", (2, 3)), options.maximize)


def _runs_on(problem: Assignment, options: LapOptions) -> tuple[Device, ...]:
    if options.method in GPU_METHODS:
        return ("gpu",)
    return ("cpu",) if options.method == "sap" else ("cpu", "gpu")


def is_few(weights: Array) -> bool:
    """Whether a batch (batch, n_rows, n_cols) has so few and large problems that a GPU solves them faster in turn."""
    return bool(len(weights) * FEW < max(weights.shape[1:]))


def _prefers_gpu(problem: Assignment, options: LapOptions) -> bool:
    """Whole calls on an H200 from page-locked memory against 16 Xeon cores: equal at n = 256 on four families."""
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    if options.method != "auto":
        return options.method in GPU_METHODS
    if weights.ndim == 3 and not is_few(weights):
        return weights.size >= SMALLEST_BATCH
    n_rows, n_cols = weights.shape[-2:]
    return bool(n_rows * n_cols >= CROSSOVER**2 and min(n_rows, n_cols) >= 64)


def _mend(
    problem: Assignment, options: LapOptions, solution: Solution, deadline: Deadline, device: Device
) -> Solution | None:
    """See kernels.lap.mend; which problems of a batch came out loose is asked of the certificate."""
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    if weights.ndim == 2:
        return mend(problem, solution, [0], deadline) if solution.termination is Termination.OPTIMAL else None
    words = certify_dense(problem, solution).facts["problems"]["terminations"]
    return mend(problem, solution, [k for k, word in enumerate(words) if word == Termination.CONVERGED], deadline)


CARD = Solver[Assignment, LapOptions](
    name="lap",
    summary="Dense linear assignment, exact, with certified duals.",
    inputs=(
        InputSpec(
            "cost",
            "(n_rows, n_cols) or (batch, n_rows, n_cols); null or +inf (-inf to maximise) forbids an entry, in int64 "
            "the least integer, -2^63",
            masked=True,
            main=True,
        ),
        InputSpec("u0", "(n_rows,) or (batch, n_rows): row duals to start from", required=False),
        InputSpec("v0", "(n_cols,) or (batch, n_cols): column duals to start from", required=False),
        InputSpec("sizes", "(batch, 2): rows and columns in use of each problem of a ragged batch", required=False),
    ),
    options=LapOptions,
    build=_build,
    outline=_outline,
    certify=certify_dense,
    estimate=estimate,
    prefers_gpu=_prefers_gpu,
    runs_on=_runs_on,
    modules={"cpu": "kernels.lap.cpu", "gpu": "kernels.lap.gpu"},
    device_certificate="kernels.certificates.gpu.gpu_assignment",
    mend=_mend,
    joint=solve_jointly,
    warm_start={"u": "u0", "v": "v0"},
    unread={"cost": "fi"},
    groups=dict.fromkeys(("u", "v", "u_finer", "v_finer"), "duals"),
    example={
        "solver": "lap",
        "inputs": {"cost": [[4, 1, 3], [2, 0, 5], [3, 2, 2]]},
        "options": {"maximize": False},
    },
)
