"""Every format there and back, and every lie a file can tell."""

import contextlib
import gzip
import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import zstandard

from kernels import Array, Csr
from workers.store.codec import Form, InvalidUpload, Limits, decode, encode, read
from workers.store.sniff import sniff

MATRIX = np.arange(12.0).reshape(3, 4)
SMALL = Limits(max_bytes=1 << 20, max_elements=1 << 16)


def npy(array: Array, **more: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **more)
    return out.getvalue()


def header(text: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    body = text.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(body)) + body + data


def tensors(entries: Any, data: bytes = b"") -> bytes:
    body = json.dumps(entries).encode()
    return struct.pack("<Q", len(body)) + body + data


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


GOOD = {
    "npy": npy(MATRIX),
    "fortran": npy(np.asfortranarray(MATRIX)),
    "gzip": gzip.compress(npy(MATRIX)),
    "zstd": zstandard.compress(npy(MATRIX)),
    "npz": encode({"cost": MATRIX}, "npz"),
    "safetensors": encode({"cost": MATRIX}, "safetensors"),
    "gzip of safetensors": gzip.compress(encode({"cost": MATRIX}, "safetensors")),
}


@pytest.mark.parametrize("name", GOOD)
def test_one_array_in_every_wrapping(name: str) -> None:
    found = decode(GOOD[name])
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, MATRIX)


def test_bfloat16_is_read_as_float32() -> None:
    wide = np.array([1.0, -2.5, 3.25e30, np.inf], np.float32)
    bits = (wide.view(np.uint32) >> 16).astype("<u2").tobytes()
    found = decode(tensors({"cost": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}, bits))
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.ravel(), wide, rtol=2**-7)


@pytest.mark.parametrize("dtype", ["float16", "uint8", "int8", "int16", "uint16"])
def test_low_precision_is_taken(dtype: str) -> None:
    narrow = MATRIX.astype(dtype)
    for data in (npy(narrow), encode({"cost": narrow}, "npz"), encode({"cost": narrow}, "safetensors")):
        found = decode(data)
        assert isinstance(found, np.ndarray)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, MATRIX)


def test_raw_needs_dtype_and_shape() -> None:
    found = decode(MATRIX.tobytes(), Form("raw", dtype="float64", shape=(3, 4)))
    np.testing.assert_array_equal(np.asarray(found), MATRIX)
    with pytest.raises(InvalidUpload, match=r"^file.dtype: is missing"):
        decode(MATRIX.tobytes(), Form("raw"))
    with pytest.raises(InvalidUpload, match="96 bytes came"):
        decode(MATRIX.tobytes(), Form("raw", dtype="float32", shape=(3, 4)))
    with pytest.raises(InvalidUpload, match="none negative"):
        decode(MATRIX.tobytes(), Form("raw", dtype="float64", shape=(-3, -4)))
    for dtype in ("object", "no such", "U4", "M8[s]"):
        with pytest.raises(InvalidUpload, match="expected"):
            decode(MATRIX.tobytes(), Form("raw", dtype=dtype, shape=(3, 4)))


def test_numbers_that_begin_like_a_gzip_file_are_numbers() -> None:
    """Of raw bytes their count decides; elsewhere a length of 35,615 is not taken for a gzip file's first two bytes."""
    array = np.frombuffer(b"\x1f\x8b\x08\x00" + bytes(44), np.int32)
    found = decode(array.tobytes(), Form("raw", dtype="int32", shape=(12,)))
    np.testing.assert_array_equal(np.asarray(found), array)
    entries = {"cost": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, "__metadata__": {"x": ""}}
    entries["__metadata__"] = {"x": "y" * (0x8B1F - len(json.dumps(entries)))}
    assert tensors(entries)[:2] == b"\x1f\x8b"
    np.testing.assert_array_equal(np.asarray(decode(tensors(entries, bytes(8)))), [0.0])


def test_members_by_name() -> None:
    two = {"flow": MATRIX, "distance": MATRIX + 1}
    for format in ("npz", "safetensors"):
        data = encode(two, format)
        found = decode(data)
        assert isinstance(found, dict)
        assert set(found) == set(two)
        np.testing.assert_array_equal(np.asarray(decode(data, Form(member="distance"))), MATRIX + 1)
        with pytest.raises(InvalidUpload, match=r"^file.member: is 'linear'; expected one of"):
            decode(data, Form(member="linear"))


def test_scipy_sparse() -> None:
    out = io.BytesIO()
    matrix = scipy.sparse.random(20, 30, 0.2, "csr", rng=np.random.default_rng(0))
    scipy.sparse.save_npz(out, matrix)
    found = decode(out.getvalue())
    assert isinstance(found, Csr)
    assert found.shape == (20, 30)
    np.testing.assert_array_equal(found.values, matrix.data)
    for layout in ("csc", "coo", "bsr", "dia"):
        out = io.BytesIO()
        scipy.sparse.save_npz(out, matrix.asformat(layout))
        with pytest.raises(InvalidUpload, match=f"in layout {layout}; expected csr"):
            decode(out.getvalue())


def test_texts() -> None:
    qap = decode(b"2\n\n0 1\n1 0\n\n0 3\n3 0\n", Form(filename="tiny.dat"), "qaplib")
    assert isinstance(qap, dict)
    np.testing.assert_array_equal(qap["distance"], [[0, 3], [3, 0]])
    graph = decode(b"%%MatrixMarket matrix coordinate integer general\n2 3 2\n1 1 5\n2 3 7\n")
    assert isinstance(graph, Csr)
    assert graph.shape == (2, 3)
    with pytest.raises(InvalidUpload, match=r"^qaplib: "):
        decode(b"3\n1 2 3", Form("qaplib"), "qaplib")
    with pytest.raises(InvalidUpload, match="not text"):
        decode(b"\xff\xfe3\n1 2 3", Form("qaplib"), "qaplib")


