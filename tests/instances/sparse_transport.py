"""Seeded transport problems on the entries of a sparse cost: what is stored, what masses look like, what is exact."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels import Array, Csr, Inputs
from tests.instances import Case


def stored(cost: Array, there: Array) -> Csr:
    """The entries of a matrix that are marked, as CSR."""
    rows, columns = np.nonzero(there)
    indptr = np.searchsorted(rows, np.arange(len(cost) + 1)).astype(np.int64)
    return Csr(indptr, columns.astype(np.int32), cost[rows, columns], (cost.shape[0], cost.shape[1]))


def graph(m: int, n: int, share: float = 0.2, low: float = 0.0) -> dict[str, Any]:
    """Random entries, each row and column with one at least; masses that some plan on them has."""
    rng = np.random.default_rng([7, m, n])
    there = rng.random((m, n)) < share
    longer = np.arange(max(m, n))
    there[longer % m, longer % n] = True
    plan = np.where(there, rng.random((m, n)) + 0.01, 0.0)
    plan /= plan.sum()
    return {"cost": stored(rng.random((m, n)) + low, there), "a": plan.sum(axis=1), "b": plan.sum(axis=0)}


def neighbours(n: int, k: int) -> dict[str, Any]:
    """Of points in the square and their k nearest among others: no plan need exist between exact sides."""
    rng = np.random.default_rng([8, n, k])
    x, y = rng.random((n, 2)), rng.random((n, 2))
    cost = ((x[:, None] - y) ** 2).sum(-1)
    there = np.zeros((n, n), bool)
    np.put_along_axis(there, np.argsort(cost, axis=1)[:, :k], True, axis=1)
    return {"cost": stored(cost, there)}


def lonely(m: int, n: int) -> dict[str, Any]:
    """`graph` with an empty row, an empty column, and lines without mass."""
    given = graph(m, n)
    there = dense(given["cost"]) < np.inf
    there[m // 2] = there[:, n // 3] = False
    given["cost"] = stored(np.where(there, dense(given["cost"]), 0.0), there)
    given["a"][::5] = 0
    given["b"][-2:] = 0
    return given


def unsorted(m: int, n: int) -> dict[str, Any]:
    """`graph` with the entries of each row in another order."""
    given = graph(m, n)
    cost, rng = given["cost"], np.random.default_rng(9)
    order = np.concatenate([start + rng.permutation(end - start) for start, end in _runs(cost)])
    return given | {"cost": Csr(cost.indptr, cost.indices[order], cost.values[order], cost.shape)}


def blocks(count: int, m: int, n: int) -> dict[str, Any]:
    """Problems side by side, without an entry between them."""
    parts = [graph(m, n + k, 0.4) for k in range(count)]
    there = np.zeros((count * m, sum(n + k for k in range(count))), bool)
    cost, column = np.zeros(there.shape), 0
    for k, part in enumerate(parts):
        block = dense(part["cost"])
        some = slice(k * m, (k + 1) * m), slice(column, column + n + k)
        there[some], cost[some], column = block < np.inf, np.where(block < np.inf, block, 0.0), column + n + k
    masses = {name: np.concatenate([part[name] for part in parts]) for name in "ab"}
    return {"cost": stored(cost, there), **masses}


def dense(cost: Csr) -> Array:
    """As a matrix with +inf where nothing is stored."""
    found = np.full(cost.shape, np.inf)
    for i, (start, end) in enumerate(_runs(cost)):
        found[i, cost.indices[start:end]] = cost.values[start:end]
    return found


def _runs(cost: Csr) -> list[tuple[int, int]]:
    return list(zip(cost.indptr[:-1].tolist(), cost.indptr[1:].tolist(), strict=True))


def _case(label: str, inputs: Callable[[], Inputs], **options: object) -> Case:
    return Case("uot", f"sparse-{label}", inputs, options)


CASES: list[Case] = [
    _case("plain", functools.partial(graph, 40, 50), reg=0.05, reg_m=1.0),
    _case("auto", functools.partial(graph, 40, 50)),
    _case("strong", functools.partial(graph, 40, 50), reg=0.01, reg_m=100.0),
    _case("two-strengths", functools.partial(graph, 30, 50), reg=0.05, reg_m=(0.5, 5.0)),
    _case("uniform", functools.partial(graph, 40, 50), reg=0.05, reg_m=1.0, reference="uniform"),
    _case("negative", functools.partial(graph, 40, 50, 0.2, -0.5), reg=0.05, reg_m=2.0),
    _case("rows", functools.partial(graph, 40, 50), reg=0.05, reg_m=("inf", 1.0)),
    _case("columns", functools.partial(graph, 40, 50), reg=0.05, reg_m=(1.0, "inf")),
    _case("balanced", functools.partial(graph, 40, 50), reg=0.02, reg_m="inf"),
    _case("balanced-uniform", functools.partial(graph, 40, 50), reg=0.02, reg_m="inf", reference="uniform"),
    _case("balanced-blocks", functools.partial(blocks, 4, 8, 9), reg=0.02, reg_m="inf"),
    _case("blocks", functools.partial(blocks, 4, 8, 9), reg=0.02, reg_m=3.0),
    _case("small-reg", functools.partial(graph, 40, 50), reg=1e-3, reg_m="inf", tolerance=1e-5),
    _case("neighbours", functools.partial(neighbours, 60, 4), reg=0.01, reg_m=1.0),
    _case("no-plan", functools.partial(neighbours, 60, 4), reg=0.01, reg_m="inf"),
    _case("lonely", functools.partial(lonely, 40, 50), reg=0.05, reg_m=1.0),
    _case("lonely-uniform", functools.partial(lonely, 40, 50), reg=0.05, reg_m=1.0, reference="uniform"),
    _case("lonely-rows", functools.partial(lonely, 40, 50), reg=0.05, reg_m=("inf", 1.0)),
    _case("unsorted", functools.partial(unsorted, 40, 50), reg=0.05, reg_m=1.0),
    _case("one-entry", functools.partial(graph, 1, 1), reg=0.05, reg_m=1.0),
]
