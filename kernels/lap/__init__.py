"""Dense linear assignment with certified duals."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field

from kernels.card import Device, InputSpec, Options, Solver
from kernels.certificates import brief as brief_proofs
from kernels.certificates import ranked as ranked_proofs
from kernels.certificates import rejecting as rejecting_proofs
from kernels.certificates import selected as selected_proofs
from kernels.certificates.assignment import certify_dense
from kernels.deadline import Deadline
from kernels.lap.estimate import FEW_ON_GPU, MOST_ON_GPU, estimate
from kernels.lap.joint import solve_jointly
from kernels.lap.mending.mend import mend
from kernels.lap.mending.rejecting import mend_rejecting, mend_selected
from kernels.outline import dense
from kernels.problems import Assignment, Inputs, InvalidProblem, Rejecting
from kernels.problems.arrays import Costs
from kernels.problems.assignment import dense_assignment
from kernels.problems.clouds import PointRejecting, rejecting_points, wants_clouds
from kernels.problems.points import PointAssignment, point_assignment
from kernels.problems.ranked import Ranked, ranked_assignment
from kernels.problems.rejecting import rejecting_assignment, wants_rejecting
from kernels.problems.selected import Judged, Selected, selected_assignment
from kernels.solution import Certificate, Solution, Termination, unheard

Problem = Assignment | Rejecting | Selected | Ranked
Method = Literal["auto", "sap", "hungarian", "tree"]
Metric = Literal["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "inner", "iou"]
OF_POINTS = {"maximize", "method", "metric", "iteration_limit", "deterministic", "seed", "cost_limit"}
"""Options that costs of points have."""
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
    cost_limit: float | None = Field(
        default=None,
        description="pairs that cost more are not formed: each that could be and is not costs this much, as in lapx",
    )
    cardinality: int | None = Field(
        default=None,
        ge=0,
        description="form exactly so many pairs of one matrix; null: as many as its shorter side has",
    )
    objective: Judged = Field(
        default="sum", description="bottleneck: minimise the largest cost of a pair instead of the sum, of one matrix"
    )
    k_best: int | None = Field(
        default=None, ge=1, le=1000, description="list so many assignments of one matrix from the best on"
    )
    metric: Metric = Field(
        default="sqeuclidean",
        description="cost of a pair of points x and y: squared, Euclidean or city-block distance; 1 - cosine or 1 - "
        "correlation; inner: minus the inner product; iou: 1 - intersection over union of boxes x1, y1, x2, y2",
    )
    deterministic: bool = Field(default=False, description="same input, same assignment (on the cpu always)")
    seed: int | None = Field(default=None, ge=0, description="reported back; no method draws random numbers")


def _build(inputs: Inputs, options: LapOptions) -> Problem:
    if "x" in inputs or "y" in inputs:
        return _of_points(inputs, options)
    if "cost" not in inputs:
        raise InvalidProblem("cost", "is missing; expected a matrix of costs, or points x and y")
    if options.k_best is not None:
        others = {
            "cost_limit": options.cost_limit is not None,
            "cardinality": options.cardinality is not None,
            "objective": options.objective != "sum",
            "method": options.method in GPU_METHODS,
        }
        return ranked_assignment(inputs, options.maximize, options.k_best, others)
    if options.cardinality is not None or options.objective != "sum":
        if options.method in GPU_METHODS:
            raise InvalidProblem(
                "method", f'is "{options.method}", which pairs all lines at least cost; expected "auto"'
            )
        return selected_assignment(inputs, options.maximize, options.cardinality, options.objective, options.cost_limit)
    if wants_rejecting(inputs, options.cost_limit):
        if options.method in GPU_METHODS:
            raise InvalidProblem(
                "method", f'is "{options.method}", which pairs all lines of one matrix; expected "auto"'
            )
        return rejecting_assignment(inputs, options.maximize, options.cost_limit)
    problem = dense_assignment(inputs, options.maximize)
    assert isinstance(problem.weights, np.ndarray)
    if options.method in GPU_METHODS and problem.weights.ndim == 3:
        raise InvalidProblem("method", f'is "{options.method}", which solves one problem; for a batch expected "auto"')
    return problem


def _of_points(inputs: Inputs, options: LapOptions) -> PointAssignment | PointRejecting:
    for name in sorted(options.model_fields_set - OF_POINTS):
        if getattr(options, name) != LapOptions.model_fields[name].default:
            raise InvalidProblem(name, "belongs to a matrix of costs, and x and y are given")
    if options.method in GPU_METHODS:
        raise InvalidProblem("method", f'is "{options.method}", which takes a matrix of costs; expected "auto"')
    if wants_clouds(inputs, options.cost_limit):
        return rejecting_points(inputs, options.metric, options.maximize, options.cost_limit)
    return point_assignment(inputs, options.metric, options.maximize)


def _outline(inputs: Inputs, options: LapOptions) -> Problem:
    if wants_rejecting(inputs, options.cost_limit):
        return rejecting_assignment(inputs, options.maximize, options.cost_limit)
    return Assignment(dense(inputs, "cost", (2, 3)), options.maximize)


def _certify(problem: Problem, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    if isinstance(problem, Rejecting):
        return rejecting_proofs.certify(problem, solution, progress)
    if isinstance(problem, Selected):
        return selected_proofs.certify(problem, solution, progress)
    if isinstance(problem, Ranked):
        return ranked_proofs.certify(problem, solution, progress)
    if isinstance(problem, PointAssignment):
        from kernels.certificates.metrics import certify_assignment  # loads scipy, half of what a start would import

        return certify_assignment(problem, solution, progress)
    return brief_proofs.certify(problem, solution, progress)


def _runs_on(problem: Problem, options: LapOptions) -> tuple[Device, ...]:
    if options.method in GPU_METHODS:
        return ("gpu",)
    return ("cpu",) if options.method == "sap" or isinstance(problem, Selected | Ranked) else ("cpu", "gpu")


def is_few(weights: Costs) -> bool:
    """Whether a batch (batch, n_rows, n_cols) has so few and large problems that a GPU solves them faster in turn."""
    return bool(len(weights) * FEW < max(weights.shape[1:]))


def _prefers_gpu(problem: Problem, options: LapOptions) -> bool:
    """Whole calls on an H200 from page-locked memory against 16 Xeon cores: equal at n = 256 on four families."""
    if not isinstance(problem, Assignment):
        return False  # threads of the CPU solve a thousand frames of 60 boxes in 5 ms; a GPU solves a longer form
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    if options.method != "auto":
        return options.method in GPU_METHODS
    if isinstance(problem, PointAssignment):
        return problem.shape[0] * problem.shape[1] >= CROSSOVER**2 and min(problem.shape) >= 64
    if weights.ndim == 3 and not is_few(weights):
        return weights.size >= SMALLEST_BATCH
    n_rows, n_cols = weights.shape[-2:]
    return bool(n_rows * n_cols >= CROSSOVER**2 and min(n_rows, n_cols) >= 64)


def _spreads(problem: Problem, options: LapOptions) -> bool:
    """Whether several GPUs take parts of the rows: as `gpu_columns.devices_for` divides them."""
    if not isinstance(problem, Assignment) or isinstance(problem, PointAssignment) or options.method != "auto":
        return False
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    n_rows, n_cols = weights.shape[-2:]
    return weights.ndim == 2 and FEW_ON_GPU <= n_rows <= n_cols and n_cols > MOST_ON_GPU


def _mend(
    problem: Problem, options: LapOptions, solution: Solution, deadline: Deadline, device: Device
) -> Solution | None:
    """See kernels.lap.mending.mend; which problems of a batch came out loose is asked of the certificate."""
    if isinstance(problem, Rejecting):
        certificate = rejecting_proofs.certify(problem, solution)
        if isinstance(problem, PointRejecting):
            from kernels.lap.cpu.between import written_out  # compiled code

            problem = written_out(problem)
        return mend_rejecting(problem, solution, certificate, deadline)
    if isinstance(problem, Selected):
        return mend_selected(problem, solution, deadline)
    if isinstance(problem, Ranked):
        return None
    if isinstance(problem, PointAssignment):
        return None  # what is loose is the rounding of its costs
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    if weights.ndim == 2:
        return mend(problem, solution, [0], deadline) if solution.termination is Termination.OPTIMAL else None
    words = certify_dense(problem, solution).facts["problems"]["terminations"]
    return mend(problem, solution, [k for k, word in enumerate(words) if word == Termination.CONVERGED], deadline)


def _joint(
    problems: Sequence[Problem], options: LapOptions, deadline: Deadline, device: Device
) -> Sequence[tuple[Solution, Certificate] | None]:
    ordinary = [problem for problem in problems if isinstance(problem, Assignment)]
    if len(ordinary) < len(problems):
        return [None] * len(problems)
    return solve_jointly(ordinary, options, deadline, device)


CARD = Solver[Problem, LapOptions](
    name="lap",
    summary="Dense linear assignment, exact, with certified duals.",
    inputs=(
        InputSpec(
            "cost",
            "(n_rows, n_cols), (batch, n_rows, n_cols), a list of matrices of any sizes, or these one after the other "
            "as a flat array with `sizes`; null or +inf (-inf to maximise) forbids an entry, in int64 the least "
            "integer, -2^63; or else x and y",
            required=False,
            masked=True,
            main=True,
            ragged="matrices",
            sizes="sizes",
        ),
        InputSpec(
            "x",
            "(n_rows, dimension): points instead of cost, see `metric`; with `sizes` those of all problems one after "
            "the other",
            required=False,
        ),
        InputSpec(
            "y",
            "(n_cols, dimension): points, with x; left out beside `sizes`, those of all columns stand in x, behind "
            "those of all rows",
            required=False,
        ),
        InputSpec("u0", "(n_rows,) or (batch, n_rows): row duals to start from", required=False),
        InputSpec("v0", "(n_cols,) or (batch, n_cols): column duals to start from", required=False),
        InputSpec(
            "sizes",
            "(batch, 2): rows and columns in use of each problem of a ragged batch, of costs or of points; points are "
            "then, and with prices of lines, of iou, sqeuclidean, euclidean or cityblock",
            required=False,
        ),
        InputSpec(
            "reject_rows",
            "(n_rows,), (batch, n_rows) or all rows of a ragged batch: what leaving a row adds to the objective; with "
            "either of the two prices every line may be left, those without one for 0",
            required=False,
            ragged="lines",
        ),
        InputSpec("reject_cols", "the same of columns", required=False, ragged="lines"),
    ),
    options=LapOptions,
    build=_build,
    outline=_outline,
    certify=_certify,
    estimate=estimate,
    prefers_gpu=_prefers_gpu,
    runs_on=_runs_on,
    spreads=_spreads,
    modules={"cpu": "kernels.lap.cpu.solver", "gpu": "kernels.lap.gpu"},
    device_certificate="kernels.certificates.rejecting.on_device",
    compiled_proofs=(
        "kernels.certificates.rejecting.many",
        "kernels.certificates.rejecting.between",
        "kernels.certificates.metrics.exactly",
        "kernels.certificates.metrics.boxes",
        "kernels.certificates.swept",
        "kernels.certificates.brief",
    ),
    mend=_mend,
    joint={"cpu": partial(_joint, device="cpu"), "gpu": partial(_joint, device="gpu")},
    warm_start={"u": "u0", "v": "v0"},
    unread={"cost": "fi"},
    groups=dict.fromkeys(("u", "v", "u_finer", "v_finer", "level"), "duals"),
    example={
        "solver": "lap",
        "inputs": {"cost": [[4, 1, 3], [2, 0, 5], [3, 2, 2]]},
        "options": {"maximize": False},
    },
)
