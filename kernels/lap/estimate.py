"""What a dense assignment will need. Constants are fitted by benchmarks/estimates.py."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.card import Device, Estimate
from kernels.certificates import boxed
from kernels.lap import monge
from kernels.lap.spatial.which import suits
from kernels.pace import pace
from kernels.problems import Assignment, Rejecting
from kernels.problems.arrays import Costs
from kernels.problems.clouds import PointRejecting
from kernels.problems.points import PointAssignment
from kernels.problems.ranked import Ranked
from kernels.problems.selected import Selected
from kernels.texture import texture

if TYPE_CHECKING:
    from kernels.lap import LapOptions

MIB = 1 << 20
CALL_S, ONE_S, LINE_S = 7e-5, 2.5e-5, 4e-7
"""Of a call, of one problem in it, and of one line of its shorter side."""
EASY_S, HARD_S, MONGE_S = 7e-9, 2.8e-8, 1e-9
"""Of one entry: independent costs, structured ones (distances, ties all over), and those that sorting solves."""
STRUCTURED = 0.3
"""Rank of a sample below which costs count as structured; independent ones have 0.35 to 0.55."""
TINY = 160 * 160
LONGEST_WHOLE = 1280
"""Columns up to which the CPU copies a matrix of floats to maximise (cpu_by_rows.LONGEST)."""
PROOF_S, PROOF_FLOAT_S = 1.2e-4, 2.5e-4
FORMED_S, FORMED_FLOAT_S = 1.6e-9, 3.5e-9
"""Of a certificate, and of one entry of it: integers and floats."""
FIRST_S = 2e-9
"""Of one entry of a first answer."""
GREEDY_CALL_S, GREEDY_ONE_S, GREEDY_LINE_S, GREEDY_S = 5e-5, 1e-4, 3e-6, 4e-9
"""The same on a GPU worker, whose first answer is made on the host: of a call, of one more problem, line and entry."""
LOOK_S, SEARCH_S, MANY_PATHS = 3e-9, 2e-10, 600
"""Where lines may be left: of an entry, and of one in a line's search; so many searches see a whole matrix at most."""
PROVED_ONE_S, PROVED_S = 3e-5, 1.5e-8
"""Of the certificate of one problem among those, and of one entry."""
MATCHED_S, PATH_S = 1.5e-8, 2e-9
"""Of an entry in a largest matching, and in one of so many shortest paths."""
PART_S, PROVED_PART_S = 4e-5, 1e-4
"""Of a part of all assignments: to queue it, and to bound it."""
COPIED_BYTES_S = 2e10
"""From page-locked memory to a GPU."""
BLOCK_S, COORDINATE_S, DEVICE_COORDINATE_S = 4e-9, 1e-9, 1e-12
"""Of a cost of two points: by itself and by coordinate, on the host and on a GPU."""
PAIR_S, PAIR_COORDINATE_S = 1e-9, 4e-10
"""The same where lines may be left."""
SPATIAL_S, SPATIAL_ROWS, SPATIAL_BYTES = 3e-5, 16384, 2400
"""Where columns are generated: of a coordinate of so many rows, growing with the root of their number; and of a row."""
BOXED_S = 2.5e-6
"""Of a certificate by boxes: of a coordinate of so many rows, growing with the fourth root of their number."""
MOST_ON_GPU = 65536
"""Rows up to which a GPU writes the costs of points out (gpu_forest.MOST_ROWS)."""
FEW_ON_GPU = 256
"""Lines of the shorter side from which more than MOST_ON_GPU are solved by columns (gpu.FEW)."""
LARGE_ROUNDS, SWEPT_BYTES_S, LARGE_ROW_S, LARGE_ROW_BYTES = 12, 1e12, 5e-5, 8192
"""There: rounds, what a sweep reads on the slowest device in use, and seconds and bytes of the host for a row."""
UNSEEN_S = 0.005
"""Seconds on a GPU up to which a problem is taken for a hard one: the look that tells takes half a millisecond."""
PROVED_ROW_BYTES = 3072
"""Of a row in a certificate of points on a GPU: minima of its pieces, and columns that are near its minimum."""
CERTIFIED_BYTES = 128 * MIB
"""Blocks of costs and what is worked out exactly, in the certificate's threads."""
FIXED = 24 * MIB
"""Blocks of the certificate, compiled code and the like."""


