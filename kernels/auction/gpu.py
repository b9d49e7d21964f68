"""The auction on the GPU: rounds in one persistent kernel (`auction.cu`), the finish by a forest (`paths.cu`).

Graphs whose prices spread too far for a label of the forest are handed to the CPU's solver.
"""

import functools
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.auction import gpu_buffers as memory
from kernels.auction.complete import complete
from kernels.auction.gpu_buffers import Device
from kernels.auction.gpu_start import arithmetic, from_points, keep_seats, spreads, start_from
from kernels.auction.layout import COMPLETE, NO_ROW, RUNNING, TOO_FAR
from kernels.auction.proportion import bring_near, take_back
from kernels.auction.scaling import ENOUGH, FOREVER, Arithmetic, epsilons, proves, war_bids, whole_prices
from kernels.deadline import Deadline
from kernels.papers import SYSTEMS
from kernels.problems import UNASSIGNED, Csr
from kernels.problems.arrays import Costs, Floats, Indices
from kernels.problems.points import PointAuction, Points
from kernels.problems.sparse import Auction, is_complete, with_private_columns
from kernels.solution import OnDevice, Solution, Termination

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

BATCH_BIDS = 80_000_000
"""Rows times rounds that a launch may run before the host looks at the clock: 5 to 50 ms."""
BATCH_LABELS = 500_000
"""Rows times forests that a launch may grow before the host looks at the clock: some 40 ms."""
PATIENCE = 400
"""Rounds of a phase that paths follow; only graphs without an assignment come near it."""
FINEST = 2.0**900
"""A fixed point so fine is near the end of float64: the benefits are made larger first. The other end is far off."""
POLISHED = 1 << 24
"""Entries up to which the CPU settles, in some 0.2 s, floats that the fixed point leaves a little loose."""


class TooFar(Exception):
    """The graph's prices spread over more spans of benefits than a label holds."""


@dataclass
class AuctionRun:
    """One solve under way."""

    device: Device
    unit: Arithmetic
    options: "AuctionOptions"
    deadline: Deadline
    complete: bool
    n_phases: int = 0
    facts: dict[str, Any] = field(default_factory=lambda: {"phases": 0, "forests": 0, "rows_scanned": 0})
    hall_rows: Indices | None = None


def solve(problem: Auction, options: "AuctionOptions", deadline: Deadline) -> Solution:
    """Assign every row its own column at the highest total benefit, by auction on the current GPU.

    Problem, Args, Returns, Errors, Source: as the CPU twin `kernels.auction.cpu.solver.solve`.
    Guarantee:
        epsilon given: within n_rows * epsilon; deterministic rounds in integers are bid for bid the CPU twin's.
        epsilon None: exact in integers; floats within three steps of the fixed point a row (2**-46 spans at 10**4
        rows where every pair is an edge), reported as `gap_reached` where that is more than rounding and the graph
        is large; else the certificate decides, and the CPU settles what is loose. `facts` hold the step's `epsilon`.
        Stopped early, free rows take free columns as on the CPU. Old prices are cut and dropped as on the CPU.
        The assignment may differ from run to run where there are several optima: alike rows share out their columns,
        and equally short paths are found, in any order. Deterministic rounds to the end have neither.
    Numerics:
        int64 throughout. Integers times n_cols + 1, floats in fixed point, both so that |scaled benefit| *
        (n_cols + 2) <= 2**61. Whole prices come back by a shift that makes them exactly complementary.
    Complexity:
        device bytes: graph + 840 a row + 60 a column; one read of the graph for the lists (two of it from L2), then
        64 edges a bid. One launch and one host sync per 200 to 20 000 rounds and per 1 to 64 forests.
    Differs from the paper:
        1. short lists, 2. epsilon scaling whose phases stop at n_rows / 32 bidders, 3. the rest by shortest augmenting
        paths, for a given epsilon who is left after some rounds, 4. rounds of at most 32 bidders in one block.
    """
    problem, neighbours = from_points(problem, options)
    try:
        solution = _solve(problem, options, deadline)
    except TooFar:
        from kernels.auction.cpu import solver as cpu

        solution = cpu.solve(problem, options, deadline)
        solution.method += " (cpu)"
    solution.arrays |= neighbours
    return solution


