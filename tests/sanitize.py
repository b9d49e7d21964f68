"""Small runs of every kernel on a GPU, for compute-sanitizer (`make sanitize` runs all, with each of its tools):

    compute-sanitizer --tool racecheck --error-exitcode 9 python -m tests.sanitize uot:fused

Every answer is certified on the host and on the device, or where a kernel is launched directly its objective worked
out again. Grids are cut down to a few blocks, which changes no code path and lets the sanitizers, a hundred and more
times slower, come to an end.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from kernels import SOLVERS, Array, Deadline, Inputs, Solution, Solver, cuda
from kernels.on_device import certify_small
from tests import sanitize_qap
from tests.instances import sparse_transport
from tests.sanitize_qap import symmetric

BLOCKS = 16
UOT_BLOCKS = 4  # of one cluster: their waiting for each other is most of what a sanitizer sees
LIMIT_S = 900.0
Run = tuple[Inputs, dict[str, Any]]
rng = np.random.default_rng(0)


def points(n: int, dimension: int = 3) -> Array:
    return rng.random((n, dimension))


def distances(m: int, n: int) -> Array:
    difference = points(m)[:, None] - points(n)[None]
    return np.asarray((difference**2).sum(-1))


def costs(m: int, n: int) -> Array:
    return np.asarray(rng.random((m, n)) * 1000 * n)


def lap_auto() -> Iterator[Run]:
    for cost in (costs(72, 72), distances(64, 64), rng.integers(0, 80, (80, 80)), costs(40, 72), costs(70, 50)):
        yield {"cost": cost}, {}
    yield {"cost": costs(72, 72).astype(np.float32)}, {"deterministic": True}
    narrow = np.full((40, 40), np.inf)
    narrow[:, :30] = 1.0
    yield {"cost": narrow}, {}
    yield {"cost": np.outer(np.arange(1.0, 61), rng.permutation(60) + 1.0)}, {}
    cost = costs(72, 72)
    yield {"cost": cost, "u0": cost.min(1), "v0": np.zeros(72)}, {}  # few rows have their seats, and all but three
    seats = np.where(np.eye(72, dtype=bool), 1.0, 1.0 + costs(72, 72))
    seats[:3] = costs(3, 72)
    yield {"cost": seats, "u0": np.ones(72), "v0": np.zeros(72)}, {}


def lap_points() -> Iterator[Run]:
    """Each metric's costs, and its sweep in the certificate."""
    for metric in ("sqeuclidean", "euclidean", "cityblock", "cosine", "inner"):
        yield {"x": points(70, 5), "y": points(300, 5)}, {"metric": metric}
        yield {"x": points(300, 5), "y": points(70, 5)}, {"metric": metric, "maximize": True}
    boxes = np.sort(points(140, 4).reshape(140, 2, 2), axis=1).reshape(140, 4)
    yield {"x": boxes[:70], "y": boxes[70:]}, {"metric": "iou"}
    yield {"x": np.zeros((40, 3)), "y": np.ones((400, 3))}, {"metric": "euclidean"}  # too many ties to be kept


def lap_coarse() -> Iterator[Run]:
    """With the search among the levels of epsilon, which only larger problems have."""
    from kernels.lap.auto import gpu_forest

    setattr(gpu_forest, "Tuning", partial(gpu_forest.Tuning, deep_from=0))  # noqa: B010
    for cost in (distances(64, 64), (distances(64, 64) * 1e9).astype(np.int64)):
        yield {"cost": cost}, {}


def lap_columns() -> Iterator[Run]:
    """On lists of columns that the device prices, which only larger problems need."""
    from kernels.lap import gpu

    setattr(gpu, "MOST_ROWS", 16)  # noqa: B010
    setattr(gpu, "FEW", 1)  # noqa: B010
    for cost in (costs(72, 72), rng.integers(0, 20, (70, 70)), rng.integers(0, 9, (50, 63)).astype(np.int32)):
        yield {"cost": cost}, {}
    yield {"cost": costs(69, 50).astype(np.float32)}, {"maximize": True}
    narrow = np.full((40, 40), np.inf)
    narrow[:, :30] = 1.0
    yield {"cost": narrow}, {}


def lap_systems(method: str) -> Iterator[Run]:
    for cost in (costs(40, 40), rng.integers(0, 40, (30, 40))):
        yield {"cost": cost}, {"method": method}


