"""Small files of every format, right ones and famous wrong ones, from which the fuzzer of the decoders begins.

`python -m tests.attack.seeds` writes them to the corpus; what the fuzzer finds to fail is added there by hand, with a
name that says what it is.
"""

import gzip
import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import zstandard

CORPUS = Path(__file__).with_name("corpus")
MATRIX = np.arange(6.0).reshape(2, 3)


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def npz(pack: bool = False, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if pack else np.savez)(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def tensors(entries: Any, data: bytes = b"") -> bytes:
    head = json.dumps(entries).encode()
    return struct.pack("<Q", len(head)) + head + data


def header(shape: str, dtype: str = "<f8", data: bytes = b"") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def graph(**changes: Any) -> bytes:
    stream = io.BytesIO()
    scipy.sparse.save_npz(stream, scipy.sparse.csr_array(np.eye(3)))
    if not changes:
        return stream.getvalue()
    with np.load(io.BytesIO(stream.getvalue())) as parts:
        return npz(**{**parts, **changes})


def _stored() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a/../b.npy", npy(MATRIX))
        archive.writestr("é.npy", npy(MATRIX))
    return stream.getvalue()


MTX = b"%%MatrixMarket matrix coordinate real general\n% a comment\n2 3 2\n1 1 1.5\n2 3 -2\n"
SEEDS: dict[str, bytes] = {
    "matrix.npy": npy(MATRIX),
    "columns-first.npy": npy(np.asfortranarray(MATRIX)),
    "bytes.npy": npy(MATRIX.astype(np.uint8)),
    "half.npy": npy(MATRIX.astype(np.float16)),
    "batch.npy": npy(np.ones((2, 2, 2), np.int64)),
    "empty.npy": npy(np.ones((0, 3))),
    "scalar.npy": npy(np.float64(1)),
    "objects.npy": header("(1,)", "|O", b"\x80\x04N."),
    "endless-and-empty.npy": header("(0, 1" + "0" * 30 + ")"),
    "huge.npy": header("(1000000000, 1000000000)"),
    "truth.npy": header("(True, 0)"),
    "one.npz": npz(cost=MATRIX),
    "two.npz": npz(pack=True, one=MATRIX, two=MATRIX),
    "graph.npz": graph(),
    "graph-of-scalars.npz": graph(indptr=np.array(1), indices=np.array(2)),
    "graph-of-text.npz": graph(data=np.array(["a", "b", "c"])),
    "graph-without-format.npz": graph(format=np.array([], "S3")),
    "graph-of-a-huge-shape.npz": graph(shape=np.array([2**62, 2**62])),
    "stored.npz": _stored(),
    "matrix.safetensors": tensors({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "brain.safetensors": tensors({"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, b"\x80\x3f\x00\xc0"),
    "surrogate.safetensors": tensors({"\ud800": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}),
    "odd.safetensors": tensors({"x": {"dtype": [], "shape": {}, "data_offsets": [0]}}),
    "instance.dat": b"2\n0 1\n1 0\n\n0 3\n3 0\n",
    "instance-with-best.dat": b"2 6\n0 1\n1 0\n0 3.5\n3 0\n",
    "instance-cut.dat": b"3\n0 1 2\n",
    "instance-huge.dat": b"999999999999999999\n1 2 3\n",
    "graph.mtx": MTX,
    "array.mtx": b"%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n",
    "symmetric.mtx": b"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n",
    "graph-of-1e8-rows.mtx": b"%%MatrixMarket matrix coordinate real general\n100000000 100000000 1\n1 1 1\n",
    "graph.bin": struct.pack("<ii4i", 2, 2, 1, -1, 3, 4),
    "matrix.npy.gz": gzip.compress(npy(MATRIX), mtime=0),
    "matrix.npy.zst": zstandard.compress(npy(MATRIX)),
    "instance.dat.gz": gzip.compress(b"2\n0 1\n1 0\n\n0 3\n3 0\n", mtime=0),
    "zeros.npy.gz": gzip.compress(header("(1000, 1000)", data=bytes(8 * 10**6)), mtime=0),
}


def main() -> None:
    """Write the corpus."""
    CORPUS.mkdir(exist_ok=True)
    for name, data in SEEDS.items():
        (CORPUS / name).write_bytes(data)


if __name__ == "__main__":
    main()
