import io
import struct
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

from kernels import SOLVERS, Csr, Deadline, InvalidProblem
from kernels.auction import files


def as_scipy(graph: Csr) -> sp.csr_array:
    return sp.csr_array((graph.values, graph.indices, graph.indptr), graph.shape)


def written(matrix: object, **options: object) -> bytes:
    out = io.BytesIO()
    mmwrite(out, matrix, **options)
    return out.getvalue()


@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_generated_instances_are_feasible_and_repeat(density: float) -> None:
    graph = files.generate(40, 50, density, 7, limit=30)
    again = files.generate(40, 50, density, 7, limit=30)
    np.testing.assert_array_equal(graph.values, again.values)
    assert graph.values.min() >= 1
    assert graph.values.max() <= 30
    card = SOLVERS["auction"]
    problem = card.build({"benefit": graph}, card.options())
    assert card.certify(problem, card.solve(problem, card.options(), Deadline())).gap_abs == 0
    if density == 1:
        assert graph.indices.size == 2000


def test_the_papers_file_comes_back() -> None:
    graph = files.generate(6, 9, 0.4, 1)
    back = files.read_paper(files.write_paper(graph))
    assert isinstance(back, Csr)
    assert (as_scipy(back) != as_scipy(graph)).nnz == 0
    dense = np.arange(12, dtype=np.int32).reshape(3, 4)
    np.testing.assert_array_equal(files.read_paper(files.write_paper(dense)), dense)


def test_an_instance_is_written_from_the_command_line() -> None:
    command = [sys.executable, "-m", "kernels.auction.files", "6", "9", "0.4", "--seed", "1", "--limit", "50"]
    back = files.read_paper(subprocess.run(command, capture_output=True, check=True).stdout)
    assert isinstance(back, Csr)
    assert (as_scipy(back) != as_scipy(files.generate(6, 9, 0.4, 1, limit=50))).nnz == 0


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrixmarket_coordinates_are_read(field: str) -> None:
    graph = files.generate(8, 11, 0.3, 3)
    back = files.read_mtx(written(as_scipy(graph).tocoo(), field=field, comment="a\n\n% b"))
    assert isinstance(back, Csr)
    expected = graph.values if field != "pattern" else np.ones(graph.values.size)
    np.testing.assert_array_equal(back.values, expected)
    np.testing.assert_array_equal(back.indices, graph.indices)


def test_matrixmarket_symmetry_and_arrays_are_read() -> None:
    full = np.array([[1, 5], [5, 2]])
    back = files.read_mtx(written(sp.coo_array(full), symmetry="symmetric"))
    assert isinstance(back, Csr)
    np.testing.assert_array_equal(as_scipy(back).toarray(), full)
    np.testing.assert_array_equal(files.read_mtx(written(np.array([[1.5, 2, 3], [4, 5, 6]]))), [[1.5, 2, 3], [4, 5, 6]])


MTX = b"%%MatrixMarket matrix coordinate integer general\n"


@pytest.mark.parametrize(
    ("reader", "data"),
    [
        (files.read_paper, b"123"),
        (files.read_paper, struct.pack("<ii", 2, 2) + b"\0" * 12),
        (files.read_paper, struct.pack("<ii", 2**30, 2**30) + b"\0" * 16),
        (files.read_paper, struct.pack("<ii", -2, -2) + b"\0" * 16),
        (files.read_mtx, b""),
        (files.read_mtx, b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n"),
        (files.read_mtx, MTX + b"2 2\n"),
        (files.read_mtx, MTX + b"2 2 x\n"),
        (files.read_mtx, MTX + b"2 2 1000000000000\n1 1 1\n"),
        (files.read_mtx, MTX + b"100000000 100000000 1\n1 1 1\n"),
        (files.read_mtx, MTX + b"2 2 1\n3 1 1\n"),
        (files.read_mtx, MTX + b"2 2 1\n0 1 1\n"),
        (files.read_mtx, MTX + b"2 2 1\n1 1 1.5\n"),
        (files.read_mtx, MTX + b"2 2 1\n1 1 one\n"),
        (files.read_mtx, MTX + b"2 2 1\n1 1 1\n1 2 3\n"),
        (files.read_mtx, b"%%MatrixMarket matrix array real general\n1000000 1000000\n1\n"),
    ],
)
def test_broken_files_are_refused(reader: object, data: bytes) -> None:
    with pytest.raises(InvalidProblem):
        reader(data)  # type: ignore[operator]


def test_an_instance_that_cannot_be_is_refused() -> None:
    for wrong in ((3, 2, 0.5, 1), (0, 2, 0.5, 1), (2, 2, 1.5, 1), (2, 2, 0.5, 1, 0)):
        with pytest.raises(InvalidProblem):
            files.generate(*wrong)
