"""QAPLIB text to arrays: `.dat` (n, flow, distance) and `.sln` (n, objective, permutation).

Blank lines, wrapped rows, commas, floats and one extra number on the first line of a `.dat` are good input.
Nothing is allocated from the n that a file claims: the tokens are counted first.
"""

import re
from dataclasses import dataclass

import numpy as np

from kernels.problems import Array, InvalidProblem, QuadraticAssignment

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
FIELD = "qaplib"


@dataclass(frozen=True)
class _Token:
    text: str
    line: int
    place: int

    @property
    def where(self) -> str:
        return f"line {self.line}, token {self.place}"


def parse_dat(text: str) -> tuple[Array, Array]:
    """Read a QAPLIB instance.

    Returns:
        flow and distance, (n, n), both int64, or both float64 when any entry has a point or an exponent.

    Raises:
        InvalidProblem: names the line and token, what was found and what was expected.
    """
    tokens = _numbers(text)
    n = _size(tokens)
    wanted = 2 * n * n
    rest = tokens[1:]
    first_line = sum(token.line == tokens[0].line for token in tokens[:3])
    if len(rest) == wanted + 1 and first_line == 2:
        rest = rest[1:]  # some published files carry the best-known value beside n
    if len(rest) < wanted:
        raise InvalidProblem(
            FIELD,
            f"ends at {tokens[-1].where} after {len(rest)} matrix entries; "
            f"expected {wanted} (two {n} x {n} matrices, from n = {n} on line {tokens[0].line})",
        )
    if len(rest) > wanted:
        extra = rest[wanted]
        raise InvalidProblem(
            FIELD,
            f"holds {extra.text!r} at {extra.where}, beyond the {wanted} entries of two {n} x {n} matrices; "
            "expected the end of the file",
        )
    values = _array(rest).reshape(2, n, n)
    return values[0].copy(), values[1].copy()


def parse_sln(text: str, flow: Array, distance: Array) -> tuple[Array, int | float]:
    """Read a QAPLIB solution of the instance (flow, distance).

    Base (0 or 1) and direction (facility to location, or the inverse) are recognised by recomputing the objective.

    Returns:
        the permutation facility -> location, (n,) int64 from 0, and its objective.

    Raises:
        InvalidProblem: as `parse_dat`, and when no reading has the objective that the file claims.
    """
    tokens = _numbers(text)
    n = _size(tokens)
    if n != flow.shape[0]:
        raise InvalidProblem(
            FIELD, f"solves n = {n} ({tokens[0].where}); expected n = {flow.shape[0]}, as the instance"
        )
    if len(tokens) != n + 2:
        raise InvalidProblem(
            FIELD, f"ends at {tokens[-1].where} with {len(tokens)} numbers; expected n, the objective and {n} places"
        )
    for token in tokens[2:]:
        if not INTEGER.fullmatch(token.text) or len(token.text) > 9 or not 0 <= int(token.text) <= n:
            raise InvalidProblem(FIELD, f"holds {token.text!r} at {token.where}; expected a place in 0 to {n}")
    places = np.array([int(token.text) for token in tokens[2:]], dtype=np.int64)
    places -= int(places.min())
    if sorted(places.tolist()) != list(range(n)):
        raise InvalidProblem(FIELD, "is no permutation: expected each of 1 to n (or 0 to n - 1) once")
    claimed = _array(tokens[1:2])[0]
    problem = QuadraticAssignment(flow, distance)
    costs = []
    for permutation in (places, np.argsort(places)):
        costs.append(problem.objective(permutation))
        if abs(costs[-1] - claimed) <= 1e-9 * abs(claimed):
            return permutation, costs[-1]
    raise InvalidProblem(
        FIELD,
        f"claims objective {tokens[1].text} at {tokens[1].where}; "
        f"found {costs[0]} for its permutation and {costs[1]} for the inverse",
    )


def _numbers(text: str) -> list[_Token]:
    tokens = [
        _Token(word, number, place)
        for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1)
        for place, word in enumerate(line.replace(",", " ").split(), 1)
    ]
    if not tokens:
        raise InvalidProblem(FIELD, "is empty; expected n and two n x n matrices")
    for token in tokens:
        if not NUMBER.fullmatch(token.text):
            raise InvalidProblem(FIELD, f"holds {token.text[:40]!r} at {token.where}; expected a number")
    return tokens


def _size(tokens: list[_Token]) -> int:
    first = tokens[0]
    if not INTEGER.fullmatch(first.text) or len(first.text) > 18 or int(first.text) < 1:
        raise InvalidProblem(FIELD, f"holds n = {first.text[:40]} at {first.where}; expected an integer of at least 1")
    return int(first.text)


def _array(tokens: list[_Token]) -> Array:
    if all(INTEGER.fullmatch(token.text) for token in tokens):
        limit = np.iinfo(np.int64)
        for token in tokens:
            if len(token.text) > 18 and (len(token.text) > 20 or not limit.min <= int(token.text) <= limit.max):
                raise InvalidProblem(FIELD, f"holds {token.text[:40]} at {token.where}; expected an integer of 64 bits")
        return np.array([int(token.text) for token in tokens], dtype=np.int64)
    values = np.array([float(token.text) for token in tokens], dtype=np.float64)
    if not np.isfinite(values).all():
        token = tokens[int((~np.isfinite(values)).argmax())]
        raise InvalidProblem(FIELD, f"holds {token.text[:40]} at {token.where}; expected a finite float64")
    return values
