"""Assignment by auction, dense or sparse, with prices."""

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Literal, cast

import numpy as np
from pydantic import Field

from kernels.auction.estimate import estimate
from kernels.auction.joint import solve_jointly
from kernels.card import Device, InputSpec, Options, Solver
from kernels.deadline import Deadline
from kernels.outline import dense
from kernels.problems import UNASSIGNED, Csr, Inputs, InvalidProblem
from kernels.problems.arrays import AnyIndices, Costs, finite, is_masked, numeric
from kernels.problems.points import METRICS, PointAuction, points_of
from kernels.problems.sparse import Auction, edges_of, exact_sums, sparse, summed
from kernels.solution import Certificate, Solution, unheard


class AuctionOptions(Options):
    """How an auction is run."""

    epsilon: float | None = Field(
        None, gt=0, description="run the auction at this epsilon: within n_rows * epsilon of optimal; null: the optimum"
    )
    finish: Literal["auto", "auction", "paths"] = Field(
        "auto",
        description="how the optimum is reached: by epsilon scaling (auction) or shortest augmenting paths (paths, "
        "auto); with an epsilon given, auction is the paper's rounds to the end, auto ends long ones by paths within "
        "epsilon, and paths go on to the optimum",
    )
    allow_unassigned: bool = Field(
        False, description="rows may stay unassigned, for their `reject` price or, without one, for 0"
    )
    sum_duplicates: bool = Field(
        False, description="entries of a CSR graph that name the same row and column are added up; false: refused"
    )
    deterministic: bool = Field(
        True,
        description="in rounds of a given epsilon or of finish auction, of equal bids the lowest row and the lowest "
        "column win; a CPU's always do. Other rounds of a GPU may find another optimum in the next run",
    )
    launch: Literal["persistent", "graph"] = Field(
        "persistent", description="on a GPU: all rounds in one cooperative kernel, or CUDA graphs of single steps"
    )
    metric: Literal["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "inner", "iou"] = Field(
        "sqeuclidean",
        description="cost of a pair of points x and y, as in lap; the benefit of a pair is minus its cost. iou is 1 - "
        "intersection over union of boxes x1, y1, x2, y2; inner is minus the inner product",
    )
    neighbours: int | None = Field(
        None,
        ge=1,
        le=48,
        description="with x and y and one of the first three metrics: a row may take its so many nearest columns only; "
        "null: all",
    )
    seed: int | None = Field(None, ge=0, description="recorded; the auction draws no random numbers")
    iteration_limit: int | None = Field(None, ge=1, description="most rounds of bidding")
    trace: bool = Field(False, description="return `bidders`, the number of bidders in every round")


def _benefit(inputs: Inputs, sum_duplicates: bool) -> Costs | Csr:
    given = inputs.get("benefit")
    if given is None:
        raise InvalidProblem("benefit", "is missing; expected a matrix (n_rows, n_cols) or a CSR graph")
    if isinstance(given, Csr):
        return sparse("benefit", summed("benefit", given) if sum_duplicates else given)
    benefit = finite("benefit", numeric("benefit", given, ndim=(2,)), allow=-math.inf)
    return edges_of(benefit) if is_masked(benefit) else benefit


def _outline(inputs: Inputs, options: AuctionOptions) -> Auction:
    return Auction(dense(inputs, "benefit"), maximize=True)


def _vector(inputs: Inputs, name: str, size: int, allow: float | None = None) -> Costs | None:
    given = inputs.get(name)
    if given is None:
        return None
    if isinstance(given, Csr):
        raise InvalidProblem(name, f"is sparse; expected a dense vector of {size}")
    vector = finite(name, numeric(name, given, ndim=(1,)), allow=allow)
    if vector.size != size:
        raise InvalidProblem(name, f"has {vector.size} entries; expected {size}")
    return vector


def _build(inputs: Inputs, options: AuctionOptions) -> Auction:
    points = None
    if "benefit" not in inputs and ("x" in inputs or "y" in inputs):
        points = points_of(inputs, options.metric, options.neighbours)
        weights: Costs | Csr = np.empty((0, 0))
        n_rows, n_cols = points.x.shape[0], points.y.shape[0]
    else:
        weights = _benefit(inputs, options.sum_duplicates)
        n_rows, n_cols = weights.shape
    reject = _vector(inputs, "reject", n_rows)
    if reject is None and options.allow_unassigned:
        reject = np.zeros(n_rows, np.int64)
    if n_rows > n_cols and reject is None:
        raise InvalidProblem(
            "benefit",
            f"has {n_rows} rows and {n_cols} columns; expected no more rows than columns (transpose it, or set "
            "`allow_unassigned`, or give `reject` prices)",
        )
    values = weights.values if isinstance(weights, Csr) else weights
    exact_sums("benefit", values, n_cols)
    if reject is not None:
        exact_sums("reject", reject, n_cols + n_rows)
    prices = _vector(inputs, "prices0", n_cols)
    if prices is not None and (prices < 0).any():
        at = int((prices < 0).argmax())
        raise InvalidProblem("prices0", f"holds {prices[at]} at [{at}]; expected prices of at least 0")
    given: dict[str, Any] = {"reject": reject, "prices0": prices, "assignment0": _seats(inputs, n_rows, n_cols)}
    if points is not None:
        return PointAuction(weights, maximize=True, points=points, **given)
    return Auction(weights, maximize=True, **given)


