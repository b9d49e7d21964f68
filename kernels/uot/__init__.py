"""Entropic unbalanced optimal transport with a certified gap."""

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PositiveFloat

from kernels.card import Device, InputSpec, Options, Solver
from kernels.certificates import partial as partial_proofs
from kernels.certificates.several import certify
from kernels.certificates.sparse import certify as certify_sparse
from kernels.outline import dense as dense_input
from kernels.problems import Csr, Inputs, UnbalancedTransport
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.marginal_transport import MarginalTransport
from kernels.problems.sparse_transport import SparseTransport
from kernels.solution import Certificate, Solution, unheard
from kernels.uot.build import SIDE, Transport, build, outlined
from kernels.uot.claimed import claimed
from kernels.uot.estimate import estimate
from kernels.uot.joint import solve_jointly
from kernels.uot.sides.build import marginal_transport, other_marginals
from kernels.uot.sparse.build import sparse_problem
from kernels.uot.strengths import Wanted, wanted


def _spell_inf(value: Any) -> Any:
    """JSON has no infinity: "inf" and null say it."""
    if isinstance(value, list | tuple):
        return tuple(_spell_inf(one) for one in value)
    return "inf" if value is None or value == math.inf else value


_Strength = PositiveFloat | Literal["inf", "auto"]


class TransportOptions(Options):
    """How to solve, and what to return."""

    reg: PositiveFloat | Literal["auto"] = Field(
        "auto",
        description="Strength of the entropic term, in the units of the cost or of reg_scale. auto: .05 of reg_scale,"
        " or of the mean cost. The answer's facts say which reg that was.",
    )
    reg_m: Annotated[_Strength | tuple[_Strength, _Strength], BeforeValidator(_spell_inf)] = Field(
        "auto",
        description="Strength of the KL penalty on the marginals, in the units of the cost or of reg_scale: one value,"
        ' or two for rows and columns. "inf" (or null) makes a marginal exact. auto: 1 times reg_scale, or the mean'
        " cost, with which no plan is empty.",
    )
    reg_scale: Literal["none", "mean", "median"] = Field(
        "none",
        description="What reg and reg_m are multiplied with: 1, or the mean (by mass) or median of the sizes of the"
        " permitted costs of each problem.",
    )
    reference: Literal["product", "uniform"] = Field(
        "product", description="Measure that the entropic term compares the plan with: a x b, or all ones."
    )
    marginals: Literal["kl", "tv", "l2"] = Field(
        "kl",
        description="What a marginal that is not met costs. tv: reg_m times the sum of the differences. l2: reg_m / 2"
        " times the sum of their squares. tv takes method exact too.",
    )
    mass: PositiveFloat | None = Field(
        None,
        description="Partial transport: the plan carries just this mass, and takes from each row and column at most"
        " what it has. In place of reg_m; with method exact or with an entropic term.",
    )
    mass_share: float | None = Field(
        None, gt=0, le=1, description="The same mass as a share of what the side with less of it has."
    )
    metric: Literal["sqeuclidean", "euclidean", "inner", "cityblock", "cosine", "correlation", "geodesic"] = Field(
        "sqeuclidean",
        description="Cost between the points x and y. inner: minus the inner product. cosine, correlation: 1 less the"
        " cosine of the angle, of the rows or of the rows less their means. geodesic: the angle in radians on the"
        " sphere, of directions (d = 3) or of longitude and latitude in degrees (d = 2). From cityblock on, the problem"
        " is the matrix of the costs that float64 makes of the points, as the answer's facts say.",
    )
    method: Literal["auto", "fused", "log", "points", "map-uot", "exact"] = Field(
        "auto",
        description="fused: kernel stored, read once per iteration. log: kernel worked out from the cost on the fly,"
        " right at small reg. points: the same from point clouds. map-uot: the published iteration (see rule)."
        " exact: no entropic term, both marginals exact, by a network simplex on the CPU.",
    )
    rule: Literal["published", "corrected"] = Field(
        "corrected",
        description="map-uot only: the published rule converges to the balanced plan, the corrected one to this one.",
    )
    certificate: Literal["full", "none"] = Field(
        "full",
        description="none: nothing is proved, which saves time in a training loop. Bound, gap and holds are null, and"
        " the answer is never called gap_reached or optimal.",
    )
    tolerance: float = Field(1e-6, ge=0, le=1, description="Stop when the certified relative gap is at most this.")
    iterations: int = Field(10_000, ge=1, le=10_000_000, description="Stop after this many sweeps.")
    acceleration: bool = Field(True, description="Anderson, translation and epsilon scaling; false: plain Sinkhorn.")
    storage: Literal["auto", "float64", "float32", "float16", "bfloat16"] = Field(
        "auto", description="Type of the stored kernel; sums are float32 or better. 16 bits on the GPU only."
    )
    divergence: bool = Field(
        False,
        description="The debiased divergence between both sides: the value less half of that of each side with itself."
        " Each of the three is solved and certified. From points, or from cost, cost_xx and cost_yy; one reg_m.",
    )
    output: Literal["plan", "potentials"] = Field(
        "plan", description="potentials: f, g, both marginals of the plan and the top_k entries of each row."
    )
    gradients: bool = Field(
        False, description="Derivatives of the optimum, grad_a and grad_b, and from points grad_x and grad_y."
    )
    barycentric: bool = Field(
        False, description="Where each row goes: the mean of the points y of its columns, weighted by mass."
    )
    top_k: int = Field(0, ge=0, le=1024, description="Largest entries of each row to return: columns and values.")

    @property
    def strengths(self) -> tuple[Wanted, Wanted]:
        """reg_m of rows and columns: numbers, inf included, or auto."""
        pair = self.reg_m if isinstance(self.reg_m, tuple) else (self.reg_m, self.reg_m)
        return wanted(pair[0]), wanted(pair[1])


