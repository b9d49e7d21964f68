"""Entropic unbalanced optimal transport on the CPU: one read of the kernel per iteration, on every core."""

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kernels.deadline import Deadline
from kernels.papers import SYSTEMS
from kernels.problems.arrays import Array, Csr
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.marginal_transport import MarginalTransport
from kernels.problems.sparse_transport import SparseTransport
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.build import Transport
from kernels.uot.cpu import exact as cpu_exact
from kernels.uot.cpu.answer import answer
from kernels.uot.cpu.sweeps import LOG2E, make_sweeps
from kernels.uot.marginals import Marginals, SweepState
from kernels.uot.outer import REMEMBERED, SMALLEST_GAP, Outcome, Rules, iterate
from kernels.uot.several import told
from kernels.uot.sides import solver as sides
from kernels.uot.sparse import solver as sparse
from kernels.uot.stages import Run, Steps, batched, follow, wants_float64

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

CHEAP = 1 << 20  # entries below which float64 costs nothing that one would notice
MARGIN = 0.5  # of the tolerance, aimed at: the certificate adds what rounding may hide


def solve(problem: Transport, options: "TransportOptions", deadline: Deadline) -> Solution:
    """Solve entropic unbalanced optimal transport by accelerated Sinkhorn sweeps, to a certified relative gap.

    Problem:
        min over P >= 0 of <C, P> + reg Omega(P) + reg_m[0] KL(P 1 | a) + reg_m[1] KL(P' 1 | b), see
        `UnbalancedTransport`. Not solved: other divergences than KL on the marginals; reg = 0.
    Args:
        problem: costs (m, n) of any sign, +inf forbids an entry, or point clouds; the problems of a batch, or several
            of their own sizes and strengths, are solved one by one.
        options: `TransportOptions`. method "fused" stores the kernel (float32 or float64), "log" and "points" work it
            out from costs or points in every sweep; "map-uot" is the published iteration. "auto" is "points" for
            point clouds, else "fused".
        deadline: polled after every sweep.
    Returns:
        f (m,), g (n,) float64: dual potentials in the units of the cost, and plan (m, n) = R exp((f + g - C) / reg) in
        float64, or float32 for such costs where that loses nothing; exact sides are met up to rounding (outcome.py).
        For output "potentials" the plan's sums row_marginal (m,), column_marginal (n,) instead; with two exact sides
        the plan is P(f, g) + rest_a rest_b', or has the values entry_values at entry_rows, entry_columns where entries
        are forbidden. With top_k also top_columns (m, k) int32 and top_values (m, k), largest first. All with a leading
        batch axis for a batch. Rows without mass have f extended (product) or -inf (uniform), unreachable ones +inf.
        hall_rows, in place of a plan: rows with more mass than all columns that they may use.
    Guarantee:
        "gap_reached": primal value of the plan minus dual value of f, g is at most tolerance times the larger of both,
        by an estimate that the certificate has to confirm; "converged": no better one can be found in this arithmetic.
        Deterministic for any number of threads.
    Numerics:
        Stored kernels and exponentials are float32, or float64 where the cost is float64 and small or C / reg is large;
        vectors and sums over many rows are float64. A stored kernel holds the plan at recent potentials, so no reg is
        too small for it; entries below 2^-126 of the largest of their row are dropped.
    Complexity:
        A sweep reads m n kernel entries once (points: m n d operations) and writes vectors. Bytes beyond the input:
        the kernel (fused), the plan, about 30 vectors. Sweeps: see outer.py.
    Errors:
        none; impossible problems end as "infeasible".
    Differs:
        1. from Algorithm 1 of MAP-UOT: K is read once and never written, and the iteration solves the relaxed problem.
        2. from the scaling algorithm: translation, Anderson acceleration and epsilon scaling around it.
    Source:
        Chizat, Peyre, Schmitzer, Vialard, Scaling algorithms for unbalanced optimal transport problems (2018),
        algorithm 1; Sejourne, Vialard, Peyre, Faster unbalanced optimal transport: translation invariant Sinkhorn
        (2022), section 3; Sun, Hu, Jiang, MAP-UOT (2024), algorithm 1; Schmitzer, Stabilized sparse scaling algorithms
        (2019), sections 3.1-3.3.
    """
    if isinstance(problem, ExactTransport):
        return cpu_exact.solve(problem, options, deadline)
    if isinstance(problem, MarginalTransport):
        return sides.solve(problem, options, deadline)
    if isinstance(problem, SparseTransport):
        return sparse.solve(problem, options, deadline)
    return told(problem, options, deadline, _solve)


def _solve(problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline) -> Solution:
    if problem.batch is not None:
        return batched(problem, options, deadline, _solve)
    return follow(problem, options, deadline, Steps(SYSTEMS["map-uot", "cpu"], _find, answer))


