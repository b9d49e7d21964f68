"""A tracker's frames: python -m benchmarks.frames [--device auto] [--frames 1000] [--repeats 15].

Boxes of 10 to 60 detections a frame, 1 - intersection over union, a limit of 0.8. One batch as a call of the kernels
beside lapx frame by frame, in turn; then the same batch by `allot_client` from POST to answer, at a service of its own
with one worker, as boxes and as costs of 8 and of 4 bytes in turn; then frame by frame through `map`. Every answer is
lapx's for the same costs, or the run ends. `ms` is the whole call, `from_post_ms` without what the client does before
its request. Beside each time stands the processor time of all threads and processes that took part, which others on the
machine change less.
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
from allot_client import Client, tasks
from allot_client.points import cost_matrix

from benchmarks.asked import Asked
from benchmarks.own import service
from benchmarks.rows import Rows, on_gpu
from benchmarks.warm import until_calm, until_warm
from kernels import SOLVERS, Array, Deadline, Device
from kernels.lap.cpu.between import written_out

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


def tracked(count: int) -> list[list[Array]]:
    """The boxes of `count` frames, and those of the frames after them."""
    rng = np.random.default_rng(0)
    pairs = [[boxes(rng, int(n)) for n in rng.integers(10, 61, 2)] for _ in range(count)]
    return [[pair[side] for pair in pairs] for side in (0, 1)]


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
    inputs = {"cost": joined(costs), "sizes": np.array([c.shape for c in costs])}
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


def of_boxes(rows: Rows, both: list[list[Array]], costs: list[Array], repeats: int) -> None:
    """What the client takes until it can send boxes, or their costs, and costs frame by frame, in turn; and the bytes.

    What the service makes of the boxes are those costs.
    """
    x, y = both
    ways: dict[str, Callable[[], Any]] = {
        "boxes to what is sent": lambda: tasks.lap(None, {"metric": "iou", "cost_limit": LIMIT}, {"x": x, "y": y}),
        "boxes to costs, as an earlier service is sent": lambda: made["boxes to what is sent"].as_costs(),
        "costs of boxes, frame by frame": lambda: [cost_matrix(*pair, "iou") for pair in zip(x, y, strict=True)],
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    made: dict[str, Any] = {}
    for _ in range(repeats + 1):
        for name, way in ways.items():
            wall, processor, made[name] = timed(way)
            taken[name].append((wall, processor))
    known = joined(costs)
    points, flat, apart = made.values()
    problem = CARD.build(dict(points.inputs), CARD.options.model_validate({"metric": "iou", "cost_limit": LIMIT}))
    for found in (written_out(problem).costs, joined(flat.inputs["cost"].arrays), joined(apart)):
        assert np.array_equal(found, known)
    for name, times in taken.items():
        sent = {} if name == "costs of boxes, frame by frame" else {"bytes": made[name].call(0.0).body.length}
        rows.add(what=name, frames=len(x), **spread(times[1:]), **sent)


def joined(matrices: list[Array]) -> Array:
    """Their entries, one after the other."""
    return np.concatenate([one.reshape(-1) for one in matrices])


def by_the_service(
    rows: Rows, client: Client, both: list[list[Array]], costs: list[Array], repeats: int, device: str
) -> None:
    """From POST to answer in one call, of each form in turn, and frame by frame."""
    x, y = both
    short = [cost.astype(np.float32) for cost in costs]
    expected, of_short = lapx(costs), lapx([cost.astype(np.float64) for cost in short])
    asked = partial(client.lap, cost_limit=LIMIT, device=device)
    ways: dict[str, tuple[Callable[[], Any], list[list[int]]]] = {
        "": (partial(asked, costs), expected),
        "boxes, ": (partial(asked, x=x, y=y, metric="iou"), expected),
        "float32, ": (partial(asked, short), of_short),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    parts: dict[str, dict[str, list[float]]] = {name: {} for name in ways}
    ask = Asked(client)
    for number in range(repeats + 3):
        for name, (solve, right) in ways.items():
            wall, processor, told = timed(partial(ask, solve), of_all_processes)
            answer = told.answer
            assert [one.assignment.tolist() for one in answer.each()] == right
            assert answer.optimal
            if number >= 3:
                taken[name].append((wall, processor))
                split = {"from_post": told.from_post_ms, "preparing": told.preparing_ms, "reading": told.reading_ms}
                for station, value in {**answer.timings_ms, **split}.items():
                    parts[name].setdefault(station, []).append(value)
    for name, times in taken.items():
        from_post_ms = statistics.median(parts[name].pop("from_post"))
        rows.add(what=f"{name}POST to answer", frames=len(costs), from_post_ms=from_post_ms, **spread(times))
        stations = {f"{station}_ms": statistics.median(values) for station, values in parts[name].items()}
        rows.add(what=f"{name}of which", **stations)
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
    """Measure all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu", "auto"), help="auto: what a GPU host picks")
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    rows = Rows("frames" if arguments.device == "cpu" else on_gpu("frames"))
    both = tracked(arguments.frames)
    costs = [distances(x, y) for x, y in zip(*both, strict=True)]
    of_boxes(rows, both, costs, arguments.repeats)
    in_process(rows, costs, lapx(costs), arguments.repeats, "gpu" if arguments.device == "gpu" else "cpu")
    with service(solvers="lap") as there, Client(there.url) as client:
        until_warm(client, "cpu" if arguments.device == "cpu" else "gpu")
        until_calm(there.process)
        by_the_service(rows, client, both, costs, arguments.repeats, arguments.device)


if __name__ == "__main__":
    main()
