"""A QAPLIB file of places on a grid, every improvement of which is followed as it is found."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.demonstration import Demonstration, require
from kernels.problems import Array


def demonstrations() -> tuple[Demonstration, ...]:
    """One."""
    return (grid(3, 4),)


def grid(rows: int, columns: int) -> Demonstration:
    """Random flows between facilities, and steps between places."""
    places = np.array([(i, j) for i in range(rows) for j in range(columns)])
    n = len(places)
    distance = np.abs(places[:, None] - places[None]).sum(axis=2)
    half = np.triu(np.random.default_rng(6).integers(0, 10, (n, n)), 1)
    flow = half + half.T
    lines = [" ".join(map(str, row)) for matrix in (flow, distance) for row in matrix.tolist()]

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        permutation = arrays["permutation"]
        require(sorted(permutation.tolist()) == list(range(n)), "that is no permutation", answer)
        found = int((flow * distance[np.ix_(permutation, permutation)]).sum())
        require(answer["objective"] == found, f"the permutation costs {found}", answer)
        require(answer["certificate"]["bound"] <= found, "the lower bound is above the answer", answer)

    name = f"grid{n}.dat"
    text = "\n".join([str(n), "", *lines, ""])
    return Demonstration(
        f"qap {name}", f"{n}", "followed", check, name="qaplib", data=text.encode(), filename=name,
        options={"seed": 1}, seconds=5, ahead=compile_search_and_proof,
    )  # fmt: skip


def compile_search_and_proof() -> None:
    """Those of small integers: the proof of a solve runs in threads that its answer does not wait for."""
    from kernels.qap.cpu.solver import warm_up_for

    warm_up_for(np.int64, 9)
