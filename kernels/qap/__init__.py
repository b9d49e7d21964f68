"""Quadratic assignment with a lower bound: tabu search over a population, and proofs where n allows."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field, model_validator

from kernels.card import Bundle, Companion, InputSpec, Options, Solver
from kernels.problems import Inputs, InvalidProblem, QuadraticAssignment
from kernels.problems.quadratic import quadratic_assignment
from kernels.qap import qaplib
from kernels.qap.estimate import estimate
from kernels.solution import Certificate, Solution, unheard

BoundName = Literal["gilmore-lawler", "projection", "rlt1", "sdp"]


class QapOptions(Options):
    """Options of the quadratic assignment solver."""

    method: Literal["auto", "tabu", "2opt", "memetic"] = Field(
        default="auto", description="auto: memetic, and a branch and bound beside it where n is small"
    )
    iterations: int | None = Field(default=None, ge=1, description="tabu iterations (or 2-opt steps) of each search")
    starts: int | None = Field(
        default=None, ge=1, le=65536, description="searches per round, and size of the population"
    )
    rounds: int | None = Field(default=None, ge=1, description="rounds of searches; none: until the time limit")
    seed: int = Field(default=0, ge=0, lt=2**63)
    tenure: tuple[int, int] | None = Field(
        default=None, description="least and greatest tabu tenure; none: mixed by search"
    )
    recency: Literal["places", "pairs"] = Field(
        default="places",
        description="tabu on a GPU: bar returns to places, or exchanges of the same pair as Novoa and Qasem (2019) do",
    )
    target: float | None = Field(default=None, description="stop at an objective of at most this")
    deterministic: bool = Field(default=False, description="the same answer from the same seed, given enough time")
    bounds: Literal["auto"] | tuple[BoundName, ...] = Field(default="auto", description="lower bounds to compute")
    bound_share: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="share of the time limit for the costly bounds;"
        " left out, .6 where a GPU raises the semidefinite bound by itself",
    )
    log_bytes: int = Field(
        default=1 << 22, ge=0, le=1 << 28, description="of the branch and bound's log, `tree`, at most; 0: keep none"
    )
    population: bool = Field(default=False, description="return the final population as well")
    fixed: dict[int, int] = Field(default_factory=dict, description="facility -> location that it must take")
    best_known: int | float | None = Field(
        default=None, ge=-1e300, le=1e300, description="an objective to compare with; never used as a bound"
    )
    threads_per_block: int | None = Field(
        default=None, ge=32, le=1024, description="GPU only; none: tuned and remembered"
    )

    @model_validator(mode="after")
    def _tenure_ascends(self) -> "QapOptions":
        if self.tenure is not None and not 1 <= self.tenure[0] <= self.tenure[1] < 2**20:
            raise ValueError("tenure must be two integers with 1 <= least <= greatest < 2^20")
        return self

    def wants(self, bound: BoundName) -> bool:
        """True when that bound is asked for."""
        return self.bounds == "auto" or bound in self.bounds


def _build(inputs: Inputs, options: QapOptions) -> QuadraticAssignment:
    if options.bound_share > 1:
        raise InvalidProblem("bound_share", "is above 1; expected a share in [0, 1]")
    return quadratic_assignment(inputs, fixed=options.fixed, best_known=options.best_known, target=options.target)


def _certify(
    problem: QuadraticAssignment, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    from kernels.certificates.tree import certify  # loads scipy, half of what a start would import

    return certify(problem, solution, progress)


def _objective_of(text: str, inputs: Inputs) -> int | float:
    """The objective of a QAPLIB .sln file, which is checked against the matrices."""
    problem = quadratic_assignment({name: inputs[name] for name in ("flow", "distance")})
    return qaplib.parse_sln(text, problem.flow, problem.distance)[1]


CARD = Solver[QuadraticAssignment, QapOptions](
    name="qap",
    summary="Quadratic assignment with a lower bound.",
    inputs=(
        InputSpec("flow", "(m, m) flow between facilities; any sign, symmetric or not; m <= n"),
        InputSpec("distance", "(n, n) distance between locations"),
        InputSpec(
            "linear",
            "(m, n) cost of facility i at location k; null or +inf forbids the pair",
            required=False,
            masked=True,
        ),
        InputSpec("permutation0", "(n,) or (m,) facility -> location to begin with, from 0", required=False),
        InputSpec(
            "tree0", "(bytes,) the `tree` of an earlier answer, a branch and bound to go on with", required=False
        ),
    ),
    options=QapOptions,
    build=_build,
    certify=_certify,
    compiled_proofs=("kernels.certificates.tree.warm",),
    estimate=estimate,
    prefers_gpu=lambda problem, options: problem.n > 30,
    modules={"cpu": "kernels.qap.cpu.solver", "gpu": "kernels.qap.gpu"},
    warm_start={"permutation": "permutation0", "tree": "tree0"},
    bundles=(
        Bundle(
            "qaplib",
            fills=("flow", "distance"),
            kind="QAPLIB .dat file",
            expected="n, then two n x n matrices",
        ),
    ),
    companions=(Companion("sln", option="best_known", read=_objective_of),),
    example={
        "solver": "qap",
        "inputs": {
            "flow": [[0, 5, 2, 4], [5, 0, 3, 0], [2, 3, 0, 1], [4, 0, 1, 0]],
            "distance": [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]],
        },
        "options": {"seed": 1},
    },
)
