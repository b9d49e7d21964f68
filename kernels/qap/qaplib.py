"""QAPLIB text to arrays: `.dat` (n, flow, distance) and `.sln` (n, objective, permutation).

Blank lines, wrapped rows, commas, floats and one extra number on the first line of a `.dat` are good input.
Nothing is allocated from the n that a file claims before there are as many bytes, and no more numbers are looked for
than that n asks for, and one.
"""

import re
from collections.abc import Callable
from typing import NoReturn, cast

import numpy as np

from kernels.problems import Array, InvalidProblem, QuadraticAssignment
from kernels.problems.arrays import Amounts, AnyIndices, Indices

NOT_A_NUMBER = re.compile(rb"(?:^|(?<=[\s,]))(?![+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[\s,]|$))[^\s,]+", re.ASCII)
INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
BLANKS = b" \t\n\r\v\f,"
FIRST = re.compile(rb"[ \t\n\r\v\f,]*+([^ \t\n\r\v\f,]++)")
BLOCK = 1 << 18
"""Bytes that are looked at in one go."""
OF_NUMBERS = b"0123456789+-.eE"
SAFE_DIGITS = 18
"""An integer of so many characters fits int64."""
FIELD = "qaplib"


class _Numbers:
    """The numbers of a text, counted and read by compiled code; a token's line is looked for only to blame it.

    A text of 4 million numbers takes 0.2 s and 8 bytes a number beside it. Numbers beyond the first `most(n)` and one
    more are not looked for.
    """

    def __init__(self, text: str, most: Callable[[int], int]) -> None:
        self._bytes = text.removeprefix("\ufeff").encode("utf-8", "replace")
        first = FIRST.match(self._bytes)
        if first is None:
            raise InvalidProblem(FIELD, "is empty; expected n and two n x n matrices")
        self._starts, self._ends = np.array([first.start(1)]), np.array([first.end(1)])
        enough = most(self.size()) + 1
        starts, ends = list[AnyIndices](), list[AnyIndices]()
        found, blank = 0, np.zeros(256, bool)
        blank[list(BLANKS)] = True
        before, kind = True, np.int32 if len(self._bytes) < 2**31 else np.int64
        for at in range(0, len(self._bytes), BLOCK):
            block = blank[np.frombuffer(self._bytes, np.uint8, min(BLOCK, len(self._bytes) - at), at)]
            edges = np.flatnonzero(np.diff(block, prepend=before))
            opening = edges[~block[edges]]
            starts.append((at + opening).astype(kind))
            ends.append((at + edges[block[edges]]).astype(kind))
            before, found = bool(block[-1]), found + opening.size
            if found > enough:
                break
        if not before and found <= enough:
            ends.append(np.array([len(self._bytes)], kind))
        self._starts = _joined(starts)[:enough]
        self._ends = _joined(ends)[:enough]
        self._starts = self._starts[: self._ends.size]

    def __len__(self) -> int:
        return len(self._starts)

    def text(self, k: int) -> str:
        """Token k, cut short for a message."""
        return self._bytes[self._starts[k] : min(self._ends[k], self._starts[k] + 100)].decode(errors="replace")

    def line(self, k: int) -> int:
        """The line of token k, from 1."""
        ends = [self._bytes.count(end, 0, self._starts[k]) for end in (b"\n", b"\r", b"\r\n")]
        return 1 + ends[0] + ends[1] - ends[2]

    def where(self, k: int) -> str:
        """The line of token k and its place there, from 1."""
        begin = 1 + max(self._bytes.rfind(end, 0, self._starts[k]) for end in (b"\n", b"\r"))
        return f"line {self.line(k)}, token {1 + k - int(np.searchsorted(self._starts, begin))}"

    def on_the_first_line(self) -> int:
        """Tokens on the line of the first one."""
        ends = [at for end in (b"\n", b"\r") if (at := self._bytes.find(end, self._starts[0])) >= 0]
        return int(np.searchsorted(self._starts, min(ends, default=len(self._bytes))))

    def size(self) -> int:
        """The first number: n."""
        first = self.text(0)
        if not INTEGER.fullmatch(first) or len(first) > SAFE_DIGITS or int(first) < 1:
            raise InvalidProblem(FIELD, f"holds n = {first[:40]} at {self.where(0)}; expected an integer of at least 1")
        return int(first)

    def values(self, first: int, last: int) -> Amounts:
        """Tokens `first` to `last` - 1: int64, or float64 when any has a point or an exponent.

        Raises:
            InvalidProblem: names the first that is no number, or that its type cannot hold.
        """
        part = self._bytes[self._starts[first] : self._ends[last - 1]]
        if part.translate(None, OF_NUMBERS + BLANKS):
            self._blame(first, last)
        whole = not any(mark in part for mark in (b".", b"e", b"E"))
        try:
            kind = np.int64 if whole else np.float64
            found: Array = np.fromstring(part.replace(b",", b" ").decode("ascii"), kind, sep=" ")
        except ValueError:  # text that is no number
            found = np.empty(0)
        if len(found) != last - first:  # it reads "1-2" as two numbers
            self._blame(first, last)
        if whole:
            for k in (first + np.flatnonzero((self._ends - self._starts)[first:last] > SAFE_DIGITS)).tolist():
                if self._ends[k] - self._starts[k] > SAFE_DIGITS + 2 or not -(2**63) <= int(self.text(k)) < 2**63:
                    raise InvalidProblem(
                        FIELD, f"holds {self.text(k)[:40]} at {self.where(k)}; expected an integer of 64 bits"
                    )
        elif not np.isfinite(found).all():
            k = first + int((~np.isfinite(found)).argmax())
            raise InvalidProblem(FIELD, f"holds {self.text(k)[:40]} at {self.where(k)}; expected a finite float64")
        return found

    def _blame(self, first: int, last: int) -> NoReturn:
        begin = int(self._starts[first])
        wrong = NOT_A_NUMBER.search(self._bytes[begin : self._ends[last - 1]])
        k = int(np.searchsorted(self._starts, begin + (wrong.start() if wrong else 0)))
        raise InvalidProblem(FIELD, f"holds {self.text(k)[:40]!r} at {self.where(k)}; expected a number")