def estimate(problem: Assignment | Rejecting | Selected | Ranked, options: "LapOptions", device: Device) -> Estimate:
    """Bytes by array; seconds by how much alike the lines of a sample are."""
    if isinstance(problem, Rejecting):
        return _of_rejecting(problem, device)
    if isinstance(problem, Selected):
        return _of_selected(problem)
    if isinstance(problem, Ranked):
        return _of_ranked(problem)
    if isinstance(problem, PointAssignment):
        return _of_points(problem, options, device)
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    n_rows, n_cols = weights.shape[-2:]
    batch = weights.size // (n_rows * n_cols)
    short, long = sorted((n_rows, n_cols))
    lines = batch * (short + long)
    certify_s = pace() * (batch * ONE_S + _proof_s(weights))
    if device == "gpu" and long > MOST_ON_GPU and short >= FEW_ON_GPU:
        return _of_large(weights, certify_s)
    if device == "gpu":
        seconds = _gpu_s(weights, batch) + weights.nbytes / COPIED_BYTES_S
        transposed = weights.nbytes if n_rows > n_cols else 0
        held = weights.nbytes + transposed + 768 * lines + (1 << 16)
        greedy_s = GREEDY_CALL_S + (batch - 1) * GREEDY_ONE_S + batch * short * GREEDY_LINE_S + weights.size * GREEDY_S
        first_s = pace() * greedy_s
        return Estimate(_host_bytes(weights, lines), held, seconds, certify_s, first_s)
    rest_s = CALL_S + batch * (ONE_S + short * LINE_S)
    return Estimate(
        _host_bytes(weights, lines) + 832 * batch * short,
        0,
        pace() * (rest_s + weights.size * _entry_s(weights, problem.maximize)),
        certify_s,
        pace() * (CALL_S + batch * ONE_S + weights.size * FIRST_S),
    )


def _of_large(weights: Costs, certify_s: float) -> Estimate:
    """As a GPU prices rows and the host has the lists: sweeps of soft minima and of rounds, and bids by row."""
    short, long = sorted(weights.shape)
    turned = weights.nbytes if weights.shape[0] > weights.shape[1] else 0
    sweeps = 2 * math.log2(4 * long) + LARGE_ROUNDS
    seconds = weights.nbytes / COPIED_BYTES_S + sweeps * weights.nbytes / SWEPT_BYTES_S + LARGE_ROW_S * short
    first_s = pace() * (GREEDY_CALL_S + short * GREEDY_LINE_S + weights.size * GREEDY_S)
    held = weights.nbytes + LARGE_ROW_BYTES * short + 64 * long + FIXED
    return Estimate(held, weights.nbytes + turned + 1024 * (short + long) + (1 << 16), seconds, certify_s, first_s)


def _of_rejecting(problem: Rejecting, device: Device) -> Estimate:
    """Problems of any sizes: a look at each entry, and for larger ones a search for each line of the shorter side."""
    rows, columns = problem.sizes.T.astype(float)
    short, long = np.minimum(rows, columns), np.maximum(rows, columns)
    count, (entries, *of_both) = len(problem.sizes), problem.starts[-1].tolist()
    lines = float(sum(of_both))
    searched = float((short * np.minimum(short, MANY_PATHS) * long).sum())
    seconds = CALL_S + entries * LOOK_S + searched * SEARCH_S
    certify_s = PROOF_FLOAT_S + count * PROVED_ONE_S + entries * PROVED_S
    first_s = CALL_S + entries * LOOK_S
    held = int(problem.costs.nbytes + 40 * entries + 512 * lines + 4096 * count + FIXED)
    if isinstance(problem, PointRejecting):
        points = problem.points
        held += 2 * (points.x.nbytes + points.y.nbytes) + int(2 * 8 * entries)  # the solver's costs, and the proof's
        read_s = entries * (PAIR_S + points.x.shape[1] * PAIR_COORDINATE_S)
        seconds, certify_s, first_s = (taken + read_s for taken in (seconds, certify_s, first_s))
    if device == "gpu":
        extended = 3 * 8 * count * float(np.prod(problem.sizes.max(axis=0, initial=1) + short.max(initial=1)))
        batch_s = 1e-3 + 1e-6 * float(long.max(initial=0.0)) + extended / COPIED_BYTES_S
        return Estimate(held + int(extended), int(extended) + (1 << 24), seconds + batch_s, pace() * certify_s, first_s)
    return Estimate(held, 0, pace() * seconds, pace() * certify_s, pace() * first_s)


def _of_selected(problem: Selected) -> Estimate:
    """Exactly so many pairs: a search for each. Least largest cost: matchings at a score of thresholds."""
    n, m = problem.weights.shape
    size = float(problem.weights.size)
    if problem.objective == "bottleneck":
        seconds = CALL_S + 20 * size * MATCHED_S
    else:
        seconds = CALL_S + size * LOOK_S + problem.pairs * min(problem.pairs, MANY_PATHS) * m * PATH_S
    held = int(4 * problem.weights.nbytes + 32 * size + 512 * (n + m) + FIXED)
    certify_s, first_s = pace() * (PROOF_FLOAT_S + size * PROVED_S), pace() * (CALL_S + size * MATCHED_S)
    return Estimate(held, 0, pace() * seconds, certify_s, first_s)


def _of_ranked(problem: Ranked) -> Estimate:
    """A list of assignments: each has as many parts as lines, and a few of them are searched."""
    short, long = sorted(problem.weights.shape)
    parts = float(problem.count * short)
    seconds = CALL_S + long**3 * PATH_S + parts * (PART_S + long * PATH_S) + 4 * problem.count * long * long * PATH_S
    certify_s = PROOF_FLOAT_S + parts * (PROVED_PART_S + short * long * PROVED_S)
    held = int(4 * problem.weights.nbytes + 4 * problem.count * 8 * long * 8 + parts * (long + 400) + FIXED)
    return Estimate(held, 0, pace() * seconds, pace() * certify_s, pace() * (CALL_S + long**3 * PATH_S))


