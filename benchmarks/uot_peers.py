"""OTT-JAX and GeomLoss beside us on one transport problem, where installed, on the same device.

Both get the same float32 matrix and masses and minimise the same objective with the product reference:

- OTT-JAX scales exp(-C / epsilon), an entropy relative to all ones, so the product goes into the cost: epsilon = reg,
  C - reg log(a b'), tau = reg_m / (reg_m + reg). Its plan is then a b' exp((f + g - C) / reg), as ours.
- GeomLoss takes the matrix itself (`geomloss.ot.solve`): reg, unbalanced = reg_m, no debiasing. That is its sample
  loss with p = 2, blur = sqrt(reg), reach = sqrt(reg_m) on points scaled by sqrt(2): its cost is half the square.

A plan is read from the peer's own formula and compared with float64; no row has a time for a plan that is wrong.
"""

import functools
import importlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

from benchmarks.instances import Array
from benchmarks.rows import Rows
from kernels import SOLVERS, Solution, Termination
from kernels.problems import UnbalancedTransport

GAP = 1e-6
PLAN_ERROR = 1e-3  # of a converged run; ours at a gap of 1e-6 is some 2e-4
STEPS = (10, 60)  # an iteration is the difference of two runs, over that of their lengths


class Peer(Protocol):
    """A program that solves one problem, given when it is made."""

    name: str
    about: str
    converged: int  # iterations after which the plan is compared, at reg .05 and reg_m 1

    def steps(self, count: int) -> Any:
        """Exactly `count` iterations from its own start, finished when this returns."""

    def efforts(self, most: int) -> Sequence[float]:
        """What to ask of it in turn for ever smaller gaps, for runs of some `most` iterations."""

    def solve(self, effort: float, most: int) -> Any:
        """One run from its own start with that effort, finished when this returns."""

    def read(self, output: Any) -> Solution:
        """Plan and potentials of an output, on the host."""


def _answer(name: str, plan: Any, f: Any, g: Any, iterations: int) -> Solution:
    arrays = {"plan": plan, "f": f, "g": g}
    arrays = {key: np.asarray(value, np.float64) for key, value in arrays.items()}
    return Solution(Termination.ITERATION_LIMIT, name, arrays, iterations=iterations)


class OttJax:
    """Sinkhorn of OTT-JAX, compiled; `more` names its own accelerations."""

    converged = 400

    def __init__(self, problem: UnbalancedTransport, device: str, name: str, **more: Any) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need the device's memory too
        import jax
        from ott.geometry.geometry import Geometry
        from ott.problems.linear.linear_problem import LinearProblem
        from ott.solvers.linear.acceleration import AndersonAcceleration
        from ott.solvers.linear.sinkhorn import Sinkhorn

        if memory := more.pop("anderson", None):
            more["anderson"] = AndersonAcceleration(memory=memory)
        weights = np.log(problem.a)[:, None] + np.log(problem.b)
        cost: Any = np.asarray(problem.cost, np.float64) - problem.reg * weights
        tau_a, tau_b = (strength / (strength + problem.reg) for strength in problem.reg_m)
        there = jax.devices(device)[0]
        given = (jax.device_put(np.asarray(v, np.float32), there) for v in (cost, problem.a, problem.b))
        cost, *masses = given
        geometry = Geometry(cost, epsilon=problem.reg)
        self.problem = LinearProblem(geometry, *masses, tau_a=tau_a, tau_b=tau_b)
        self.name = f"OTT-JAX {version('ott-jax')}, {name}"
        self.about = f"compiled beforehand on {there}, float32; {{}}"

        def run(given: Any, threshold: float, least: int, most: int) -> Any:
            return Sinkhorn(threshold=threshold, min_iterations=least, max_iterations=most, **more)(given)

        jax.config.update("jax_default_matmul_precision", "highest")  # float32, not 19 bits, on a GPU too
        self._run = jax.jit(run, static_argnums=(2, 3))
        self._wait = jax.block_until_ready

    def steps(self, count: int) -> Any:
        """Exactly `count` iterations."""
        return self._wait(self._run(self.problem, 0.0, count, count))

    def efforts(self, most: int) -> Sequence[float]:
        """Its own thresholds, a norm of the gradient."""
        return [10 ** (-k / 3) for k in range(3, 22)]

    def solve(self, effort: float, most: int) -> Any:
        """To that effort."""
        return self._wait(self._run(self.problem, effort, 0, most))

    def read(self, output: Any) -> Solution:
        """Plan and potentials."""
        return _answer(self.name, output.matrix, output.f, output.g, int(output.n_iters))


class GeomLoss:
    """GeomLoss' solver for a given matrix; its iterations go over falling values of reg, so that it nears slowly."""

    converged = 2000

    def __init__(self, problem: UnbalancedTransport, device: str) -> None:
        import torch
        from geomloss import ot

        self.device = "cuda" if device == "gpu" else "cpu"
        given = (torch.tensor(v, dtype=torch.float32, device=self.device) for v in (problem.cost, problem.a, problem.b))
        self.cost, self.a, self.b = given
        self.problem, self._torch, self._solve = problem, torch, ot.solve
        self.name = f"GeomLoss {version('geomloss')}"
        self.about = f"torch {torch.__version__} on {self.device}, float32; {{}}"

    def steps(self, count: int) -> Any:
        """Exactly `count` iterations."""
        problem = self.problem
        made = self._solve(self.cost, reg=problem.reg, a=self.a, b=self.b, unbalanced=problem.reg_m[0], max_iter=count)
        if self.device == "cuda":
            self._torch.cuda.synchronize()
        return made, count

    def efforts(self, most: int) -> Sequence[float]:
        """Numbers of iterations, as it has no stopping rule; the time of a run is what ends them."""
        counts = 10 * 1.25 ** np.arange(40)
        return [float(count) for count in counts.astype(int)]

    def solve(self, effort: float, most: int) -> Any:
        """To that effort."""
        return self.steps(int(effort))

    def read(self, output: Any) -> Solution:
        """Plan and potentials."""
        made, count = output
        plan, f, g = (value.cpu().numpy() for value in (made.plan, made.potential_a, made.potential_b))
        return _answer(self.name, plan, f, g, count)


