"""Proves the leaves of a tree again, in exact integers: nothing that they leave out costs less than the answer.

What is left of the problem below a node is a quadratic assignment of its own, over the facilities and locations that
are left. Its bound (loops.py) is worked out from the data. Prices that were found for a node are where its children
begin, and pairs that it closed stay closed below. A leaf that does not close at once is branched on here. With three
facilities left every permutation is priced.
"""

import time
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations

import numpy as np

from kernels.certificates.quadratic_exact import Whole
from kernels.certificates.tree.cover import Tree
from kernels.problems import Array, QuadraticAssignment

LARGEST = 1 << 51
SWEEPS_AT_ROOT, SWEEPS, SWEEPS_OF_LEAF = 150, 12, 30
PATIENCE_AT_ROOT, PATIENCE, PATIENCE_OF_LEAF = 2000, 8, 10
OWN_NODES = 20_000
"""Nodes that are made below one leaf before it is given up."""
PIECE = 30_000_000
"""Of sweeps between two looks at the clock, in m^5 each: about 0.2 s."""
PARTS_A_THREAD, POLL_S = 8, 0.05
LEAST_S, LEAST_SHARE, HOPELESS = 1.0, 0.1, 4.0
"""After so long since the first leaf, and so much of the time: all is given up where it would take so many times the
time that there is. Sooner, but not before the first: where it would take as many times more as that is sooner."""
FEW, KEPT_DEPTH = 3, 1
"""Facilities left, below which all is priced; how many are placed where prices are kept for another run."""


class Unproved(ValueError):
    """A leaf holds something better than the answer, or was not shown to hold nothing."""


class OutOfTime(Exception):
    """The time that there was is over."""


@dataclass(eq=False)
class Part:
    """What is left below a node, the prices found so far, and the pairs that nothing better uses."""

    facilities: list[int]
    locations: list[int]
    placed: dict[int, int]
    rows: Array
    columns: Array
    closed: Array


