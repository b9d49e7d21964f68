"""Estimates: their bytes are bounds, measured in a process of its own; their seconds know what is hard.

How near the seconds come is not a test, as no test should know how fast a machine is: `python -m benchmarks.estimates`.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Device, Estimate, pace
from kernels.problems import Assignment
from kernels.problems.derived import deriving
from kernels.texture import Texture, _rank, texture
from tests.instances import (
    Case,
    assignment,
    auction,
    barycenter,
    lawler,
    lowrank,
    multimarginal,
    quadratic,
    sparse_transport,
    transport,
)

ROOT = Path(__file__).parents[2]
CASES: list[Case] = (
    assignment.CASES + auction.CASES + quadratic.CASES + transport.CASES + barycenter.CASES + lowrank.CASES
)
CASES += multimarginal.CASES + lawler.CASES + sparse_transport.CASES
SHORT_S = 0.01
"""As workers/jobs/form.py has it: jobs that take longer have no company."""
DEVICES: tuple[Device, ...] = ("cpu", "gpu")

PEAKS = """
import json, sys
from pathlib import Path
import numpy as np
from kernels import SOLVERS, Csr, Deadline
from tests.instances import assignment, auction, barycenter, lawler, lowrank, multimarginal, quadratic, transport
from tests.instances import sparse_transport

def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))

def arrays(inputs):
    for value in inputs.values():
        yield from (value.indptr, value.indices, value.values) if isinstance(value, Csr) else (value,)

solver, told = sys.argv[1], []
card = SOLVERS[solver]
card.warm_up("cpu")
for make, given, limit_s in json.loads(sys.argv[2]):
    inputs, options = eval(make), card.options(**given)
    held = sum(array.nbytes for array in arrays(inputs))
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    problem = card.build(inputs, options)
    solution = card.solve(problem, options, Deadline(limit_s))
    card.certify(problem, solution)
    told.append([make, held + resident("VmHWM") - before, card.estimate(problem, options, "cpu").host_bytes])
    del inputs, problem, solution
