"""What a transport problem will need. Constants are fitted by benchmarks/estimates.py."""

import functools
import math
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kernels.card import Device, Estimate
from kernels.pace import cores, pace
from kernels.problems import UnbalancedTransport
from kernels.problems.arrays import Integers, Reals
from kernels.problems.derived import derived
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.marginal_transport import MarginalTransport
from kernels.problems.several import SeveralTransports
from kernels.problems.sparse_transport import SparseTransport
from kernels.uot.batch.suited import at_once, shows
from kernels.uot.build import Entropic, Transport
from kernels.uot.sparse.estimate import of_sparse

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

MIB = 1 << 20
CALL_S, SWEEP_S, PUBLISHED_S = 1.6e-4, 9e-5, 2.5e-5
"""Of a call and of one sweep, however small; the published iteration looks at no gap."""
STORED_S, WORKED_S, POINTS_S = 3.5e-10, 7e-10, 2e-10
"""Of one entry in one sweep on one core: a stored kernel, one worked out from costs, and one more coordinate."""
ONCE_S = 2.5e-9
"""Of one entry: building the kernel, and writing the plan."""
LARGE = 1 << 20
"""Entries from which every core sweeps."""
PROOF_S, FORMED_S, COORDINATE_S = 1.3e-3, 2e-8, 1e-9
"""Of a certificate, of one entry of it, and of one coordinate in that."""
REPAIRED_S, STEEPER_S, STEEPEST_S = 2.3e-8, 1.8e-10, 6.5e-8
"""Of one entry between two balanced sides, whose plan is repaired: and more by the spread of the costs over reg."""
STEEP = 150
"""Spread over reg from which the certificate's exponentials of a plan that was not returned take twice as long."""
GPU_SWEEP_S, GPU_ENTRY_S, GPU_POINT_S = 1e-4, 1e-12, 3e-13
"""Of one sweep on a GPU, its look at the gap included, of one entry of that, and of one more coordinate."""
GPU_CALL_S, GPU_ONE_S, GPU_PLAN_S, GPU_LINES_S = 4.5e-3, 3.5e-3, 4e-9, 2.5e-8
"""Of a call on a GPU, of one more problem in it, and of one entry of a plan: also where lines are left out of it."""
STACK_CALL_S, STACK_ONE_S, PROCESSORS = 3e-3, 3e-5, 132
"""Of a call whose problems are all answered at once, of one more problem in it, and how many are swept side by side."""
STACK_BYTES = 24
"""Of an entry there: its cost, that in float32, and its place in the plan that is added up."""
FEW, GPU_FEW_S = 1 << 14, 6e-3
"""Entries below which every sweep on a GPU is sent from the host, and what one takes."""
COPIED_BYTES_S = 1e10
"""To a GPU from page-locked memory."""
PIVOTS, PIVOT_S, SIMPLEX_READ_S, TURNED_S, SIMPLEX_STARTED_S = 1.4, 2e-6, 4e-9, 5e-10, 1e-9
"""Of the simplex: pivots of a line; of one pivot, of a cost that it reads and of a line of the tree; of its start."""
FLOW_PROVED_S, LINE_PROVED_S = 4e-8, 5e-6
"""Of its certificate: of an entry and of a line."""
BLOCKS, LEAST_BYTES = 64 * MIB, 1 << 16
"""Of the certificate, and of what stays in work beside the kernel and the plan."""
SIDE = 64
"""Rows and columns of the sample that tells the spread of the costs."""


def estimate(problem: Transport, options: "TransportOptions", device: Device) -> Estimate:
    """Bytes by array; seconds by entries, and by sweeps, which follow from reg beside the spread of the costs.

    Of several problems, one after the other: one is worked on at a time, and all answers are kept.
    """
    if isinstance(problem, ExactTransport):
        found = _of_exact(problem)
    elif isinstance(problem, MarginalTransport):
        found = _of_marginals(problem, options, device)
    elif isinstance(problem, SparseTransport):
        sweeps = _sweeps(problem.spread / problem.reg, min(problem.reg_m) / problem.reg, options)
        found = of_sparse(problem, sweeps, device)
    elif device == "gpu" and in_one_go(problem, options):
        found = _of_stack(problem, options)
    elif isinstance(problem, SeveralTransports):
        found = _of_several(problem, options, device)
    else:
        found = _of_one(problem, options, device)
    return replace(found, certify_seconds=0.0) if options.certificate == "none" else found


