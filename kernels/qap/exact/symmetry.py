"""Permutations that change nothing: of locations among equal distances, of facilities among equal flows."""

import numpy as np

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Bytes, Indices, Integers

AUTOMORPHISMS = 2000
STEPS = 200_000
"""The most permutations of a side that are kept, and steps to look for them: fewer symmetries, never a wrong one."""


def representatives(candidates: Integers, automorphisms: list[Integers], fixed: Integers) -> set[int]:
    """The least of each class of candidates under the automorphisms that leave every fixed index in place."""
    least = {int(c): int(c) for c in candidates}
    for g in automorphisms:
        if (g[fixed] == fixed).all():
            for c in candidates:
                a, b = least[int(c)], least[int(g[c])]
                if a != b:
                    low, high = min(a, b), max(a, b)
                    least = {key: low if value == high else value for key, value in least.items()}
    return set(least.values())


def mapping(sources: set[int], target: int, automorphisms: list[Integers], fixed: Integers) -> Integers | None:
    """An automorphism that leaves every fixed index in place and maps a source to the target; None if none is known."""
    for g in automorphisms:
        if (g[fixed] == fixed).all() and any(g[source] == target for source in sources):
            return g
    return None


def automorphisms(problem: QuadraticAssignment, stop: Bytes | None = None) -> tuple[list[Integers], list[Integers]]:
    """Permutations of facilities, and of locations, that change no objective; at most AUTOMORPHISMS of each.

    Fewer once `stop` (1,) is set.
    """
    linear = np.zeros_like(problem.flow) if problem.linear is None else problem.linear
    if problem.forbidden is not None:
        linear = np.where(problem.forbidden, np.abs(linear).max() + 1, linear)
    return _group(problem.flow, linear, stop), _group(problem.distance, linear.T, stop)


def _group(matrix: Integers, linear: Integers, stop: Bytes | None) -> list[Integers]:
    """Permutations g with matrix[g, g] = matrix and linear[g] = linear, by backtracking over equal signatures."""
    n = matrix.shape[0]
    marks = [
        (matrix[i, i], tuple(np.sort(matrix[i])), tuple(np.sort(matrix[:, i])), tuple(linear[i])) for i in range(n)
    ]
    found: list[Indices] = []
    image = np.full(n, -1)
    steps = 0

    def extend(depth: int) -> None:
        nonlocal steps
        if depth == n:
            found.append(image.copy())
            return
        for c in range(n):
            steps += 1
            if steps > STEPS or len(found) >= AUTOMORPHISMS or (stop is not None and stop[0]):
                return
            if c in image[:depth] or marks[c] != marks[depth]:
                continue
            seen = image[:depth]
            if (matrix[c, seen] == matrix[depth, :depth]).all() and (matrix[seen, c] == matrix[:depth, depth]).all():
                image[depth] = c
                extend(depth + 1)
                image[depth] = -1

    extend(0)
    return found
