"""Arrays to bytes and back; the only codec. Every format is read as if its writer meant harm.

    npy, raw (+ dtype, shape)   one array, mapped from the file
    npz, safetensors            arrays by name; an npz in SciPy's layout is one sparse matrix
    qaplib                      flow and distance (QAPLIB's .dat text)
    mtx, auction                one sparse matrix (MatrixMarket text; the auction paper's binary file)
    gzip, zstd                  around any of them

bfloat16 and small integers with a scale are widened as they are read (narrow.py).

How bytes are read follows from the bytes and a `Form` alone; what a form leaves open, the bytes must say themselves.
Nothing is ever unpickled. What a file inflates to, and how many numbers it holds, is checked before memory is
taken for it.
"""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernels import Array, Csr, InvalidProblem
from kernels.auction import files as auction_files
from kernels.qap import qaplib
from workers.store import layouts, narrow, npz, unpack
from workers.store.inline import kind_of
from workers.store.sniff import A_TABLE, looks_like_a_table, sniff

Decoded = Array | Csr | dict[str, Array]
FORMATS = ("npy", "npz", "safetensors", "raw", "qaplib", "mtx", "auction")
LONGEST_TEXT = 256 << 20
LONGEST_GRAPH = 1 << 30
"""Of the formats that are parsed in memory."""
LONGEST_NOTE = 1 << 20
"""Of a text that says one thing beside the arrays."""


