"""A dense and a sparse auction, compared with SciPy."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, save_npz
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from kernels.demonstration import Demonstration, require
from kernels.problems import Array


def demonstrations() -> tuple[Demonstration, ...]:
    """Both."""
    return dense(150), sparse(1000)


def dense(n: int) -> Demonstration:
    """Sent as JSON."""
    benefit = np.random.default_rng(3).integers(1, 10_000, (n, n))

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        best = int(benefit[linear_sum_assignment(benefit, maximize=True)].sum())
        require(answer["objective"] == best, "the dense auction differs from SciPy", answer)

    return Demonstration("auction", f"{n} x {n}", "json", check, inputs={"benefit": benefit.tolist()})


def sparse(n: int) -> Demonstration:
    """Sent as the .npz that SciPy writes."""
    rng = np.random.default_rng(4)
    graph = csr_array((rng.random((n, n)) < 0.1) * rng.integers(1, 10_000, (n, n)))
    graph.setdiag(1)
    stream = io.BytesIO()
    save_npz(stream, graph)

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        best = int(graph[min_weight_full_bipartite_matching(graph, maximize=True)].sum())
        require(answer["objective"] == best, "the sparse auction differs from SciPy", answer)

    size = f"{n} x {n}, {graph.nnz} edges"
    return Demonstration(
        "auction, CSR", size, "file", check, name="benefit", data=stream.getvalue(), filename="graph.npz"
    )
