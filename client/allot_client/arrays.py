"""Arrays of any library in, arrays of the same library and device out.

Nothing but NumPy is ever imported here: a library is asked for its protocol only when one of its arrays comes in.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bring = Callable[[Array], Any]
WORTH_LEAVING = 1 << 20
"""Bytes of matrices from which on they are not copied into one array."""
MOST_TOGETHER = 128
"""Arrays of one call to a socket. What it leaves is looked up one by one, so that more would cost time."""
DENSE = "torch.strided"
LONGEST_FLOAT = 8
"""Bytes of a float that the service solves."""
FORBIDDEN_INTEGER = int(np.iinfo(np.int64).min)
"""What the service takes for a forbidden entry among integers."""
SHAPE = attrgetter("shape")


def stay(array: Array) -> Array:
    """A NumPy array stays what it is."""
    return array


@dataclass(frozen=True)
class Sparse:
    """A matrix by rows: `indptr` (n_rows + 1,), `indices` (nnz,), `values` (nnz,), `shape`."""

    indptr: Array
    indices: Array
    values: Array
    shape: tuple[int, int]


@dataclass(frozen=True)
class Series:
    """Matrices that are sent one after the other as a flat array, from where they lie: one type, in C order."""

    arrays: Sequence[Array]
    size: int
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        """Bytes of all."""
        return self.size * self.dtype.itemsize

    def groups(self, about: int) -> Iterator[list[Array]]:
        """Neighbours of `about` so many bytes together, so few that one call sends them."""
        step = max(1, min(MOST_TOGETHER, len(self.arrays) * about // max(1, len(self))))
        for first in range(0, len(self.arrays), step):
            yield list(self.arrays[first : first + step])


@dataclass(frozen=True)
class Given:
    """One argument on the host, how to bring answers back to where it came from, and its lines' names."""

    value: Array | Sparse
    bring: Bring = stay
    row_names: tuple[Any, ...] | None = None
    column_names: tuple[Any, ...] | None = None


def given(value: Any) -> Given:
    """`value` (array, tensor, sparse matrix, data frame, AnnData or nested lists) as a `Given`."""
    found = held(value)
    if isinstance(found.value, Sparse):
        return replace(found, value=replace(found.value, values=_taken(found.value.values)))
    taken = _taken(found.value)
    return found if taken is found.value else replace(found, value=taken)


def held(value: Any) -> Given:
    """The same in the type that it has, which the service may not know: booleans are booleans."""
    library = type(value).__module__.split(".")[0]
    taken = _BY_LIBRARY.get(library)
    if taken is not None:
        found = taken(value)
        if found is not None:
            return found
    if isinstance(value, (np.ndarray, Sparse)):
        return Given(value)
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return Given(np.from_dlpack(value))
    try:
        return Given(np.asarray(value))
    except ValueError:
        raise ValueError(_ragged(value) or f"a {type(value).__name__} is no array; expected numbers in rows") from None


def _ragged(value: Any) -> str:
    """What is wrong with nested lists whose rows are of different lengths; empty where that is not it."""
    rows = [len(row) if isinstance(row, (list, tuple)) else -1 for row in value]
    other = next((k for k, length in enumerate(rows) if length != rows[0]), None)
    if other is None:
        return ""
    found = "a number" if rows[other] < 0 else f"{rows[other]} entries"
    expected = "a number" if rows[0] < 0 else str(rows[0])
    return f"a list is ragged: row [{other}] holds {found}; expected {expected} like the first"


def _taken(array: Array) -> Array:
    """The array in a type that the service knows: 0 and 1 for False and True, float32 for shorter floats of JAX's.

    Its bytes are in this machine's order.
    """
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "V" and "float" in array.dtype.name:  # ml_dtypes: bfloat16 and floats of a byte
        return array.astype(np.float32)
    if array.dtype.kind == "f" and array.dtype.itemsize > LONGEST_FLOAT:
        raise ValueError(f"an array has dtype {array.dtype}; expected float64 or shorter, as array.astype(float)")
    return array.view(np.uint8) if array.dtype == bool else array


def dense(name: str, value: Array | Sparse) -> Array:
    """An array that is no sparse matrix. Raises: ValueError."""
    if isinstance(value, Sparse):
        raise ValueError(
            f"{name} is sparse; expected a dense matrix (client.auction takes sparse ones, as benefits, and client.uot "
            "as costs)"
        )
    return value


def _from_torch(value: Any) -> Given | None:
    torch = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return None
    device = value.device
    host = value.detach()
    layout = str(getattr(host, "layout", DENSE))
    if layout != DENSE:
        raise ValueError(f"a tensor is {layout}; expected a dense one, as .to_dense(), or a matrix of scipy.sparse")
    if host.dtype == torch.bfloat16:  # which NumPy does not have
        host = host.float()
    if device.type != "cpu":
        pinned = torch.empty(host.shape, dtype=host.dtype, pin_memory=True)
        host = pinned.copy_(host)
    return Given(host.contiguous().numpy(), lambda array: torch.from_numpy(np.array(array)).to(device))


def _from_cupy(value: Any) -> Given | None:
    cupy = sys.modules["cupy"]
    if not isinstance(value, cupy.ndarray):
        return _sparse(value)
    device = value.device

    def bring(array: Array) -> Any:
        with device:
            return cupy.asarray(array)

    host = sys.modules["cupyx"].empty_pinned(value.shape, value.dtype)
    value.get(out=host)
    return Given(host, bring)


