"""A tracker's frames: python -m benchmarks.frames [--device auto] [--frames 1000] [--repeats 15].

Boxes of 10 to 60 detections a frame, 1 - intersection over union, a limit of 0.8. One batch as a call of the kernels
beside lapx frame by frame, in turn; then the same batch by `allot_client` from POST to answer, at a service of its own
with one worker; then frame by frame through `map`. Every answer is lapx's, or the run ends. Beside each time stands
the processor time of all threads and processes that took part, which others on the machine change less.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import lap
import numpy as np
import psutil
from allot_client import Client

from benchmarks.own import service
from benchmarks.rows import Rows, on_gpu
from benchmarks.warm import until_warm
from kernels import SOLVERS, Array, Deadline, Device

CARD = SOLVERS["lap"]
LIMIT = 0.8


def boxes(rng: np.random.Generator, count: int) -> Array:
    """Corners (count, 4) of boxes in a picture of 110 x 110."""
    corner = rng.uniform(0, 80, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(10, 30, (count, 2))], axis=1)


def distances(left: Array, right: Array) -> Array:
    """1 - intersection over union of each pair."""
    low, high = np.maximum(left[:, None, :2], right[:, :2]), np.minimum(left[:, None, 2:], right[:, 2:])
    common = np.clip(high - low, 0, None).prod(axis=2)
    areas = [(side[:, 2:] - side[:, :2]).prod(axis=1) for side in (left, right)]
    return np.asarray(1 - common / (areas[0][:, None] + areas[1] - common))


def frames(count: int) -> list[Array]:
    """Costs of `count` frames."""
    rng = np.random.default_rng(0)
    return [distances(*(boxes(rng, int(n)) for n in rng.integers(10, 61, 2))) for _ in range(count)]


def lapx(costs: list[Array]) -> list[list[int]]:
    """The peer's columns of each frame's rows."""
    return [lap.lapjv(cost, extend_cost=True, cost_limit=LIMIT, return_cost=False)[0].tolist() for cost in costs]


def timed(run: Callable[[], Any], processor: Callable[[], float] = time.process_time) -> tuple[float, float, Any]:
    """(milliseconds, milliseconds of processors, what it returned)."""
    spent, start = processor(), time.perf_counter()
    found = run()
    return 1e3 * (time.perf_counter() - start), 1e3 * (processor() - spent), found


def of_all_processes() -> float:
    """Seconds of processors that this process and those that it started have had."""
    here = psutil.Process()
    return sum(one.cpu_times().user + one.cpu_times().system for one in (here, *here.children(recursive=True)))


def spread(times: list[tuple[float, float]]) -> dict[str, float]:
    """Medians, and the least time."""
    walls, processors = zip(*times, strict=True)
    return {"ms": statistics.median(walls), "least_ms": min(walls), "processor_ms": statistics.median(processors)}


def in_process(rows: Rows, costs: list[Array], expected: list[list[int]], repeats: int, device: Device) -> None:
    """The batch as one call of the kernels, and lapx, in turn."""
    options = CARD.options.model_validate({"cost_limit": LIMIT})
    inputs = {"cost": np.concatenate([one.reshape(-1) for one in costs]), "sizes": np.array([c.shape for c in costs])}
    taken: dict[str, list[tuple[float, float]]] = {"build": [], "solve": [], "certify": [], "lapx": []}
    for _ in range(repeats + 1):
        *built, problem = timed(partial(CARD.build, inputs, options))
        *solved, solution = timed(partial(CARD.solve, problem, options, Deadline(), device))
        *proved, certificate = timed(partial(CARD.certify, problem, solution))
        *peer, _ = timed(partial(lapx, costs))
        assert certificate.holds
        assert certificate.termination is None
        assert np.concatenate(expected).tolist() == solution.arrays["assignment"].tolist()
        for name, (wall, processor) in zip(taken, (built, solved, proved, peer), strict=True):
            taken[name].append((wall, processor))
    for name, times in taken.items():
        rows.add(what=name, frames=len(costs), **spread(times[1:]))


def by_the_service(
    rows: Rows, client: Client, costs: list[Array], expected: list[list[int]], repeats: int, device: str
) -> None:
    """From POST to answer, in one call and frame by frame."""
    taken, parts = [], dict[str, list[float]]()
    for number in range(repeats + 3):
        wall, processor, answer = timed(lambda: client.lap(costs, cost_limit=LIMIT, device=device), of_all_processes)
        assert [one.assignment.tolist() for one in answer.each()] == expected
        assert answer.optimal
        if number >= 3:
            taken.append((wall, processor))
            for name, value in answer.timings_ms.items():
                parts.setdefault(name, []).append(value)
    rows.add(what="POST to answer", frames=len(costs), **spread(taken))
    rows.add(what="of which", **{f"{name}_ms": statistics.median(values) for name, values in parts.items()})
    one_by_one(rows, client, costs, expected, repeats, device)


def one_by_one(
    rows: Rows, client: Client, costs: list[Array], expected: list[list[int]], repeats: int, device: str
) -> None:
    """By `map`, which is given one frame after the other: `lap` itself, and a function that calls it."""
    ways: dict[str, Callable[[Array], Any]] = {
        "map": partial(client.lap, cost_limit=LIMIT, device=device),
        "map of a function": lambda cost: client.lap(cost, cost_limit=LIMIT, device=device),
    }
    for what, solve in ways.items():
        taken = []
        for number in range(repeats + 1):
            wall, processor, answers = timed(lambda solve=solve: list(client.map(solve, costs)), of_all_processes)  # type: ignore[misc]
            assert [one.assignment.tolist() for one in answers] == expected
            if number:
                taken.append((wall, processor))
        told = spread(taken)
        rows.add(
            what=what, frames=len(costs), frames_per_s=1e3 * len(costs) / statistics.median(w for w, _ in taken), **told
        )


def main() -> None:
    """Measure all three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu", "auto"), help="auto: what a GPU host picks")
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    rows = Rows("frames" if arguments.device == "cpu" else on_gpu("frames"))
    costs = frames(arguments.frames)
    expected = lapx(costs)
    in_process(rows, costs, expected, arguments.repeats, "gpu" if arguments.device == "gpu" else "cpu")
    with service() as there, Client(there.url) as client:
        until_warm(client, "cpu" if arguments.device == "cpu" else "gpu")
        by_the_service(rows, client, costs, expected, arguments.repeats, arguments.device)


if __name__ == "__main__":
    main()
