"""A learner's minibatches: python -m benchmarks.minibatches [--device gpu] [--sharers 1] [--batch 32] [--points 256].

Each call is `batch` transports of `points` x `points` with fresh numbers, from two numbers a point or from costs in
float32, balanced, with `certificate: "none"`, as a training loop asks them. One client, from the call to its answer, at
a service of its own, with `--sharers` workers for each GPU and API processes by the cores: one call after the other,
and four and eight at a time. A sample of the answers is compared with POT, or the run ends. Beside the rate stands
POT's, problem by problem in this process. A row says where each millisecond went (medians), and another what building
and solving take in this process.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import ot
from allot_client import Client

from benchmarks.own import service
from benchmarks.rows import Rows, on_gpu
from benchmarks.warm import until_warm
from kernels import SOLVERS, Array, Deadline, Device

REG = 0.1
"""Of costs whose mean is about 1/3."""
TOLERANCE = 1e-3
AT_A_TIME = (1, 4, 8)
WARM = 3
COMPARED = 4
"""Problems of the first call that POT solves too."""
SAME = 0.02
"""Relative difference of objectives that a tolerance of 1e-3 explains, POT's own included."""


def drawn(rng: np.random.Generator, batch: int, points: int, form: str) -> dict[str, Any]:
    """Inputs of one call."""
    x, y = rng.random((2, batch, points, 2), np.float32)
    if form == "points":
        return {"x": list(x), "y": list(y)}
    return {"cost": costs(x, y)}


def costs(x: Array, y: Array) -> Array:
    """Squared distances of each problem, in float32."""
    return np.asarray(((x[:, :, None, :] - y[:, None, :, :]) ** 2).sum(-1), np.float32)


def ask(client: Client, device: str, given: dict[str, Any]) -> Any:
    """One call of a training loop."""
    return client.uot(
        **given, reg=REG, tolerance=TOLERANCE, output="potentials", certificate="none", reg_m="inf", device=device
    )


def peer(cost: Array) -> float:
    """POT's cost of the plan and its entropy, as the service counts it."""
    weights = np.full(len(cost), 1 / len(cost))
    plan = ot.sinkhorn(weights, weights, cost.astype(np.float64), REG, stopThr=1e-6)
    relative = plan * np.log(np.maximum(plan, 1e-300) / np.outer(weights, weights))
    return float((plan * cost).sum() + REG * (relative.sum() - plan.sum() + 1))


def require_right(answer: Any, given: dict[str, Any]) -> None:
    """Raise AssertionError where an answer's potentials are not those of POT's plan."""
    clouds = given.get("cost")
    for number, one in enumerate(islice(answer.each(), COMPARED)):
        both = (np.array([given[side][number]]) for side in "xy") if clouds is None else ()
        cost = costs(*both)[0] if clouds is None else clouds[number]
        weights = np.full(len(cost), 1 / len(cost))
        dual = float(weights @ one["f"] + weights @ one["g"])
        expected = peer(cost)
        assert abs(dual - expected) <= SAME * abs(expected), (dual, expected)


def rate(run: Callable[[dict[str, Any]], Any], calls: list[dict[str, Any]], at_a_time: int) -> tuple[float, list[Any]]:
    """Calls a second, and the answers."""
    start = time.perf_counter()
    if at_a_time == 1:
        answers = [run(given) for given in calls]
    else:
        with ThreadPoolExecutor(at_a_time) as pool:
            answers = list(pool.map(run, calls))
    return len(calls) / (time.perf_counter() - start), answers


def parts(answers: list[Any]) -> dict[str, float]:
    """Median milliseconds of each station that the service tells."""
    names = dict.fromkeys(name for answer in answers for name in answer.timings_ms)
    return {f"{name}_ms": statistics.median(one.timings_ms.get(name, 0.0) for one in answers) for name in names}


def in_process(device: Device, given: dict[str, Any], repeats: int) -> dict[str, float]:
    """Median milliseconds of the solver alone, on the arrays that the client sends."""
    sent = given
    if "x" in given:
        sent = {name: np.concatenate(clouds) for name, clouds in given.items()}
        sent["sizes"] = np.array([(len(x), len(y)) for x, y in zip(given["x"], given["y"], strict=True)])
    card = SOLVERS["uot"]
    options = card.options.model_validate(
        {"reg": REG, "tolerance": TOLERANCE, "output": "potentials", "certificate": "none", "reg_m": "inf"}
    )
    taken: dict[str, list[float]] = {"build_ms": [], "solve_ms": []}
    for _ in range(repeats + 1):
        start = time.perf_counter()
        problem = card.build(sent, options)
        built = time.perf_counter()
        card.solve(problem, options, Deadline(), device)
        taken["build_ms"].append((built - start) * 1e3)
        taken["solve_ms"].append((time.perf_counter() - built) * 1e3)
    return {name: statistics.median(values[1:]) for name, values in taken.items()}


def measured(url: str, device: str, batch: int, points: int, repeats: int) -> Iterator[dict[str, Any]]:
    """A row for each form and number of calls at a time, each by a client of its own: of the connections that one has
    left from more callers, fewer would take any, and not those that lie on as many API processes."""
    rng = np.random.default_rng(0)
    for form in ("points", "costs"):
        for at_a_time in AT_A_TIME:
            with Client(url) as client:
                run = partial(ask, client, device)
                for _ in range(WARM):
                    given = drawn(rng, batch, points, form)
                    require_right(run(given), given)
                calls = [drawn(rng, batch, points, form) for _ in range(repeats)]
                calls_per_s, answers = rate(run, calls, at_a_time)
            yield {"form": form, "at_a_time": at_a_time, "calls_per_s": calls_per_s, **parts(answers)}


def main() -> None:
    """Measure the service, then POT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--sharers", type=int, default=1, help="workers that share a GPU")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=50)
    arguments = parser.parse_args()
    size = {"batch": arguments.batch, "points": arguments.points, "device": arguments.device}
    rows = Rows(on_gpu("minibatches") if arguments.device == "gpu" else "minibatches")
    asked = {"ALLOT_API_WORKERS": "0", "ALLOT_WORKERS_PER_GPU": str(arguments.sharers)}
    with service(1, "uot", **asked) as there, Client(there.url) as client:
        until_warm(client, arguments.device)
        for told in measured(there.url, arguments.device, arguments.batch, arguments.points, arguments.repeats):
            rows.add(what="the service", **size, sharers=arguments.sharers, **told)
    for form in ("points", "costs"):
        given = drawn(np.random.default_rng(1), arguments.batch, arguments.points, form)
        told = in_process(arguments.device, given, arguments.repeats)
        rows.add(what="the solver in process", **size, form=form, **told)
    taken, _ = rate(lambda one: [peer(cost) for cost in one["cost"]], [given], 1)
    rows.add(what="POT in process", **size, form="costs", at_a_time=1, calls_per_s=taken)


if __name__ == "__main__":
    main()