def warm_up() -> None:
    """Compile every loop for every pair of input and working type (cached on disk) by solving tiny problems."""
    from kernels.uot import CARD, TransportOptions

    rng = np.random.default_rng(0)
    for given, storage in itertools.product(("float32", "float64"), repeat=2):
        points = rng.random((8, 2)).astype(given)
        inputs: list[dict[str, Array]] = [{"cost": points @ points.T}, {"x": points, "y": points}]
        for one, method in ((inputs[0], "auto"), (inputs[0], "log"), (inputs[0], "map-uot"), (inputs[1], "auto")):
            chosen = {"method": method, "storage": storage, "iterations": 20, "top_k": 1}
            options = TransportOptions.model_validate(chosen)
            solve(CARD.build(one, options), options, Deadline())
    options = TransportOptions.model_validate({"method": "exact"})
    solve(CARD.build({"cost": rng.random((5, 6))}, options), options, Deadline())
    n = 6
    cost = Csr(np.arange(0, 2 * n + 1, 2), np.tile(np.arange(n), 2), rng.random(2 * n), (n, n))
    options = TransportOptions.model_validate({"reg_m": "inf", "iterations": 2})  # so that paths end it
    solve(CARD.build({"cost": cost}, options), options, Deadline())


def _method(problem: UnbalancedTransport, options: "TransportOptions") -> str:
    if problem.cost is None:
        return "points"
    return "log" if options.method == "log" else "fused"


def _working_type(problem: UnbalancedTransport, options: "TransportOptions", spread: float) -> str:
    """float64 or float32; storage in 16 bits is a matter of GPUs."""
    return "float64" if wants_float64(problem, options, spread, _cheap(problem)) else "float32"


def _find(
    problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline, spread: float, stages: list[float]
) -> tuple[str, Run]:
    """Iterate in the working type, then in float64 where its noise may hide a gap above the tolerance."""
    method, dtype = _method(problem, options), _working_type(problem, options, spread)
    marginals, memory = Marginals(np, problem, spread), REMEMBERED if options.acceleration else 0
    rules = Rules(MARGIN * options.tolerance, deadline, memory=memory, translate=options.acceleration)
    g = np.zeros_like(problem.b) if problem.g0 is None else problem.g0
    coarse = dtype == "float32"
    noisy = replace(rules, noise=(lambda state: _noise(state, problem, spread)) if coarse else _rounding)
    sweeps, doubted = make_sweeps(problem, method, dtype), problem.g0 is not None
    outcome = iterate(marginals, sweeps, g, noisy, stages=stages, limit=options.iterations, doubted=doubted)
    if outcome.termination is Termination.INFEASIBLE:
        return method, _run(outcome, outcome.termination, dtype)
    sure = not coarse or _with_noise(outcome.state, problem, spread) <= options.tolerance
    left = options.iterations - outcome.iterations
    if not sure and left > 0 and outcome.termination in (Termination.GAP_REACHED, Termination.CONVERGED):
        exact = make_sweeps(problem, "points" if method == "points" else "log", "float64")
        done = outcome.iterations
        finely = replace(rules, noise=_rounding, before=done)
        more = iterate(marginals, exact, outcome.state.g, finely, stages=stages[-1:], limit=left)
        rejected = outcome.rejected + more.rejected
        outcome = Outcome(more.state, more.termination, done + more.iterations, rejected, outcome.stages)
        sure, dtype = True, "float32, then float64"
    return method, _run(outcome, _claim(outcome, sure, options.tolerance), dtype)


def _run(outcome: Outcome, termination: Termination, dtype: str) -> Run:
    s = outcome.state
    swept, rejected, stages = outcome.iterations, outcome.rejected, outcome.stages
    return Run(s.f, s.g, s.relative_gap, s.dual, termination, swept, rejected, dtype, stages)


def _claim(outcome: Outcome, sure: bool, tolerance: float) -> Termination:
    """What may be claimed: the aim was below the tolerance, and a gap that noise may hide is not reached."""
    if sure and outcome.state.relative_gap <= tolerance and outcome.termination is not Termination.INFEASIBLE:
        return Termination.GAP_REACHED
    return Termination.ITERATION_LIMIT if outcome.termination is Termination.GAP_REACHED else outcome.termination


def _cheap(problem: UnbalancedTransport) -> bool:
    return problem.a.size * problem.b.size < CHEAP


def _rounding(state: SweepState) -> float:
    """The relative gap behind which float64 sees nothing."""
    return SMALLEST_GAP


def _with_noise(state: SweepState, problem: UnbalancedTransport, spread: float) -> float:
    """The largest relative gap behind the one that float32 sweeps saw."""
    drift, moved = _noises(state, problem, spread)
    return float((state.relative_gap**0.5 + drift**0.5) ** 2 + moved)


def _noise(state: SweepState, problem: UnbalancedTransport, spread: float) -> float:
    """The relative gap at which float32 sweeps have nothing left to find."""
    drift, moved = _noises(state, problem, spread)
    return (drift + moved) / 4


def _noises(state: SweepState, problem: UnbalancedTransport, spread: float) -> tuple[float, float]:
    """Relative gaps that float32 may hide.

    Rounding of exponents, delta, adds a divergence of about mass delta^2 / 2 to one of gap / r: their roots add up.
    Between two balanced sides the rounding error of the sums itself must be moved, at the price of the spread.
    """
    strengths = [r if np.isfinite(r) else spread for r in problem.reg_m]
    reach = max(spread, float(np.abs(state.f).max()), float(np.abs(state.g).max()))
    delta = 2e-6 + 2.0**-23 * reach * LOG2E / problem.reg
    mass, scale = float(state.column_sums.sum()), max(abs(state.dual), abs(state.dual + state.gap))
    if not 0 < scale < np.inf:
        return 0.0, 0.0
    moved = delta * spread if np.isinf(problem.reg_m).all() else 0.0
    return mass * sum(strengths) * delta * delta / scale, mass * moved / scale
