"""Quadratic assignment with Lawler's general costs: a cost for each pair of placements, and a proved lower bound."""

from pydantic import Field

from kernels.card import InputSpec, Options, Solver
from kernels.certificates.lawler import certify
from kernels.lawler.estimate import estimate, outline
from kernels.problems import Inputs
from kernels.problems.lawler import LawlerAssignment, lawler_assignment


class LawlerOptions(Options):
    """Options of the quadratic assignment with general costs."""

    maximize: bool = Field(default=False, description="Maximise, as affinities of graph matching are.")
    iterations: int | None = Field(default=None, ge=1, description="Of each tabu search; none: 40 n, at least 500.")
    starts: int | None = Field(default=None, ge=1, le=65536, description="Searches per round; none: by threads.")
    rounds: int | None = Field(
        default=None, ge=1, description="Of searches; none: until the time limit, 60 without one."
    )
    sweeps: int | None = Field(
        default=None,
        ge=0,
        description="Of the bound at most; 0: none. Left out, until it stops rising, 150 without a time limit.",
    )
    target: float | None = Field(default=None, description="Stop at an objective as good as this.")
    fixed: dict[int, int] = Field(default_factory=dict, description="facility -> place that it must take")
    duals: bool = Field(default=False, description="Also return what proves the bound, to check it again.")
    seed: int = Field(default=0, ge=0, lt=2**63, description="Of starts and tenures.")


def _build(inputs: Inputs, options: LawlerOptions) -> LawlerAssignment:
    return lawler_assignment(inputs, maximize=options.maximize, fixed=options.fixed)


def _outline(inputs: Inputs, options: LawlerOptions) -> LawlerAssignment:
    return outline(inputs, options.maximize, options.fixed)


CARD = Solver[LawlerAssignment, LawlerOptions](
    name="lawler",
    summary="Quadratic assignment with Lawler's general costs, one for each two placements, with a lower bound.",
    inputs=(
        InputSpec(
            "cost",
            "(m, n, m, n) what facility i at place p and facility k at place q cost together; m <= n <= 40",
            main=True,
        ),
        InputSpec("permutation0", "(n,) or (m,) facility -> place to begin with, from 0", required=False),
    ),
    options=LawlerOptions,
    build=_build,
    outline=_outline,
    certify=certify,
    estimate=estimate,
    prefers_gpu=lambda problem, options: False,
    modules={"cpu": "kernels.lawler.cpu.solver"},
    warm_start={"permutation": "permutation0"},
    groups={"exponent": "duals", "rows": "duals", "columns": "duals", "prices": "duals"},
    example={
        "solver": "lawler",
        "inputs": {
            "cost": [
                [[[1, 0], [0, 4]], [[0, 7], [2, 0]]],
                [[[0, 3], [5, 0]], [[6, 0], [0, 1]]],
            ]
        },
    },
)
