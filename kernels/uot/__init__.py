"""Entropic unbalanced optimal transport with a certified gap."""

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PositiveFloat

from kernels.card import InputSpec, Options, Solver
from kernels.certificates.transport import certify
from kernels.outline import dense
from kernels.problems import Inputs, InvalidProblem, UnbalancedTransport
from kernels.problems.transport import transport
from kernels.uot.estimate import estimate


def _spell_inf(value: Any) -> Any:
    """JSON has no infinity: "inf" and null say it."""
    if isinstance(value, list | tuple):
        return tuple(_spell_inf(one) for one in value)
    return "inf" if value is None or value == math.inf else value


LARGEST_PLAN = 1 << 31  # entries; more are worked out from the potentials where they are needed
_Strength = PositiveFloat | Literal["inf"]


class TransportOptions(Options):
    """How to solve, and what to return."""

    reg: PositiveFloat = Field(0.05, description="Strength of the entropic term, in the units of the cost.")
    reg_m: Annotated[_Strength | tuple[_Strength, _Strength], BeforeValidator(_spell_inf)] = Field(
        1.0,
        description="Strength of the KL penalty on the marginals, in the units of the cost: one value, or two for rows"
        ' and columns. "inf" (or null) makes a marginal exact.',
    )
    reference: Literal["product", "uniform"] = Field(
        "product", description="Measure that the entropic term compares the plan with: a x b, or all ones."
    )
    metric: Literal["sqeuclidean", "euclidean", "inner"] = Field(
        "sqeuclidean", description="Cost between the points x and y; inner is minus the inner product."
    )
    method: Literal["auto", "fused", "log", "points", "map-uot"] = Field(
        "auto",
        description="fused: kernel stored, read once per iteration. log: kernel worked out from the cost on the fly,"
        " right at small reg. points: the same from point clouds. map-uot: the published iteration (see rule).",
    )
    rule: Literal["published", "corrected"] = Field(
        "corrected",
        description="map-uot only: the published rule converges to the balanced plan, the corrected one to this one.",
    )
    tolerance: float = Field(1e-6, ge=0, le=1, description="Stop when the certified relative gap is at most this.")
    iterations: int = Field(10_000, ge=1, le=10_000_000, description="Stop after this many sweeps.")
    acceleration: bool = Field(True, description="Anderson, translation and epsilon scaling; false: plain Sinkhorn.")
    storage: Literal["auto", "float64", "float32", "float16", "bfloat16"] = Field(
        "auto", description="Type of the stored kernel; sums are float32 or better. 16 bits on the GPU only."
    )
    output: Literal["plan", "potentials"] = Field(
        "plan", description="potentials: f, g, both marginals of the plan and the top_k entries of each row."
    )
    top_k: int = Field(0, ge=0, le=1024, description="Largest entries of each row to return: columns and values.")

    @property
    def strengths(self) -> tuple[float, float]:
        """reg_m of rows and columns as numbers, inf included."""
        pair = self.reg_m if isinstance(self.reg_m, tuple) else (self.reg_m, self.reg_m)
        return float(pair[0]), float(pair[1])


def _build(inputs: Inputs, options: TransportOptions) -> UnbalancedTransport:
    problem = transport(
        inputs, reg=options.reg, reg_m=options.strengths, metric=options.metric, reference=options.reference
    )
    m, n = problem.shape
    if options.output == "plan" and m * n > LARGEST_PLAN:
        raise InvalidProblem(
            "output", f"is plan, and a plan of {m} x {n} has more than 2^31 entries; expected potentials, with top_k"
        )
    return problem


def _outline(inputs: Inputs, options: TransportOptions) -> UnbalancedTransport:
    cost = dense(inputs, "cost", (2, 3))
    rows, columns = cost.shape[:-1], (*cost.shape[:-2], cost.shape[-1])
    a, b = (np.broadcast_to(np.float64(1 / shape[-1]), shape) for shape in (rows, columns))
    return UnbalancedTransport(a, b, options.reg, options.strengths, cost=cost)


def _prefers_gpu(problem: UnbalancedTransport, options: TransportOptions) -> bool:
    m, n = problem.shape
    return (problem.batch or 1) * m * n >= 512 * 512


def _spreads(problem: UnbalancedTransport, options: TransportOptions) -> bool:
    """By rows: costs only, of one problem, with relaxed rows."""
    return problem.cost is not None and problem.batch is None and problem.reg_m[0] != float("inf")


CARD = Solver[UnbalancedTransport, TransportOptions](
    name="uot",
    summary="Entropic unbalanced optimal transport: plan and potentials with a certified gap.",
    inputs=(
        InputSpec("cost", "(m, n) or (batch, m, n); null or +inf forbids an entry", required=False, main=True),
        InputSpec(
            "a", "(m,) or (batch, m) masses of the rows, at least 0; uniform of sum 1 when left out", required=False
        ),
        InputSpec("b", "(n,) or (batch, n) masses of the columns, as a", required=False),
        InputSpec("x", "(m, d) points instead of a cost matrix, d <= 1024", required=False),
        InputSpec("y", "(n, d) points instead of a cost matrix", required=False),
        InputSpec("f0", "(m,) potentials to start from", required=False),
        InputSpec("g0", "(n,) potentials to start from", required=False),
    ),
    options=TransportOptions,
    build=_build,
    outline=_outline,
    certify=certify,
    estimate=estimate,
    prefers_gpu=_prefers_gpu,
    spreads=_spreads,
    device_certificate="kernels.certificates.gpu.gpu_transport",
    modules={"cpu": "kernels.uot.cpu", "gpu": "kernels.uot.gpu"},
    warm_start={"f": "f0", "g": "g0"},
    unread={"cost": "f"},
    groups={"f": "potentials", "g": "potentials"},
    example={
        "solver": "uot",
        "inputs": {
            "cost": [[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]],
            "a": [0.5, 0.3, 0.2],
            "b": [0.2, 0.3, 0.8],
        },
        "options": {"reg": 0.1, "reg_m": 1.0, "tolerance": 1e-6},
    },
)