def lap_batch() -> Iterator[Run]:
    for n in (17, 40, 64, 100, 130, 200, 300):
        yield {"cost": rng.random((4, n, n)).astype(np.float32)}, {}
    yield {"cost": rng.random((4, 30, 50))}, {}
    yield {"cost": rng.integers(0, 99, (4, 50, 30))}, {}
    sizes = np.array([[12, 12], [3, 9], [9, 3], [1, 1], [12, 5]])
    yield {"cost": rng.random((5, 12, 12)), "sizes": sizes}, {}


def auction() -> Iterator[Run]:
    from tests.instances.auction import FAMILIES

    for family in (
        "dense-int",
        "sparse-thin",
        "sparse-infeasible",
        "dense-ties",
        "dense-rectangular",
        "dense-alike-rows",
    ):
        yield FAMILIES[family](), {}


def auction_rounds(**options: Any) -> Iterator[Run]:
    """Benefits of few values: few rounds, on the whole grid, in one block, and of one warp."""
    from tests.instances.auction import alike, dense, planted, without_assignment

    yield {"benefit": planted(200, 200, 0.05, 1, limit=40)}, options
    for benefit in (dense(40, 40, 2, high=40), dense(20, 50, 3, high=40), alike(12, 3, 4) // 500):
        yield {"benefit": benefit}, options
    if options.get("finish") != "auction":  # prices would rise for 20,000 rounds before anybody looks
        yield {"benefit": without_assignment(24, 13)}, options


def auction_starts() -> Iterator[Run]:
    """From an earlier answer, between points, and with rows that the whole grid reads together."""
    from tests.instances.auction import dense

    seats = rng.permutation(60)
    seats[::3] = -1
    yield {"benefit": dense(60, 60, 1), "prices0": rng.integers(0, 99, 60), "assignment0": seats}, {}
    yield {"x": points(40, 2), "y": points(60, 2)}, {}
    yield {"x": points(40, 2), "y": points(60, 2)}, {"neighbours": 8}
    yield {"benefit": dense(3, 70_000, 2)}, {}


def uot(method: str, **options: Any) -> Iterator[Run]:
    """Kept in shared memory with and without acceleration, then a matrix that streams through it."""
    given = {"method": method, "iterations": 8, **options}
    yield {"cost": distances(70, 90)}, given
    yield {"cost": distances(33, 300)}, {**given, "iterations": 3, "acceleration": False, "reg_m": ("inf", 1.0)}
    yield {"cost": distances(600, 900 if options["storage"] == "float16" else 450)}, {**given, "iterations": 3}


def uot_points() -> Iterator[Run]:
    for dimension, metric in ((3, "sqeuclidean"), (3, "inner"), (20, "sqeuclidean"), (20, "inner")):
        sets: Inputs = {"x": points(70, dimension), "y": points(150, dimension)}
        yield sets, {"metric": metric, "storage": "float32", "iterations": 5, "output": "potentials"}


def uot_between() -> Iterator[Run]:
    """Sizes that are cut by the forms of many others, for as many clusters as a whole GPU holds."""
    given = {"method": "auto", "iterations": 2, "output": "potentials", "storage": "float32", "reg": 0.1, "reg_m": 1.0}
    for m, n in ((300, 451), (390, 777), (1013, 901), (2100, 1777)):
        yield {"cost": rng.random((m, n), np.float32)}, given
        yield {"x": points(m, 2), "y": points(n, 2)}, given
        yield {"x": points(m, 7), "y": points(n, 7)}, given


def uot_batch() -> Iterator[Run]:
    for n in (20, 100, 150):
        yield {"cost": np.stack([distances(n, n) for _ in range(3)])}, {"iterations": 16}


def uot_sparse() -> Iterator[Run]:
    """Lines of one entry, of many warps' worth, and more lines than there are warps."""
    for m, n, share in ((70, 90, 0.1), (3, 5000, 0.7), (4000, 40, 0.05)):
        yield sparse_transport.graph(m, n, share), {"iterations": 5}


def qap(method: str, **options: Any) -> Iterator[Run]:
    kinds = (symmetric(14, 40), symmetric(14, 40)), (symmetric(11, 9), rng.integers(-3, 40, (11, 11)))
    for flow, distance in (*kinds, (rng.integers(0, 40, (12, 12)), rng.integers(0, 40, (12, 12)))):
        yield {"flow": flow, "distance": distance}, {"method": method, "bounds": ["gilmore-lawler"], **options}
    yield {"flow": rng.random((10, 10)), "distance": rng.random((10, 10))}, {"method": method, **options}


GROUPS: dict[str, Callable[[], Iterator[Run]]] = {
    "lap:auto": lap_auto,
    "lap:points": lap_points,
    "lap:coarse": lap_coarse,
    "lap:columns": lap_columns,
    "lap:tree": lambda: lap_systems("tree"),
    "lap:hungarian": lambda: lap_systems("hungarian"),
    "lap:batch": lap_batch,
    "auction:exact": auction,
    "auction:starts": auction_starts,
    "auction:epsilon": lambda: auction_rounds(epsilon=1.0),
    "auction:rounds": lambda: auction_rounds(epsilon=1.0, finish="auction"),
    "auction:scaled": lambda: auction_rounds(finish="auction", deterministic=False),
    "auction:graph": lambda: auction_rounds(epsilon=1.0, launch="graph"),
    "uot:fused": lambda: uot("fused", storage="float32"),
    "uot:half": lambda: uot("fused", storage="float16"),
    "uot:log": lambda: uot("log", storage="float32"),
    "uot:map-uot": lambda: uot("map-uot", storage="float32"),
    "uot:points": uot_points,
    "uot:between": uot_between,
    "uot:batch": uot_batch,
    "uot:sparse": uot_sparse,
    "qap:2opt": lambda: qap("2opt", starts=6, rounds=1),
    "qap:tabu": lambda: qap("tabu", starts=6, iterations=40),
    "qap:memetic": lambda: qap("memetic", starts=5, rounds=3),
}
WIDE, MANY = {"uot:between"}, 7 * 16
"""These on so many multiprocessors: seven clusters of the largest kind, which any such GPU holds at once."""
DIRECT: dict[str, Callable[[], None]] = {
    "qap:multistart": sanitize_qap.multistart,
    "qap:population": sanitize_qap.population,
    "qap:tree": sanitize_qap.tree,
    "qap:signs": sanitize_qap.signs,
}
"""Launches without the solver around them."""
LEVELS = range(-1, 6)
"""Of the Hungarian algorithm's ablation; "lap:level3" runs the third."""


def level(number: int) -> None:
    """One level of the ablation, certified on the host as every answer is."""
    import cupy

    from kernels.papers.hungarian import gpu as hungarian

    card = SOLVERS["lap"]
    for cost in (costs(24, 24), rng.integers(0, 24, (24, 24))):
        begun = time.perf_counter()
        problem = card.build({"cost": cost}, card.options())
        ended, answer, _ = hungarian.solve_on_device(
            cupy.asarray(problem.weights), False, Deadline(LIMIT_S), opt=number
        )
        arrays = {"assignment": answer["col_of"], "u": answer["u"], "v": answer["v"]}
        solution = Solution(ended, "hungarian", {name: array.get() for name, array in arrays.items()})
        certify(f"lap:level{number}", card, problem, solution, begun)


def certify(group: str, card: Solver, problem: Any, solution: Solution, begun: float) -> None:
    certificate = card.certify(problem, solution)
    assert certificate.holds, certificate
    print(f"{group} {solution.method} {solution.termination} {time.perf_counter() - begun:.1f} s", flush=True)


def run(group: str) -> None:
    """Solve and certify what `group` yields."""
    cuda.attribute("MultiProcessorCount")
    few = UOT_BLOCKS if group.startswith("uot") else BLOCKS
    cuda._attributes(0)["MultiProcessorCount"] = MANY if group in WIDE else few
    if group in DIRECT:
        DIRECT[group]()
        return
    if group.startswith("lap:level"):
        level(int(group.removeprefix("lap:level")))
        return
    card = SOLVERS[group.split(":")[0]]
    for inputs, given in GROUPS[group]():
        options = card.options(**given)
        begun = time.perf_counter()
        problem = card.build(inputs, options)
        solution = card.solve(problem, options, Deadline(LIMIT_S), "gpu")
        certify_small(card, problem, solution)
        certify(group, card, problem, solution, begun)


if __name__ == "__main__":
    for name in sys.argv[1:] or [*GROUPS, *DIRECT, *(f"lap:level{number}" for number in LEVELS)]:
        run(name)