@dataclass(eq=False)
class Recheck:
    """A proof that no permutation costs less than the answer.

    Attributes:
        data: the problem in integers, or near it; need: what the cost of a permutation in `data` has to be at least.
        price: the true cost of a permutation; answer: that of the answer.
        ends_at: on the monotonic clock.
        proved: leaves of the present run so far.
    """

    problem: QuadraticAssignment
    data: Whole
    need: int
    step: int
    price: Callable[[list[int]], Fraction]
    answer: Fraction
    ends_at: float
    scale: int = field(init=False)
    proved: int = 0
    _high: dict[int, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scale, size = 1, _size(self.data)
        if size >= LARGEST:
            raise Unproved("its numbers are too large to be checked in int64")
        while self.scale < 1024 and size * self.scale * 2 < LARGEST:
            self.scale *= 2

    def run(self, tree: Tree, wanted: list[int]) -> None:
        """Prove the leaves at those bytes, ascending.

        Raises:
            Unproved, OutOfTime.
        """
        n, self.proved = tree.n, 0
        closed = np.zeros((n, n), bool) if self.problem.forbidden is None else self.problem.forbidden.copy()
        zeros = np.zeros((n, n, n), np.int64)
        self._walk(tree, wanted, 0, Part(list(range(n)), list(range(n)), {}, zeros, zeros.copy(), closed))

    def _walk(self, tree: Tree, wanted: list[int], at: int, part: Part) -> None:
        """Prove what is wanted of the subtree at that byte."""
        count = _below_byte(tree, wanted, at)
        if count == 0:
            return
        if at in self._high:
            self._children(tree, wanted, at, self._high[at])
            return
        if at not in tree.ends:
            self._leaf(part, OWN_NODES)
        elif not self._bounded(part, *self._effort(part)):
            if len(part.placed) <= KEPT_DEPTH:
                self._high[at] = part
            self._children(tree, wanted, at, part)
            return
        self.proved += count

    def _children(self, tree: Tree, wanted: list[int], at: int, part: Part) -> None:
        code, m, end = tree.codes[at], len(part.facilities), at + 1
        for a in range(m):
            if tree.codes[end] == 254:
                end += 3
                continue
            i, k = (code, a) if code < m else (a, code - m)
            if not part.closed[i, k]:
                self._walk(tree, wanted, end, _below(part, i, k))
            else:
                self.proved += _below_byte(tree, wanted, end)
            end = tree.ends.get(end, end + 1)

    def _effort(self, part: Part) -> tuple[int, int]:
        return (SWEEPS, PATIENCE) if part.placed else (SWEEPS_AT_ROOT, PATIENCE_AT_ROOT)

    def _leaf(self, part: Part, nodes: int) -> int:
        """Prove that nothing below is better; returns how many of its own nodes are still allowed."""
        if self._impossible(part):
            return nodes
        if len(part.facilities) <= FEW:
            self._price_all(part)
            return nodes
        if self._bounded(part, *((SWEEPS_OF_LEAF, PATIENCE_OF_LEAF) if part.placed else self._effort(part))):
            return nodes
        m, open_ = len(part.facilities), ~part.closed
        line = int(np.concatenate((open_.sum(axis=1), open_.sum(axis=0))).argmin())
        for a in range(m):
            i, k = (line, a) if line < m else (a, line - m)
            if open_[i, k]:
                if nodes <= 0:
                    raise Unproved("a leaf of the tree could not be closed")
                nodes = self._leaf(_below(part, i, k), nodes - 1)
        return nodes

    def _impossible(self, part: Part) -> bool:
        """Whether something that is placed may not be where it is, or is closed above."""
        forbidden = self.problem.forbidden
        return forbidden is not None and any(forbidden[i, k] for i, k in part.placed.items())

    def _bounded(self, part: Part, sweeps: int, patience: int) -> bool:
        """Whether the bound of that part says that nothing below is better."""
        from kernels.certificates.tree import loops

        self._look_at_the_clock()
        if len(part.facilities) <= FEW:
            return False
        f, d, data = part.facilities, part.locations, self.data
        single, own = self._single(part)
        need = (self.need - self.step) * self.scale + 1 - own * self.scale
        if abs(need) > 1 << 55:
            return False
        flow, distance = (np.ascontiguousarray(a[np.ix_(x, x)]) for a, x in ((data.flow, f), (data.distance, d)))
        piece, done, more, total = max(1, PIECE // len(f) ** 5), 0, True, 0
        while more and done < sweeps:
            self._look_at_the_clock()
            total, more = loops.improve(
                flow, distance, single * self.scale, part.rows, part.columns, part.closed, self.scale, need,
                min(piece, sweeps - done), patience, done,
            )  # fmt: skip
            done += piece
        return bool(total >= need)

    def _look_at_the_clock(self) -> None:
        if time.monotonic() > self.ends_at:
            raise OutOfTime

    def _single(self, part: Part) -> tuple[Array, int]:
        """What each pair that is left pays alone and with those that are placed; and what the placed ones pay."""
        f, d, data = part.facilities, part.locations, self.data
        fixed, places = list(part.placed), list(part.placed.values())
        single = data.linear[np.ix_(f, d)] + np.outer(data.flow[f, f], data.distance[d, d])
        single = single + data.flow[np.ix_(f, fixed)] @ data.distance[np.ix_(d, places)].T
        single = single + data.flow[np.ix_(fixed, f)].T @ data.distance[np.ix_(places, d)]
        among = (data.flow[np.ix_(fixed, fixed)] * data.distance[np.ix_(places, places)]).sum()
        return np.ascontiguousarray(single), int(among) + int(data.linear[fixed, places].sum())

    def _price_all(self, part: Part) -> None:
        """Price the few permutations that are left, truly where they are near."""
        p = np.empty(self.problem.n, np.int64)
        for i, k in part.placed.items():
            p[i] = k
        forbidden = self.problem.forbidden
        for order in permutations(part.locations):
            p[part.facilities] = order
            if forbidden is not None and forbidden[np.arange(len(p)), p].any():
                continue
            cost = int((self.data.flow * self.data.distance[np.ix_(p, p)]).sum())
            cost += int(self.data.linear[np.arange(len(p)), p].sum())
            if cost < self.need and self.price(p.tolist()) < self.answer:
                raise Unproved("a better permutation was found")


def prove_all(checks: list[Recheck], tree: Tree, heard: Callable[[float], None]) -> None:
    """Prove every leaf, with a thread for each of these equal checks; `heard` is told from this thread.

    Raises:
        Unproved, OutOfTime: the first that a thread came upon. OutOfTime early, where it is sure to come.
    """
    parts = np.array_split(np.array(tree.leaves), len(checks) * PARTS_A_THREAD)
    done, begun, first = [0] * len(checks), time.monotonic(), float("inf")

    def work(own: int) -> None:
        for part in parts[own :: len(checks)]:
            if part.size:
                checks[own].run(tree, part.tolist())
                checks[own].proved = 0
                done[own] += part.size

    def stop() -> None:
        for check in checks:
            check.ends_at = 0.0
        wait(left)

    with ThreadPoolExecutor(len(checks)) as pool:
        left = {pool.submit(work, own) for own in range(len(checks))}
        while left:
            ended, left = wait(left, timeout=POLL_S, return_when=FIRST_EXCEPTION)
            heard(sum(done) / len(tree.leaves))
            wrong = next((one.exception() for one in ended if one.exception()), None)
            if wrong is not None:
                stop()
                raise wrong
            now, proved = time.monotonic(), sum(done) + sum(check.proved for check in checks)
            first = min(first, now) if proved else first
            if left and hopeless(now - first, proved / len(tree.leaves), checks[0].ends_at - begun):
                stop()
                raise OutOfTime


def prove_some(checks: list[Recheck], tree: Tree, leaves: list[int]) -> int:
    """Prove those leaves one by one, with a thread for each of these equal checks, and say how many were.

    A sample that the clock cuts short is one still.

    Raises:
        Unproved: the first that a thread came upon.
    """
    waiting, proved = iter(leaves), [0] * len(checks)

    def work(own: int) -> None:
        try:
            for leaf in waiting:
                checks[own].run(tree, [leaf])
                proved[own] += 1
        except OutOfTime:
            return
        except BaseException:
            for check in checks:
                check.ends_at = 0.0
            raise

    with ThreadPoolExecutor(len(checks)) as pool:
        for task in [pool.submit(work, own) for own in range(len(checks))]:
            task.result()
    return sum(proved)


def hopeless(since_s: float, share: float, seconds: float) -> bool:
    """Whether leaves of which so large a share took that long, since the first, are too many for the whole time."""
    if since_s <= LEAST_S:
        return False
    sooner = max(1.0, LEAST_SHARE * seconds / since_s)
    return since_s > HOPELESS * sooner * seconds * share


def _below_byte(tree: Tree, wanted: list[int], at: int) -> int:
    """How many leaves that are wanted lie in the subtree at that byte."""
    return bisect_left(wanted, tree.ends.get(at, at + 1)) - bisect_left(wanted, at)


def _below(part: Part, i: int, k: int) -> Part:
    """The part with its facility i at its location k."""
    m = len(part.facilities)
    rows, columns = [a for a in range(m) if a != i], [b for b in range(m) if b != k]
    return Part(
        [part.facilities[a] for a in rows],
        [part.locations[b] for b in columns],
        {**part.placed, part.facilities[i]: part.locations[k]},
        np.ascontiguousarray(part.rows[np.ix_(rows, columns, rows)]),
        np.ascontiguousarray(part.columns[np.ix_(rows, columns, columns)]),
        np.ascontiguousarray(part.closed[np.ix_(rows, columns)]),
    )


def _size(data: Whole) -> int:
    """No objective, nor any part of one, is larger."""
    flow, distance = np.abs(data.flow), np.abs(data.distance)
    linear = sum(max(map(abs, row)) for row in data.linear.tolist())
    sums = [sum(map(sum, matrix.tolist())) for matrix in (flow, distance)]
    return int(min(sums[0] * int(distance.max()), sums[1] * int(flow.max())) + linear)
