"""How far estimates are off: python -m benchmarks.estimates [--solver lap] [--device gpu] [--sizes 100,1000] [--keep].

Every instance of the tests, and their families at larger sizes. For each, what the card's estimate says over what was
measured: seconds of the solver (best of three), of the certificate, of a first answer (no time at all), and bytes. A
ratio of seconds should lie in [1/3, 3]; a ratio of bytes should not lie below 1. Each case on a CPU runs in a process
of its own, since bytes are what its resident memory grows by at most, and the inputs. On a GPU they are
the most that CuPy's pool has handed out at once, so that one process serves all cases of a solver. A small problem is
solved before, so that compiling counts nowhere.
"""

import argparse
import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import instances
from benchmarks.rows import Rows
from kernels import SOLVERS, Csr, Deadline, Device, Inputs, Solver
from tests.instances import Case, assignment, auction, barycenter, quadratic, transport

REPEATS = 3
LONG_S = 4.0
"""A run that takes longer is not repeated."""
LIMIT_S = 20.0
SIZES = {"lap": (300, 1000, 2000), "auction": (300, 1000), "uot": (300, 1000, 2000), "qap": (12, 15, 20, 30, 60)}


def lap(n: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    dense: dict[str, Callable[[], Any]] = {
        "r01": lambda: assignment.uniform_int(n, n, 0.1),
        "r1": lambda: assignment.uniform_int(n, n, 1),
        "r10": lambda: assignment.uniform_int(n, n, 10).astype(np.int64),
        "u": lambda: assignment.uniform_float(n, n),
        "u-float32": lambda: assignment.uniform_float(n, n).astype(np.float32),
        "spatial": lambda: assignment.spatial(n, n),
        "ties": lambda: assignment.uniform_int(n, n, 0.02),
        "constant": lambda: np.full((n, n), 7),
        "wide": lambda: assignment.uniform_float(n // 3, n),
        "tall": lambda: assignment.uniform_int(n, n // 3, 1),
        "wide-spatial": lambda: assignment.spatial(2 * n // 3, n),
        "forbidden": lambda: assignment.forbidden(n, n, 0.1),
        "wide-range": lambda: assignment.wide_range(n),
        "product": lambda: assignment.product(n),
        "no-room": lambda: assignment.no_room(n, n),
        "clustered": lambda: instances.lap("clustered", n),
        "gene50": lambda: instances.lap("gene50", n),
        "batch": lambda: assignment.batch(n // 10, n // 10, n // 10),
    }
    for label, make in dense.items():
        yield label, lambda make=make: {"cost": make()}, {}


def auctions(n: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    dense: dict[str, Callable[[], Any]] = {
        "dense-int": lambda: auction.dense(n, n, 1),
        "dense-float": lambda: auction.dense(n, n, 2, dtype=np.float64),
        "dense-ties": lambda: auction.dense(n, n, 4, high=4),
        "dense-forbidden": lambda: auction.forbidden(n, 6),
        "dense-rectangular": lambda: auction.dense(n // 3, n, 7),
        "dense-product": lambda: np.outer(np.arange(1, n + 1), np.arange(1, n + 1)),
        "dense-spatial": lambda: auction.spatial(n, 8),
        "sparse-int": lambda: auction.planted(n, n, 0.1, 10),
        "sparse-float": lambda: auction.planted(4 * n // 5, n, 0.15, 11, np.float64),
        "sparse-thin": lambda: auction.planted(n, n, 0.01, 12),
        "sparse-infeasible": lambda: auction.without_assignment(n, 13),
    }
    for label, make in dense.items():
        for kind, options in auction.EVERY.items():
            yield f"{label}-{kind}", lambda make=make: {"benefit": make()}, dict(options)
    yield "dense-int-epsilon", lambda: {"benefit": auction.dense(n, n, 1)}, {"epsilon": 1.0}
    yield "points", lambda: auction.clouds(n, n, 2, 16), {}
    yield "points-neighbours", lambda: auction.clouds(n, 2 * n, 2, 18), {"metric": "cityblock", "neighbours": 20}


def transports(n: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for case in transport.CASES:
        make = getattr(case.inputs, "func", None)
        sides = getattr(case.inputs, "args", ())
        if make is None or min(sides[make is transport.batch :][:2]) < 20:
            continue
        scaled = (8, n // 4, n // 4) if make is transport.batch else (n, n, *sides[2:])
        yield case.label, lambda make=make, scaled=scaled: make(*scaled), dict(case.options)


def quadratics(n: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    made: dict[str, Callable[[], Inputs]] = {
        "uniform": lambda: {"flow": quadratic.symmetric(n, 100, 1), "distance": quadratic.symmetric(n, 100, 2)},
        "grid": lambda: {"flow": quadratic.symmetric(n, 10, 1), "distance": quadratic.grid(1, n)},
        "asymmetric": lambda: {
            "flow": quadratic.asymmetric(n, -20, 50, 4),
            "distance": quadratic.asymmetric(n, -5, 30, 5),
        },
        "float": lambda: {"flow": quadratic.symmetric(n, 100, 1) / 7, "distance": quadratic.grid(1, n) / 3},
    }
    for label, make in made.items():
        yield f"{label}-rounds", make, dict(quadratic.ROUNDS)
        yield label, make, {}


def barycenters(n: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    yield "line", lambda: barycenter.histograms(5, n), {}
    yield "line-small-reg", lambda: barycenter.histograms(5, n), {"reg": 1e-3, "iterations": 100}
    yield "exact", lambda: barycenter.histograms(3, max(4, n // 10)), {"reg": 0}
    yield "free", lambda: barycenter.clouds(4, n), {}


FAMILIES = {"lap": lap, "auction": auctions, "uot": transports, "qap": quadratics, "barycenter": barycenters}
TESTS: list[Case] = assignment.CASES + auction.CASES + quadratic.CASES + transport.CASES + barycenter.CASES


def found(solver: str, sizes: tuple[int, ...]) -> Iterator[tuple[str, int, Callable[[], Inputs], dict[str, Any]]]:
    """Label, size (0: as in the tests), inputs and options of every case."""
    for case in TESTS:
        if case.solver == solver:
            yield case.label, 0, case.inputs, dict(case.options)
    for n in sizes:
        for label, make, options in FAMILIES[solver](n):
            yield label, n, make, options


def best_s(call: Callable[[], Any]) -> float:
    """Of three calls, or of one that takes long."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        if best > LONG_S:
            break
    return best


def rows_of(
    solver: str, numbers: list[int], sizes: tuple[int, ...], device: Device, limit_s: float
) -> Iterator[dict[str, Any]]:
    """The row of each case, measured in a process that dies with it, or on a GPU with the last."""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        together = stack.enter_context(ProcessPoolExecutor(1, mp_context=spawn)) if device == "gpu" else None
        for number in numbers:
            with nullcontext(together) if together else ProcessPoolExecutor(1, mp_context=spawn) as process:
                yield process.submit(measure, solver, number, sizes, device, limit_s).result()


def measure(solver: str, number: int, sizes: tuple[int, ...], device: Device, limit_s: float) -> dict[str, Any]:
    """One case in this process; runs in a fresh one."""
    card = SOLVERS[solver]
    label, n, make, options_given = list(found(solver, sizes))[number]
    card.warm_up(device)
    options = card.options(**options_given)
    inputs = make() if device == "cpu" else pinned(make())
    problem = card.build(inputs, options)
    card.certify(problem, card.solve(problem, options, Deadline(0), device))  # what this type of input loads
    grown = peak_bytes(card, inputs, options, device, limit_s)
    needs = card.estimate(problem, options, device)
    solution = card.solve(problem, options, Deadline(limit_s), device)
    took = {
        "solve": best_s(lambda: card.solve(problem, options, Deadline(limit_s), device)),
        "certify": best_s(lambda: card.certify(problem, solution)),
        "first": best_s(lambda: card.solve(problem, options, Deadline(0), device)),
    }
    said = {
        "solve": min(needs.seconds, limit_s),
        "certify": needs.certify_seconds,
        "first": needs.first_seconds,
    }
    row: dict[str, Any] = {"solver": solver, "family": label, "n": n, "termination": str(solution.termination)}
    for name in took:
        row |= {f"{name}_ms": 1e3 * took[name], f"{name}_ratio": said[name] / took[name]}
    byte_ratio = (needs.device_bytes if device == "gpu" else needs.host_bytes) / max(1, grown)
    return row | {"mib": grown / 2**20, "byte_ratio": byte_ratio}


def pinned(inputs: Inputs) -> Inputs:
    """The same in page-locked memory, where a GPU worker has them."""
    import cupyx

    def moved(array: Any) -> Any:
        copy = cupyx.empty_pinned(array.shape, array.dtype)
        copy[...] = array
        return copy

    return {
        name: dataclasses.replace(
            value, indptr=moved(value.indptr), indices=moved(value.indices), values=moved(value.values)
        )
        if isinstance(value, Csr)
        else moved(value)
        for name, value in inputs.items()
    }


def peak_bytes(card: Solver, inputs: Inputs, options: Any, device: Device, limit_s: float) -> int:
    """What building, solving and certifying add to this process at their peak, and the inputs."""
    if device == "gpu":
        return peak_on_gpu(lambda: card.solve(card.build(inputs, options), options, Deadline(limit_s), device))
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    problem = card.build(inputs, options)
    card.certify(problem, card.solve(problem, options, Deadline(limit_s), device))
    return resident("VmHWM") - before + sum(sizes_of(inputs))


def peak_on_gpu(call: Callable[[], object]) -> int:
    """The most that CuPy's pool has handed out at once: blocks that it only keeps can be had back."""
    from cupy.cuda import MemoryHook

    class Peak(MemoryHook):  # type: ignore[misc]
        name = "Peak"
        held = most = 0

        def malloc_postprocess(self, **block: Any) -> None:
            self.held += block["mem_size"]
            self.most = max(self.most, self.held)

        def free_postprocess(self, **block: Any) -> None:
            self.held -= block["mem_size"]

    peak = Peak()
    with peak:
        call()
    return peak.most


def resident(field: str) -> int:
    """Bytes of a line of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def sizes_of(inputs: Inputs) -> Iterator[int]:
    for value in inputs.values():
        yield (
            value.nbytes
            if not isinstance(value, Csr)
            else sum(part.nbytes for part in (value.indptr, value.indices, value.values))
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", choices=tuple(SOLVERS), action="append")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--sizes", type=lambda text: tuple(int(n) for n in text.split(",") if n))
    parser.add_argument("--limit-s", type=float, default=LIMIT_S)
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--keep", action="store_true", help="append the rows to benchmarks/results/estimates.jsonl")
    args = parser.parse_args()
    rows = Rows("estimates") if args.keep else None
    for solver in args.solver or SOLVERS:
        sizes = SIZES[solver] if args.sizes is None else args.sizes
        ratios: dict[str, list[float]] = {}
        numbers = [number for number, (label, _, _, _) in enumerate(found(solver, sizes)) if args.only in label]
        for row in rows_of(solver, numbers, sizes, args.device, args.limit_s):
            show(row)
            for name in ("solve", "certify", "first", "byte"):
                ratios.setdefault(name, []).append(row[f"{name}_ratio"])
            if rows is not None:
                rows.add(device=args.device, **row)
        summary(solver, ratios)


def show(row: dict[str, Any]) -> None:
    """One line: what was measured, and the ratio of what was said to it."""
    parts = [f"{row['solver']:8}{row['family']:28}{row['n'] or '':>5} {row['termination']:15}"]
    for name in ("solve", "certify", "first"):
        flag = " " if 1 / 3 <= row[f"{name}_ratio"] <= 3 else "!"
        parts.append(f"{name} {row[f'{name}_ms']:9.2f} ms x{row[f'{name}_ratio']:7.2f}{flag}")
    parts.append(f"{row['mib']:8.1f} MiB x{row['byte_ratio']:6.2f}{' ' if row['byte_ratio'] >= 1 else '!'}")
    print("  ".join(parts), flush=True)


def summary(solver: str, ratios: dict[str, list[float]]) -> None:
    """How many ratios are as they should be, and the worst."""
    for name, values in ratios.items():
        least = 1.0 if name == "byte" else 1 / 3
        good = sum(least <= value <= (np.inf if name == "byte" else 3) for value in values)
        print(f"{solver} {name}: {good} of {len(values)} as they should be, {min(values):.2f} to {max(values):.2f}")


if __name__ == "__main__":
    main()