def _certify(problem: Auction, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    from kernels.certificates import auction as certificates  # loads scipy, half of what a start would import
    from kernels.certificates.metrics import certify_auction

    if isinstance(problem, PointAuction) and problem.points.metric not in METRICS:
        return certify_auction(problem, solution, progress)
    return certificates.auction(problem, solution, progress)


def _seats(inputs: Inputs, n_rows: int, n_cols: int) -> AnyIndices | None:
    """`assignment0`, checked: one column or UNASSIGNED for every row, no column twice."""
    seats = _vector(inputs, "assignment0", n_rows)
    if seats is None:
        return None
    if seats.dtype.kind != "i":
        raise InvalidProblem("assignment0", f"holds {seats.dtype}; expected integers")
    outside = (seats < UNASSIGNED) | (seats >= n_cols)
    if outside.any():
        at = int(outside.argmax())
        raise InvalidProblem("assignment0", f"holds {seats[at]} at [{at}]; expected -1 or columns 0 to {n_cols - 1}")
    taken = np.sort(seats[seats >= 0])  # a graph of a few edges may have 2^31 columns to count
    twice = taken[1:][taken[1:] == taken[:-1]]
    if twice.size:
        raise InvalidProblem("assignment0", f"gives column {int(twice[0])} to two rows; expected one at most")
    return cast(AnyIndices, seats)


def _prefers_gpu(problem: Auction, options: AuctionOptions) -> bool:
    """Where the exact GPU solve beats the CPU's, transfer included: measured from some 500 rows on."""
    return problem.shape[0] >= 500


def _mend(
    problem: Auction, options: AuctionOptions, solution: Solution, deadline: Deadline, device: Device
) -> Solution | None:
    """Rebuild the prices from the assignment, or solve again, on the CPU whichever device it was."""
    found: Solution | None = import_module("kernels.auction.cpu.mend").mend(problem, options, solution, deadline)
    return found


CARD = Solver[Auction, AuctionOptions](
    name="auction",
    summary="Assignment by auction, dense or sparse, with prices.",
    inputs=(
        InputSpec(
            "benefit",
            "(n_rows, n_cols), n_rows <= n_cols, or CSR; null, -inf or absent forbids an entry; or else x and y",
            required=False,
            sparse=True,
            masked=True,
            maximised=True,
            main=True,
        ),
        InputSpec("x", "(n_rows, dimension) points, instead of benefit", required=False),
        InputSpec("y", "(n_cols, dimension) points, with x", required=False),
        InputSpec(
            "reject",
            "(n_rows,) what a row adds to the objective by staying unassigned; without it all rows are assigned",
            required=False,
        ),
        InputSpec("prices0", "(n_cols,) prices to start from, as an earlier job returned them", required=False),
        InputSpec(
            "assignment0",
            "(n_rows,) an earlier job's assignment: rows that it still suits keep their columns",
            required=False,
        ),
    ),
    options=AuctionOptions,
    build=_build,
    outline=_outline,
    certify=_certify,
    device_certificate="kernels.certificates.gpu.gpu_auction",
    mend=_mend,
    joint={"cpu": partial(solve_jointly, device="cpu")},
    estimate=estimate,
    prefers_gpu=_prefers_gpu,
    modules={"cpu": "kernels.auction.cpu.solver", "gpu": "kernels.auction.gpu"},
    compiled_proofs=("kernels.certificates.metrics.exactly",),
    warm_start={"prices": "prices0", "assignment": "assignment0"},
    unread={"benefit": "fi"},
    groups=dict.fromkeys(("u", "v", "u_finer", "v_finer"), "duals"),
    example={
        "solver": "auction",
        "inputs": {
            "benefit": {
                "csr": {
                    "indptr": [0, 2, 4, 6],
                    "indices": [0, 1, 1, 2, 0, 2],
                    "values": [7, 4, 6, 3, 5, 8],
                    "shape": [3, 3],
                }
            }
        },
        "options": {},
    },
)
