"""Wasserstein barycenters of 2 to 100 measures, with a lower bound."""

from typing import Annotated, Literal

from pydantic import Field

from kernels.barycenter.estimate import estimate
from kernels.card import Device, InputSpec, Options, Solver
from kernels.certificates.barycenter import certify
from kernels.problems import Inputs, InvalidProblem
from kernels.problems.barycenter import Barycenter, FreeBarycenter, fixed_barycenter, free_barycenter

Problem = Barycenter | FreeBarycenter
LARGEST_PROGRAMME = 400_000
"""Variables of a linear programme that is solved as one."""


class BarycenterOptions(Options):
    """What is asked of a barycenter."""

    method: Literal["auto", "entropic", "exact", "free"] = Field(
        "auto",
        description="entropic: iterative Bregman projections on given points. exact: a linear programme on them,"
        " reg 0, up to 400,000 variables (measures x support x points). free: the points of the support move, and have"
        " equal masses. auto: exact for reg 0, free for clouds without a support, else entropic.",
    )
    reg: Annotated[float, Field(ge=0)] | Literal["auto"] = Field(
        "auto",
        description="Strength of the entropic term, in the units of the cost. 0: none. auto: .05 of the mean cost.",
    )
    metric: Literal["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "geodesic"] = Field(
        "sqeuclidean", description="Cost between points; free takes sqeuclidean alone."
    )
    support_points: int | None = Field(
        None, ge=1, le=1 << 14, description="free: how many points the answer has; left out, as many as a cloud has."
    )
    debiased: bool = Field(
        False,
        description="The barycenter of debiased divergences, which is not smeared: less half of its own transport to"
        " itself. On given points, of one symmetric cost; without a lower bound. tolerance: of its masses.",
    )
    tolerance: float = Field(1e-6, ge=0, le=1, description="Stop when the relative gap is at most this.")
    iterations: int = Field(10_000, ge=1, le=10_000_000, description="Stop after this many iterations.")
    seed: int = Field(0, ge=0, lt=2**63, description="free: of the points from which the search begins.")


def build(inputs: Inputs, options: BarycenterOptions) -> Problem:
    """The problem of a job. Raises InvalidProblem."""
    x = inputs.get("x")
    clouds = x is not None and not hasattr(x, "indptr") and len(x.shape) == 3
    moves = options.method == "free" or (options.method == "auto" and clouds and "support" not in inputs)
    if moves:
        if options.debiased:
            raise InvalidProblem("debiased", "is set for points that move; expected given points")
        if options.reg not in ("auto", 0):
            raise InvalidProblem("reg", f"is {options.reg}; expected it left out, for points that move")
        if options.metric != "sqeuclidean":
            raise InvalidProblem("metric", f"is {options.metric}; expected sqeuclidean, for points that move")
        return free_barycenter(inputs, options.support_points, options.seed)
    if options.support_points is not None:
        raise InvalidProblem("support_points", "is given for a fixed support; expected method free")
    if options.method == "exact" and options.reg not in ("auto", 0):
        raise InvalidProblem("reg", f"is {options.reg}; expected 0 or left out, for method exact")
    if options.method == "entropic" and options.reg == 0:
        raise InvalidProblem("reg", "is 0; expected more than 0, for method entropic")
    problem = fixed_barycenter(
        inputs, 0.0 if options.method == "exact" else options.reg, options.metric, options.debiased
    )
    k, m, n = problem.sizes
    if problem.reg == 0 and k * m * n > LARGEST_PROGRAMME:
        told = f"is 0, and {k} x {m} x {n} is more than {LARGEST_PROGRAMME} variables"
        raise InvalidProblem("reg", f"{told}; expected a smaller problem, or a reg above 0")
    return problem


def _runs_on(problem: Problem, options: BarycenterOptions) -> tuple[Device, ...]:
    return ("cpu", "gpu") if isinstance(problem, Barycenter) and problem.reg > 0 else ("cpu",)


def _prefers_gpu(problem: Problem, options: BarycenterOptions) -> bool:
    k, m, n = problem.sizes
    return k * m * n >= 1 << 20


CARD = Solver[Problem, BarycenterOptions](
    name="barycenter",
    summary="Wasserstein barycenter of 2 to 100 measures, on given or on moving points, with a lower bound.",
    inputs=(
        InputSpec(
            "histograms",
            "(k, n) masses of each of k measures on its n points, with one sum; divided by it. 0 takes a point out."
            " Uniform when left out beside clouds",
            required=False,
            main=True,
        ),
        InputSpec(
            "cost",
            "(m, n) costs from the m points of the barycenter to the n of every measure, or (k, m, n) of each its own",
            required=False,
        ),
        InputSpec("x", "(n, d) points of all measures instead of a cost, or (k, n, d) of each its own", required=False),
        InputSpec(
            "support",
            "(m, d) points of the barycenter, x when left out; where they move, those that they begin from",
            required=False,
        ),
        InputSpec("measure_weights", "(k,) weights of the measures, at least 0; divided by their sum", required=False),
    ),
    options=BarycenterOptions,
    build=build,
    certify=certify,
    estimate=estimate,
    runs_on=_runs_on,
    prefers_gpu=_prefers_gpu,
    modules={"cpu": "kernels.barycenter.cpu.solver", "gpu": "kernels.barycenter.gpu"},
    groups={"f": "potentials", "g": "potentials"},
    example={
        "solver": "barycenter",
        "inputs": {
            "histograms": [[0.7, 0.3, 0.0, 0.0], [0.0, 0.0, 0.4, 0.6]],
            "cost": [[0, 1, 4, 9], [1, 0, 1, 4], [4, 1, 0, 1], [9, 4, 1, 0]],
        },
        "options": {"reg": 0.5},
    },
)