def _of_exact(problem: ExactTransport) -> Estimate:
    """Of the simplex: pivots beside the number of lines, each of which reads a row and turns a part of the tree."""
    m, n = problem.shape
    lines, entries = m + n, m * n
    first_s = CALL_S + SIMPLEX_STARTED_S * (entries + lines * n)
    pivots = PIVOTS * lines * max(1.0, math.log2(lines) - 6)
    seconds = first_s + pivots * (PIVOT_S + SIMPLEX_READ_S * max(n, math.sqrt(entries)) + TURNED_S * lines)
    certify_s = PROOF_S + entries * FLOW_PROVED_S + lines * LINE_PROVED_S
    held = problem.cost.nbytes + entries * (8 + 1 + 8 + 4 * 8) + 64 * 8 * lines
    return Estimate(held + BLOCKS, 0, pace() * seconds, pace() * certify_s, pace() * first_s)


def _of_marginals(problem: MarginalTransport, options: "TransportOptions", device: Device) -> Estimate:
    """As without entropy, or as between two exact sides, whose plan is repaired too, in float64."""
    if not problem.reg:
        return _of_exact(ExactTransport(problem.cost, problem.a, problem.b))
    exact = replace(problem.entropic, reg_m=(math.inf, math.inf))
    return _of_one(exact, options.model_copy(update={"storage": "float64", "method": "log"}), device)


def _of_several(problem: SeveralTransports, options: "TransportOptions", device: Device) -> Estimate:
    """From one problem of each shape."""
    shapes = Counter(part.shape for part in problem.parts)
    samples = {part.shape: part for part in reversed(problem.parts)}
    each = [(count, _of_one(samples[shape], options, device)) for shape, count in shapes.items()]
    answers = sum(8 * m * n * count for (m, n), count in shapes.items()) if options.output == "plan" else 0
    given = sum(_given(part) for part in problem.parts)
    return Estimate(
        answers + given + max(one.host_bytes for _, one in each),
        max(one.device_bytes for _, one in each) * (len(problem.parts) if device == "gpu" else 1),
        sum(count * one.seconds for count, one in each),
        sum(count * one.certify_seconds for count, one in each),
        sum(count * one.first_seconds for count, one in each),
    )


def in_one_go(problem: Entropic, options: "TransportOptions") -> bool:
    """Whether a GPU is likely to solve and answer all problems of a batch or a list together, and none by itself."""
    if not at_once(problem, options):
        return False
    first = _first(problem)
    return not _forbids(first) and shows(first, spread_of(first), options.tolerance)


def _of_stack(problem: Entropic, options: "TransportOptions") -> Estimate:
    """A block each, of plain sweeps; as many side by side as the GPU has processors, and no time for each answer."""
    m, n = problem.shape
    first, count = _first(problem), problem.batch or 1
    entries = count * m * n
    given = sum(map(_given, problem.parts)) if isinstance(problem, SeveralTransports) else _given(problem)
    once_s = STACK_CALL_S + count * STACK_ONE_S + given / COPIED_BYTES_S
    sweeps = expected_sweeps(first, options.model_copy(update={"acceleration": False}))
    sweep_s = max(count, PROCESSORS) * m * n * GPU_ENTRY_S
    vectors = 64 * 8 * count * (m + n)
    return Estimate(
        2 * given + vectors + BLOCKS,
        given + entries * STACK_BYTES + vectors + LEAST_BYTES,
        once_s + sweeps * sweep_s,
        pace() * count * (PROOF_S + m * n * _proof_s(first, options)),
        once_s + sweep_s,
    )