def _from_jax(value: Any) -> Given | None:
    jax = sys.modules["jax"]
    if not isinstance(value, jax.Array):
        return None
    device = next(iter(value.devices()))
    return Given(np.asarray(value), lambda array: jax.device_put(array, device))


def _sparse(value: Any) -> Given | None:
    if not hasattr(value, "tocsr"):
        return None
    csr = value.tocsr()
    if hasattr(csr, "get"):  # CuPy's
        csr = csr.get()
    if not csr.has_sorted_indices:
        csr = csr.sorted_indices()  # a copy: it may be the caller's
    return Given(Sparse(csr.indptr, csr.indices, csr.data, (int(csr.shape[0]), int(csr.shape[1]))))


def _from_pandas(value: Any) -> Given | None:
    if not hasattr(value, "to_numpy"):
        return None
    columns = tuple(value.columns) if hasattr(value, "columns") else None
    found = value.to_numpy()
    if columns is not None and found.dtype.kind == "f" and (missing := np.isnan(found)).any():
        found = np.ma.MaskedArray(found, missing)  # an empty cell of a table: what a pair without a price is
    lines = getattr(value, "index", None)  # a categorical or another array of pandas has none
    return Given(found, stay, None if lines is None else tuple(lines), columns)


def _from_anndata(value: Any) -> Given | None:
    if not hasattr(value, "obs_names"):
        return None
    cells = value.X.toarray() if hasattr(value.X, "toarray") else np.asarray(value.X)
    return Given(cells, stay, tuple(value.obs_names), tuple(value.var_names))


_BY_LIBRARY: dict[str, Callable[[Any], Given | None]] = {
    "torch": _from_torch,
    "cupy": _from_cupy,
    "cupyx": _sparse,
    "jax": _from_jax,
    "jaxlib": _from_jax,
    "scipy": _sparse,
    "pandas": _from_pandas,
    "anndata": _from_anndata,
}


def without_holes(array: Array, forbidden: float) -> Array:
    """None of nested lists, NA of data frames and masked entries as what the service takes for a forbidden entry.

    Whole numbers stay whole.
    """
    if isinstance(array, np.ma.MaskedArray):
        holes, filled = np.ma.getmaskarray(array), np.asarray(array.data)
    elif array.dtype == object:
        holes = np.array([is_nothing(entry) for entry in array.reshape(-1)], bool).reshape(array.shape)
        filled = np.array(np.where(holes, 0, array).tolist())
        if filled.dtype.kind not in "biuf":
            flat = array.reshape(-1).tolist()
            at = next((k for k, one in enumerate(flat) if not isinstance(one, Real) and not is_nothing(one)), 0)
            where = [int(place) for place in np.unravel_index(at, array.shape)]
            raise ValueError(
                f"an array of shape {array.shape} holds {flat[at]!r:.60} at {where}, which is no number; expected "
                "numbers or None"
            )
    else:
        return array
    if not holes.any():
        return filled
    if filled.dtype.kind in "iub":
        return np.where(holes, FORBIDDEN_INTEGER, filled.astype(np.int64))
    return np.where(holes, forbidden, filled)


def is_nothing(entry: Any) -> bool:
    """None, and pandas' NA."""
    return entry is None or type(entry).__name__ == "NAType"


def laid_flat(arrays: Sequence[Array], forbidden: float = math.inf) -> tuple[Array | Series, Array]:
    """Matrices of different sizes one after the other, and their sizes (k, 2): in one array where they are short.

    Where some are floats, forbidden entries of integers become `forbidden`.
    """
    if {array.ndim for array in arrays} - {2}:
        k = next(k for k, array in enumerate(arrays) if array.ndim != 2)
        raise ValueError(f"problem {k} has shape {arrays[k].shape}; expected a matrix")
    sizes = shapes_of(arrays)
    types = {array.dtype for array in arrays}
    entries = int((sizes[:, 0] * sizes[:, 1]).sum())
    if len(types) == 1 and entries * arrays[0].itemsize >= WORTH_LEAVING:
        there = [np.ascontiguousarray(array) for array in arrays if array.size]
        return Series(there, entries, arrays[0].dtype), sizes
    if np.dtype(np.int64) in types and np.result_type(*types).kind == "f":
        arrays = [
            np.where(array == FORBIDDEN_INTEGER, forbidden, array) if array.dtype == np.int64 else array
            for array in arrays
        ]
    return np.concatenate([array.reshape(-1) for array in arrays]), sizes


def pairs(shapes: Iterable[tuple[int, ...]], count: int) -> npt.NDArray[np.int64]:
    """`count` pairs of numbers as an array (count, 2)."""
    return np.fromiter(chain.from_iterable(shapes), np.int64, 2 * count).reshape(-1, 2)


def shapes_of(matrices: Sequence[Array]) -> npt.NDArray[np.int64]:
    """Rows and columns of each, (k, 2)."""
    return pairs(map(SHAPE, matrices), len(matrices))


def all_plain(arrays: Sequence[Any]) -> bool:
    """Whether these are NumPy's own arrays of numbers, of which nothing is to be asked one by one."""
    return set(map(type, arrays)) == {np.ndarray} and all(one.kind in "iuf" for one in {one.dtype for one in arrays})


def padded(flat: Array, counts: Array, empty: int) -> Array:
    """Lines of problems one after the other as one row a problem, `empty` beyond its own."""
    whole = np.full((len(counts), counts.max(initial=0)), empty, flat.dtype)
    whole[np.arange(whole.shape[1]) < counts[:, None]] = flat
    return whole
