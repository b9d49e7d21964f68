"""NumPy's zip files of arrays, and the sparse matrix that SciPy's save_npz lays out in one."""

from pathlib import Path
from typing import Any

import numpy as np

from kernels import Array, Csr
from workers.store import layouts, unpack

BY_ROWS = {"indices", "indptr", "shape", "format"}
"""Members of SciPy's layout that is taken; `format` holds its name."""
OTHERS = {"data", "shape", "format"}
"""Members of each of its other layouts, beside places by other names."""
MOST_MEMBERS = 4096
LONGEST_TEXT_MEMBER = 1024
"""SciPy notes its format in one, and others keep a name beside their arrays."""


def arrays(
    path: Path,
    max_bytes: int,
    max_elements: int,
    member: str | None = None,
    scratch: unpack.Scratch = unpack.PASSING,
    brain: bool = False,
) -> dict[str, Array] | Csr:
    """The arrays by name; one only when `member` names it, and one matrix where the layout is SciPy's.

    `brain`: as `layouts.npy` takes it.

    Raises:
        layouts.BadLayout, unpack.TooLarge, unpack.Damaged.
    """
    listed = unpack.members(path)
    if len(listed) > MOST_MEMBERS:
        raise layouts.BadLayout(f"holds {len(listed)} files; the limit is {MOST_MEMBERS}")
    names = {info.filename.removesuffix(".npy"): info for info in listed}
    if len(names) != len(listed):
        raise layouts.BadLayout("holds two files of one name")
    if member is not None and member not in names:
        raise layouts.BadLayout(f"is {member[:50]!r}; expected one of {', '.join(names)[:200]}", "member")
    wanted = [member] if member is not None else list(names)
    if sum(names[name].file_size for name in wanted) > max_bytes:
        raise unpack.TooLarge(f"says that it inflates to more than {max_bytes} bytes")
    text = len(wanted) > 1  # an array that is picked must be of numbers
    found = {name: _member(path, names[name], max_bytes, max_elements, text, scratch, brain) for name in wanted}
    is_sparse = set(found) >= BY_ROWS or (set(found) >= OTHERS and found["format"].dtype.kind in "SU")
    return _sparse(found) if member is None and is_sparse else found


def _member(
    path: Path, info: Any, max_bytes: int, max_elements: int, text: bool, scratch: unpack.Scratch, brain: bool
) -> Array:
    unpacked = unpack.unpack_member(path, info, max_bytes, scratch)
    try:
        return layouts.npy(unpacked, max_elements, text=text and info.file_size < LONGEST_TEXT_MEMBER, brain=brain)
    except layouts.BadLayout as error:
        raise layouts.BadLayout(f"member {info.filename[:50]} {error}") from error
    finally:
        scratch.done_with(unpacked)


def _sparse(found: dict[str, Array]) -> Csr:
    kind, shape = found["format"].ravel().tolist(), found["shape"]
    if kind not in (["csr"], [b"csr"]):
        told = ", ".join(one.decode("latin-1") if isinstance(one, bytes) else str(one) for one in kind)
        raise layouts.BadLayout(f"is sparse in layout {told:.20}; expected csr (call .tocsr() before saving)")
    if not {"data", *BY_ROWS} <= found.keys() or shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise layouts.BadLayout(
            "is not laid out as SciPy's save_npz does it: expected data, indptr, indices and two extents in shape"
        )
    n_rows, n_cols = shape.tolist()
    return csr(found["indptr"], found["indices"], found["data"], (n_rows, n_cols))


def csr(indptr: Any, indices: Any, values: Any, shape: tuple[int, int]) -> Csr:
    """A sparse matrix of three arrays, in the types that kernels take. Raises layouts.BadLayout."""
    for name, array in (("indptr", indptr), ("indices", indices), ("values", values)):
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise layouts.BadLayout("expected a list of numbers", name)
        if array.dtype.kind not in layouts.NUMBERS:
            raise layouts.BadLayout(f"has dtype {array.dtype}; expected numbers", name)
        if name != "values" and array.size and array.dtype.kind not in "iu":
            raise layouts.BadLayout(f"has dtype {array.dtype}; expected integers", name)
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    return Csr(indptr.astype(np.int64, copy=False), indices, values, shape)