def _first(problem: Entropic) -> UnbalancedTransport:
    """One of the problems, or the batch, whose first is looked at."""
    return problem.parts[0] if isinstance(problem, SeveralTransports) else problem


def _of_one(problem: UnbalancedTransport, options: "TransportOptions", device: Device) -> Estimate:
    m, n = problem.shape
    batch = problem.batch or 1
    entries = m * n
    certify_s = pace() * batch * (PROOF_S + entries * _proof_s(problem, options))
    sweeps = expected_sweeps(problem, options)
    if device == "gpu":
        return _on_gpu(problem, options, sweeps, certify_s)
    width = 4 if options.storage == "float32" else 8
    times = entries / (cores() if entries >= LARGE else 1)
    published = options.method == "map-uot" and options.rule == "published"
    sweep_s = (PUBLISHED_S if published else SWEEP_S) + times * _entry_s(problem, options)
    once_s = CALL_S + times * _once_s(problem, options)
    return Estimate(
        _bytes(problem, options, width)[0],
        0,
        pace() * batch * (once_s + sweeps * sweep_s),
        certify_s,
        pace() * batch * (once_s + sweep_s),
    )


def _on_gpu(problem: UnbalancedTransport, options: "TransportOptions", sweeps: float, certify_s: float) -> Estimate:
    """All problems of a batch at once; copies there and back count as much as the sweeps."""
    m, n = problem.shape
    batch = problem.batch or 1
    entries = batch * m * n
    once_s = GPU_CALL_S + (batch - 1) * GPU_ONE_S + _given(problem) / COPIED_BYTES_S
    if options.output == "plan":
        once_s += entries * (GPU_LINES_S if _without(problem) else GPU_PLAN_S)
    entry_s = GPU_ENTRY_S if problem.x is None else GPU_POINT_S * (1 + problem.x.shape[1])
    sweep_s = GPU_SWEEP_S + entries * entry_s
    fine = options.method != "map-uot" and options.storage != "float32"
    if fine and min(m, n) > 1 and m * n < FEW:
        sweep_s = GPU_FEW_S  # from the host, in float64
    host, held = _bytes(problem, options, 8)[0], _device_bytes(problem, options)
    return Estimate(host, held, once_s + sweeps * sweep_s, certify_s, once_s)


def _device_bytes(problem: UnbalancedTransport, options: "TransportOptions") -> int:
    """The input, and for each entry what the last sweeps, in float64, and the answer hold of it."""
    m, n = problem.shape
    entries = (problem.batch or 1) * m * n
    if problem.x is not None:
        each = 24 if options.output == "plan" else 0
    elif problem.batch is not None:
        each = 4
    elif options.storage == "float32" or options.method == "map-uot":
        each = 12
    else:
        each = 37 if options.output == "plan" else 60
    return _given(problem) + entries * each + 64 * 8 * (problem.batch or 1) * (m + n) + LEAST_BYTES


def expected_sweeps(problem: UnbalancedTransport, options: "TransportOptions") -> float:
    """How often the kernel will be read, on either device.

    To a gap of 1e-6 these are some .9 (spread / reg)^.6 where marginals are held tightly, and fewer where they are not
    (the table of outer.py); further digits come at a constant number of sweeps each.
    """
    if min(problem.shape) == 1:
        return min(float(options.iterations), 3.0)
    return _sweeps(spread_of(problem) / problem.reg, min(problem.reg_m) / problem.reg, options)


def _sweeps(spread: float, tight: float, options: "TransportOptions") -> float:
    """By the spread of the costs and the weaker of both strengths, each over reg."""
    held = 1.0 if math.isinf(tight) else tight / (tight + 15)
    sweeps = 3 + 0.9 * max(1.0, spread) ** 0.6 * held
    digits = max(1.0, -math.log10(max(options.tolerance, 1e-14))) / 6
    sweeps *= 0.4 + 0.6 * digits
    if not options.acceleration or options.method == "map-uot":
        sweeps *= 4 * (1 + 0.1 * (held / (1 - held) if held < 1 else 10.0))
    return min(float(options.iterations), sweeps)


