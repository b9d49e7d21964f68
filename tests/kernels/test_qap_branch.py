"""The tree on a CPU: what it excludes, what its ascent leaves, and how many nodes it takes."""

from itertools import permutations

import numpy as np
import pytest

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Integers
from kernels.qap.bounds import rlt1
from kernels.qap.exact import branch, symmetry
from kernels.qap.exact.ascent import ascend
from kernels.qap.exact.exclusion import exclude
from kernels.qap.exact.ledger import OPEN
from kernels.qap.exact.levels import LevelTree
from kernels.qap.exact.lines import TreeLines
from kernels.qap.exact.nodes import NODE
from kernels.qap.exact.planting import Ground
from kernels.qap.exact.proof import Proof
from tests.kernels.hosted import HostSlots

GO_ON = np.zeros(1, np.uint8)
Costs = tuple[Integers, Integers]


def node(m: int, unit: int, seed: int) -> Costs:
    """Leaders and prices as the ascent leaves them: many zeros, and a few large ones."""
    rng = np.random.default_rng(seed)
    leaders = np.maximum(rng.integers(-200, 300, (m, m)), 0) * unit
    prices = np.maximum(rng.integers(-100, 300, (m * (m - 1) // 2, m, m)), 0) * unit
    return leaders, prices


def held(costs: Costs) -> dict[tuple[int, ...], int]:
    """What every permutation pays."""
    leaders, prices = costs
    m = len(leaders)
    above, below = np.triu_indices(m, 1)
    found = {}
    for p in permutations(range(m)):
        q = np.array(p)
        found[p] = int(leaders[np.arange(m), q].sum() + prices[np.arange(len(above)), q[above], q[below]].sum())
    return found


@pytest.mark.parametrize("unit", [1, 1 << 30])
def test_what_a_permutation_within_the_room_holds_is_not_excluded(unit: int) -> None:
    excluded = 0
    for seed in range(12):
        leaders, prices = node(6, unit, seed)
        before = held((leaders, prices))
        room = sorted(before.values())[seed * 10]
        excluded += exclude(leaders, prices, room, GO_ON)
        after = held((leaders, prices))
        assert all(after[p] == cost for p, cost in before.items() if cost <= room)
    assert excluded > 300


def test_three_facilities_exclude_what_two_do_not() -> None:
    """Facility 2 finds no place beside (1, 1) and (3, 0): either takes half of what is left from it."""
    leaders, prices = np.zeros((4, 4), np.int64), np.zeros((6, 4, 4), np.int64)
    prices[5, 2, 0] = prices[3, 1, 3] = 6  # (2, 2) with (3, 0), and (1, 1) with (2, 3)
    assert exclude(leaders, prices, 5, GO_ON) == 1
    assert prices[4, 1, 0] == 6
    assert np.count_nonzero(prices) == 3


def test_what_is_stopped_excludes_nothing() -> None:
    leaders, prices = node(6, 1, 3)
    before = leaders.copy(), prices.copy()
    assert exclude(leaders, prices, 900, np.ones(1, np.uint8)) == 0
    np.testing.assert_array_equal(leaders, before[0])
    np.testing.assert_array_equal(prices, before[1])


@pytest.mark.parametrize("sweeps", [0, 1, 5])
def test_an_ascent_keeps_its_bound_on_all_that_is_within_the_room(sweeps: int) -> None:
    for seed in range(12):
        leaders, prices = node(6, 64, seed)
        before = held((leaders, prices))
        room = sorted(before.values())[seed * 20]
        left = int(ascend(leaders, prices, room, sweeps, GO_ON))
        after = held((leaders, prices))
        near = {p: cost for p, cost in before.items() if cost <= room}
        assert left >= 0
        assert all(room - left + after[p] <= cost for p, cost in near.items())


def test_an_ascent_beyond_the_room_is_cut_short() -> None:
    for seed in range(12):
        leaders, prices = node(6, 64, seed)
        room = min(held((leaders, prices)).values()) - 1
        assert ascend(leaders, prices, room, 200, GO_ON) >= -room - 1


def grid(rows: int, columns: int, seed: int) -> QuadraticAssignment:
    """Places on a grid, sparse flows: as Nugent, Vollmann and Ruml (1968)."""
    at = np.array([(a, b) for a in range(rows) for b in range(columns)])
    distance = np.abs(at[:, None] - at[None]).sum(axis=2)
    flow = np.triu(np.maximum(np.random.default_rng(seed).integers(-3, 6, distance.shape), 0), 1)
    return QuadraticAssignment(flow + flow.T, distance)


def uniform(n: int, seed: int) -> QuadraticAssignment:
    """As Taillard (1991)."""
    flow, distance = np.triu(np.random.default_rng(seed).integers(0, 100, (2, n, n)), 1)
    return QuadraticAssignment(flow + flow.T, distance + distance.T)


def test_the_root_is_branched_where_symmetry_leaves_the_fewest() -> None:
    problem = grid(4, 4, 0)
    ascent = rlt1.DualAscent(problem)
    for _ in range(40):
        ascent.step()
    root = branch.root(ascent)
    children = branch.split(root, root.bound * 2, symmetry.automorphisms(problem), GO_ON)
    assert len(children) <= 3  # a corner, an edge, the middle


def test_the_root_of_a_devices_tree_is_branched_there_too() -> None:
    """By its leaders a place is the better line, by symmetry any facility, which has 3 places."""
    problem = grid(4, 4, 0)
    incumbent = np.array([problem.objective(np.arange(16))])
    tree = LevelTree(HostSlots(), Ground(problem, problem.flow * 0, rlt1.DualAscent(problem), incumbent, 1))
    leaders = np.zeros((16, 16), np.int64)
    leaders[:, 5] = 30  # by its leaders alone, that place
    nodes = tree._topmost(leaders, 40)
    assert nodes["line"][0] < 16
    assert (tree._entries(nodes, 16, 40) == OPEN).sum() == 3


def test_a_devices_tree_uses_what_symmetry_the_first_facilities_leave() -> None:
    """Beside a corner the diagonal is left, with 9 of 15 places; beside an edge nothing."""
    lines = TreeLines(16, symmetry.automorphisms(grid(4, 4, 0)))
    nodes = np.zeros(2, NODE)
    nodes["fixed"] = -1
    for at, place in enumerate((0, 1)):
        nodes["fixed"][at, 0] = place
        nodes["facilities"][at, :15] = np.arange(1, 16)
        nodes["locations"][at, :15] = np.delete(np.arange(16), place)
    assert lines.symmetric(nodes) == [0]
    assert [lines.first_of_equals(nodes[at], "locations", 15).sum() for at in range(2)] == [9, 15]
    leaders = np.zeros((15, 15), np.int64)
    leaders[:, 4] = 30  # by its leaders alone, that place
    for at in range(2):
        lines.choose(nodes[at], leaders, 40)
    assert nodes["line"][0] < 15
    assert nodes["line"][1] == 15 + 4
    assert (nodes["leaders"][1, :15] == 30).all()


@pytest.mark.parametrize(
    ("problem", "most"), [(grid(3, 4, 1), 62), (grid(4, 4, 1), 873), (uniform(12, 1), 48), (uniform(13, 2), 133)]
)
def test_a_proof_takes_few_nodes(problem: QuadraticAssignment, most: int) -> None:
    """One thread, and the optimum from the start: so the number of nodes is always the same."""
    search = Proof(problem, int(problem.objective(np.arange(problem.n))), 2)
    search.wait(120)
    assert search.finished
    assert search.best is not None
    proof = Proof(problem, search.best[0], 1)
    proof.wait(120)
    assert proof.finished
    assert proof.nodes <= most
