"""AnnData files: read with their names, and never followed out of the file."""

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.web.annotated import read_annotated
from workers.store.codec import InvalidUpload

h5py = pytest.importorskip("h5py")
PCA = np.array([[0.5, 1.5], [2.5, -1.0], [0.0, 3.0]])
Make = Callable[[Any], None]


def written(path: Path, *parts: Make) -> Path:
    """A file as anndata writes it, as far as it is read here, with whatever else the test wants."""
    with h5py.File(path, "w") as file:
        obs = file.create_group("obs")
        obs.attrs["_index"] = "barcode"
        obs.create_dataset("barcode", data=["AAA-1", "0", "=cmd"], dtype=h5py.string_dtype())
        for part in parts:
            part(file)
    return path


def embedded(file: Any) -> None:
    file.create_dataset("obsm/X_pca", data=PCA, compression="gzip")


def test_an_embedding_with_the_names_of_its_cells(tmp_path: Path) -> None:
    (sheet,) = read_annotated(written(tmp_path / "a.h5ad", embedded))
    assert sheet.name == "X_pca"
    assert sheet.rows[0] == ["cell", "X_pca 1", "X_pca 2"]
    assert sheet.rows[1:] == [["AAA-1", 0.5, 1.5], ["0", 2.5, -1.0], ["=cmd", 0.0, 3.0]]


def sparse(file: Any) -> None:
    group = file.create_group("X")
    group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", [3, 4]
    for name, data in (("data", [1.0, 2.0, 3.0]), ("indices", [3, 0, 2]), ("indptr", [0, 1, 3, 3])):
        group.create_dataset(name, data=data)


def test_expressions_that_are_stored_sparse(tmp_path: Path) -> None:
    (sheet,) = read_annotated(written(tmp_path / "a.h5ad", sparse))
    assert [row[1:] for row in sheet.rows[1:]] == [[0, 0, 0, 1], [2, 0, 3, 0], [0, 0, 0, 0]]


def wrapped(file: Any) -> None:
    sparse(file)
    del file["X/indptr"]
    third = 2**64 // 3 + 1  # three rises that go round 64 bits once and end at the three entries
    file["X"].create_dataset("indptr", data=[0, third, 2 * third - 2**64 + 1, 3])


def fractions(file: Any) -> None:
    sparse(file)
    del file["X/indices"]
    file["X"].create_dataset("indices", data=[0.5, 0.0, 2.0])


def endless(file: Any) -> None:
    sparse(file)
    file["X"].attrs["shape"] = [np.inf, 4.0]


def outside(file: Any) -> None:
    file["obsm"] = h5py.ExternalLink("/etc/passwd", "/")


def other_file(file: Any) -> None:
    file.create_dataset("obsm/X_pca", (3, 2), dtype="f8", external=[("/etc/hostname", 0, 48)])


def softly(file: Any) -> None:
    file["data"] = PCA
    file.create_group("obsm")["X_pca"] = h5py.SoftLink("/data")


def virtual(file: Any) -> None:
    layout = h5py.VirtualLayout(shape=(3, 2), dtype="f8")
    layout[:] = h5py.VirtualSource("/tmp/else.h5", "x", shape=(3, 2))
    file.create_virtual_dataset("obsm/X_pca", layout)


def huge(file: Any) -> None:
    file.create_dataset("obsm/X_pca", (100_000, 1000), dtype="f8", chunks=(100, 100), compression="gzip")


def one_chunk(file: Any) -> None:
    file.create_dataset("obsm/X_pca", (3, 2), maxshape=(None, None), chunks=(4000, 4000), dtype="f8")


def texts(file: Any) -> None:
    file.create_dataset("obsm/X_pca", data=[["a", "b"]], dtype=h5py.string_dtype())


def broken(file: Any) -> None:
    sparse(file)
    file["X/indices"][...] = [9, 0, 2]


def nothing(file: Any) -> None:
    file.create_group("uns")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (outside, "another place"),
        (softly, "another place"),
        (other_file, "other files"),
        (virtual, "other files"),
        (huge, "more than"),
        (one_chunk, "pieces of more than"),
        (texts, "expected numbers"),
        (broken, "no valid sparse matrix"),
        (wrapped, "no valid sparse matrix"),
        (fractions, "no valid sparse matrix"),
        (endless, "cannot be read as an AnnData file: OverflowError"),
        (nothing, "neither X nor"),
    ],
)
def test_what_leads_elsewhere_or_is_too_much_is_refused(tmp_path: Path, part: Make, words: str) -> None:
    with pytest.raises(InvalidUpload, match=words):
        read_annotated(written(tmp_path / "a.h5ad", part))


def test_names_that_are_one_long_text_again_and_again_end_soon(tmp_path: Path) -> None:
    def repeated(file: Any) -> None:
        embedded(file)
        del file["obs/barcode"]
        file.create_dataset("obs/barcode", data=["x" * (1 << 20)] * 100, dtype=h5py.string_dtype())

    with pytest.raises(InvalidUpload, match="characters of names"):
        read_annotated(written(tmp_path / "a.h5ad", repeated))


def test_no_such_file_and_no_such_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.h5ad").write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 99)
    with pytest.raises(InvalidUpload, match="cannot be read as an AnnData file"):
        read_annotated(tmp_path / "a.h5ad")
    real = builtins.__import__

    def absent(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "h5py":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(InvalidUpload, match=r"allot\[annotated\]"):
        read_annotated(tmp_path / "a.h5ad")


def test_cells_of_two_files_are_aligned(client: httpx.Client, tmp_path: Path) -> None:
    references = {}
    for name in ("x", "y"):
        content = written(tmp_path / f"{name}.h5ad", embedded).read_bytes()
        told = client.post("/v1/previews", params={"filename": f"{name}.h5ad"}, content=content)
        assert told.status_code == 200, told.text
        (sheet,) = told.json()["sheets"]
        assert sheet["row_names"] == ["AAA-1", "0", "=cmd"]
        references[name] = sheet["reference"]
    job = {"solver": "uot", "inputs": references, "options": {"reg": 0.01}}
    answer = client.post("/v1/jobs", json=job, headers={"Prefer": "wait=30"}).json()
    assert np.argmax(answer["plan"], axis=1).tolist() == [0, 1, 2]
