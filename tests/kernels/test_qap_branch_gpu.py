"""The tree on a GPU: what its kernels exclude, and how many children it makes."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Integers
from kernels.qap.exact.layout import ASCEND_ARGS, FOUND, TASK
from kernels.qap.exact.log import resumable
from kernels.qap.exact.nodes import slot_size
from kernels.qap.exact.proof import Proof
from tests.conftest import gpu_is_here
from tests.kernels.test_qap_branch import Costs, grid, held, node, uniform
from tests.kernels.test_qap_tree import best_of, judged

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]


class Children:
    """Children of one node, each with its first facility at one of its locations; what the kernels make of them."""

    def __init__(self, costs: Costs) -> None:
        self.leaders, self.prices = costs
        self.m = len(self.leaders) - 1

    def made(self, room: int, sweeps: int, group: int | None = None) -> tuple[Integers, list[Costs]]:
        """(children,) the room left of each, negative where it is done, and its costs; `group` asks at a time."""
        import cupy

        from kernels.qap.exact import gpu_forms

        wide, m = self.m + 1, self.m
        kernel, form = gpu_forms.by_size([m])[m]
        assert form.name != "ascend"
        tasks = np.zeros(wide, TASK.dtype)
        tasks["slot"] = tasks["j"] = np.arange(wide)
        tasks["room"] = room
        parent = cupy.asarray(np.concatenate((self.leaders.ravel(), self.prices.ravel())).astype(np.int32))
        arena = cupy.zeros(wide * slot_size(m), cupy.int32)
        found = cupy.zeros((wide, FOUND), cupy.int32)
        rule: dict[str, Any] = {"sweeps": sweeps, "patience": 1000, "sharp": 1.0, "m": m, "group": group or form.group}
        device = cupy.asarray(tasks.view(np.int32))
        arguments = ASCEND_ARGS.packed(parents=parent, arena=arena, tasks=device, found=found, **rule)
        kernel((wide,), (32 * m,), arguments, shared_mem=form.shared)
        slots = arena.get().reshape(wide, -1).astype(np.int64)
        costs = [(x[: m * m].reshape(m, m), x[m * m :].reshape(-1, m, m)) for x in slots]
        return found.get()[:, 0].astype(np.int64), costs


@pytest.mark.parametrize("sweeps", [1, 2, 6])
@pytest.mark.parametrize("unit", [1, 5000])
def test_a_child_keeps_its_bound_on_all_that_is_within_the_room(sweeps: int, unit: int) -> None:
    excluded = 0
    for seed in range(8):
        parent = node(7, unit, seed)
        before = held(parent)
        room = sorted(before.values())[seed * 40]
        left, children = Children(parent).made(room, sweeps)
        for j, (mine, costs) in enumerate(zip(left, children, strict=True)):
            near = {p: cost for p, cost in before.items() if p[0] == j and cost <= room}
            assert mine >= 0 or not near
            if not near:
                continue
            after = held(costs)
            for p, cost in near.items():
                rest = tuple(q - (q > j) for q in p[1:])
                assert room - mine + after[rest] <= cost
            excluded += int((costs[1] > mine).sum())
    assert excluded > 300


@pytest.mark.parametrize("m", [5, 8, 11, 14, 16, 17, 18, 19, 20, 21])
def test_a_permutation_within_the_room_stays_whatever_the_size(m: int) -> None:
    """A planted permutation costs nothing; nearly all else is beyond the room, and most is excluded."""
    rng = np.random.default_rng(m)
    leaders, prices = node(m + 1, 100, m)
    p = rng.permutation(m + 1)
    above, below = np.triu_indices(m + 1, 1)
    leaders[np.arange(m + 1), p] = 0
    prices[np.arange(len(above)), p[above], p[below]] = 0
    left, children = Children((leaders, prices)).made(30_000, 1, 5 if m in (14, 20) else None)
    mine, (after, rest) = int(left[p[0]]), children[p[0]]
    assert mine == 30_000 - int(leaders[0, p[0]])
    q = p[1:] - (p[1:] > p[0])
    above, below = np.triu_indices(m, 1)
    assert not after[np.arange(m), q].any()
    assert not rest[np.arange(len(above)), q[above], q[below]].any()
    assert (rest > mine).sum() > 0.3 * rest.size


@pytest.mark.parametrize(
    ("problem", "most"), [(grid(3, 4, 1), 45), (grid(4, 4, 1), 1400), (uniform(12, 1), 42), (uniform(13, 2), 110)]
)
def test_a_proof_takes_few_children(problem: QuadraticAssignment, most: int) -> None:
    from kernels.qap.exact import gpu_branch

    search = Proof(problem, int(problem.objective(np.arange(problem.n))), 2, gpu_branch.DeviceTree)
    search.wait(120)
    assert search.finished
    assert search.best is not None
    proof = Proof(problem, search.best[0], 1, gpu_branch.DeviceTree, log_bytes=1 << 20)
    proof.wait(120)
    assert proof.finished
    assert proof.best is None
    assert proof.nodes <= most
    assert proof.log is not None
    assert judged(problem, search.best[1], proof.log.sealed(problem)).facts["verified"] is True


def test_a_stopped_proof_goes_on_with_its_log() -> None:
    from kernels.qap.exact import gpu_branch

    def planted(*given: Any) -> gpu_branch.DeviceTree:
        tree = gpu_branch.DeviceTree(*given)
        tree.batch = 64
        return tree

    problem = grid(4, 4, 1)
    best, resumed, legs, nodes = best_of(problem), None, 0, 0
    objective = int(problem.objective(best))
    while True:
        proof = Proof(problem, objective, 1, planted, log_bytes=1 << 20, resumed=resumed)
        while not proof.finished and proof.nodes < 500:
            time.sleep(0.001)
        proof.stop()
        assert proof.log is not None
        tree = proof.log.sealed(problem)
        legs, nodes = legs + 1, nodes + proof.nodes
        if proof.finished:
            break
        resumed = resumable(replace(problem, log=tree), objective, (0, 0))
        assert resumed is not None
        assert legs < 50
    assert legs > 1
    assert nodes < 8000
    assert judged(problem, best, tree, resumed=True).facts["verified"] is True


@pytest.mark.parametrize(("most", "of_two"), [(99, 100), (163, 164), (227, 228)])
def test_what_a_launch_asks_for_fits(most: int, of_two: int) -> None:
    """KiB of a block and of a multiprocessor of sm_86, sm_80 and sm_90."""
    from kernels.qap.exact import gpu_forms

    for m in range(3, 32):
        form = gpu_forms.form(m, (4500, 2300), most << 10, (of_two << 9) - 1024)
        assert form.shared <= most << 10 or form.name == "ascend"
        assert (form.name == "ascend") == (form.group == 0)
        if most == 227 and form.name in ("ascend_narrow", "ascend_middle"):
            assert 2 * (form.shared + 1024) <= of_two << 10