def _build(inputs: Inputs, options: TransportOptions) -> Transport:
    """The problem of a job. Raises `InvalidProblem`, which names what is wrong and what was expected."""
    if isinstance(inputs.get("cost"), Csr):
        return sparse_problem(inputs, options)
    return marginal_transport(inputs, options) if other_marginals(options) else build(inputs, options)


def _certify(problem: Transport, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    if isinstance(problem, MarginalTransport):
        return partial_proofs.certify(problem, solution, progress)
    if isinstance(problem, SparseTransport):
        return certify_sparse(problem, solution, progress)
    return certify(problem, solution, progress)


def _outline(inputs: Inputs, options: TransportOptions) -> Transport:
    cost = dense_input(inputs, "cost", (2, 3))
    rows, columns = cost.shape[:-1], (*cost.shape[:-2], cost.shape[-1])
    a, b = (np.broadcast_to(np.float64(1 / shape[-1]), shape) for shape in (rows, columns))
    corner = cost.reshape(-1, cost.shape[-1])[:SIDE, :SIDE] if cost.ndim == 2 else cost[0, :SIDE, :SIDE]
    return outlined(UnbalancedTransport(a, b, 1.0, (1.0, 1.0), cost=cost), corner, options)


def _prefers_gpu(problem: Transport, options: TransportOptions) -> bool:
    if isinstance(problem, SparseTransport):
        return problem.nnz >= 1 << 18
    m, n = problem.shape
    return (problem.batch or 1) * m * n >= 512 * 512


def _spreads(problem: Transport, options: TransportOptions) -> bool:
    """By rows: costs only, of one problem, with relaxed rows."""
    if not isinstance(problem, UnbalancedTransport):
        return False
    return problem.cost is not None and problem.batch is None and problem.reg_m[0] != float("inf")


def _runs_on(problem: Transport, options: TransportOptions) -> tuple[Device, ...]:
    without = isinstance(problem, ExactTransport) or (isinstance(problem, MarginalTransport) and not problem.reg)
    return ("cpu",) if without else ("cpu", "gpu")


CARD = Solver[Transport, TransportOptions](
    name="uot",
    summary="Entropic unbalanced optimal transport: plan and potentials with a certified gap.",
    inputs=(
        InputSpec(
            "cost",
            "(m, n) or (batch, m, n), null or +inf forbids an entry; or CSR, whose absent entries are forbidden",
            required=False,
            sparse=True,
            main=True,
        ),
        InputSpec(
            "a", "(m,) or (batch, m) masses of the rows, at least 0; uniform of sum 1 when left out", required=False
        ),
        InputSpec("b", "(n,) or (batch, n) masses of the columns, as a", required=False),
        InputSpec("x", "(m, d) points instead of a cost matrix, d <= 1024", required=False),
        InputSpec("y", "(n, d) points instead of a cost matrix", required=False),
        InputSpec(
            "sizes",
            "(batch, 2) rows and columns of each problem, whose points, masses and potentials follow one another in"
            " x, y, a, b, f0 and g0; the answer's arrays are laid out alike",
            required=False,
        ),
        InputSpec("regs", "(batch,) reg of each problem of a batch, in place of the option", required=False),
        InputSpec(
            "regs_m", "(batch,) or (batch, 2) reg_m of each problem; null makes a marginal exact", required=False
        ),
        InputSpec("cost_xx", "(m, m) or (batch, m, m) costs of the rows among themselves: divergence", required=False),
        InputSpec("cost_yy", "(n, n) or (batch, n, n) costs of the columns among themselves", required=False),
        InputSpec(
            "labels",
            "(n,) what the columns are known as, whole numbers from 0 on: the answer then has label and label_share,"
            " the label of most of each row's mass and its share of it; of one problem",
            required=False,
        ),
        InputSpec("f0", "(m,) potentials to start from", required=False),
        InputSpec("g0", "(n,) potentials to start from", required=False),
    ),
    options=TransportOptions,
    build=_build,
    outline=_outline,
    certify=_certify,
    estimate=estimate,
    claimed=claimed,
    runs_on=_runs_on,
    prefers_gpu=_prefers_gpu,
    spreads=_spreads,
    device_certificate="kernels.certificates.several.gpu",
    joint={"gpu": partial(solve_jointly, device="gpu")},
    modules={"cpu": "kernels.uot.cpu.solver", "gpu": "kernels.uot.gpu"},
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