def _joined(parts: list[AnyIndices]) -> AnyIndices:
    """All parts behind each other; each is let go of as soon as it is copied."""
    whole, at = np.empty(sum(part.size for part in parts), parts[0].dtype), 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[at : at + part.size] = part
        at += part.size
    return whole


def parse_dat(text: str) -> tuple[Amounts, Amounts]:
    """Read a QAPLIB instance.

    Returns:
        flow and distance, (n, n), both int64, or both float64 when any entry has a point or an exponent.

    Raises:
        InvalidProblem: names the line and token, what was found and what was expected.
    """
    tokens = _Numbers(text, lambda n: 2 * n * n + 2)
    del text  # it can be long, and the tokens hold its bytes
    n = tokens.size()
    wanted, first = 2 * n * n, 1
    if len(tokens) == wanted + 2 and tokens.on_the_first_line() == 2:
        first = 2  # some published files carry the best-known value beside n
    found = len(tokens) - first
    if found < wanted:
        raise InvalidProblem(
            FIELD,
            f"ends at {tokens.where(len(tokens) - 1)} after {found} matrix entries; "
            f"expected {wanted} (two {n} x {n} matrices, from n = {n} on line {tokens.line(0)})",
        )
    if found > wanted:
        extra = first + wanted
        raise InvalidProblem(
            FIELD,
            f"holds {tokens.text(extra)!r} at {tokens.where(extra)}, beyond the {wanted} entries of two {n} x {n} "
            "matrices; expected the end of the file",
        )
    values = tokens.values(first, len(tokens)).reshape(2, n, n)
    return values[0], values[1]


def parse_sln(text: str, flow: Amounts, distance: Amounts) -> tuple[Indices, int | float]:
    """Read a QAPLIB solution of the instance (flow, distance).

    Base (0 or 1) and direction (facility to location, or the inverse) are recognised by recomputing the objective.

    Returns:
        the permutation facility -> location, (n,) int64 from 0, and its objective.

    Raises:
        InvalidProblem: as `parse_dat`, and when no reading has the objective that the file claims.
    """
    tokens = _Numbers(text, lambda n: n + 2)
    n = tokens.size()
    if n != flow.shape[0]:
        raise InvalidProblem(
            FIELD, f"solves n = {n} ({tokens.where(0)}); expected n = {flow.shape[0]}, as the instance"
        )
    if len(tokens) != n + 2:
        last = tokens.where(len(tokens) - 1)
        raise InvalidProblem(
            FIELD, f"ends at {last} with {len(tokens)} numbers; expected n, the objective and {n} places"
        )
    places = cast(Indices, tokens.values(2, n + 2))
    outside = np.flatnonzero((places < 0) | (places > n)) if places.dtype.kind == "i" else np.arange(1)
    for k in outside.tolist():
        raise InvalidProblem(
            FIELD, f"holds {tokens.text(2 + k)[:40]!r} at {tokens.where(2 + k)}; expected a place in 0 to {n}"
        )
    places -= int(places.min())
    if sorted(places.tolist()) != list(range(n)):
        raise InvalidProblem(FIELD, "is no permutation: expected each of 1 to n (or 0 to n - 1) once")
    claimed = tokens.values(1, 2)[0]
    problem = QuadraticAssignment(flow, distance)
    costs = []
    for permutation in (places, np.argsort(places)):
        costs.append(problem.objective(permutation))
        if abs(costs[-1] - claimed) <= 1e-9 * abs(claimed):
            return permutation, costs[-1]
    raise InvalidProblem(
        FIELD,
        f"claims objective {tokens.text(1)} at {tokens.where(1)}; "
        f"found {costs[0]} for its permutation and {costs[1]} for the inverse",
    )
