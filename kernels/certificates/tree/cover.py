"""Reads the log of a branch and bound: its tree covers every permutation, or it is refused.

The form is written down in docs/decisions/proof-logs.md. A branched node has a child for each choice that is left, so
its children together hold every permutation that it holds. A twin is a child of which an automorphism makes another
child: what one costs, the other does. That an automorphism changes nothing is checked here, entry by entry.
"""

import hashlib
import struct
from dataclasses import dataclass, field

import numpy as np

from kernels.problems import Array, QuadraticAssignment

MAGIC, HEAD = b"ALLOTBB1", "<8sB16sqhhH8s"
LEAF, TWIN, OPEN = 255, 254, 253
LARGEST_N = 36


class Refused(ValueError):
    """The log is none, or does not cover every permutation."""


@dataclass(eq=False)
class Tree:
    """A tree that covers every permutation.

    Attributes:
        codes: a byte a node, in preorder; ends: of each node, where its subtree ends.
        leaves: where the leaves are, ascending; opened: how many nodes were not searched; twins: how many are others'.
        incumbent, exponents: what the header says.
    """

    n: int
    codes: bytes
    incumbent: int
    exponents: tuple[int, int]
    ends: dict[int, int] = field(default_factory=dict)
    leaves: list[int] = field(default_factory=list)
    opened: int = 0
    twins: int = 0


def read(log: Array, problem: QuadraticAssignment) -> Tree:
    """The tree of a log.

    Raises:
        Refused: with why.
    """
    if log.ndim != 1 or log.dtype.kind not in "iu" or (log.size and (int(log.min()) < 0 or int(log.max()) > 255)):
        raise Refused("the log is not bytes")
    data, size = log.astype(np.uint8).tobytes(), struct.calcsize(HEAD)
    if len(data) < size:
        raise Refused("the log has no header")
    magic, n, print_, incumbent, a, b, count, checksum = struct.unpack_from(HEAD, data)
    if checksum != hashlib.sha256(data[: size - 8] + data[size:]).digest()[:8]:
        raise Refused("the log has other bytes than it was written with")
    if magic != MAGIC or n != problem.n or not 4 <= n <= LARGEST_N:
        raise Refused("the log is none of a problem of this size")
    if print_ != fingerprint(problem):
        raise Refused("the log is that of another problem")
    body = size + count * (n + 1)
    if body >= len(data):
        raise Refused("the log ends before its tree")
    images = [data[at : at + n + 1] for at in range(size, body, n + 1)]
    tree = Tree(n, data[body:], incumbent, (a, b))
    maps = [_automorphism(problem, one[0], list(one[1:])) for one in images]
    everyone = list(range(n))
    if _node(tree, maps, 0, everyone, everyone, {}) != len(tree.codes):
        raise Refused("the log goes on after its tree")
    return tree


def fingerprint(problem: QuadraticAssignment) -> bytes:
    """Of every number as a fraction in lowest terms; a forbidden pair has none."""
    linear = np.zeros((problem.n, problem.n), np.int64) if problem.linear is None else problem.linear
    forbidden = np.zeros((problem.n, problem.n), bool) if problem.forbidden is None else problem.forbidden
    barred = forbidden.ravel().tolist()
    parts = [str(problem.n)]
    for matrix in (problem.flow, problem.distance):
        parts += ["{}/{};".format(*x.as_integer_ratio()) for x in matrix.ravel().tolist()]
    for x, none in zip(linear.ravel().tolist(), barred, strict=True):
        parts.append("none;" if none else "{}/{};".format(*x.as_integer_ratio()))
    return hashlib.sha256("".join(parts).encode()).digest()[:16]


def _automorphism(problem: QuadraticAssignment, side: int, g: list[int]) -> tuple[int, list[int]]:
    """Facilities (0) or locations (1) renamed, and no cost changes."""
    matrix = problem.distance if side else problem.flow
    if side > 1 or sorted(g) != list(range(problem.n)) or not (matrix[np.ix_(g, g)] == matrix).all():
        raise Refused("a symmetry of the log is none of the problem")
    for costs in (problem.linear, problem.forbidden):
        if costs is not None and not ((costs[:, g] if side else costs[g]) == costs).all():
            raise Refused("a symmetry of the log is none of the problem's linear costs")
    return side, g


def _node(
    tree: Tree, maps: list[tuple[int, list[int]]], at: int, facilities: list[int], locations: list[int],
    placed: dict[int, int],
) -> int:  # fmt: skip
    """Check the subtree that begins at that byte; returns where it ends."""
    m, codes = len(facilities), tree.codes
    if at >= len(codes):
        raise Refused("a child is missing")
    code = codes[at]
    if code in (LEAF, OPEN):
        if code == LEAF:
            tree.leaves.append(at)
        tree.opened += code == OPEN
        return at + 1
    if code >= 2 * m:
        raise Refused("a node branches on what is not left" if code != TWIN else "a twin has no siblings")
    side, end = int(code < m), at + 1
    choices = locations if side else facilities
    own, twins = set(), {}
    for a, choice in enumerate(choices):
        found = codes[end] if end < len(codes) else None
        if found == LEAF:  # most are, and of them nothing else is known
            tree.leaves.append(end)
            own.add(choice)
            end += 1
            continue
        if found == TWIN:
            if end + 3 > len(codes):
                raise Refused("a twin has no symmetry")
            twins[choice] = struct.unpack_from("<H", codes, end + 1)[0]
            end += 3
            continue
        own.add(choice)
        i, k = (code, a) if side else (a, code - m)
        below = {**placed, facilities[i]: locations[k]}
        end = _node(tree, maps, end, facilities[:i] + facilities[i + 1 :], locations[:k] + locations[k + 1 :], below)
    still = list(placed.values()) if side else list(placed)
    for choice, number in twins.items():
        if number >= len(maps) or maps[number][0] != side:
            raise Refused("a twin has no symmetry of its side")
        g = maps[number][1]
        if any(g[x] != x for x in still) or g.index(choice) not in own:
            raise Refused("a twin's symmetry moves what is fixed, or comes from no child that is searched")
    tree.twins += len(twins)
    tree.ends[at] = end
    return end