def _of_points(problem: PointAssignment, options: "LapOptions", device: Device) -> Estimate:
    """As of the matrix that is written out, whose lines are taken for those of distances; and for writing it."""
    points, (n_rows, n_cols) = problem.points, problem.shape
    if suits(problem, options) and (device == "cpu" or n_rows > MOST_ON_GPU):
        return _of_columns(problem, device)
    step = (n_rows + n_cols + 1,)
    line = np.abs(np.add.accumulate(np.ones(step)) - n_rows)
    matrix = as_strided(line, problem.shape, (line.itemsize, line.itemsize), writeable=False)
    whole = estimate(Assignment(matrix, problem.maximize), options, device)
    entries, d = n_rows * n_cols, int(points.x.shape[1])
    read_s = pace() * entries * (BLOCK_S + d * COORDINATE_S)
    built_s = read_s if device == "cpu" else entries * d * DEVICE_COORDINATE_S
    held = points.x.nbytes + points.y.nbytes + CERTIFIED_BYTES
    return replace(
        whole,
        host_bytes=whole.host_bytes + held,
        seconds=whole.seconds + built_s,
        certify_seconds=_points_proof_s(problem, read_s, device),
        first_seconds=whole.first_seconds + built_s,
    )


def _of_columns(problem: PointAssignment, device: Device) -> Estimate:
    """As columns are generated: no array has n^2 entries, and clusters make rounds more and longer."""
    (n, d), held = problem.points.x.shape, problem.points.x.nbytes + problem.points.y.nbytes
    read_s = pace() * float(n) * n * (BLOCK_S + d * COORDINATE_S)
    if device == "gpu":
        read_s = float(n) * n * d * DEVICE_COORDINATE_S
    seconds = pace() * n * d * SPATIAL_S * (n / SPATIAL_ROWS) ** 0.5
    return Estimate(
        held + CERTIFIED_BYTES + FIXED + SPATIAL_BYTES * n,
        3 * held + PROVED_ROW_BYTES * n if device == "gpu" else 0,
        seconds,
        _points_proof_s(problem, read_s, device),
        pace() * n * d * SPATIAL_S / 10,
    )


def _points_proof_s(problem: PointAssignment, read_s: float, device: Device) -> float:
    """Seconds of a certificate of points; reading all pairs takes `read_s`, which boxes of a CPU need not."""
    once_s = pace() * PROOF_FLOAT_S * 4
    if device == "gpu" or not boxed.suits(problem):
        return once_s + 2 * read_s
    rows, d = max(problem.shape), problem.points.x.shape[1]
    longer = float(max(1.0, rows / SPATIAL_ROWS) ** 0.25)
    return float(once_s + pace() * rows * d * BOXED_S * longer)


def _entry_s(weights: Costs, maximize: bool) -> float:
    """Seconds by entry on the CPU."""
    n_rows, n_cols = weights.shape[-2:]
    if n_rows * n_cols <= TINY:  # whatever its texture, calls and lines are most of its time; a look would be more
        return HARD_S
    if texture(weights).rank > STRUCTURED:
        return EASY_S if n_rows == n_cols else EASY_S / 2
    one = weights if weights.ndim == 2 else weights[0]
    if monge.corner(one, -1 if maximize else 1) is not None:
        return MONGE_S
    return HARD_S if n_rows == n_cols else HARD_S / 4


def _gpu_s(weights: Costs, batch: int) -> float:
    """Seconds on the GPU: of one problem by the rounds along its longer side, of a batch by its largest as well."""
    longer = float(max(weights.shape[-2:]))
    if batch > 1:
        return float(2e-4 + 1e-7 * longer**1.8 + 2e-10 * weights.size)
    hard_s = 1.2e-3 + 3e-6 * longer + 4e-10 * weights.size
    if hard_s > UNSEEN_S and texture(weights).rank > STRUCTURED:
        return 5e-4 + 7e-7 * longer
    return hard_s


def _proof_s(weights: Costs) -> float:
    """Seconds of a certificate, but for what each problem of a batch adds."""
    if weights.dtype.kind == "i":
        return PROOF_S + weights.size * FORMED_S
    return PROOF_FLOAT_S + weights.size * FORMED_FLOAT_S


def _host_bytes(weights: Costs, lines: int) -> int:
    """The input, in eight bytes an entry where it has fewer, turned where it is tall, with the masks of its checks.

    Narrow integers and short rows are copied: in four bytes an entry, and negated.
    """
    n_rows, n_cols = weights.shape[-2:]
    copied = weights.dtype.itemsize < 8 or weights.dtype.kind == "i" or max(n_rows, n_cols) <= LONGEST_WHOLE
    widened = 8 * weights.size if copied else 0
    turned = 8 * weights.size if n_rows > n_cols else 0
    return int(weights.nbytes + widened + turned + 2 * weights.size + 128 * lines + FIXED)
