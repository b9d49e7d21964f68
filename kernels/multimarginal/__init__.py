"""Optimal transport among three measures, with a lower bound."""

import math
from typing import Annotated, Literal

from pydantic import Field

from kernels.card import Device, InputSpec, Options, Solver
from kernels.certificates.multimarginal import certify
from kernels.multimarginal.estimate import estimate
from kernels.problems import Inputs, InvalidProblem
from kernels.problems.made import make
from kernels.problems.multimarginal import Multimarginal, multimarginal

LARGEST_PROGRAMME = 400_000
"""Variables of a linear programme that is solved as one."""
LARGEST_PLAN = 1 << 22
"""Entries of a plan that is returned."""


class MultimarginalOptions(Options):
    """What is asked of a transport among three measures."""

    method: Literal["auto", "entropic", "exact"] = Field(
        "auto",
        description="entropic: Sinkhorn's iteration. exact: a linear programme, reg 0, up to 400,000 variables (l x m x"
        " n). auto: exact for reg 0, else entropic.",
    )
    reg: Annotated[float, Field(ge=0)] | Literal["auto"] = Field(
        "auto",
        description="Strength of the entropic term, in the units of the cost. 0: none. auto: .05 of the mean cost.",
    )
    metric: Literal["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "geodesic"] = Field(
        "sqeuclidean", description="Cost between two points; a triple costs the weighted sum of its three pairs."
    )
    output: Literal["potentials", "marginals", "plan"] = Field(
        "potentials",
        description="marginals: also the plan's sums over each side, three matrices. plan: also the plan, up to"
        " 4,194,304 entries. With reg 0 the plan is there always.",
    )
    tolerance: float = Field(1e-6, ge=0, le=1, description="Stop when the relative gap is at most this.")
    iterations: int = Field(10_000, ge=1, le=10_000_000, description="Stop after this many iterations.")


def build(inputs: Inputs, options: MultimarginalOptions) -> Multimarginal:
    """The problem of a job. Raises InvalidProblem."""
    if options.method == "exact" and options.reg not in ("auto", 0):
        raise InvalidProblem("reg", f"is {options.reg}; expected 0 or left out, for method exact")
    if options.method == "entropic" and options.reg == 0:
        raise InvalidProblem("reg", "is 0; expected more than 0, for method entropic")
    problem = multimarginal(inputs, 0.0 if options.method == "exact" else options.reg, options.metric)
    entries = math.prod(problem.sizes)
    rows, m, n = problem.sizes
    if problem.reg == 0 and entries > LARGEST_PROGRAMME:
        told = f"is 0, and {rows} x {m} x {n} is more than {LARGEST_PROGRAMME} variables"
        raise InvalidProblem("reg", f"{told}; expected smaller measures, or a reg above 0")
    if options.output == "plan" and entries > LARGEST_PLAN:
        told = f"is plan, and {rows} x {m} x {n} is more than {LARGEST_PLAN} entries"
        raise InvalidProblem("output", f"{told}; expected potentials or marginals")
    if problem.tensor is None and (problem.reg == 0 or options.output == "plan"):
        make(entries)  # the plan
    return problem


def _runs_on(problem: Multimarginal, options: MultimarginalOptions) -> tuple[Device, ...]:
    return ("cpu", "gpu") if problem.reg > 0 else ("cpu",)


CARD = Solver[Multimarginal, MultimarginalOptions](
    name="multimarginal",
    summary="Optimal transport among three measures, from a tensor of costs or from three clouds, with a lower bound.",
    inputs=(
        InputSpec("cost", "(l, m, n) costs of all triples of points", required=False, main=True),
        InputSpec("x", "(l, d) points of the first measure instead of a cost", required=False),
        InputSpec("y", "(m, d) points of the second measure", required=False),
        InputSpec("z", "(n, d) points of the third measure", required=False),
        InputSpec(
            "pair_weights", "(3,) weights of the distances x to y, x to z and y to z; 1 when left out", required=False
        ),
        InputSpec("a", "(l,) masses of the first measure, divided by their sum; uniform when left out", required=False),
        InputSpec("b", "(m,) masses of the second measure, as a", required=False),
        InputSpec("c", "(n,) masses of the third measure, as a", required=False),
    ),
    options=MultimarginalOptions,
    build=build,
    certify=certify,
    estimate=estimate,
    runs_on=_runs_on,
    prefers_gpu=lambda problem, options: math.prod(problem.sizes) >= 1 << 21,
    modules={"cpu": "kernels.multimarginal.cpu.solver", "gpu": "kernels.multimarginal.gpu"},
    groups={"f": "potentials", "g": "potentials", "h": "potentials"},
    example={
        "solver": "multimarginal",
        "inputs": {
            "x": [[0, 0], [1, 0], [0, 1]],
            "y": [[2, 0], [3, 1], [2, 1]],
            "z": [[1, 2], [2, 3]],
            "c": [0.4, 0.6],
        },
        "options": {"reg": 0.5, "output": "marginals"},
    },
)