print(json.dumps(told))
"""

HEAVY: dict[str, list[tuple[str, dict[str, Any], float]]] = {
    "lap": [
        ('{"cost": assignment.uniform_int(1500, 1500, 1)}', {}, 9),
        ('{"cost": assignment.uniform_float(1500, 1500)}', {}, 9),
        ('{"cost": assignment.uniform_float(1800, 900).astype(np.float32)}', {}, 9),
        ('{"cost": assignment.batch(60, 150, 120)}', {}, 9),
    ],
    "auction": [
        ('{"benefit": auction.dense(1500, 1500, 1)}', {"finish": "auction"}, 9),
        ('{"benefit": auction.forbidden(1500, 6)}', {"finish": "auction"}, 9),
        ('{"benefit": auction.planted(2000, 2000, 0.1, 10, np.float64)}', {"finish": "auction"}, 9),
        ("auction.clouds(1500, 1500, 2, 16)", {}, 9),
        ("auction.clouds(1500, 3000, 2, 18)", {"neighbours": 20}, 9),
    ],
    "uot": [
        ("transport.matrix(1500, 1500)", {"tolerance": 1e-9}, 9),
        ("transport.cloud(1500, 1500)", {}, 9),
        ("transport.cloud(1500, 1500)", {"output": "potentials", "top_k": 3}, 9),
        ("transport.balanced(1500, 1500)", {"reg_m": "inf"}, 9),
        ("transport.forbidden(1500, 1500)", {}, 9),
        ("transport.zero_masses(1500, 1500)", {"tolerance": 1e-9}, 9),
        ("transport.batch(6, 600, 600)", {}, 9),
        ("sparse_transport.graph(3000, 3000, 0.06)", {}, 9),
        ("sparse_transport.graph(3000, 3000, 0.06)", {"reg_m": "inf"}, 9),
    ],
    "qap": [
        ('{"flow": quadratic.symmetric(20, 100, 1), "distance": quadratic.symmetric(20, 100, 2)}', {}, 6),
        ('{"flow": quadratic.symmetric(12, 100, 1), "distance": quadratic.symmetric(12, 100, 2)}', {}, 2),
        ('{"flow": quadratic.symmetric(200, 100, 1), "distance": quadratic.symmetric(200, 100, 2)}', {}, 1),
    ],
    "barycenter": [
        ("barycenter.histograms(4, 600)", {"iterations": 20}, 9),
        ("barycenter.histograms(3, 400)", {"reg": 1e-3, "iterations": 3}, 9),
        ("barycenter.histograms(3, 60)", {"reg": 0}, 2),
        ("barycenter.clouds(4, 200)", {"iterations": 2}, 9),
    ],
    "lowrank": [
        ("lowrank.points(700, 700, 3)", {"starts": 1}, 9),
        ("lowrank.points(30000, 20000, 5)", {"rank": 20, "starts": 1}, 1.5),
        ("lowrank.costs(2000, 1500)", {"starts": 1}, 1.5),
    ],
    "lawler": [
        ("lawler.general(40, 40)", {"rounds": 4, "sweeps": 3}, 20),
        ("lawler.general(30, 40, np.float64)", {"rounds": 4, "sweeps": 3}, 20),
        ("lawler.general(25, 25)", {"fixed": {0: 3, 1: 2}, "rounds": 4, "sweeps": 3}, 20),
    ],
    "multimarginal": [
        ("multimarginal.clouds(600, 700, 800)", {"iterations": 5, "output": "marginals"}, 9),
        ("multimarginal.clouds(100, 120, 130)", {"iterations": 5, "output": "plan"}, 9),
        ("multimarginal.tensor(150, 160, 170)", {"reg": 0.01, "iterations": 5, "output": "marginals"}, 9),
        ("multimarginal.clouds(30, 30, 30)", {"reg": 0}, 4),
    ],
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("solver", HEAVY)
def test_bytes_are_a_bound(solver: str) -> None:
    command = [sys.executable, "-c", PEAKS, solver, json.dumps(HEAVY[solver])]
    given_back = os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072"}  # what one case freed, the next must take anew
    done = subprocess.run(command, cwd=ROOT, env=given_back, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for make, peak, bound in json.loads(done.stdout):
        assert peak <= bound, f"{make} took {peak / 2**20:.1f} MiB, and {bound / 2**20:.1f} were foretold"
        assert bound <= 8 * peak + 2**26, f"{make} took {peak / 2**20:.1f} MiB of {bound / 2**20:.1f}: no help"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_instance_has_an_estimate(case: Case) -> None:
    card = SOLVERS[case.solver]
    options = card.options(**case.options)
    problem = card.build(case.inputs(), options)
    for device in DEVICES:
        needs = card.estimate(problem, options, device)
        assert isinstance(needs.host_bytes, int)
        assert isinstance(needs.device_bytes, int)
        assert needs.host_bytes > 0
        assert (needs.device_bytes > 0) is (device == "gpu")
        assert needs.seconds > 0
        assert 0 < needs.certify_seconds < 1
        assert 0 < needs.first_seconds < 1


def seconds(solver: str, inputs: dict[str, Any], **options: Any) -> float:
    card = SOLVERS[solver]
    chosen = card.options(**options)
    return card.estimate(card.build(inputs, chosen), chosen, "cpu").seconds


def test_what_is_alike_takes_longer() -> None:
    n = 400
    easy, places = assignment.uniform_float(n, n), assignment.spatial(n, n)
    assert seconds("lap", {"cost": places}) > 2 * seconds("lap", {"cost": easy})
    assert seconds("lap", {"cost": assignment.product(n)}) < seconds("lap", {"cost": easy})
    assert seconds("auction", {"benefit": -places}) > 2 * seconds("auction", {"benefit": easy})
    alike = auction.alike(n, 9, 20)
    assert seconds("auction", {"benefit": alike}, finish="auction") > 5 * seconds("auction", {"benefit": alike})


def test_small_reg_takes_longer() -> None:
    given = transport.matrix(300, 300)
    took = [seconds("uot", given, reg=reg, reg_m=10.0) for reg in (0.1, 0.01, 0.001)]
    assert took == sorted(took)
    assert took[2] > 3 * took[0]
    assert seconds("uot", given, reg=0.01, tolerance=1e-2) < seconds("uot", given, reg=0.01)


LOOP: dict[str, Any] = {"reg": 0.1, "reg_m": "inf", "output": "potentials", "tolerance": 1e-3, "certificate": "none"}


def minibatch(count: int, points: int = 256, form: str = "points", **more: Any) -> Estimate:
    """Of a training loop's problems, on a GPU."""
    card, rng = SOLVERS["uot"], np.random.default_rng(0)
    options = card.options.model_validate(LOOP | more)
    x, y = rng.random((2, count * points, 2), np.float32)
    inputs: dict[str, Any] = {"x": x, "y": y, "sizes": np.full((count, 2), points)}
    if form != "points":
        inputs = {"cost": rng.random((count, points, points)).astype(np.float32)}
    if form == "costs with regs":
        inputs["regs"] = np.full(count, 0.1)
    return card.estimate(card.build(inputs, options), options, "gpu")


@pytest.mark.parametrize("form", ["points", "costs", "costs with regs"])
def test_a_minibatch_takes_a_gpu_little_more_than_its_call(form: str) -> None:
    """Measured: 4.2 ms on an H100's host, 2.3 to 2.7 on an H200's."""
    whole = minibatch(32, form=form)
    assert 3e-3 < whole.first_seconds < whole.seconds < 6e-3
    assert whole.seconds < 1.5 * minibatch(8, form=form).seconds
    assert minibatch(64, form=form).seconds < SHORT_S