def _entry_s(problem: UnbalancedTransport, options: "TransportOptions") -> float:
    """Of one sweep."""
    if problem.x is not None:
        return POINTS_S * (1 + problem.x.shape[1])
    return {"log": WORKED_S, "map-uot": 2 * STORED_S}.get(options.method, STORED_S)


def _once_s(problem: UnbalancedTransport, options: "TransportOptions") -> float:
    """Of all that is not a sweep: also sums in place of a plan, a plan's repair, and taking out what has no mass."""
    extra = 2.0 * (options.output != "plan") + 2.5 * sum(map(math.isinf, problem.reg_m))
    extra += 1.5 * (not (problem.a.all() and problem.b.all())) + 3.0 * _forbids(problem)
    return ONCE_S * (1 + extra)


def _without(problem: UnbalancedTransport) -> bool:
    """Whether lines without mass or forbidden entries are taken out before the sweeps."""
    return not (problem.a.all() and problem.b.all()) or _forbids(problem)


def _forbids(problem: UnbalancedTransport) -> bool:
    return problem.cost is not None and bool(np.isinf(_sample(problem.cost)).any())


def _proof_s(problem: UnbalancedTransport, options: "TransportOptions") -> float:
    """Of one entry of a certificate."""
    steepness = spread_of(problem) / problem.reg
    if np.isinf(problem.reg_m).all():
        return min(REPAIRED_S + steepness * STEEPER_S, STEEPEST_S)
    if problem.x is not None:
        worked_out = steepness > STEEP and options.output != "plan"  # the plan too
        return (2 if worked_out else 1) * FORMED_S + problem.x.shape[1] * COORDINATE_S
    return (2 if _forbids(problem) else 1) * FORMED_S


def _sample(array: Reals) -> Reals:
    """Some rows and columns of a matrix, or of the first of a batch."""
    matrix = array if array.ndim == 2 else array[0]
    return np.asarray(matrix[np.ix_(*(_spaced(size) for size in matrix.shape))], np.float64)


@functools.lru_cache(256)
def _spaced(size: int) -> Integers:
    return np.linspace(0, size - 1, min(size, SIDE)).astype(np.int64)


def spread_of(problem: UnbalancedTransport) -> float:
    """Of the permitted costs, from a sample of rows and columns, which a worker need not read again."""

    def look() -> float:
        found = _sampled_spread(problem)
        return found if found < math.inf else sys.float_info.max  # it goes with the job as JSON

    return derived(look, sys.float_info.max, problem)


def _sampled_spread(problem: UnbalancedTransport) -> float:
    if problem.cost is not None:
        values = _sample(problem.cost)
        values = values[np.isfinite(values)]
        return float(np.ptp(values)) if values.size else 0.0
    assert problem.x is not None
    assert problem.y is not None
    x, y = (np.asarray(points[_spaced(len(points))], np.float64) for points in (problem.x, problem.y))
    products = x @ y.T
    if problem.metric == "inner":
        return float(np.ptp(products))
    squares = np.maximum((x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * products, 0)
    return float(np.ptp(squares if problem.metric == "sqeuclidean" else np.sqrt(squares)))


def _given(problem: UnbalancedTransport) -> int:
    """Bytes of the input."""
    arrays = (problem.a, problem.b, problem.cost, problem.x, problem.y, problem.f0, problem.g0)
    return sum(array.nbytes for array in arrays if array is not None)


def _bytes(problem: UnbalancedTransport, options: "TransportOptions", width: int) -> tuple[int, int]:
    """(host, device): the input, a kernel of `width` bytes an entry, the plan, vectors; and blocks on the host."""
    m, n = problem.shape
    batch = problem.batch or 1
    entries = batch * m * n
    given = _given(problem)
    stored = 0 if options.method in ("log", "points") or problem.cost is None else entries * width
    plan = entries * 8 if options.output == "plan" else 0
    reduced = entries * 8 if problem.cost is not None and _without(problem) else 0  # the lines that have mass, copied
    held = given + stored + plan + reduced + 64 * 8 * batch * (m + n)
    return held + BLOCKS, held
