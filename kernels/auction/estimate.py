"""What an auction will need. Constants are fitted by benchmarks/estimates.py."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.card import Device, Estimate
from kernels.pace import pace
from kernels.problems import Csr
from kernels.problems.points import METRICS, PointAuction
from kernels.problems.sparse import Auction
from kernels.texture import Texture, texture

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

MIB = 1 << 20
CALL_S, SCALED_S = 7e-5, 4e-5
"""Of a call, and what rounds of bidding add to it."""
READ_S, GRAPH_S = 5e-9, 1.2e-8
"""Of one entry that is read into the lists: of a matrix, of a graph."""
PROOF_S, PROOF_FLOAT_S = 1.2e-4, 3e-4
FORMED_S, FORMED_FLOAT_S = 1e-9, 4e-9
"""Of a certificate, and of one entry of it: integers and floats. An edge of a graph counts twice."""
NEAREST_S, SAMPLE = 1.2e-8, 256
"""Of one pair, where the certificate looks for the nearest columns of so many rows."""
FIRST_S, ROW_S = 1e-8, 2e-6
"""Of one entry and one row of a first answer; entries beside forbidden ones and edges count three times."""
STRUCTURED, ON_A_LINE = 0.3, 0.045
"""Rank of a sample below which benefits are those of places, and of places on a line."""
FEW = 0.35
"""Share of distinct values in a structured sample below which rows are of few kinds."""
TIED = 0.02
"""The same where benefits are independent: ties are all over."""
GREEDY_CALL_S, GREEDY_ROW_S, GREEDY_S, GREEDY_EDGE_S = 6e-4, 2.5e-6, 4e-9, 2.5e-8
"""Of a first answer beside a GPU: of a call, of one row, of one entry, of one edge of a graph."""
COPIED_BYTES_S = 1e10
"""From page-locked memory to a GPU."""
FIXED, LEAST_BYTES = 24 * MIB, 1 << 16


def estimate(problem: Auction, options: "AuctionOptions", device: Device) -> Estimate:
    """Bytes by array; seconds by entries, and by how much alike the rows of a sample are."""
    n_rows, n_cols = problem.shape
    entries = _entries(problem)
    certify_s = pace() * _proof_s(problem, entries)
    host = _host_bytes(problem, entries)
    seen = _texture(problem)
    wants_rounds = options.epsilon is not None or options.finish == "auction"
    if device == "gpu":
        given = int(problem.weights.nbytes)
        seconds = _gpu_s(problem, seen, wants_rounds) + given / COPIED_BYTES_S + 3e-11 * entries
        held = _device_bytes(problem, entries, wants_rounds, options.epsilon is not None)
        return Estimate(host, held, seconds, certify_s, pace() * _gpu_first_s(problem, seen, entries))
    sparse = _is_graph(problem)
    read_s = entries * (GRAPH_S if sparse else READ_S)
    first_s = 1.5e-4 + n_rows * ROW_S + entries * FIRST_S * (3 if sparse or seen.permitted < 1 else 1)
    seconds = CALL_S + read_s + _search_s(seen, n_rows, n_cols)
    if wants_rounds:
        seconds += SCALED_S + _rounds_s(seen, n_rows, n_cols, options)
    return Estimate(host, 0, pace() * seconds, certify_s, pace() * first_s)


def _entries(problem: Auction) -> int:
    n_rows, n_cols = problem.shape
    if isinstance(problem, PointAuction):
        return n_rows * (problem.points.neighbours or n_cols)
    return int(problem.weights.values.size if isinstance(problem.weights, Csr) else problem.weights.size)


def _is_graph(problem: Auction) -> bool:
    """Whether rows have few edges, given as such or by the nearest points."""
    if isinstance(problem, PointAuction):
        return problem.points.neighbours is not None
    return isinstance(problem.weights, Csr)


def _proof_s(problem: Auction, entries: int) -> float:
    """Seconds of a certificate."""
    n_rows, n_cols = problem.shape
    if isinstance(problem, PointAuction):
        sampled = min(n_rows, SAMPLE) * n_cols if problem.points.neighbours else 0
        return 2 * PROOF_FLOAT_S + entries * FORMED_FLOAT_S + sampled * NEAREST_S
    weights = problem.weights
    values, times = (weights.values, 2) if isinstance(weights, Csr) else (weights, 1)
    if values.dtype.kind == "i":
        return PROOF_S + times * entries * FORMED_S
    return PROOF_FLOAT_S + times * entries * FORMED_FLOAT_S


def _gpu_s(problem: Auction, seen: Texture, wants_rounds: bool) -> float:
    """Seconds of rounds and paths on the GPU, where both go by the number of rows."""
    n_rows, n_cols = problem.shape
    each_s = 1e-6 + (3e-6 if wants_rounds else 0.0)
    seconds = 1.2e-3 + (2e-3 if wants_rounds else 0.0) + (8 if seen.rank < STRUCTURED else 1) * each_s * n_rows
    if 0 < seen.rank < ON_A_LINE:
        seconds += 2.7e-6 * n_rows**2
    elif wants_rounds and seen.distinct < (FEW if seen.rank < STRUCTURED else TIED):
        seconds += 2e-2 if 0 < seen.rank < STRUCTURED else 1e-10 * n_rows**3
    if seen.permitted < 1:
        seconds += 1.2e-8 * n_rows * n_cols
    return seconds + (4e-3 + 4e-6 * n_rows if _has_neighbours(problem) else 0.0)


def _gpu_first_s(problem: Auction, seen: Texture, entries: int) -> float:
    """Seconds of a first answer there: it is made on the host."""
    if _is_graph(problem):
        entry_s = GREEDY_EDGE_S
    else:
        entry_s = GREEDY_S * (4 if seen.permitted < 1 else 1)
    return GREEDY_CALL_S + GREEDY_ROW_S * problem.shape[0] + entry_s * entries


def _device_bytes(problem: Auction, entries: int, wants_rounds: bool, epsilon: bool) -> int:
    """The input, short lists, for rounds the queue of bidders, and the blocks of a graph for the epsilon asked for."""
    n_rows, n_cols = problem.shape
    lines = 900 * n_rows + 60 * n_cols + (800 * n_rows if wants_rounds else 0)
    edges = 175 * entries if _has_neighbours(problem) else 0
    held = (
        problem.weights.nbytes + _written(problem, entries) + lines + edges + LEAST_BYTES + (17 * MIB if epsilon else 0)
    )
    return int(1.05 * held)


def _written(problem: Auction, entries: int) -> int:
    """Bytes of benefits of points that no kernel works out as it goes."""
    return 8 * entries if isinstance(problem, PointAuction) and problem.points.metric not in METRICS else 0


def _has_neighbours(problem: Auction) -> bool:
    return isinstance(problem, PointAuction) and problem.points.neighbours is not None


def _search_s(seen: Texture, n_rows: int, n_cols: int) -> float:
    """Seconds of the paths that end a solve, on the CPU."""
    if seen.rank == 0:
        return 1e-8 * n_rows * n_cols  # any assignment will do
    if seen.rank < ON_A_LINE:
        return 7e-9 * n_rows**3
    if seen.rank >= STRUCTURED:
        return 2.6e-8 * n_rows**2 if seen.distinct < TIED else 1e-7 * n_rows**1.5
    if seen.distinct < FEW:
        return 5e-10 * n_rows**3 + 3e-6 * n_rows
    return 2.8e-7 * n_rows**1.75 * (1.0 if n_rows == n_cols else 0.3)


def _rounds_s(seen: Texture, n_rows: int, n_cols: int, options: "AuctionOptions") -> float:
    """Seconds of rounds of bidding, on the CPU, epsilon after epsilon."""
    if options.epsilon is not None:
        return 1e-7 * n_rows**1.5
    if seen.rank == 0:
        return 3.8e-8 * n_rows**2.5
    if seen.rank < STRUCTURED and seen.distinct < FEW and seen.rank >= ON_A_LINE:
        return 1.5e-6 * n_rows**2
    if seen.rank >= STRUCTURED and seen.distinct < TIED:
        return 5.5e-9 * n_rows**2.5
    return 4e-7 * n_rows**1.5 * (1.0 if 3 * n_rows > 2 * n_cols else 0.1)


def _texture(problem: Auction) -> Texture:
    """Of the benefits; of a graph as if its edges were independent; of points as distances have it."""
    if _is_graph(problem):
        return Texture(1.0, 1.0, 1.0)
    return Texture(0.1, 1.0, 1.0) if isinstance(problem, PointAuction) else texture(np.asarray(problem.weights))


def _host_bytes(problem: Auction, entries: int) -> int:
    """The input, the same twice in eight bytes an entry, short lists, and what a certificate has in work."""
    n_rows, n_cols = problem.shape
    lists = 48 * 16 * n_rows
    return int(problem.weights.nbytes) + 18 * entries + lists + 400 * (n_rows + n_cols) + FIXED
