"""AnnData files (.h5ad) as sheets: a row for each cell with its name, the coordinates of an embedding beside it.

HDF5 can point elsewhere: links into other files, data that lies in other files, filters that are loaded from disk. None
of these is followed. What an array inflates to is known from its shape, and checked before anything is read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from app.web.cells import LONGEST_CELL, Cell
from app.web.tables import MAX_CELLS, MAX_ROWS, Sheet
from kernels import Array
from workers.store.codec import InvalidUpload

EMBEDDINGS = ("X_pca", "X_scVI", "X_harmony", "X_umap")
"""Which of `obsm` is taken, in this order; without one, the expressions themselves."""
FILTERS = (None, "gzip", "lzf")
MOST_CHUNK = 64 << 20
MOST_TEXT = 64 << 20
"""Characters of all names together."""
AT_ONCE = 64


def read_annotated(path: Path) -> list[Sheet]:
    """One sheet of the file's cells. Raises InvalidUpload."""
    try:
        import h5py
    except ImportError:
        raise InvalidUpload(
            "file", "is an AnnData file, and this service was installed without allot[annotated]; save it as .npy"
        ) from None
    try:
        with h5py.File(path, "r") as file:
            return [_sheet(_Reader(h5py, file))]
    except InvalidUpload:
        raise
    except (
        OSError,
        LookupError,
        ArithmeticError,
        ValueError,
        TypeError,
        RuntimeError,
    ) as wrong:  # whatever HDF5 finds damaged
        raise InvalidUpload("file", f"cannot be read as an AnnData file: {type(wrong).__name__}") from None


class _Reader:
    """What is inside one file, found step by step along links that lead nowhere else."""

    def __init__(self, h5py: Any, file: Any) -> None:
        self._h5py, self._file = h5py, file

    def find(self, name: str) -> Any:
        """A group or an array by its path, None where there is none."""
        at = self._file
        for part in name.split("/"):
            link = at.get(part, getlink=True) if isinstance(at, self._h5py.Group) else None
            if link is None:
                return None
            if not isinstance(link, self._h5py.HardLink):
                raise InvalidUpload("file", f"{name} leads to another place; expected the data itself")
            at = at[part]
        return at

    def is_group(self, name: str) -> bool:
        """Whether something with parts is there."""
        return isinstance(self.find(name), self._h5py.Group)

    def array(self, name: str, dimensions: int) -> Any:
        """An array that is safe to read: it lies here, and its size is bounded. None where there is none."""
        found = self.find(name)
        if not isinstance(found, self._h5py.Dataset):
            return None
        if found.is_virtual or found.external or found.compression not in FILTERS:
            raise InvalidUpload("file", f"{name} lies in other files or is packed in a way that is not read here")
        if found.ndim != dimensions:
            raise InvalidUpload("file", f"{name} has {found.ndim} dimensions; expected {dimensions}")
        if int(np.prod(found.chunks or (1,), dtype=object)) * found.dtype.itemsize > MOST_CHUNK:
            raise InvalidUpload("file", f"{name} is stored in pieces of more than {MOST_CHUNK >> 20} MiB")
        return found

    def numbers(self, name: str, dimensions: int) -> Array | None:
        """An array of numbers, whole. None where there is none."""
        found = self.array(name, dimensions)
        if found is None:
            return None
        if found.dtype.kind not in "iuf":
            raise InvalidUpload("file", f"{name} holds {found.dtype}; expected numbers")
        _check(found.shape, name)
        return np.asarray(found[()])

    def names(self, group: str) -> list[str] | None:
        """The names of the rows (`obs`) or of the columns (`var`)."""
        found = self.find(group)
        if not isinstance(found, self._h5py.Group):
            return None
        index = found.attrs.get("_index", "_index")
        array = self.array(f"{group}/{index}", 1)
        if array is None or self._h5py.check_string_dtype(array.dtype) is None:
            return None
        _check(array.shape, group)
        return list(_texts(array.asstr(errors="replace")))


def _texts(array: Any) -> Iterator[str]:
    """The texts of an array, a few at a time: many may be one and the same long one."""
    count = 0
    for begin in range(0, len(array), AT_ONCE):
        for text in array[begin : begin + AT_ONCE]:
            count += len(text)
            if count > MOST_TEXT:
                raise InvalidUpload("file", f"has more than {MOST_TEXT >> 20} million characters of names")
            yield text[:LONGEST_CELL]


def _check(shape: tuple[int, ...], name: str) -> None:
    if shape[0] > MAX_ROWS or int(np.prod(shape, dtype=object)) > MAX_CELLS:
        raise InvalidUpload(
            "file", f"{name} has more than {MAX_ROWS} rows or {MAX_CELLS} numbers; save an embedding as .npy"
        )


def _sheet(reader: _Reader) -> Sheet:
    kind, values = _values(reader)
    rows, columns = reader.names("obs"), reader.names("var") if kind == "X" else None
    if rows is None or len(rows) != values.shape[0]:
        rows = [f"cell {i + 1}" for i in range(values.shape[0])]
    if columns is None or len(columns) != values.shape[1]:
        columns = [f"{kind} {j + 1}" for j in range(values.shape[1])]
    head: list[Cell] = ["cell", *columns]
    return Sheet(kind, [head, *([name, *line] for name, line in zip(rows, values.tolist(), strict=True))])


def _values(reader: _Reader) -> tuple[str, Array]:
    for name in EMBEDDINGS:
        found = reader.numbers(f"obsm/{name}", 2)
        if found is not None and found.size:
            return name, found
    dense = reader.numbers("X", 2) if not reader.is_group("X") else _from_sparse(reader)
    if dense is None or not dense.size:
        raise InvalidUpload("file", f"has neither X nor one of {', '.join(EMBEDDINGS)}; expected an AnnData file")
    return "X", dense


def _from_sparse(reader: _Reader) -> Array:
    """Expressions that are stored as rows (CSR)."""
    group = reader.find("X")
    if group.attrs.get("encoding-type") != "csr_matrix":
        raise InvalidUpload("file", "X is stored by columns; expected rows (csr_matrix), a dense X, or an embedding")
    shape = tuple(int(extent) for extent in group.attrs["shape"])
    if len(shape) != 2 or min(shape) < 0:
        raise InvalidUpload("file", "X has no shape of two extents")
    _check(shape, "X")
    data, indices, indptr = (reader.numbers(f"X/{part}", 1) for part in ("data", "indices", "indptr"))
    if data is None or indices is None or indptr is None:
        raise InvalidUpload("file", "X lacks data, indices or indptr")
    whole = indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"
    fits = whole and len(indptr) == shape[0] + 1 and indptr[0] == 0 and len(data) == len(indices) == indptr[-1]
    rises = fits and (indptr[1:] >= indptr[:-1]).all()  # a difference could leave 64 bits
    if not rises or (len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]):
        raise InvalidUpload("file", "X is no valid sparse matrix")
    dense = np.zeros(shape)
    ends = indptr.astype(np.int64)
    dense[np.repeat(np.arange(shape[0]), ends[1:] - ends[:-1]), indices] = data
    return dense
