"""How a solve on the GPU begins: neighbours of points, the arithmetic, and what is kept of an earlier answer."""

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.auction import gpu_buffers as memory
from kernels.auction.gpu_buffers import Device
from kernels.auction.layout import LOWEST
from kernels.auction.proportion import cut_prices
from kernels.auction.scaling import FEW_LOOSE, Arithmetic, arithmetic_of, fixed_point
from kernels.problems import UNASSIGNED, Array, Csr
from kernels.problems.arrays import Costs, Indices32
from kernels.problems.points import METRICS, PointAuction, Points
from kernels.problems.sparse import Auction, is_complete

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions


def from_points(problem: Auction, options: "AuctionOptions") -> tuple[Auction, dict[str, Array]]:
    """Points stay points where all pairs are edges and the kernels have the metric; else benefits are written out.

    Nearest neighbours are found on the device and become a graph.
    """
    if not isinstance(problem, PointAuction):
        return problem, {}
    points = problem.points
    if points.neighbours is None:
        is_worked_out = problem.reject is None and points.metric in METRICS
        return (problem if is_worked_out else problem.with_benefits(points.all_benefits())), {}
    nearest = _nearest(points, options)
    return problem.with_benefits(points.graph_of_neighbours(nearest)), {"neighbours": nearest}


def _nearest(points: Points, options: "AuctionOptions") -> Indices32:
    """The nearest columns by the lists of the fixed point; the CPU looks again where its steps are too coarse to tell.

    That is where the last neighbour and the best column left out differ by less than what the two are rounded by: half
    a step each, and the error of a distance in float64.
    """
    k = points.neighbours
    assert k is not None
    device = memory.upload(points, fixed_point(points, complete=True), options, spread=False)
    device.list_rows()
    benefits, columns = device.buffers["list_benefits"], device.buffers["list_columns"]
    benefits[columns < 0] = LOWEST
    order = cupy.argsort(-benefits, axis=1)[:, : k + 1]
    found = cupy.take_along_axis(benefits, order, axis=1)
    last, best_left = found[:, k - 1], cupy.maximum(found[:, k], device.buffers["rest"])
    margin = 2 + cupy.abs(last).astype(np.float64) * (points.x.shape[1] + 8) * 2.0**-52
    unsure = cupy.flatnonzero((last - best_left).astype(np.float64) <= margin).get()
    nearest: Indices32 = cupy.take_along_axis(columns, order[:, :k], axis=1).get()
    if unsure.size:
        nearest[unsure] = points.nearest(unsure)
    return nearest


def arithmetic(weights: Costs | Csr | Points, options: "AuctionOptions", floating: bool) -> Arithmetic:
    """Integers in units of 1 / (n_cols + 1), or whole ones (and paths without epsilon) where labels lack room."""
    if floating or isinstance(weights, Points):
        return fixed_point(weights, isinstance(weights, Points) or is_complete(weights))
    unit = arithmetic_of(weights, None if options.finish == "paths" else options.epsilon)
    room = memory.label_room(weights.shape[0])
    if unit.scale > 1 and (unit.scale <= weights.shape[1] or unit.span > room):
        unit = Arithmetic(1, unit.span // unit.scale)
    return unit


def spreads(options: "AuctionOptions") -> bool:
    """Whether rows may choose among equal columns: not in rounds that must repeat the CPU's bid for bid."""
    wants_rounds = options.finish == "auction" or (options.epsilon is not None and options.finish != "paths")
    return options.launch == "persistent" and not (wants_rounds and options.deterministic)


def start_from(device: Device, start: Auction, unit: Arithmetic, complete: bool) -> bool:
    """Set the prices and the assignment to start from, if any; returns whether old prices are of use.

    `complete` says that every row may take every column. Prices out of proportion are cut. What then says less about
    the optimum than prices of 0, by the dual value of each, is dropped.
    """
    prices, assignment = start.prices0, start.assignment0
    useful = False
    if prices is not None:
        square = start.reject is None and start.shape[0] == start.shape[1]
        chains = start.reject is None and not complete
        ints = cut_prices(prices, unit.scale, unit.span, chains, movable=square, exact=True)
        useful = _say_something(device, cupy.asarray(ints))
    if assignment is not None:
        device.buffers["column_of"][:] = cupy.asarray(assignment.astype(np.int32))
        device.launch("auction.cu", "seat_rows")
    return useful


def _say_something(device: Device, old: Any) -> bool:
    """Leave prices of 0 in place or the `old` ones, whose dual value is lower; returns whether it is the old ones."""
    prices, values = device.buffers["prices"], []
    for tried in (cupy.zeros_like(old), old):
        prices[: old.size] = tried
        device.list_rows()
        nets = device.best_nets()
        known = nets[nets > LOWEST].astype(np.float64)
        values.append(float(known.sum()) + float(tried.astype(np.float64).sum()))
    if values[1] > values[0]:
        prices[: old.size] = 0
    return values[1] <= values[0]


def keep_seats(device: Device) -> None:
    """Keep the earlier answer if it still suits nearly all rows; else its prices alone, where every column is sold.

    docs/notes/auction.md has the rounds of either start.
    """
    column_of, prices = device.buffers["column_of"], device.buffers["prices"]
    nets = device.best_nets()
    # two steps of the arithmetic leave room for prices that were rounded down to one
    loose = (column_of < 0) | (device.buffers["held"] - prices[column_of] + 2 < nets)
    if column_of.size == prices.size and int(loose.sum()) > FEW_LOOSE:
        column_of.fill(UNASSIGNED)
        device.buffers["row_of"].fill(UNASSIGNED)
