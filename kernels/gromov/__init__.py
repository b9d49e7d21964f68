"""Gromov-Wasserstein and fused Gromov-Wasserstein transport with a proved lower bound."""

from typing import Literal

from pydantic import Field, model_validator

from kernels.card import Device, InputSpec, Options, Solver
from kernels.certificates.gromov import certify
from kernels.gromov.estimate import estimate, outline
from kernels.problems import Inputs
from kernels.problems.gromov import GromovWasserstein, gromov_wasserstein


class GromovOptions(Options):
    """How to couple two spaces."""

    alpha: float | None = Field(
        default=None, ge=0, le=1,
        description="Share of the quadratic part beside a cost: (1 - alpha) <M, P> + alpha GW(P). None: 1 without"
        " costs, 1/2 with them.",
    )  # fmt: skip
    metric: Literal["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "geodesic", "inner"] = Field(
        default="sqeuclidean", description="Distance between points of one space, where x or y are points."
    )
    method: Literal["auto", "proximal", "entropic", "exact"] = Field(
        default="auto",
        description="proximal: each plan is compared with the plan before, and what is left of the blur fades."
        " entropic: with the product of the weights, as in Peyre, Cuturi, Solomon (2016). exact: conditional gradient,"
        " each linear step by a network simplex, on a CPU. auto: proximal, on a CPU conditional gradient from there.",
    )
    reg: float | Literal["auto"] = Field(
        default="auto",
        description="Strength of the entropic term of a step, in the units of the objective. 0: exact steps alone."
        " auto: .05 of the sizes that the objective is a difference of.",
    )
    tolerance: float = Field(
        default=1e-9, ge=0, le=1, description="Stop where steps change the objective by less than this, relatively."
    )
    max_iterations: int = Field(default=500, ge=1, le=10_000_000, description="Steps from each start at most.")
    starts: int = Field(
        default=4, ge=1, le=65536,
        description="Starts: plan0 if given, the product of the weights, the plans of lower bounds, random ones.",
    )  # fmt: skip
    seed: int = Field(default=0, ge=0, lt=2**63, description="Of random starts.")

    @model_validator(mode="after")
    def _agree(self) -> "GromovOptions":
        if self.reg != "auto" and self.reg < 0:
            raise ValueError("reg must be at least 0")
        if self.method == "exact" and self.reg not in ("auto", 0):
            raise ValueError("method exact has no reg; leave it out, or take method proximal")
        if self.method == "exact":
            object.__setattr__(self, "reg", 0.0)
        if self.reg == 0 and self.method not in ("auto", "exact"):
            raise ValueError(f"method {self.method} needs a reg above 0; reg 0 is method exact")
        return self


def _build(inputs: Inputs, options: GromovOptions) -> GromovWasserstein:
    return gromov_wasserstein(inputs, metric=options.metric, alpha=options.alpha)


def _outline(inputs: Inputs, options: GromovOptions) -> GromovWasserstein:
    return outline(inputs, options.alpha)


def _runs_on(problem: GromovWasserstein, options: GromovOptions) -> tuple[Device, ...]:
    return ("cpu",) if options.reg == 0 else ("cpu", "gpu")


CARD = Solver[GromovWasserstein, GromovOptions](
    name="gromov",
    summary="Gromov-Wasserstein transport between two spaces, fused or not, with a proved lower bound.",
    inputs=(
        InputSpec("x_distance", "(n, n) distances within the first space, symmetric or not", required=False, main=True),
        InputSpec("y_distance", "(m, m) distances within the second space", required=False),
        InputSpec("x", "(n, d) points of the first space instead of its distances", required=False),
        InputSpec("y", "(m, e) points of the second space instead of its distances", required=False),
        InputSpec("a", "(n,) weights of the first space, relative to their sum; uniform when left out", required=False),
        InputSpec("b", "(m,) weights of the second space, as a", required=False),
        InputSpec("cost", "(n, m) costs between the spaces: fused Gromov-Wasserstein", required=False),
        InputSpec("x_features", "(n, k) features whose squared distances are that cost", required=False),
        InputSpec("y_features", "(m, k) features of the second space", required=False),
        InputSpec("plan0", "(n, m) a plan to begin with", required=False),
    ),
    options=GromovOptions,
    build=_build,
    outline=_outline,
    certify=certify,
    estimate=estimate,
    runs_on=_runs_on,
    prefers_gpu=lambda problem, options: problem.shape[0] * problem.shape[1] >= 256 * 256,
    modules={"cpu": "kernels.gromov.cpu.solver", "gpu": "kernels.gromov.gpu"},
    warm_start={"plan": "plan0"},
    example={
        "solver": "gromov",
        "inputs": {
            "x_distance": [[0, 3, 4, 5], [3, 0, 5, 4], [4, 5, 0, 3], [5, 4, 3, 0]],
            "y_distance": [[0, 3, 4], [3, 0, 5], [4, 5, 0]],
        },
        "options": {"seed": 1},
    },
)
