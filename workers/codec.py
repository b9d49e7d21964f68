"""Arrays to bytes and back; the only codec. Every format is read as if its writer meant harm.

    npy, raw (+ dtype, shape)   one array, mapped from the file
    npz, safetensors            arrays by name; an npz in SciPy's layout is one sparse matrix
    qaplib                      flow and distance (QAPLIB's .dat text)
    mtx, auction                one sparse matrix (MatrixMarket text; the auction paper's binary file)
    gzip, zstd                  around any of them

Nothing is ever unpickled. What a file inflates to, and how many numbers it holds, is checked before memory is
taken for it.
"""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernels import Array, Csr, InvalidProblem
from kernels.auction import files as auction_files
from kernels.qap import qaplib
from workers import layouts, unpack

Decoded = Array | Csr | dict[str, Array]
SUFFIXES = {
    ".npy": "npy",
    ".npz": "npz",
    ".safetensors": "safetensors",
    ".dat": "qaplib",
    ".sln": "sln",
    ".mtx": "mtx",
    ".bin": "auction",
}
MEDIA_TYPES = {
    "application/x-npy": "npy",
    "application/x-npz": "npz",
    "application/x-safetensors": "safetensors",
    "application/vnd.safetensors": "safetensors",
    "application/x-qaplib": "qaplib",
    "application/x-matrix-market": "mtx",
}
SPARSE_LAYOUT = {"data", "indices", "indptr", "shape", "format"}
LONGEST_TEXT = 256 << 20
LONGEST_GRAPH = 1 << 30
"""Of the formats that are parsed in memory."""
MOST_MEMBERS = 64


class InvalidUpload(ValueError):
    """The bytes are not what they claim. `field` names the part; the message says what was expected."""

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
    """How to read an upload. `format` None is found out; `member` picks one array of many; raw needs the rest."""

    format: str | None = None
    member: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    filename: str = ""
    content_type: str = ""


AS_FOUND = Form()


def sniff(path: Path, filename: str = "", content_type: str = "") -> str | None:
    """The format of a file that is not compressed: by its first bytes, else its name, else its media type."""
    with path.open("rb") as file:
        head = file.read(64)
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(unpack.ZIP):
        return "npz"
    if head.startswith(b"%%MatrixMarket"):
        return "mtx"
    if len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size:
        return "safetensors"
    name = filename.lower().removesuffix(".gz").removesuffix(".zst")
    by_name = SUFFIXES.get(Path(name).suffix) or MEDIA_TYPES.get(content_type.split(";")[0].strip())
    if by_name:
        return by_name
    return "qaplib" if head and not head.strip(b"0123456789+-.eE \t\r\n") else None


def decode(source: Path | bytes, form: Form = AS_FOUND, field: str = "file", limits: Limits = Limits()) -> Decoded:
    """Read an upload: one array, one sparse matrix, or arrays by name.

    Arrays may be mapped from `source`, which must then not change; a temporary copy is already unlinked.

    Raises:
        InvalidUpload: names `field` and says what is wrong.
    """
    try:
        with contextlib.ExitStack() as stack:
            path = stack.enter_context(_spilled(source)) if isinstance(source, bytes) else source
            path = stack.enter_context(_inflated(path, limits))
            return _decode(path, form, limits)
    except (layouts.BadLayout, unpack.TooLarge, unpack.Damaged) as error:
        raise InvalidUpload(field, str(error)) from error
    except InvalidProblem as error:
        raise InvalidUpload(field, error.message) from error


def decode_solution(source: Path | bytes, flow: Array, distance: Array, field: str = "sln") -> tuple[Array, float]:
    """Read a QAPLIB .sln file: the permutation and the objective that it claims. Raises InvalidUpload."""
    data = source if isinstance(source, bytes) else _bytes(source, 1 << 24)
    try:
        permutation, objective = qaplib.parse_sln(_text(data), flow, distance)
    except InvalidProblem as error:
        raise InvalidUpload(field, error.message) from error
    except layouts.BadLayout as error:
        raise InvalidUpload(field, str(error)) from error
    return permutation, objective


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
        np.lib.format.write_array(target, np.asarray(array), allow_pickle=False)
    else:
        raise ValueError(f"cannot write {format}")
    return target.getvalue() if isinstance(target, io.BytesIO) and out is None else b""


def describe(decoded: Decoded) -> dict[str, Any]:
    """Kind, dtype and shape, as JSON."""
    if isinstance(decoded, Csr):
        return {"kind": "csr", "dtype": str(decoded.values.dtype), "shape": list(decoded.shape)}
    if isinstance(decoded, dict):
        return {"kind": "arrays", "arrays": {name: describe(array) for name, array in decoded.items()}}
    return {"kind": "array", "dtype": str(decoded.dtype), "shape": list(decoded.shape)}


