"""True optima of small problems in whole numbers and fractions, by the most obvious algorithm that is fast enough."""

from fractions import Fraction
from itertools import permutations
from typing import Any

Table = list[list[int | None]]
TABLED = 9
"""Columns up to which every set of taken columns is looked at."""


def least_assignment(cost: Table) -> int | None:
    """The least sum of min(n_rows, n_cols) entries, no line twice; None where forbidden entries leave none."""
    if len(cost) > len(cost[0]):
        cost = [list(line) for line in zip(*cost, strict=True)]
    return _by_sets(cost) if len(cost[0]) <= TABLED else _by_paths(cost)


def _by_sets(cost: Table) -> int | None:
    """Row after row, the cheapest way to each set of taken columns."""
    best = {0: 0}
    for row in cost:
        found: dict[int, int] = {}
        for taken, paid in best.items():
            for j, entry in enumerate(row):
                if entry is None or taken >> j & 1:
                    continue
                now, known = taken | 1 << j, found.get(taken | 1 << j)
                if known is None or paid + entry < known:
                    found[now] = paid + entry
        best = found
    return min(best.values(), default=None)


def _by_paths(cost: Table) -> int | None:
    """Row after row, the cheapest way to add it: Bellman-Ford on alternating paths. Forbidden entries cost too much."""
    much = 1 + 2 * len(cost) * max((abs(c) for row in cost for c in row if c is not None), default=0)
    full = [[much if c is None else c for c in row] for row in cost]
    row_of: dict[int, int] = {}
    for new in range(len(full)):
        reach, came = list(full[new]), [-1] * len(full[0])
        for _ in range(len(full)):
            for j, i in row_of.items():
                for k, entry in enumerate(full[i]):
                    if k != j and reach[j] - full[i][j] + entry < reach[k]:
                        reach[k], came[k] = reach[j] - full[i][j] + entry, j
        k = min((k for k in range(len(full[0])) if k not in row_of), key=lambda k: reach[k])
        while came[k] >= 0:
            row_of[k] = row_of[came[k]]
            k = came[k]
        row_of[k] = new
    if any(cost[i][j] is None for j, i in row_of.items()):
        return None
    return sum(full[i][j] for j, i in row_of.items())


def least_of_pairs(cost: Table, pairs: int) -> int | None:
    """The least sum of exactly so many entries, no line twice: row after row, the cheapest way to each set."""
    best = {0: 0}
    for row in cost:
        found = dict(best)
        for taken, paid in best.items():
            for j, entry in enumerate(row):
                if entry is None or taken >> j & 1 or taken.bit_count() >= pairs:
                    continue
                now = taken | 1 << j
                if now not in found or paid + entry < found[now]:
                    found[now] = paid + entry
        best = found
    return min((paid for taken, paid in best.items() if taken.bit_count() == pairs), default=None)


def least_largest(cost: Table, pairs: int) -> int | None:
    """The least number such that so many pairs can be formed of entries up to it."""
    for most in sorted({entry for row in cost for entry in row if entry is not None}):
        below = [[0 if entry is not None and entry <= most else None for entry in row] for row in cost]
        if least_of_pairs(below, pairs) is not None:
            return most
    return None


def least_quadratic(flow: list[list[int]], distance: list[list[int]], linear: Table) -> int | None:
    """The least objective of every permutation without a forbidden pair."""
    n, best = len(flow), None
    for p in permutations(range(n)):
        singles = [linear[i][k] for i, k in enumerate(p)]
        if None in singles:
            continue
        total = sum(x for x in singles if x is not None)
        for i, k in enumerate(p):
            near = distance[k]
            total += sum(f * near[m] for f, m in zip(flow[i], p, strict=True))
        if best is None or total < best:
            best = total
    return best


def can_be_carried(
    a: list[Fraction], b: list[Fraction], allowed: Any, exact_a: bool, exact_b: bool, to_the_last: bool = False
) -> bool:
    """Whether some plan on the allowed entries has the exact sides: a largest flow, in fractions.

    Masses that are not carried count for nothing where they are as small as rounding; `to_the_last` they do not, once b
    has the mass of a.
    """
    if not (exact_a or exact_b):
        return True
    if any(a) != any(b):  # the plan is 0
        return not ((exact_a and any(a)) or (exact_b and any(b)))
    columns = [{j for j in range(len(b)) if allowed[i][j] and a[i] and b[j]} for i in range(len(a))]
    if not exact_b:
        return all(columns[i] or not a[i] for i in range(len(a)))
    if not exact_a:
        return all(any(j in line for line in columns) or not b[j] for j in range(len(b)))
    if to_the_last and any(b):
        b = [mass * sum(a) / sum(b) for mass in b]
    left, open_, flow = list(a), list(b), [[Fraction(0)] * len(b) for _ in a]
    while path := _augmenting(columns, left, open_, flow):
        most = min([left[path[0]], open_[path[-1]], *(flow[path[k + 1]][path[k]] for k in range(1, len(path) - 1, 2))])
        left[path[0]] -= most
        open_[path[-1]] -= most
        for k in range(len(path) - 1):
            i, j = (path[k], path[k + 1]) if k % 2 == 0 else (path[k + 1], path[k])
            flow[i][j] += most if k % 2 == 0 else -most
    return not any(left) or (not to_the_last and sum(left) * 2**40 < sum(a))  # masses that differ by rounding are one


def _augmenting(
    columns: list[set[int]], left: list[Fraction], open_: list[Fraction], flow: list[list[Fraction]]
) -> list[int]:
    """A shortest path row, column, row, ..., column that can carry more; empty when there is none."""
    paths: list[list[int]] = [[i] for i, rest in enumerate(left) if rest]
    rows: set[int] = {path[0] for path in paths}
    met: set[int] = set()
    for path in paths:
        for j in columns[path[-1]] - met:
            met.add(j)
            if open_[j]:
                return [*path, j]
            for i in range(len(left)):
                if i not in rows and flow[i][j]:
                    rows.add(i)
                    paths.append([*path, j, i])
    return []