LIES = {
    "objects": npy(np.array([{}, []], dtype=object), allow_pickle=True),
    "strings": npy(np.array(["a", "b"])),
    "structured": npy(np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])),
    "big-endian": npy(MATRIX.astype(">f8")),
    "complex": npy(np.ones(3, dtype=complex)),
    "dates": npy(np.zeros(3, dtype="M8[s]")),
    "shape larger than data": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }", b"\0" * 8),
    "shape smaller than data": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", b"\0" * 80),
    "shape overflows": header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**62}, {2**62}), }}", b"\0" * 8),
    "negative shape": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }", b"\0" * 8),
    "too many extents": header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {(1,) * 40}, }}", b"\0" * 8),
    "header is code": header("__import__('os').abort()"),
    "header nests deeply": header("(" * 60000, version=b"\x01\x00"),
    "header is cut": b"\x93NUMPY\x01\x00\xff\xff{'descr'",
    "future version": header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", b"\0" * 8, b"\x09\x00"),
    "truncated npy": npy(MATRIX)[:-1],
    "truncated gzip": gzip.compress(npy(np.arange(999)))[:-20],
    "truncated zstd": zstandard.compress(npy(np.arange(999)))[:-20],
    "zip bomb": archive({"cost.npy": npy(np.zeros(1 << 24, np.uint8))}),
    "zip with objects": archive({"cost.npy": npy(np.array([{}], dtype=object), allow_pickle=True)}),
    "zip of text": archive({"cost.npy": b"not npy"}),
    "empty zip": archive({}),
    "zip of many": archive({f"{i}.npy": npy(np.zeros(1)) for i in range(5000)}),
    "truncated zip": encode({"cost": MATRIX}, "npz")[:-30],
    "gzip bomb": gzip.compress(b"\0" * (80 << 20)),
    "gzip in gzip": gzip.compress(gzip.compress(npy(MATRIX))),
    "zstd bomb": zstandard.compress(b"\0" * (80 << 20)),
    "empty": b"",
    "garbage": bytes(range(256)),
    "tensor outside": tensors({"cost": {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}}, b"\0" * 8),
    "tensor of another size": tensors({"cost": {"dtype": "F64", "shape": [3], "data_offsets": [0, 8]}}, b"\0" * 8),
    "tensor begins below 0": tensors({"cost": {"dtype": "F64", "shape": [1], "data_offsets": [-8, 0]}}, b"\0" * 8),
    "tensor shape is text": tensors({"cost": {"dtype": "F64", "shape": "12", "data_offsets": [0, 8]}}, b"\0" * 8),
    "tensor dtype unknown": tensors({"cost": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 8]}}, b"\0" * 8),
    "tensor is a list": tensors({"cost": [1, 2]}),
    "tensors are a list": tensors([1, 2]),
    "safetensors header of 2^63": struct.pack("<Q", 1 << 63) + b'{"cost": 1}' + b"\0" * 50,
    "too many elements": npy(np.zeros(1 << 17, np.uint8)),
}


@pytest.mark.parametrize("name", LIES)
def test_lies(name: str) -> None:
    with pytest.raises(InvalidUpload, match=r"^cost(\.dtype)?: .{10,}"):
        decode(LIES[name], Form(), "cost", SMALL)


@pytest.mark.parametrize("name", ["safetensors header of 2^63", "tensor outside", "garbage"])
def test_lies_behind_an_announced_format(name: str) -> None:
    for format in ("npy", "npz", "safetensors", "mtx", "auction", "qaplib", "raw", "no such"):
        with pytest.raises(InvalidUpload):
            decode(LIES[name], Form(format), "cost", SMALL)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    for data in (*GOOD.values(), *LIES.values()):
        path.write_bytes(data)
        with contextlib.suppress(InvalidUpload):
            decode(path, Form(), "cost", SMALL)
    assert list(tmp_path.iterdir()) == [path]


def test_sniffing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\x01\x02\x03\x04")
    assert sniff(path) is None
    assert sniff(path, "graph.bin") == "auction"
    assert sniff(path, "", "application/x-qaplib; charset=utf-8") == "qaplib"
    path.write_bytes(b" 12\n\n 0 1 2")
    assert sniff(path) == "qaplib"


def test_an_upload_is_mapped_not_read(tmp_path: Path) -> None:
    path = tmp_path / "cost.npy"
    np.save(path, MATRIX)
    assert isinstance(decode(path), np.memmap)


def test_a_table_of_text_is_told_where_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("order,truck\n1,2\n")
    with pytest.raises(InvalidUpload, match="POST /v1/previews"):
        decode(tmp_path / "costs.csv", Form(filename="costs.csv"))
    (tmp_path / "raw").write_bytes(bytes(range(64)))
    with pytest.raises(InvalidUpload, match="raw bytes need dtype and shape"):
        decode(tmp_path / "raw", Form(filename="raw"))


@pytest.mark.parametrize("wider", [0, 100, 400])
def test_a_header_that_was_read_before_says_nothing_of_the_bytes_behind_it(tmp_path: Path, wider: int) -> None:
    head = header("{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }" + " " * wider)
    for seed in range(3):
        array = np.random.default_rng(seed).random(4)
        (path := tmp_path / f"{seed}.npy").write_bytes(head + array.tobytes())
        assert read(path).value.tolist() == array.tolist()  # type: ignore[union-attr]
    path.write_bytes(head + bytes(24))
    with pytest.raises(InvalidUpload, match="24 bytes came behind the header"):
        read(path)