def _solve(problem: Auction, options: "AuctionOptions", deadline: Deadline) -> Solution:
    weights = problem.points if isinstance(problem, PointAuction) else with_private_columns(problem)
    values = weights.x if isinstance(weights, Points) else weights.values if isinstance(weights, Csr) else weights
    floating = values.dtype.kind == "f"  # coordinates always are
    unit = arithmetic(weights, options, floating)
    if floating and unit.scale >= FINEST:
        near, given, k = bring_near(problem, options)
        if k:
            return take_back(_solve(near, given, deadline), k, options)
    started = time.perf_counter()
    device = memory.upload(weights, unit, options, spreads(options))
    run = AuctionRun(device, unit, options, deadline, isinstance(weights, Points) or is_complete(weights))
    warm = start_from(device, problem, unit, run.complete)
    cupy.cuda.get_current_stream().synchronize()
    uploaded = time.perf_counter()
    device.list_rows()
    if problem.assignment0 is not None:
        keep_seats(device)
    ended = deadline.expired() or _bid_and_augment(run, warm)
    ended = _undo_unsold_prices(run, ended)
    solved = time.perf_counter()
    solution = _answer(run, problem, ended, floating)
    if weights is problem.weights and isinstance(weights, np.ndarray):
        solution.uploads = [OnDevice(weights, device.buffers["values"])]
    solution.timings_ms |= {
        "h2d": 1e3 * (uploaded - started),
        "solve": 1e3 * (solved - uploaded),
        "d2h": 1e3 * (time.perf_counter() - solved),
    }
    return solution


