"""Auctions on a GPU whose edges are numbered beyond 2^31 and 2^32: a number that is cut off would read another edge."""

import os
from typing import Any

import numpy as np
import pytest

from benchmarks.auction_graphs import many_planted, many_uniform, planted_columns, planted_duals
from kernels import SOLVERS, Csr, Deadline, Termination
from kernels.on_device import Certifier
from kernels.solution import unheard
from tests.conftest import need_gpu

pytestmark = pytest.mark.gpu
CARD = SOLVERS["auction"]
GIB = 1 << 30


@pytest.fixture(autouse=True)
def _gpu() -> None:
    need_gpu()


def need_memory(host: int, device: int) -> None:
    """Skip where there is less than so many bytes."""
    import cupy

    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = int(cupy.cuda.runtime.memGetInfo()[0])
    if pages < host or free < device:
        pytest.skip(f"{pages / GIB:.0f} GiB of the host and {free / GIB:.0f} of the GPU are free")


def solved(benefit: Any, **given: Any) -> tuple[Any, Any]:
    """Solution and certificate of a whole solve."""
    options = CARD.options(**given)
    problem = CARD.build({"benefit": benefit}, options)
    certifier = Certifier(CARD, problem, "gpu")
    solution = CARD.solve(problem, options, Deadline(60), "gpu")
    return solution, certifier.certify(solution, unheard)


def far(arrays: dict[str, Any], first: int) -> dict[str, Any]:
    """The same graph with edges numbered from `first` on: an array begins so much before what it holds.

    Nothing there is read, so that there need be no memory.
    """
    import cupy

    moved = {"indptr": arrays["indptr"] + first}
    for name in ("indices", "values"):
        part = arrays[name]
        moved[name] = cupy.ndarray(part.shape, part.dtype, part.data - first * part.dtype.itemsize)
    return moved


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int64, np.float64])
@pytest.mark.parametrize("first", [2**31 - 5000, 2**31 + 77, 2**32 - 5000, 2**32 + 77])
@pytest.mark.parametrize(("n", "degree"), [(700, 40), (3000, 300)])
def test_edges_are_found_whatever_their_number(
    monkeypatch: pytest.MonkeyPatch, first: int, dtype: Any, n: int, degree: int
) -> None:
    from kernels.auction import gpu_buffers

    near = gpu_buffers._graph
    monkeypatch.setattr(gpu_buffers, "_graph", lambda weights: far(near(weights), first))
    for make, given in ((many_planted, {}), (many_uniform, {}), (many_uniform, {"epsilon": 5.0, "finish": "auction"})):
        benefit = make(n, degree, dtype)
        solution, certificate = solved(benefit, **given)
        assert certificate.holds
        if given:
            assert solution.termination is Termination.GAP_REACHED
        else:
            check_optimal(solution, certificate)
        if make is many_planted:
            np.testing.assert_array_equal(solution.arrays["assignment"], planted_columns(n))


def test_an_old_answer_is_found_whatever_the_number_of_its_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.auction import gpu_buffers

    near = gpu_buffers._graph
    monkeypatch.setattr(gpu_buffers, "_graph", lambda weights: far(near(weights), 2**32 + 77))
    benefit, options = many_planted(2000, 100, np.int32), CARD.options()
    old = {"assignment0": planted_columns(2000), "prices0": planted_duals(2000)[1]}
    problem = CARD.build({"benefit": benefit, **old}, options)
    solution = CARD.solve(problem, options, Deadline(60), "gpu")
    assert CARD.certify(problem, solution).holds
    np.testing.assert_array_equal(solution.arrays["assignment"], planted_columns(2000))


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_a_graph_of_more_edges_than_31_bits_number(dtype: Any) -> None:
    n, degree = 1_100_000, 2000
    need_memory(40 * GIB, 28 * GIB)
    benefit = many_planted(n, degree, dtype)
    assert isinstance(benefit, Csr)
    assert benefit.values.size > 2**31
    check_planted(benefit, n)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_a_matrix_of_more_entries_than_31_bits_number(dtype: Any) -> None:
    n = 46_400
    need_memory(24 * GIB, 16 * GIB)
    benefit = many_planted(n, n, dtype)
    assert not isinstance(benefit, Csr)
    assert benefit.size > 2**31
    check_planted(benefit, n)


def check_optimal(solution: Any, certificate: Any) -> None:
    """Exact in integers; in floats within what steps of the fixed point come to."""
    if solution.arrays["prices"].dtype.kind == "i":
        assert solution.termination is Termination.OPTIMAL
        assert certificate.gap_abs == 0
    else:
        assert certificate.gap_abs <= 1e-8 * certificate.objective


def check_planted(benefit: Any, n: int) -> None:
    solution, certificate = solved(benefit)
    assert certificate.holds, certificate.proved
    check_optimal(solution, certificate)
    np.testing.assert_array_equal(solution.arrays["assignment"], planted_columns(n))
    assert certificate.objective == sum(int(duals.sum()) for duals in planted_duals(n))
