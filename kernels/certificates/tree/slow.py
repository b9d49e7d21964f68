"""A branch and bound's tree, proved again from its log: a second implementation, slow, for `allot verify`.

The problem is that of exact/quadratic.py: integers of any length over one power of two. Where they are longer than 50
bits in sum, bounds are worked out for numbers that are cut, and a leaf has to be closed by as much more as that may
change. What lies nearer is priced in full. The form of a log stands in docs/decisions/proof-logs.md.
"""

from fractions import Fraction
from hashlib import sha256
from itertools import permutations
from math import floor

import numpy as np

from kernels.certificates.exact.quadratic import Problem
from kernels.certificates.exact.statement import Inputs, plain
from kernels.certificates.tree.slow_bound import Part, cut, raised, step

AT_ROOT, INSIDE, AT_LEAF = (200, 3000), (14, 10), (30, 10)
"""Sweeps at most, and how many like the last may still be needed for another to be made."""
OWN_NODES, FEW = 20_000, 3
LEAF, TWIN, OPEN = 255, 254, 253
HEAD = 47


class NotProved(ValueError):
    """The log says something else than that nothing is better."""


class Unfinished(ValueError):
    """The log says that it was not searched to the end."""


def prove(inputs: Inputs, problem: Problem, answer: list[int], log: bytes) -> str:
    """Show that no permutation costs less than the answer; returns what was looked at, in words.

    Raises:
        NotProved, Unfinished: with why.
    """
    n = problem.n
    if len(log) <= HEAD or log[:8] != b"ALLOTBB1" or log[8] != n:
        raise NotProved("the log is none of a problem of this size")
    if log[39:HEAD] != sha256(log[:39] + log[HEAD:]).digest()[:8]:
        raise NotProved("the log has other bytes than it was written with")
    if log[9:25] != fingerprint(inputs, problem):
        raise NotProved("the log is that of another problem")
    at = HEAD + int.from_bytes(log[37:39], "little") * (n + 1)
    if at >= len(log):
        raise NotProved("the log ends before its tree")
    symmetries = [(log[k], list(log[k + 1 : k + 1 + n])) for k in range(HEAD, at, n + 1)]
    for side, g in symmetries:
        if side > 1 or sorted(g) != list(range(n)) or not _changes_nothing(problem, side, g):
            raise NotProved("a symmetry of the log is none of the problem")
    walk, everyone = _Walk(problem, answer, log, symmetries), list(range(n))
    rows, columns = np.zeros((2, n, n, n), np.int64)
    root = Part(everyone, everyone, {}, rows, columns, walk.data.forbidden.copy())
    if walk.node(at, root, False) != len(log):  # first whether it covers everything, which is fast
        raise NotProved("the log goes on after its tree")
    if walk.open:
        raise Unfinished(f"{walk.open} nodes of the tree were not searched")
    walk.leaves = walk.twins = 0
    walk.node(at, root, True)
    return f"{walk.leaves} leaves and {walk.twins} twins cover every permutation, and all leaves were proved"


def fingerprint(inputs: Inputs, problem: Problem) -> bytes:
    """Of the numbers as fractions, as a log's header has it."""
    parts = [str(problem.n)]
    for name in ("flow", "distance"):
        parts += [_fraction(Fraction(x)) for x in np.asarray(inputs[name]).ravel().tolist()]
    parts += ["none;" if x is None else _fraction(Fraction(x, 2**problem.shift)) for row in problem.linear for x in row]
    return sha256("".join(parts).encode()).digest()[:16]


def _fraction(x: Fraction) -> str:
    return f"{x.numerator}/{x.denominator};"


def _changes_nothing(problem: Problem, side: int, g: list[int]) -> bool:
    """Whether facilities (0) or locations (1) that are renamed so leave every cost as it is."""
    n, matrix, linear = problem.n, problem.distance if side else problem.flow, problem.linear
    if any(matrix[g[i]][g[k]] != matrix[i][k] for i in range(n) for k in range(n)):
        return False
    return [[linear[i][g[k]] if side else linear[g[i]][k] for k in range(n)] for i in range(n)] == linear


class _Walk:
    """A pass over the log, which may prove each leaf where it stands."""

    def __init__(
        self, problem: Problem, answer: list[int], log: bytes, symmetries: list[tuple[int, list[int]]]
    ) -> None:
        self.problem, self.log, self.symmetries = problem, log, symmetries
        self.data, self.answer = cut(problem), problem.value(answer)
        self.leaves = self.twins = self.open = 0
        exact = self.answer * 2**problem.shift / 2**self.data.bits + self.data.error
        # a bound that is larger closes a leaf
        self.above = floor(exact) if self.data.bits else floor(exact) - step(problem)

    def node(self, at: int, part: Part, needed: bool) -> int:
        """Check the subtree at that byte, and prove its leaves where that is still needed; returns where it ends."""
        m = len(part.facilities)
        if at >= len(self.log):
            raise NotProved("a child is missing")
        code = self.log[at]
        if code == LEAF:
            self.leaves += 1
            if needed:
                self._leaf(part, OWN_NODES)
        self.open += code == OPEN
        if code in (LEAF, OPEN):
            return at + 1
        if code >= 2 * m:
            raise NotProved("a node branches on what is not left")
        if needed and m > FEW:
            needed = not raised(self.data, part, self.above, *(INSIDE if part.placed else AT_ROOT))
        return self._children(at, part, needed)

    def _children(self, at: int, part: Part, needed: bool) -> int:
        m, code, end = len(part.facilities), self.log[at], at + 1
        side = int(code < m)
        searched, twins = [], []
        for a, choice in enumerate(part.locations if side else part.facilities):
            if self.log[end : end + 1] == bytes([TWIN]):
                twins.append((choice, int.from_bytes(self.log[end + 1 : end + 3], "little")))
                end += 3
                continue
            searched.append(choice)
            i, j = (code, a) if side else (a, code - m)
            end = self.node(end, part.below(i, j), needed and not part.closed[i, j])
        fixed = part.placed.values() if side else part.placed.keys()
        for choice, number in twins:
            if number >= len(self.symmetries) or self.symmetries[number][0] != side:
                raise NotProved("a twin has no symmetry of its side")
            g = self.symmetries[number][1]
            if any(g[x] != x for x in fixed) or all(g[x] != choice for x in searched):
                raise NotProved("a twin's symmetry moves what is fixed, or comes from no child that is searched")
        self.twins += len(twins)
        return end

    def _leaf(self, part: Part, nodes: int) -> int:
        """Show that nothing below is better; returns how many nodes of its own are still allowed."""
        m = len(part.facilities)
        if m <= FEW:
            for order in permutations(part.locations):
                places = {**part.placed, **dict(zip(part.facilities, order, strict=True))}
                self._price([places[i] for i in range(self.problem.n)])
            return nodes
        if raised(self.data, part, self.above, *(AT_LEAF if part.placed else AT_ROOT)):
            return nodes
        open_ = ~part.closed
        line = int(np.concatenate((open_.sum(axis=1), open_.sum(axis=0))).argmin())
        for a in range(m):
            i, j = (line, a) if line < m else (a, line - m)
            if open_[i, j]:
                if nodes <= 0:
                    raise NotProved("a leaf of the tree could not be closed")
                nodes = self._leaf(part.below(i, j), nodes - 1)
        return nodes

    def _price(self, p: list[int]) -> None:
        if any(self.problem.forbidden(i, k) for i, k in enumerate(p)):
            return
        value = self.problem.value(p)
        if value < self.answer:
            raise NotProved(f"a permutation costs {plain(value)}, which is less")
