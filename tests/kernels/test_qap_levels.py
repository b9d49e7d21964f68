"""Trees that grow by levels, as a device's do: what they prove, their logs, and going on with one."""

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest

from kernels.certificates.tree.cover import read
from kernels.problems import Array, QuadraticAssignment
from kernels.qap.exact import ledger, log
from kernels.qap.exact.ledger import Ledger
from kernels.qap.exact.proof import Proof
from tests.kernels.hosted import planted
from tests.kernels.test_qap_branch import grid, uniform
from tests.kernels.test_qap_tree import KINDS, best_of, instance, judged
from tests.oracles import quadratic as oracle


def leg(problem: QuadraticAssignment, best: Array, log_bytes: int = 1 << 20, before: Any = None, **how: Any) -> Proof:
    """A tree from that permutation to its end, or to what stops it."""
    resumed = None if before is None else log.resumable(with_log(problem, before), int(problem.objective(best)), (0, 0))
    assert (resumed is None) == (before is None)
    proof = Proof(problem, int(problem.objective(best)), 1, planted(**how), 0, log_bytes, resumed)
    proof.wait(120)
    assert not proof._thread.is_alive()
    return proof


@cache
def cut() -> tuple[QuadraticAssignment, Array, Array]:
    """A problem that several tests cut short, its optimum, and the log of its whole tree."""
    problem = uniform(13, 5)
    best = best_of(problem)
    return problem, best, sealed(leg(problem, best))


def with_log(problem: QuadraticAssignment, sealed: Array) -> QuadraticAssignment:
    return dataclasses.replace(problem, log=sealed)


def sealed(proof: Proof) -> Array:
    assert proof.log is not None
    return proof.log.sealed(proof.problem)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_optimum_and_its_log_proves_it(seed: int, kind: str) -> None:
    problem = instance(seed, 9, kind)
    start = leg(problem, best_of(problem) if kind == "forbidden" else np.arange(9))
    best = start.best[1] if start.best else best_of(problem)
    linear = problem.linear
    if problem.forbidden is not None:
        assert linear is not None
        linear = np.where(problem.forbidden, 10**6, linear)
    assert problem.objective(best) == oracle.optimum(problem.flow, problem.distance, linear)
    for proof in (start, leg(problem, best)):
        assert proof.finished
        certificate = judged(problem, best, sealed(proof))
        assert certificate.facts["verified"] is True
        assert certificate.facts["tree"]["open"] == 0


@pytest.mark.parametrize("problem", [grid(3, 4, 1), grid(3, 3, 2), grid(2, 7, 1), uniform(12, 1)])
def test_symmetry_is_told_as_twins(problem: QuadraticAssignment) -> None:
    best = leg(problem, np.arange(problem.n), batch=2000).best
    assert best is not None
    proof = leg(problem, best[1], batch=2000)
    certificate = judged(problem, best[1], sealed(proof))
    assert certificate.facts["verified"] is True
    assert (certificate.facts["tree"]["twins"] > 0) == (problem.n != 12 or problem.distance.max() < 20)


@pytest.mark.parametrize(
    ("problem", "launches"),
    [(uniform(13, 2), 5), (uniform(14, 2), 5), (grid(2, 7, 1), 5), (instance(5, 12, "negative"), 5)],
)
def test_it_is_stopped_stored_and_resumed(problem: QuadraticAssignment, launches: int) -> None:
    best = best_of(problem)
    whole = leg(problem, best)
    legs, before, nodes = 0, None, 0
    while True:
        proof = leg(problem, best, before=before, after=launches)
        nodes, legs, before = nodes + proof.nodes, legs + 1, sealed(proof)
        if proof.finished:
            break
        tree = read(before, problem)
        assert tree.opened > 0
        assert judged(problem, best, before).facts["verified"] is False
    assert legs > 1
    assert nodes < 4 * whole.nodes + 100  # what is above an open node is made again in each leg
    certificate = judged(problem, best, before, resumed=True)
    assert certificate.facts["verified"] is True
    assert certificate.termination is None  # that of the solver stands


def test_threads_go_on_with_its_log_and_it_with_theirs() -> None:
    problem = grid(4, 4, 1)
    best = best_of(problem)
    stopped = leg(problem, best, after=12)
    assert not stopped.finished
    resumed = log.resumable(with_log(problem, sealed(stopped)), int(problem.objective(best)), (0, 0))
    theirs = Proof(problem, int(problem.objective(best)), 2, log_bytes=1 << 20, resumed=resumed)
    theirs.wait(0.05)
    theirs.stop()
    last = theirs if theirs.finished else leg(problem, best, before=sealed(theirs))
    assert last.finished
    assert judged(problem, best, sealed(last)).facts["verified"] is True


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_a_log_that_is_too_long_ends_in_larger_leaves(share: float) -> None:
    problem, best, whole = cut()
    most = int(share * (len(whole) - log.HEAD.size))
    short = sealed(leg(problem, best, log_bytes=most))
    assert len(short) - log.HEAD.size <= most
    certificate = judged(problem, best, short)
    assert certificate.facts["tree"]["open"] == 0
    assert certificate.facts["verified"] is True