def test_a_minibatch_takes_a_gpu_longer_by_what_has_no_room() -> None:
    """Problems beyond one for each of its processors are swept after the others."""
    took = [minibatch(count).seconds for count in (64, 128, 384, 640)]
    steps = np.diff(took)
    assert steps[1:] == pytest.approx(steps[1], rel=0.05)
    assert steps[1] > 1.05 * 4 * steps[0]  # of 256 and of 64 problems


@pytest.mark.parametrize(
    "more",
    [{"output": "plan"}, {"top_k": 1}, {"gradients": True}, {"tolerance": 1e-6}, {"reg": 1e-3}, {"method": "map-uot"},
     {"storage": "float64"}, {"metric": "inner"}, {"divergence": True}],
)  # fmt: skip
def test_answers_one_by_one_take_a_gpu_each_its_time(more: dict[str, Any]) -> None:
    assert minibatch(32, **more).seconds > 32 * 3e-3


def test_a_minibatch_of_other_problems_takes_each_its_time() -> None:
    """Above 256 lines, or with a forbidden entry or a line without mass, each is solved by itself."""
    card, cost = SOLVERS["uot"], np.random.default_rng(0).random((8, 100, 100))
    options = card.options.model_validate(LOOP | {"reg_m": 1.0})
    closed = cost.copy()
    closed[0, :, :50] = np.inf
    a = np.full(100, 0.01)
    a[3] = 0
    for inputs in ({"cost": np.ones((8, 257, 2))}, {"cost": closed}, {"cost": cost, "a": a}):
        assert card.estimate(card.build(inputs, options), options, "gpu").seconds > 8 * 3e-3
    assert card.estimate(card.build({"cost": cost}, options), options, "gpu").seconds < 5e-3


def test_a_minibatch_takes_a_gpu_room_for_its_matrices() -> None:
    """Distances in float64, costs in float32 and the plan that is added up, though points are all that came."""
    assert minibatch(32).device_bytes >= 32 * 256 * 256 * 20
    assert minibatch(32, form="costs with regs").device_bytes >= 32 * 256 * 256 * 16


def test_only_a_limit_ends_a_search_that_nothing_proves() -> None:
    large = {"flow": quadratic.symmetric(60, 9, 1), "distance": quadratic.symmetric(60, 9, 2)}
    assert seconds("qap", large) == math.inf
    assert seconds("qap", large, rounds=2) < math.inf
    small = {"flow": quadratic.symmetric(12, 9, 1), "distance": quadratic.symmetric(12, 9, 2)}
    assert seconds("qap", small) < math.inf
    assert seconds("qap", {"flow": small["flow"] / 7, "distance": small["distance"]}) == math.inf  # no tree of floats


@pytest.mark.parametrize(("limit_s", "expected"), [(100, 50), (40, 38), (5, 3), (0, 3)])
def test_a_time_limit_ends_the_solver(limit_s: float, expected: float) -> None:
    needs = Estimate(1, 2, seconds=50, certify_seconds=2, first_seconds=3).within(limit_s)
    assert needs == Estimate(1, 2, expected, 2, 3)


def test_texture() -> None:
    for matrix in (assignment.uniform_float(50, 70), assignment.uniform_int(300, 300, 1), assignment.wide_range(90)):
        assert texture(matrix).rank > 0.35
        other = texture(-1e-9 * matrix.astype(float))  # neither scale nor sign counts
        assert other.rank == pytest.approx(texture(matrix).rank)
    assert 0.045 < texture(assignment.spatial(300, 300)).rank < 0.1
    assert texture(assignment.product(300)).rank < 0.045
    assert texture(np.full((40, 40), 7)) == texture(np.full((40, 40), 0.1))
    assert texture(np.full((40, 40), 7)).rank == 0
    assert texture(assignment.forbidden(200, 200, 0.1)).permitted == pytest.approx(0.1, abs=0.03)
    assert texture(np.full((3, 3), np.inf)).permitted == 0
    for shape in ((1, 1), (1, 9), (2, 2), (9, 1)):
        assert 0 <= texture(np.ones(shape)).rank <= 1


def test_pace_is_within_reason() -> None:
    assert pace.LEAST <= pace.pace() <= pace.MOST
    assert pace.pace() == pace.pace()
    assert 1 <= pace.cores() <= pace.MOST_CORES


def test_the_rank_is_that_of_the_singular_values() -> None:
    sample = np.random.default_rng(4).random((24, 32)) @ np.random.default_rng(5).random((32, 32))
    centred = sample - sample.mean(axis=0) - sample.mean(axis=1)[:, None] + sample.mean()
    squares = np.linalg.svd(centred, compute_uv=False) ** 2
    assert _rank(sample) == pytest.approx(squares.sum() ** 2 / (squares**2).sum() / 23, rel=1e-9)