class InvalidUpload(ValueError):
    """The bytes are not what they claim. `field` names the part; the message says what was expected.

    Where it is their form that is wrong or missing, `field` ends in .format, .member, .dtype or .shape.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True)
class Limits:
    """What one upload may hold, once inflated."""

    max_bytes: int = 4 << 30
    max_elements: int = 1 << 31


@dataclass(frozen=True)
class Form:
    """How to read an upload.

    `format` None is found out, if need be by `filename` and `content_type`. `member` picks one array of several.
    `dtype` and `shape` say what raw bytes are; of everything else they are claims, which are checked. Integers of 16
    bits at most are multiplied by `scale`, where it is given (narrow.py).
    """

    format: str | None = None
    member: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    filename: str = ""
    content_type: str = ""
    scale: float | None = None


AS_FOUND = Form()


@dataclass(frozen=True)
class Reading:
    """What an upload was read as: never None where it matters, so that reading it so again gives the same.

    `dtype` is the type of the bytes, where `value` has another.
    """

    format: str
    member: str | None
    value: Decoded
    dtype: str | None = None
    scale: float | None = None


def decode(source: Path | bytes, form: Form = AS_FOUND, field: str = "file", limits: Limits = Limits()) -> Decoded:
    """What an upload holds: one array, one sparse matrix, or arrays by name. Raises as `read`."""
    return read(source, form, field, limits).value


def read(
    source: Path | bytes,
    form: Form = AS_FOUND,
    field: str = "file",
    limits: Limits = Limits(),
    scratch: unpack.Scratch = unpack.PASSING,
) -> Reading:
    """Read an upload.

    Arrays may be mapped from `source`, which must then not change; a temporary copy is already unlinked, unless
    `scratch` keeps it.

    Raises:
        InvalidUpload: names `field` and says what is wrong.
    """
    try:
        with contextlib.ExitStack() as stack:
            path = stack.enter_context(_spilled(source)) if isinstance(source, bytes) else source
            found = _read(path, form, limits, scratch)
            _check_claims(form, found)
            return found if form.scale is None else _scaled(found, form.scale)
    except layouts.BadLayout as error:
        raise InvalidUpload(f"{field}.{error.part}" if error.part else field, str(error)) from error
    except (unpack.TooLarge, unpack.Damaged) as error:
        raise InvalidUpload(field, str(error)) from error
    except InvalidProblem as error:
        raise InvalidUpload(field, error.message) from error


def read_text(path: Path, field: str, longest: int = LONGEST_NOTE) -> str:
    """A short text file. Raises InvalidUpload."""
    try:
        return _text(_bytes(path, longest))
    except layouts.BadLayout as error:
        raise InvalidUpload(field, str(error)) from error


def encode(arrays: Mapping[str, Array], format: str, out: IO[bytes] | None = None) -> bytes:
    """Write named arrays as npz or safetensors, or one as npy; to `out` when given, else returned."""
    target = out if out is not None else io.BytesIO()
    if format == "npz":
        np.savez(target, allow_pickle=False, **arrays)
    elif format == "safetensors":
        import safetensors.numpy

        target.write(safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
    elif format == "npy":
        (array,) = arrays.values()
        write_npy(target, array)
    else:
        raise ValueError(f"cannot write {format}")
    return target.getvalue() if isinstance(target, io.BytesIO) and out is None else b""


def write_npy(target: Any, array: Array) -> None:
    """Write one array as .npy to anything with a `write`; equal arrays in equal order give equal bytes."""
    array = np.asanyarray(array)
    if not array.flags.c_contiguous or array.dtype.hasobject:
        np.lib.format.write_array(target, array, allow_pickle=False)
        return
    np.lib.format.write_array_header_1_0(target, np.lib.format.header_data_from_array_1_0(array))
    target.write(array.reshape(-1).view(np.uint8).data)  # NumPy would copy it, 16 MiB at a time


def describe(decoded: Decoded) -> dict[str, Any]:
    """Kind, dtype and shape, as JSON."""
    if isinstance(decoded, Csr):
        return {"kind": "csr", "dtype": str(decoded.values.dtype), "shape": list(decoded.shape)}
    if isinstance(decoded, dict):
        return {"kind": "arrays", "arrays": {name: describe(array) for name, array in decoded.items()}}
    return {"kind": "array", "dtype": kind_of(decoded.dtype), "shape": list(decoded.shape)}


def _read(path: Path, form: Form, limits: Limits, scratch: unpack.Scratch) -> Reading:
    if form.format == "raw":
        return _one("raw", None, _raw(path, form, limits, scratch))
    with _inflated(path, limits, scratch) as inflated:
        format = form.format or sniff(inflated, form.filename, form.content_type)
        if format is not None:
            return _parsed(inflated, format, form, limits, scratch)
        table = looks_like_a_table(inflated)
    if form.dtype is None and form.shape is None:
        known = ", ".join(name for name in FORMATS if name != "raw")
        rest = A_TABLE if table else "raw bytes need dtype and shape"
        raise layouts.BadLayout(f"is missing: the bytes are no {known}; {rest}", "dtype")
    return _one("raw", None, _raw(path, form, limits, scratch))


def _one(format: str, member: str | None, value: Array | Csr) -> Reading:
    """A reading of one matrix."""
    if isinstance(value, Csr) or not isinstance(value, layouts.Brain):
        return Reading(format, member, value)
    return Reading(format, member, narrow.whole(value), narrow.name_of(value))


def _scaled(found: Reading, scale: float) -> Reading:
    if isinstance(found.value, dict):
        raise layouts.BadLayout(several(found.value), "member")
    if isinstance(found.value, Csr):
        raise layouts.BadLayout("is given for a sparse matrix; it goes with the entries of a dense one", "scale")
    if found.dtype is not None:
        raise layouts.BadLayout(f"is given for {found.dtype}; it goes with {', '.join(narrow.NARROW)}", "scale")
    value = narrow.scaled(found.value, scale)
    return Reading(found.format, found.member, value, str(found.value.dtype), scale)


def _raw(path: Path, form: Form, limits: Limits, scratch: unpack.Scratch) -> Array:
    """Bare bytes. They are taken as they are when they are as many as they should be, else inflated first."""
    for part, given in (("dtype", form.dtype), ("shape", form.shape), ("member", form.member)):
        if (given is None) is not (part == "member"):
            wrong = "is given; raw bytes have none" if part == "member" else "is missing: raw bytes do not say it"
            raise layouts.BadLayout(wrong, part)
    assert form.dtype is not None
    assert form.shape is not None
    try:
        return layouts.raw(path, form.dtype, form.shape, limits.max_elements)
    except layouts.BadLayout:
        with _inflated(path, limits, scratch) as inflated:
            if inflated is path:
                raise
            return layouts.raw(inflated, form.dtype, form.shape, limits.max_elements)


def _parsed(path: Path, format: str, form: Form, limits: Limits, scratch: unpack.Scratch) -> Reading:
    value: Decoded
    member, brain = form.member, form.dtype == layouts.BRAIN
    if format in ("npz", "csr"):
        format, value = "npz", npz.arrays(path, limits.max_bytes, limits.max_elements, member, scratch, brain)
    elif format == "safetensors":
        value = layouts.safetensors(path, limits.max_elements, member)
    elif format == "qaplib":
        value = dict(zip(("flow", "distance"), qaplib.parse_dat(_text(_bytes(path, LONGEST_TEXT))), strict=True))
    elif format == "npy":
        value = layouts.npy(path, limits.max_elements, brain=brain)
    elif format in ("mtx", "auction"):
        value = _graph_file(path, format, limits)
    else:
        raise layouts.BadLayout(f"is {format[:40]!r}; expected one of {', '.join(FORMATS)}", "format")
    return _pick(format, value, member)


def _pick(format: str, value: Decoded, member: str | None) -> Reading:
    """One array of several: the one that is named, or the only one there is."""
    if not isinstance(value, dict):
        if member is not None:
            raise layouts.BadLayout(f"is {member[:50]!r}; there is one matrix only, which has no name", "member")
        return _one(format, None, value)
    if not value:
        raise layouts.BadLayout("holds no array")
    if member is None and len(value) > 1:
        return Reading(format, None, {name: narrow.whole(array) for name, array in value.items()})
    member = member if member is not None else next(iter(value))
    if member not in value:
        raise layouts.BadLayout(f"is {member[:50]!r}; expected one of {', '.join(value)[:200]}", "member")
    return _one(format, member, value[member])


def _check_claims(form: Form, found: Reading) -> None:
    """Hold the dtype and shape that a form claims against what the bytes say."""
    if found.format == "raw" or (form.dtype is None and form.shape is None):
        return
    told = describe(found.value)
    if isinstance(found.value, dict):
        raise layouts.BadLayout(several(found.value), "member")
    dtypes = [told["dtype"], *([found.dtype] if found.dtype else [])]  # older references name what bfloat16 became
    claimed = form.dtype if form.dtype in (None, layouts.BRAIN) else str(layouts.named(form.dtype))
    if claimed is not None and claimed not in dtypes:
        raise layouts.BadLayout(f"is {form.dtype}; the {found.format} bytes hold {dtypes[-1]}", "dtype")
    if form.shape is not None and list(form.shape) != told["shape"]:
        raise layouts.BadLayout(f"is {list(form.shape)}; the {found.format} bytes hold {told['shape']}", "shape")


def sparse(parts: Mapping[str, Any], shape: Sequence[int], field: str = "csr") -> Csr:
    """A sparse matrix of indptr, indices and values, in the types that kernels take. Raises InvalidUpload."""
    n_rows, n_cols = shape
    try:
        return npz.csr(parts["indptr"], parts["indices"], parts["values"], (n_rows, n_cols))
    except layouts.BadLayout as error:
        raise InvalidUpload(f"{field}.{error.part}", str(error)) from error


def several(arrays: Mapping[str, Array]) -> str:
    """What to say where one array is wanted and there are several: the member is missing."""
    return f"is missing: there are {', '.join(sorted(arrays))[:200]}; expected the name of one of them"


def _graph_file(path: Path, format: str, limits: Limits) -> Array | Csr:
    data = _bytes(path, min(limits.max_bytes, LONGEST_GRAPH))
    graph: Array | Csr = auction_files.read_mtx(data) if format == "mtx" else auction_files.read_paper(data)
    entries = graph.values.size if isinstance(graph, Csr) else graph.size
    if entries > limits.max_elements:
        raise layouts.BadLayout(f"has {entries} entries; the limit is {limits.max_elements}")
    return graph


@contextlib.contextmanager
def _spilled(data: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="allot-") as folder:
        path = Path(folder) / "upload"
        path.write_bytes(data)
        yield path


@contextlib.contextmanager
def _inflated(path: Path, limits: Limits, scratch: unpack.Scratch) -> Iterator[Path]:
    with path.open("rb") as file:
        how = unpack.packing(file.read(4))
    if how is None:
        yield path
        return
    unpacked = unpack.unpack(path, how, limits.max_bytes, scratch)
    try:
        yield unpacked
    finally:
        scratch.done_with(unpacked)


def _bytes(path: Path, longest: int) -> bytes:
    size = path.stat().st_size
    if size > longest:
        raise layouts.BadLayout(f"is {size} bytes of text; the limit is {longest}")
    return path.read_bytes()


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise layouts.BadLayout("is not text") from error
