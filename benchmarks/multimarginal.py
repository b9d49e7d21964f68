"""Transport among three clouds beside a peer in the same run: python -m benchmarks.multimarginal [--device gpu].

The peer is MMSinkhorn of OTT-JAX in float64 where it can be imported. Else it is the same iteration on the whole tensor
in NumPy, or in CuPy with --device gpu, named "dense". Solver and peer take turns on the same clouds. Both stop by
themselves: the solver at a relative gap of 1e-6, the peer where all marginals together are off by 2e-8 (L1), which
comes to about the same gap. The potentials of both go through the same certificate, whose gaps are columns; a row whose
certificate does not hold has no time. POT has no multi-marginal solver but for measures on a line (`ot.lp.dmmot`).
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.rows import Rows, alternate, on_gpu
from kernels import SOLVERS, Array, Deadline, Device, Solution, Termination, solve_and_prove

CARD = SOLVERS["multimarginal"]
SIZES = ((50, 0.05), (100, 0.05), (150, 0.05), (100, 0.02))
"""Points of each cloud, and reg over the mean cost."""
LARGER = ((200, 0.05), (400, 0.05), (400, 0.02))
ALONE = ((400, 0.05), (800, 0.05))
"""Whose tensor would take a peer half a gigabyte and more."""
ALONE_ON_GPU = ((2000, 0.05), (4000, 0.05))
EXACT = (10, 16, 24)
APART = 2e-8
MOST = 20_000

Peer = Callable[[], tuple[Array, ...]]


def clouds(n: int) -> dict[str, Array]:
    """Three clouds of n points in the plane, apart from one another, and uneven masses."""
    rng = np.random.default_rng(n)
    points = {name: rng.random((n, 2)) + at / 2 for at, name in enumerate("xyz")}
    return {**points, **{name: rng.random(n) + 0.1 for name in "abc"}}


def entropic(n: int, share: float, device: Device, repeats: int, with_peer: bool) -> dict[str, Any]:
    """One row."""
    inputs = clouds(n)
    mean = CARD.build(inputs, CARD.options()).reg / 0.05
    options = CARD.options.model_validate({"reg": share * mean})
    problem = CARD.build(inputs, options)
    found: dict[str, Any] = {}

    def ours() -> None:
        found["ours"] = solve_and_prove(CARD, problem, options, Deadline(120), device)

    turns: dict[str, Callable[[], None]] = {"ours_ms": ours}
    told: dict[str, Any] = {}
    if with_peer:
        name, peer = peer_of(problem, device)

        def theirs() -> None:
            found["peer"] = peer()

        theirs()
        turns["peer_ms"], told["peer"] = theirs, name
    ours()
    times = alternate(turns, repeats)
    solution, certificate = found["ours"]
    assert certificate.holds
    if with_peer:
        arrays = dict(zip("fgh", found["peer"], strict=True))
        other = CARD.certify(problem, Solution(Termination.CONVERGED, told["peer"], arrays))
        assert other.holds
        told["peer_gap_rel"] = other.gap_rel
    return {
        "method": solution.method, "n": n, "reg_over_mean": share, "device": device, **times,
        "solve_ms": solution.timings_ms["solve"], "certify_ms": solution.timings_ms["certify"],
        "iterations": solution.iterations, "gap_rel": certificate.gap_rel, **told,
    }  # fmt: skip


def peer_of(problem: Any, device: Device) -> tuple[str, Peer]:
    """The peer's name, and what solves the problem by it: f, g and h."""
    if find_spec("ott") is not None:
        return _ott(problem, device)
    if device == "gpu":
        import cupy

        return "dense, CuPy", lambda: tuple(cupy.asnumpy(one) for one in _dense(cupy, problem))
    return "dense, NumPy", lambda: _dense(np, problem)


def _dense(xp: Any, problem: Any) -> tuple[Any, ...]:
    """Sinkhorn's iteration on the whole tensor, without logarithms: for a reg that is not small."""
    a, b, c = (xp.asarray(side) for side in problem.masses)
    plan = xp.exp(xp.asarray(-problem.costs(slice(None)) / problem.reg))
    u, v, w = (xp.ones_like(side) for side in (a, b, c))
    for run in range(MOST):
        of_third = plan @ (c * w)
        rows, columns = of_third @ (b * v), (a * u) @ of_third
        if run and run % 10 == 0 and float((a * abs(u * rows - 1)).sum() + (b * abs(v * columns - 1)).sum()) < APART:
            break
        u = 1 / rows
        v = 1 / ((a * u) @ of_third)
        w = 1 / xp.tensordot((a * u)[:, None] * (b * v), plan, 2)
    return tuple(problem.reg * xp.log(one) for one in (u, v, w))


def _ott(problem: Any, device: Device) -> tuple[str, Peer]:
    """MMSinkhorn of OTT-JAX on a tensor that it makes of the clouds, compiled before it is timed."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need the device's memory too
    import jax
    import ott
    from ott.experimental.mmsinkhorn import MMSinkhorn

    jax.config.update("jax_enable_x64", True)
    there = jax.devices(device)[0]
    points = [jax.device_put(clouds(problem.sizes[0])[name], there) for name in "xyz"]
    masses = [jax.device_put(side, there) for side in problem.masses]
    solver = MMSinkhorn(threshold=APART, max_iterations=MOST)
    run = jax.jit(lambda x_s, a_s: solver(x_s, a_s, epsilon=problem.reg).potentials)

    def solve() -> tuple[Array, ...]:
        found = run(points, masses)
        # its plan has no masses in front: exp((f + g + h - C) / reg)
        return tuple(
            np.asarray(one) - problem.reg * np.log(side) for one, side in zip(found, problem.masses, strict=True)
        )

    return f"OTT-JAX {ott.__version__} MMSinkhorn", solve


def exact(n: int, repeats: int) -> dict[str, Any]:
    """One row of a linear programme; there is no peer but the same HiGHS."""
    inputs = clouds(n)
    options = CARD.options.model_validate({"reg": 0})
    problem = CARD.build(inputs, options)
    found: dict[str, Any] = {}

    def ours() -> None:
        found["ours"] = solve_and_prove(CARD, problem, options, Deadline(), "cpu")

    times = alternate({"ours_ms": ours}, repeats)
    solution, certificate = found["ours"]
    assert certificate.holds
    assert solution.termination == "optimal"
    told = {"gap_rel": certificate.gap_rel, "certify_ms": solution.timings_ms["certify"]}
    return {"method": solution.method, "n": n, "reg_over_mean": 0, "device": "cpu", **times, **told}


def measured(device: Device, repeats: int) -> Iterator[dict[str, Any]]:
    """All rows of a device."""
    for n, share in SIZES + (LARGER if device == "gpu" else ()):
        yield entropic(n, share, device, repeats, with_peer=True)
    for n, share in ALONE_ON_GPU if device == "gpu" else ALONE:
        yield entropic(n, share, device, repeats, with_peer=False)
    if device == "cpu":
        yield from (exact(n, repeats) for n in EXACT)


def main() -> None:
    """A row for each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    CARD.warm_up(args.device)
    rows = Rows(on_gpu("multimarginal") if args.device == "gpu" else "multimarginal")
    begun = time.perf_counter()
    for row in measured(args.device, args.repeats):
        rows.add(**row)
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