@pytest.mark.parametrize(("device", "n"), [("cpu", 300), ("gpu", 1200)])
def test_who_estimates_again_is_told_what_the_sample_was(device: Device, n: int) -> None:
    """So a worker reads no entry for an estimate that was made as the job came."""
    card, first = SOLVERS["lap"], assignment.spatial(n, n)
    other = assignment.uniform_float(n, n)
    with deriving() as numbers:
        before = card.estimate(card.build({"cost": first}, card.options()), card.options(), device)
    with deriving(numbers.found):
        again = card.estimate(card.build({"cost": other}, card.options()), card.options(), device)
    without = card.estimate(card.build({"cost": other}, card.options()), card.options(), device)
    assert again == before != without


def test_what_a_gpu_solves_in_no_time_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    card, looks = SOLVERS["lap"], list[Any]()

    def look(*given: Any) -> Texture:
        looks.append(given)
        return Texture(0.0, 1.0, 1.0)

    monkeypatch.setattr("kernels.texture._look", look)
    for n, seen in ((1024, 0), (1200, 1)):
        problem = card.build({"cost": assignment.uniform_float(n, n)}, card.options())
        assert 1e-3 < card.estimate(problem, card.options(), "gpu").seconds < 2e-2
        assert len(looks) == seen


def test_a_worker_is_told_the_spread_of_costs() -> None:
    card, rng = SOLVERS["uot"], np.random.default_rng(0)
    options = card.options(reg=0.1, reg_m=1.0)
    narrow, wide = rng.random((80, 80)), 1e3 * rng.random((80, 80))
    with deriving() as numbers:
        before = card.estimate(card.build({"cost": narrow}, options), options, "cpu")
    with deriving(numbers.found):
        again = card.estimate(card.build({"cost": wide}, options), options, "cpu")
    assert again == before != card.estimate(card.build({"cost": wide}, options), options, "cpu")


@pytest.mark.parametrize("form", ["costs", "points", "a stack of points"])
def test_one_look_works_the_spread_out_once(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """However many devices and questions there are about the problem."""
    module: Any = sys.modules["kernels.uot.estimate"]
    looks, sampled = list[Any](), module._sampled_spread

    def counted(problem: Any) -> Any:
        looks.append(problem)
        return sampled(problem)

    monkeypatch.setattr(module, "_sampled_spread", counted)
    card, points = SOLVERS["uot"], np.random.default_rng(0).random((60, 2))
    given: dict[str, Any] = {"cost": np.random.default_rng(0).random((60, 60))}
    if form != "costs":
        given = {"x": points, "y": points[::-1]}
    if form == "a stack of points":
        given["sizes"] = np.full((3, 2), 20)
    options = card.options(reg=0.1, reg_m="inf", output="potentials", certificate="none")
    problem = card.build(given, options)
    apart = [card.estimate(problem, options, device) for device in ("cpu", "gpu")]
    looks.clear()
    with deriving() as numbers:
        together = [card.estimate(problem, options, device) for device in ("cpu", "gpu")]
    assert len(looks) == len(numbers.found) == 1
    with deriving(numbers.found) as again:
        assert [card.estimate(problem, options, device) for device in ("cpu", "gpu")] == together
    assert len(looks) == len(again.found) == 1
    assert together == apart


@pytest.mark.parametrize("found", [math.inf, math.nan])
def test_a_spread_beyond_all_numbers_is_told_as_one(monkeypatch: pytest.MonkeyPatch, found: float) -> None:
    monkeypatch.setattr(sys.modules["kernels.uot.estimate"], "_sampled_spread", lambda problem: found)
    card = SOLVERS["uot"]
    options = card.options(reg=1.0)
    with deriving() as numbers:
        card.estimate(card.build({"cost": np.eye(70)}, options), options, "cpu")
    assert numbers.found
    assert all(math.isfinite(number) for number in numbers.found)


def test_a_matrix_beyond_the_forest_is_estimated_by_its_sweeps() -> None:
    card, cost = SOLVERS["lap"], np.broadcast_to(np.float32(1.0), (131_072, 131_072))
    needs = card.estimate(Assignment(cost), card.options(), "gpu")
    assert cost.nbytes < needs.device_bytes < 1.01 * cost.nbytes
    assert cost.nbytes < needs.host_bytes < 1.05 * cost.nbytes
    assert 3 < needs.seconds < 60
    assert card.spreads(Assignment(cost), card.options())
    assert not card.spreads(Assignment(cost[:65_536, :65_536]), card.options())
    assert not card.spreads(Assignment(cost[:, :70_000]), card.options())
    tall = card.estimate(Assignment(cost[:, :70_000]), card.options(), "gpu")
    assert tall.device_bytes > 2 * cost[:, :70_000].nbytes
