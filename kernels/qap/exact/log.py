"""The log of a branch and bound, from which others re-check the tree and this solver goes on with it.

Bytes: MAGIC, n (1), what the problem hashes to (16), the incumbent that leaves were closed against (8, signed, of the
problem in integers), two exponents (2 each, signed; flow times 2^a and distance times 2^b are those integers), how many
automorphisms (2), a checksum of all other bytes (8); of each automorphism its side (0 facilities, 1 locations) and its
n images. Then the tree in preorder, a byte a node. With m facilities left, a code below m branches on that facility (of
those left, ascending): its children are all locations left. A code from m to 2 m - 1 branches on a location in the same
way. The other codes:
    LEAF  nothing below is better than the incumbent
    TWIN  two more bytes, an automorphism: it leaves what is fixed in place and maps an earlier or later sibling here
    OPEN  not searched yet
docs/decisions/proof-logs.md says why.
"""

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Bytes

MAGIC = b"ALLOTBB1"
HEAD = struct.Struct("<8sB16sqhhH8s")
CHECKSUM = slice(HEAD.size - 8, HEAD.size)
LEAF, TWIN, OPEN = 255, 254, 253
Side = tuple[int, bytes]
"""An automorphism: of facilities (0) or locations (1), and its images."""


class Unreadable(ValueError):
    """These bytes are no log of that problem."""


@dataclass(eq=False)
class Record:
    """A node as the log has it: a code and its children, or the bytes of a whole subtree."""

    code: int = OPEN
    children: list["Record"] = field(default_factory=list)
    raw: bytes = b""
    twin: Side | None = None

    @property
    def open(self) -> bool:
        """Whether anything below is left to search; a subtree in bytes is closed, or was cut short by the clock."""
        return not self.raw and (self.code == OPEN or any(child.open for child in self.children))

    def pieces(self, table: list[Side]) -> Iterator[bytes]:
        """The bytes in preorder; automorphisms that are not in the table yet are put there."""
        if self.raw:
            yield self.raw
        elif self.twin is not None:
            if self.twin not in table:
                table.append(self.twin)
            yield struct.pack("<BH", TWIN, table.index(self.twin))
        else:
            yield bytes([self.code])
            for child in self.children:
                yield from child.pieces(table)


CLOSED = Record(LEAF, raw=bytes([LEAF]))
"""Every leaf that was read."""


@dataclass(eq=False)
class Log:
    """A tree, and the objective that its leaves were closed against."""

    root: Record
    incumbent: int
    table: list[Side] = field(default_factory=list)
    exponents: tuple[int, int] = (0, 0)

    def sealed(self, problem: QuadraticAssignment) -> Bytes:
        """The log as bytes, (size,) uint8, for that problem."""
        body = b"".join(self.root.pieces(self.table))
        sides = b"".join(bytes([side]) + images for side, images in self.table)
        a, b = self.exponents
        head = HEAD.pack(MAGIC, problem.n, fingerprint(problem), self.incumbent, a, b, len(self.table), bytes(8))
        return summed(np.frombuffer(head + sides + body, np.uint8))


def summed(log: Bytes) -> Bytes:
    """The same log with the checksum that it should have."""
    found = log.copy()
    found[CHECKSUM] = np.frombuffer(_checksum(log.tobytes()), np.uint8)
    return found


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data[: CHECKSUM.start] + data[CHECKSUM.stop :]).digest()[:8]


def resealed(log: Bytes, before: QuadraticAssignment, after: QuadraticAssignment) -> Bytes:
    """The same tree for the same problem in other units; the log of yet another problem as it is."""
    found, ours = log.copy(), np.frombuffer(fingerprint(before), np.uint8)
    if found.size >= HEAD.size and (found[9:25] == ours).all():
        found[9:25] = np.frombuffer(fingerprint(after), np.uint8)
        return summed(found)
    return found


def resumable(problem: QuadraticAssignment, objective: int, exponents: tuple[int, int]) -> Log | None:
    """The problem's log where a tree can go on with it: closed against nothing better, and in the same integers."""
    if problem.log is None:
        return None
    try:
        found = read(problem.log, problem)
    except Unreadable:
        return None
    return found if found.incumbent >= objective and found.exponents == exponents else None


def is_of(log: Bytes, problem: QuadraticAssignment) -> bool:
    """Whether it is a log of that problem."""
    try:
        read(log, problem)
    except Unreadable:
        return False
    return True


def fingerprint(problem: QuadraticAssignment) -> bytes:
    """Of the problem's numbers as fractions, whatever type they have; forbidden pairs have none."""
    whole = hashlib.sha256(str(problem.n).encode())
    linear = np.zeros_like(problem.flow) if problem.linear is None else problem.linear
    for name, matrix in (("flow", problem.flow), ("distance", problem.distance), ("linear", linear)):
        barred = problem.forbidden if name == "linear" else None
        for at, x in enumerate(matrix.ravel().tolist()):
            none = barred is not None and bool(barred.flat[at])
            whole.update(b"none;" if none else b"%d/%d;" % x.as_integer_ratio())
    return whole.digest()[:16]


def read(log: Bytes, problem: QuadraticAssignment) -> Log:
    """The log as records; subtrees without anything open stay bytes.

    Raises:
        Unreadable: it is no log, or not this problem's.
    """
    data, n = log.astype(np.uint8).tobytes(), problem.n
    if len(data) < HEAD.size:
        raise Unreadable("is too short for a log of a proof")
    magic, of_n, print_, incumbent, a, b, count, checksum = HEAD.unpack_from(data)
    if checksum != _checksum(data):
        raise Unreadable("has other bytes than it was written with")
    if magic != MAGIC or of_n != n:
        raise Unreadable("is no log of a proof of this size")
    if print_ != fingerprint(problem):
        raise Unreadable("is the log of another problem")
    start = HEAD.size + count * (n + 1)
    rows = [data[at : at + n + 1] for at in range(HEAD.size, start, n + 1)]
    try:
        root, end, _ = _record(data, start, n)
    except IndexError:
        raise Unreadable("ends within its tree") from None
    if end != len(data):
        raise Unreadable("goes on after its tree")
    return Log(root, incumbent, [(row[0], row[1:]) for row in rows], (a, b))


def _record(data: bytes, at: int, m: int) -> tuple[Record, int, bool]:
    """The node at that byte with m facilities left, where it ends, and whether anything below is open."""
    code = data[at]
    if code == LEAF:
        return CLOSED, at + 1, False
    if code == OPEN:
        return Record(code), at + 1, True
    if code == TWIN:
        return Record(code, raw=data[at : at + 3]), at + 3, False
    if code >= 2 * m:
        raise Unreadable("names a facility or location that is not left")
    children, end, some = [], at + 1, False
    for _ in range(m):
        child, end, open_ = _record(data, end, m - 1)
        children.append(child)
        some = some or open_
    return (Record(code, children) if some else Record(code, raw=data[at:end])), end, some
