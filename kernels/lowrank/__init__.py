"""Optimal transport by couplings of low rank, with a proved lower bound."""

from typing import Literal

from pydantic import Field

from kernels.card import InputSpec, Options, Solver
from kernels.certificates.lowrank import certify
from kernels.lowrank.estimate import estimate, outline
from kernels.problems import Inputs
from kernels.problems.lowrank import LowRankTransport, low_rank_transport


class LowRankOptions(Options):
    """How to look for a coupling of low rank."""

    rank: int = Field(default=10, ge=1, le=4096, description="Of the coupling: most components that it is made of.")
    metric: Literal["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "geodesic", "inner"] = Field(
        default="sqeuclidean",
        description="Cost between points. All but sqeuclidean and inner write all costs down.",
    )
    init: Literal["pairs", "random"] = Field(
        default="pairs",
        description="Where searches begin: components of an optimal plan of a sample, or random factors.",
    )
    gamma: float = Field(default=30.0, gt=0, le=100, description="Length of a step, over the largest derivative.")
    tolerance: float = Field(
        default=1e-6, ge=0, le=1, description="Stop where steps change the objective by less than this, relatively."
    )
    max_iterations: int = Field(default=1000, ge=1, le=10_000_000, description="Steps from each start at most.")
    starts: int = Field(default=2, ge=1, le=65536, description="Searches, each from other seeds.")
    seed: int = Field(default=0, ge=0, lt=2**63, description="Of the sample, the seeds and random factors.")


def _build(inputs: Inputs, options: LowRankOptions) -> LowRankTransport:
    return low_rank_transport(inputs, rank=options.rank, metric=options.metric)


def _outline(inputs: Inputs, options: LowRankOptions) -> LowRankTransport:
    return outline(inputs, options.rank)


CARD = Solver[LowRankTransport, LowRankOptions](
    name="lowrank",
    summary="Optimal transport by couplings of low rank: thin factors in linear time, with a proved lower bound.",
    inputs=(
        InputSpec("cost", "(m, n) costs", required=False, main=True),
        InputSpec("x", "(m, d) points of the rows instead of costs", required=False),
        InputSpec("y", "(n, d) points of the columns", required=False),
        InputSpec("row_factors", "(m, k) factors of the costs instead: cost = row_factors times", required=False),
        InputSpec("column_factors", "(n, k) these, transposed", required=False),
        InputSpec("a", "(m,) weights of the rows, relative to their sum; uniform when left out", required=False),
        InputSpec("b", "(n,) weights of the columns, as a", required=False),
    ),
    options=LowRankOptions,
    build=_build,
    outline=_outline,
    certify=certify,
    estimate=estimate,
    prefers_gpu=lambda problem, options: sum(problem.shape) * problem.rank >= 1 << 20,
    modules={"cpu": "kernels.lowrank.cpu.solver", "gpu": "kernels.lowrank.gpu"},
    example={
        "solver": "lowrank",
        "inputs": {
            "x": [[0, 0], [1, 0], [0, 1], [5, 5], [6, 5]],
            "y": [[1, 1], [0, 2], [2, 0], [5, 6], [7, 5], [6, 7]],
        },
        "options": {"rank": 2},
    },
)