def _decode(path: Path, form: Form, limits: Limits) -> Decoded:
    format = form.format or sniff(path, form.filename, form.content_type)
    if format is None:
        raise layouts.BadLayout(f"is in no format that is known here; expected one of {', '.join(SUFFIXES.values())}")
    if format == "npy":
        return layouts.npy(path, limits.max_elements)
    if format == "raw":
        if form.dtype is None or form.shape is None:
            raise layouts.BadLayout("is raw, and neither dtype nor shape came with it")
        return layouts.raw(path, form.dtype, form.shape, limits.max_elements)
    if format in ("npz", "csr"):
        return _pick(_npz(path, limits, form.member), form.member)
    if format == "safetensors":
        return _pick(layouts.safetensors(path, limits.max_elements), form.member)
    if format == "qaplib":
        flow, distance = qaplib.parse_dat(_text(_bytes(path, LONGEST_TEXT)))
        return {"flow": flow, "distance": distance}
    if format in ("mtx", "auction"):
        return _graph_file(path, format, limits)
    raise layouts.BadLayout(f"is said to be {format[:40]!r}, which cannot be read here")


def _graph_file(path: Path, format: str, limits: Limits) -> Array | Csr:
    data = _bytes(path, min(limits.max_bytes, LONGEST_GRAPH))
    graph: Array | Csr = auction_files.read_mtx(data) if format == "mtx" else auction_files.read_paper(data)
    entries = graph.values.size if isinstance(graph, Csr) else graph.size
    if entries > limits.max_elements:
        raise layouts.BadLayout(f"has {entries} entries; the limit is {limits.max_elements}")
    return graph


def _npz(path: Path, limits: Limits, member: str | None) -> Decoded:
    listed = unpack.members(path)
    if len(listed) > MOST_MEMBERS:
        raise layouts.BadLayout(f"holds {len(listed)} files; the limit is {MOST_MEMBERS}")
    names = {info.filename.removesuffix(".npy"): info for info in listed}
    if len(names) != len(listed):
        raise layouts.BadLayout("holds two files of one name")
    sparse = set(names) >= SPARSE_LAYOUT - {"data"} or set(names) >= SPARSE_LAYOUT
    wanted = [member] if member in names else list(names)
    if sum(names[name].file_size for name in wanted) > limits.max_bytes:
        raise unpack.TooLarge(f"says that it inflates to more than {limits.max_bytes} bytes")
    arrays = {name: _member(path, names[name], limits) for name in wanted}
    return _scipy(arrays) if sparse and len(arrays) > 1 else arrays


def _member(path: Path, info: Any, limits: Limits) -> Array:
    unpacked = unpack.unpack_member(path, info, limits.max_bytes)
    try:
        return layouts.npy(unpacked, limits.max_elements, text=info.file_size < 1024)
    except layouts.BadLayout as error:
        raise layouts.BadLayout(f"member {info.filename[:50]} {error}") from error
    finally:
        unpacked.unlink()  # a mapped file lives until the mapping goes


def _scipy(arrays: dict[str, Array]) -> Csr:
    kind = arrays["format"].item()
    name = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if name != "csr":
        raise layouts.BadLayout(f"is sparse in {name[:10]!r} layout; expected csr (call .tocsr() before saving)")
    shape = arrays["shape"].tolist()
    if "data" not in arrays or not isinstance(shape, list) or len(shape) != 2:
        raise layouts.BadLayout("is not laid out as SciPy's save_npz does it: expected data and two extents in shape")
    return Csr(arrays["indptr"].astype(np.int64), arrays["indices"], arrays["data"], (int(shape[0]), int(shape[1])))


def _pick(decoded: Decoded, member: str | None) -> Decoded:
    if not isinstance(decoded, dict):
        return decoded
    if member is not None:
        if member not in decoded:
            raise layouts.BadLayout(f"holds {', '.join(decoded)[:200]}; expected a member named {member[:50]!r}")
        return decoded[member]
    if not decoded:
        raise layouts.BadLayout("holds no array")
    return next(iter(decoded.values())) if len(decoded) == 1 else decoded


@contextlib.contextmanager
def _spilled(data: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="allot-") as folder:
        path = Path(folder) / "upload"
        path.write_bytes(data)
        yield path


@contextlib.contextmanager
def _inflated(path: Path, limits: Limits) -> Iterator[Path]:
    with path.open("rb") as file:
        how = unpack.packing(file.read(4))
    if how is None:
        yield path
        return
    unpacked = unpack.unpack(path, how, limits.max_bytes)
    try:
        yield unpacked
    finally:
        unpacked.unlink()


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
