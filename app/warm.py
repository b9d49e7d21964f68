"""`allot warm`: compile every CPU kernel once, after an install, so that no first job waits for it.

numba keeps what it compiles beside the source; each worker then starts in seconds. Solvers are compiled side by
side, each in a process of its own.
"""

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from kernels import SOLVERS, Array, Csr, Deadline, InvalidProblem, Solver

DTYPES = (np.float64, np.int64, np.float32, np.int32)
"""A compiled loop is one per type of its arrays."""
SOLVE_S = 0.3
SIDE = 40


def warm(args: Namespace) -> int:
    """Compile everything; 0 when every solver could be."""
    begun = time.perf_counter()
    print("Compiling the CPU solvers (once; a minute or so on two cores) ...", flush=True)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        wrong = [f"{name}: {told}" for name, told in zip(SOLVERS, pool.map(warm_one, SOLVERS), strict=True) if told]
    print("\n".join(wrong) if wrong else f"Compiled in {time.perf_counter() - begun:.0f} s.")
    return 1 if wrong else 0


def warm_one(name: str) -> str:
    """Compile one solver; "" or what went wrong."""
    try:
        card = SOLVERS[name]
        card.warm_up("cpu")
        for inputs in variants(card):
            try:
                options = card.options(**card.example.get("options", {}))
                problem = card.build(inputs, options)
            except InvalidProblem:  # this solver takes no such type
                continue
            card.certify(problem, card.solve(problem, options, Deadline(SOLVE_S), "cpu"))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def variants(card: Solver) -> Iterator[dict[str, Array | Csr]]:
    """Small inputs in each type: the card's example, and random matrices that no shortcut solves."""
    example = card.example.get("inputs", {})
    random = np.random.default_rng(0).integers(1, 100, (SIDE, SIDE))
    required = [spec for spec in card.inputs if spec.required]
    for dtype in DTYPES:
        yield {name: _cast(value, dtype) for name, value in example.items()}
        if len(required) == 1:
            matrix = random.astype(dtype)
            yield {required[0].name: matrix}
            if required[0].sparse:
                yield {required[0].name: _full(matrix)}


def _cast(value: Any, dtype: Any) -> Array | Csr:
    if isinstance(value, Mapping):
        csr = value["csr"]
        indptr, indices = np.array(csr["indptr"], np.int64), np.array(csr["indices"], np.int64)
        return Csr(indptr, indices, np.array(csr["values"]).astype(dtype), tuple(csr["shape"]))
    return np.array(value).astype(dtype)


def _full(matrix: Array) -> Csr:
    n = len(matrix)
    return Csr(np.arange(0, n * n + 1, n), np.tile(np.arange(n, dtype=np.int32), n), matrix.ravel(), (n, n))