@dataclass(frozen=True)
class _Kind:
    modules: tuple[str, ...]
    make: Callable[[UnbalancedTransport, str], Peer]


_KINDS = (
    _Kind(("jax", "ott"), lambda problem, device: OttJax(problem, device, "kernel", lse_mode=False)),
    _Kind(("jax", "ott"), lambda problem, device: OttJax(problem, device, "log-sum-exp")),
    _Kind(
        ("jax", "ott"),
        lambda problem, device: OttJax(problem, device, "log-sum-exp, recentred", recenter_potentials=True),
    ),
    _Kind(("jax", "ott"), lambda problem, device: OttJax(problem, device, "log-sum-exp, Anderson 5", anderson=5)),
    _Kind(("torch", "geomloss"), GeomLoss),
)


def peers(problem: UnbalancedTransport, device: str) -> Iterator[Peer]:
    """Every peer that is installed for the device, "cpu" or "gpu"; says which are not. Arrays must be on the host."""
    for kind in _KINDS:
        try:
            for module in kind.modules:
                importlib.import_module(module)
            peer = kind.make(problem, device)
        except (ImportError, RuntimeError, AssertionError) as missing:  # torch asserts that it has CUDA
            print(f"left out: {missing}", flush=True)
            continue
        yield peer


def _timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """The last output and the median of the milliseconds."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        output = work()
        taken.append((time.perf_counter() - start) * 1e3)
    return output, float(np.median(taken))


def _iteration_ms(peer: Peer, repeats: int) -> float:
    few, many = STEPS
    for count in STEPS:
        peer.steps(count)  # compiles
    apart = [_timed(lambda: peer.steps(many), 1)[1] - _timed(lambda: peer.steps(few), 1)[1] for _ in range(repeats)]
    return max(0.0, float(np.median(apart)) / (many - few))


def iterations(
    rows: Rows, problem: UnbalancedTransport, error: Callable[[Array], float], ours: dict[str, float], device: str
) -> None:
    """Milliseconds of a peer's iteration (both half steps), and of ours in `ours` over it."""
    for peer in peers(problem, device):
        ms = _iteration_ms(peer, 5)
        plan_error = error(peer.read(peer.steps(peer.converged)).arrays["plan"])
        right = plan_error <= PLAN_ERROR
        ratios = {f"times_{name}": ms / taken if right else None for name, taken in ours.items()}
        rows.add(
            kind="iteration",
            n=len(problem.a),
            method=peer.name,
            ms=ms if right else None,
            **ratios,
            plan_error=plan_error,
            compared=peer.about.format(
                f"both half steps, by difference of {STEPS[0]} and {STEPS[1]}, plan after {peer.converged}"
            ),
        )


def _cheapest(peer: Peer, problem: UnbalancedTransport, limit_s: float) -> tuple[Solution, float | None, float]:
    """Its run of the least effort that certifies, or the last one in time: solution, gap, milliseconds."""
    most = min(50_000, max(20, int(limit_s * 1e3 / max(_iteration_ms(peer, 3), 1e-3))))
    efforts = peer.efforts(most)
    peer.solve(efforts[0], most)  # compiles
    for effort in efforts:
        work = functools.partial(peer.solve, effort, most)
        output, ms = _timed(work, 1)
        solution = peer.read(output)
        gap = SOLVERS["uot"].certify(problem, solution).gap_rel
        if gap is not None and gap <= GAP:
            return solution, gap, _timed(work, 5)[1] if ms < 1e3 else ms
        if ms > 1e3 * limit_s or solution.iterations >= most:
            break
    return solution, gap, ms


def gaps(
    rows: Rows,
    problem: UnbalancedTransport,
    error: Callable[[Array], float],
    ours_ms: float,
    limit_s: float,
    device: str,
) -> None:
    """Milliseconds of a peer's cheapest run whose plan has a certified relative gap of 1e-6: finding it is free."""
    for peer in peers(problem, device):
        solution, gap, ms = _cheapest(peer, problem, limit_s)
        about = peer.about.format("one run from its own start, at the least effort that certifies")
        gap_row(rows, problem, peer.name, solution, gap, ms, ours_ms, error, compared=about)


def gap_row(
    rows: Rows,
    problem: UnbalancedTransport,
    method: str,
    solution: Solution,
    gap: float | None,
    ms: float,
    ours_ms: float,
    error: Callable[[Array], float],
    **more: Any,
) -> None:
    """A row of the time to GAP: no time, and no ratio, for what did not reach it."""
    reached = gap is not None and gap <= GAP
    rows.add(
        kind="gap",
        n=len(problem.a),
        reg=problem.reg,
        reg_m=problem.reg_m[0],
        method=method,
        iterations=solution.iterations,
        gap_rel=gap,
        reached=reached,
        ms=ms if reached else None,
        spent_ms=ms,
        times_allot=ms / ours_ms if reached else None,
        plan_error=error(solution.arrays["plan"]),
        **more,
    )
