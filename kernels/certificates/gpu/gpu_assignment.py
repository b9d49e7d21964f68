"""The certificate of dense assignments on the device (`lap`): one problem, or a batch.

It says what the CPU's certificate says, or nothing: None for what it does not know (infeasible problems, prices in
several words), for answers that are none, and where an optimum is claimed that its bound does not close. The CPU's
certificate, which is slower and has more means, then has the word.
"""

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from kernels.certificates.gpu.checksum import Pending
from kernels.certificates.gpu.gpu_arrays import compare, on_device, sent
from kernels.certificates.gpu.gpu_lines import Lines, Weighed, weigh
from kernels.certificates.gpu.outward import difference_up, total
from kernels.problems import Array, Assignment, Csr
from kernels.solution import Certificate, Number, Solution, Termination

FEWEST = 1 << 16
"""Entries below which the CPU's certificate is there before a device has been told what to do."""
NEXT_TO_NONE_S, ENTRIES_A_SECOND = 0.02, 1e9
"""Of launches and copies back, and of a sweep: a tenth of what the slowest device reads."""
OF_PAIRS, OF_DATA = 2.0**50, 1e-9
"""An optimum in floats leaves a gap of at most 1 / OF_PAIRS of its pairs' sizes, and OF_DATA of the objective."""
MOST_GAP = 2.0**970
"""OF_PAIRS times this is beyond float64."""
WORST = (
    Termination.OPTIMAL,
    Termination.CONVERGED,
    Termination.ITERATION_LIMIT,
    Termination.TIME_LIMIT,
    Termination.STOPPED,
    Termination.INFEASIBLE,
)
"""From the best word to the worst; a batch has its worst problem's."""


def inputs(problem: Assignment) -> list[Array] | None:
    """`arrays`, where the problem is large enough; None where the CPU's certificate is to be used."""
    return arrays(problem) if suits(problem) and arrays(problem)[0].size >= FEWEST else None


def seconds(problem: Assignment) -> float:
    """About what a certificate takes at most, on any device that is in use."""
    return NEXT_TO_NONE_S + arrays(problem)[0].size / ENTRIES_A_SECOND


def suits(problem: Assignment) -> bool:
    """Whether this certificate is for the problem."""
    return not isinstance(problem.weights, Csr) and bool(problem.weights.flags.c_contiguous)


def arrays(problem: Assignment) -> list[Array]:
    """The arrays whose checksums `certify` asks for."""
    assert not isinstance(problem.weights, Csr)
    return [problem.weights]


def certify(problem: Assignment, solution: Solution, checksums: Pending) -> Certificate | None:
    """Recompute objective, bound and violation from the weights on the device.

    Raises:
        InputChanged: the weights there are not those that arrived.
    """
    weights, ended = problem.weights, _ended(problem, solution)
    if isinstance(weights, Csr) or ended is None or not _shaped(weights, solution.arrays):
        return None
    found = weigh(_lines(problem, weights, solution), _both_ways(problem, weights))
    compare([weights], [found.checksum], checksums)
    return _certificate(problem, solution, found, ended)


def _ended(problem: Assignment, solution: Solution) -> list[Termination] | None:
    """The word of each problem; None where one is to be shown infeasible, or is no word of this solver."""
    weights = problem.weights
    assert not isinstance(weights, Csr)
    codes, words = solution.evidence.get("ended"), tuple(Termination)
    count = len(weights) if weights.ndim == 3 else 1
    if codes is None:
        ended = [solution.termination] * count
    elif isinstance(codes, np.ndarray) and codes.dtype.kind in "iu" and codes.shape == (count,):
        if not ((codes >= 0) & (codes < len(words))).all():
            return None
        ended = [words[code] for code in codes.tolist()]
    else:
        return None
    return None if Termination.INFEASIBLE in ended or not set(ended) <= set(WORST) else ended


def _shaped(weights: Array, arrays: dict[str, Array]) -> bool:
    """Whether the answer has the form that the sweep takes, and no finer words."""
    kind = "i" if weights.dtype.kind == "i" else "f"
    rows, cols = weights.shape[:-1], (*weights.shape[:-2], weights.shape[-1])
    wanted = {"assignment": (rows, "i"), "u": (rows, kind), "v": (cols, kind)}
    for name, (shape, dtype) in wanted.items():
        array = arrays.get(name)
        if array is None or array.shape != shape or array.dtype.kind != dtype:
            return False
    return not any(arrays.get(name) is not None and arrays[name].any() for name in ("u_finer", "v_finer"))


def _lines(problem: Assignment, weights: Array, solution: Solution) -> Lines:
    wide = np.int64 if weights.dtype.kind == "i" else np.float64
    batch = len(weights) if weights.ndim == 3 else 1

    types = {"u": wide, "v": wide, "assignment": np.int64}
    u, v, assignment = sent(
        *(solution.arrays[name].astype(dtype, copy=False).reshape(batch, -1) for name, dtype in types.items())
    )
    return Lines(
        cost=on_device(weights, solution).reshape(batch, *weights.shape[-2:]),
        sign=-1 if problem.maximize else 1,
        u=u,
        v=v,
        assignment=assignment,
        sizes=None if problem.sizes is None else cupy.asarray(problem.sizes.astype(np.int32), order="C"),
    )