def _bid_and_augment(run: AuctionRun, warm: bool) -> Termination:
    """The whole schedule: rounds for the many, paths for the few; rounds to the end where `finish` asks for them."""
    m, n = int(run.device.struct["n_rows"]), int(run.device.struct["n_cols"])
    options, unit = run.options, run.unit
    given = options.epsilon is not None and options.finish != "paths" and proves(unit, options.epsilon, n)
    steps = epsilons(unit, options.epsilon, m, n)
    if options.epsilon is not None and not given:
        steps.append(1)
    if warm and not given:
        steps = steps[-1:]
    if not given and unit.exact and not unit.fixed and unit.scale == 1:
        steps.append(0)
    alone = options.finish == "auction" and (given or m == n)
    memory.schedule(run.device, steps)
    run.n_phases = len(steps)
    run.facts["phases"] += len(steps)
    stop = 0 if alone or given else max(32, m // 32)
    ended = _rounds(run, stop, FOREVER if alone else ENOUGH if given else PATIENCE)
    ended = ended or _augment(run, run.device)
    return Termination.GAP_REACHED if ended is Termination.OPTIMAL and given else ended


def _rounds(run: AuctionRun, stop: int, patience: int) -> Termination | None:
    """Rounds until every phase is done, with a look at the clock, and once at feasibility, between launches.

    Rounds to the end stop before the one that could pass `war_bids`, as the CPU's do: no round has more bidders than
    the one before it in the same phase. Later phases then only part rows from columns that do not suit them.
    """
    graph = _rounds_of_a_graph(run) if run.options.launch == "graph" else None
    limit = run.options.iteration_limit or FOREVER
    n_rows = int(run.device.struct["n_rows"])
    batch = min(20_000, max(200, BATCH_BIDS // n_rows))
    state, probed = run.device.state(), run.complete
    most_bids = state["bids"] + war_bids(n_rows)
    while True:
        ahead = batch
        if patience == FOREVER:
            bidders = state["n_queue"] if state["opened"] and run.n_phases == 1 else n_rows
            ahead = min(batch, (most_bids - state["bids"]) // max(1, bidders))
        if ahead <= 0:
            run.facts["price_war"] = True
            patience, ahead = 0, batch
        until = min(limit, state["rounds"] + ahead)
        if graph is None:
            run.device.run_rounds(limit=until, stop=stop, patience=patience)
        else:
            graph(until, stop, patience)
        state = run.device.state()
        run.deadline.report(state["rounds"])
        if state["phase"] == run.n_phases:
            return None
        if state["rounds"] >= limit:
            return Termination.ITERATION_LIMIT
        if ended := run.deadline.expired():
            return ended
        if not probed and _augment(run, run.device.copy()) is Termination.INFEASIBLE:
            return Termination.INFEASIBLE
        probed = True


def _rounds_of_a_graph(run: AuctionRun) -> Callable[[int, int, int], None]:
    """What stands in for the persistent kernel: until, stop, patience -> the same rounds."""
    module = importlib.import_module(SYSTEMS["graph", "gpu"])
    return functools.partial(module.run_rounds, run.device, module.captured(run.device), run.n_phases)


def _augment(run: AuctionRun, device: Device) -> Termination:
    """Assign the queued rows by forests of shortest paths; names a Hall violator when that cannot be done."""
    forest = memory.forest_of(device)
    batch = min(64, max(1, BATCH_LABELS // int(device.struct["n_rows"])))
    while True:
        forest.augment(device, batch)
        growth = forest.growth()
        if growth["outcome"] != RUNNING:
            break
        run.deadline.report(run.device.state()["rounds"])
        if ended := run.deadline.expired():
            return ended
    if device is run.device:
        run.facts["forests"] += growth["forests"]
        run.facts["rows_scanned"] += growth["scans"]
    if growth["outcome"] == COMPLETE:
        return Termination.OPTIMAL
    if growth["outcome"] == TOO_FAR:
        raise TooFar
    labelled = forest.buffers["label"] != np.uint64(NO_ROW)
    roots = device.buffers["queue"][: device.state()["n_queue"]]
    rows = cupy.concatenate([device.buffers["row_of"][labelled], roots])
    run.hall_rows = np.sort(rows.get()).astype(np.int64)
    return Termination.INFEASIBLE


def _undo_unsold_prices(run: AuctionRun, ended: Termination) -> Termination:
    """After a warm start, columns that nobody took must cost nothing; should that not settle, start from zero."""
    prices, row_of = run.device.buffers["prices"], run.device.buffers["row_of"]
    for attempt in range(4):
        unsold = (row_of < 0) & (prices > 0)
        if ended not in (Termination.OPTIMAL, Termination.GAP_REACHED) or not unsold.get().any():
            return ended
        if attempt == 3:
            run.device.buffers["column_of"].fill(UNASSIGNED)
            row_of.fill(UNASSIGNED)
            unsold = prices > 0
        prices[unsold] = 0
        run.device.list_rows()
        ended = _bid_and_augment(run, warm=True)
    return ended


def _answer(run: AuctionRun, problem: Auction, ended: Termination, floating: bool) -> Solution:
    """Bring prices and profits back in units of benefit, whole ones where integers were solved exactly."""
    device, n_cols, scale = run.device, problem.shape[1], run.unit.scale
    column_of, prices = device.buffers["column_of"].get().astype(np.int64), device.buffers["prices"].get()
    held = device.buffers["held"].get()
    profits = device.best_nets().get()
    if ended not in (Termination.INFEASIBLE, Termination.OPTIMAL, Termination.GAP_REACHED):
        weights = problem.points if isinstance(problem, PointAuction) else problem.weights
        run.hall_rows = complete(weights, column_of, problem.reject)
        ended = ended if run.hall_rows is None else Termination.INFEASIBLE
    if ended is Termination.OPTIMAL and not floating:
        whole = whole_prices(prices, int(scale)) if scale > 1 else prices
        prices, profits = whole, held // int(scale) - whole[column_of]
    else:  # half a step of the fixed point is lost in a benefit, so the profits are a step larger than they need be
        prices, profits = prices / scale, (profits + (1 if floating else 0)) / scale
    if problem.reject is not None:  # what row i has bid for column n_cols + i, which only it sees, it keeps
        profits = np.maximum(profits, problem.reject)
    if floating and ended in (Termination.OPTIMAL, Termination.GAP_REACHED):
        ended = _float_claim(run, ended, held / scale, prices, profits)
    arrays = {
        "assignment": np.where(column_of < n_cols, column_of, UNASSIGNED),
        "prices": prices[:n_cols],
        "profits": profits,
    }
    state = device.state()
    if run.hall_rows is not None:
        arrays["hall_rows"] = run.hall_rows
    if run.options.trace:
        arrays["bidders"] = device.buffers["bidders"][: state["rounds"]].get().astype(np.int64)
    if run.options.epsilon is not None:
        run.facts.setdefault("epsilon", float(run.options.epsilon))
    run.facts |= {"rounds": state["rounds"], "bids": state["bids"], "rows_reread": state["readings"]}
    method = "auction" if not run.facts["forests"] else "auction+paths"
    return Solution(ended, method, arrays, iterations=state["rounds"], facts=run.facts)


def _float_claim(run: AuctionRun, ended: Termination, held: Floats, prices: Floats, profits: Floats) -> Termination:
    """Three steps of the fixed point a row: rounding, or for the CPU to settle, or a gap that is stated."""
    steps = 3 / run.unit.scale
    if ended is Termination.GAP_REACHED:
        assert run.options.epsilon is not None
        run.facts["epsilon"] = float(run.options.epsilon) + steps
        return ended
    run.facts["epsilon"] = steps
    rounding = 2.0**-50 * float(sum(np.abs(part).sum() for part in (held, prices, profits)))
    on_points = int(run.device.struct["dimension"]) > 0
    entries = held.size * prices.size if on_points else run.device.buffers["values"].size
    return Termination.OPTIMAL if entries <= POLISHED or held.size * steps <= rounding else Termination.GAP_REACHED


def warm_up() -> None:
    """Compile and run every kernel for int32 and float64 benefits."""
    from kernels.auction import AuctionOptions

    for dtype in (np.int32, np.float64):
        benefit: Costs = np.array([[3, 1], [2, 2]], dtype)
        solve(Auction(benefit, maximize=True), AuctionOptions.model_validate({}), Deadline())