@pytest.mark.parametrize("most", [1, 40, 200])
def test_a_stopped_log_that_is_too_long_says_what_is_open(most: int) -> None:
    problem, best, _ = cut()
    stopped = leg(problem, best, log_bytes=most, after=12)
    assert not stopped.finished
    short = sealed(stopped)
    assert len(short) - log.HEAD.size <= most
    assert read(short, problem).opened > 0
    assert leg(problem, best, before=short).finished


def test_without_a_log_none_is_kept() -> None:
    problem = instance(1, 9, "grid")
    proof = leg(problem, best_of(problem), log_bytes=0)
    assert proof.finished
    assert proof.log is None


class Naive:
    """A tree of objects, of which the ledger has to say the same."""

    def __init__(self, m: int) -> None:
        self.m, self.line, self.children, self.state = m, 0, list[Naive](), "open"
        self.row = self.place = 0
        self.raw = b""

    @property
    def closed(self) -> bool:
        return self.state == "leaf" or (self.state == "branched" and all(child.closed for child in self.children))

    def packed(self) -> bytes:
        if self.state == "branched":
            return bytes([self.line]) + b"".join(child.packed() for child in self.children)
        return self.raw or bytes([log.OPEN if self.state == "open" else log.LEAF])

    def open_nodes(self) -> list["Naive"]:
        if self.state == "branched":
            return [node for child in self.children for node in child.open_nodes()]
        return [self] if self.state == "open" else []


def grow(rng: np.random.Generator, n: int, most: int, steps: int) -> tuple[Ledger, Naive]:
    """The same steps in both."""
    book, root = Ledger(n, most, []), Naive(n)
    for _ in range(steps):
        waiting = root.open_nodes()
        if not waiting:
            break
        m = int(rng.choice([node.m for node in waiting]))
        some = [node for node in waiting if node.m == m][: int(rng.integers(1, 5))]
        if m == 2 or rng.random() < 0.4:
            book.close(m + 1, *(np.array([getattr(node, name) for node in some]) for name in ("row", "place")))
            for node in some:
                node.state = "leaf"
            continue
        entries = np.full((len(some), m), ledger.OPEN, np.int32)
        for at, node in enumerate(some):
            node.line, node.state = int(rng.integers(2 * m)), "branched"
            for place in range(m):
                child = Naive(m - 1)
                child.place = place
                node.children.append(child)
                if place and rng.random() < 0.3:
                    child.state, child.raw = "leaf", bytes([1, *[log.LEAF] * (m - 1)]) if rng.random() < 0.5 else b""
                    entries[at, place] = book.keep(child.raw) if child.raw else ledger.LEAF
        rows, places, lines = (np.array([getattr(node, name) for node in some]) for name in ("row", "place", "line"))
        found = book.branch(rows, places, lines, entries)
        for node, row in zip(some, found.tolist(), strict=True):
            for child in node.children:
                child.row = row
    return book, root


@pytest.mark.parametrize("seed", range(60))
def test_a_ledger_says_what_a_tree_of_objects_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    book, root = grow(rng, n, 1 << 30, int(rng.integers(0, 200)))
    assert book.packed() == root.packed()


@pytest.mark.parametrize("seed", range(60))
def test_a_short_ledger_loses_nothing_that_is_open(seed: int) -> None:
    """It is the tree, but for closed nodes that became leaves, and for what is open below the lowest nodes left."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    most = int(rng.integers(1, 400))
    book, root = grow(rng, n, most, 300)
    packed = book.packed()
    assert len(packed) <= most
    assert follows(packed, 0, root) == len(packed)


def follows(packed: bytes, at: int, node: Naive) -> int:
    """Where the node ends in the bytes, which say of it the same or less."""
    if packed[at] == log.LEAF:
        assert node.closed
        return at + 1
    if packed[at] == log.OPEN:
        assert not node.closed
        return at + 1
    if node.raw:
        assert packed[at : at + len(node.raw)] == node.raw
        return at + len(node.raw)
    assert packed[at] == node.line
    at += 1
    for child in node.children:
        at = follows(packed, at, child)
    return at