def _both_ways(problem: Assignment, weights: Array) -> tuple[bool, bool]:
    """Whether some problems have their rows paired all, and whether some their columns."""
    sizes = np.array([weights.shape[-2:]]) if problem.sizes is None else problem.sizes
    by_columns = sizes[:, 0] > sizes[:, 1]
    return not bool(by_columns.all()), bool(by_columns.any())


@dataclass(frozen=True)
class _Judged:
    """Each problem's numbers in the sense of the problem; None for what it has not."""

    objectives: list[Number | None]
    bounds: list[Number]
    gaps: list[Number | None]


def _certificate(
    problem: Assignment, solution: Solution, found: Weighed, ended: list[Termination]
) -> Certificate | None:
    facts = found.facts
    if facts["fault"].any() or facts["without"].any():
        return None
    exact = problem.weights.dtype.kind == "i"  # type: ignore[union-attr]
    judged = _judge(problem, found, ended, exact)
    if judged is None:
        return None
    batch = problem.weights.ndim == 3  # type: ignore[union-attr]
    sign = -1 if problem.maximize else 1
    solved = [k for k, value in enumerate(judged.objectives) if value is not None]
    objective = _total([judged.objectives[k] for k in solved], exact, sign) if solved else None
    bounds = [judged.bounds[k] for k in solved] if batch else judged.bounds
    bound = _total(bounds, exact, -sign) if bounds else None
    if (bound is None and bounds) or (objective is None and solved):
        return None  # a sum left float64
    gap: Number | None = None
    if objective is not None and bound is not None:
        gap = abs(objective - bound) if exact else total([sign * objective, -sign * bound], 1)
    scale = max(abs(objective or 0), abs(bound or 0))
    worst = max(ended, key=WORST.index)
    missing = int(facts["missing"].sum())
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=None if gap is None else float(gap / scale) if scale else 0.0,
        max_violation=facts["violation"].max().item(),
        holds=True,
        proved=_claim(set(ended), missing, exact),
        facts=_facts(judged, ended, missing, batch),
        termination=None if worst is solution.termination else worst,
        loose=Termination.CONVERGED in ended,
    )


def _judge(problem: Assignment, found: Weighed, ended: list[Termination], exact: bool) -> _Judged | None:
    """None where a claimed optimum is not closed, or a number is none."""
    missing = found.facts["missing"].astype(bool)
    claimed = np.array([word is Termination.OPTIMAL for word in ended])
    if (claimed & missing).any():
        return None
    if exact:
        differences = [a - b for a, b in zip(found.objective, found.bound, strict=True)]
        closed = np.array([gap == 0 for gap in differences])
    else:
        objective, bound = found.facts["objective"], found.facts["bound"]
        if not (np.isfinite(bound).all() and np.isfinite(objective).all()):
            return None
        gap = difference_up(objective, bound)
        differences, closed = gap.tolist(), closes(gap, objective, found.facts["sizes"])
    if (claimed & ~closed).any():
        return None
    sign = -1 if problem.maximize else 1
    left = missing.tolist()
    return _Judged(
        [None if out else sign * value + 0 for value, out in zip(found.objective, left, strict=True)],
        [sign * value + 0 for value in found.bound],
        [None if out else value for value, out in zip(differences, left, strict=True)],
    )


def closes(gap: Array, objective: Array, sizes: Array) -> Array:
    """Whether gaps are what rounding alone may leave, by the sizes of the pairs and by the objectives."""
    small = np.clip(gap, 0.0, MOST_GAP) * OF_PAIRS <= sizes  # times a power of two: exact
    share = np.nextafter(OF_DATA * np.abs(objective), 0.0)
    return np.asarray((gap == 0) | ((gap <= MOST_GAP) & small & (gap <= share)))


def _total(values: list[Any], exact: bool, side: int) -> Number | None:
    return sum(values) if exact else total(values, side)


def _claim(words: set[Termination], missing: int, exact: bool) -> str:
    arithmetic = "in exact integers" if exact else "with exact minima, and sums rounded outward"
    claim = "optimal by duals" if words == {Termination.OPTIMAL} else "a valid pairing and a dual bound"
    claim = f"a valid pairing with {missing} pairs missing, and a dual bound" if missing else claim
    return f"{claim}, recomputed on the device {arithmetic}"


def _facts(judged: _Judged, ended: list[Termination], missing: int, batch: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"unassigned": missing, "certified_on": "gpu"}
    if batch:
        facts["problems"] = {
            "terminations": [word.value for word in ended],
            "objectives": judged.objectives,
            "bounds": judged.bounds,
            "gaps": judged.gaps,
        }
    return facts
