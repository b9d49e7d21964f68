"""References told without a store are those that the store gives, and say all of how bytes are read."""

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from kernels import Array, Csr
from tests.workers.test_codec import MATRIX, npy, tensors
from workers.jobs.queue import Jobs
from workers.store.codec import AS_FOUND, Decoded, Form, InvalidUpload, encode, read
from workers.store.names import name_of
from workers.store.reference import blobs, form_of, frozen, names, of_array, of_file, shown, written

DIGEST = "sha256:" + "0" * 64
GRAPH = Csr(np.array([0, 1, 2]), np.array([1, 0], np.int32), np.array([5.5, 6.5]), (2, 2))


def sparse_file() -> bytes:
    stream = io.BytesIO()
    scipy.sparse.save_npz(stream, scipy.sparse.csr_array(MATRIX))
    return stream.getvalue()


def cases() -> dict[str, tuple[bytes, Form, dict[str, Any]]]:
    whole: dict[str, Any] = {"dtype": "float64", "shape": [3, 4]}
    two = {"a": MATRIX, "b": MATRIX.astype(np.int16)}
    small = {"member": "b", "dtype": "int16", "shape": [3, 4]}
    return {
        "npy": (npy(MATRIX), AS_FOUND, {"format": "npy", **whole}),
        "columns first": (npy(np.asfortranarray(MATRIX)), AS_FOUND, {"format": "npy", **whole}),
        "packed": (gzip.compress(npy(MATRIX)), AS_FOUND, {"format": "npy", **whole}),
        "one number": (npy(np.array(3, np.float32)), AS_FOUND, {"format": "npy", "dtype": "float32", "shape": []}),
        "raw": (MATRIX.tobytes(), Form("raw", None, "<f8", (3, 4)), {"format": "raw", **whole}),
        "raw, not said": (MATRIX.tobytes(), Form(None, None, "float", (3, 4)), {"format": "raw", **whole}),
        "packed raw": (gzip.compress(MATRIX.tobytes()), Form("raw", None, "f8", (3, 4)), {"format": "raw", **whole}),
        "npz of one": (encode({"a": MATRIX}, "npz"), AS_FOUND, {"format": "npz", "member": "a", **whole}),
        "npz": (encode(two, "npz"), Form(member="b"), {"format": "npz", **small}),
        "npz of two": (encode(two, "npz"), AS_FOUND, {"format": "npz"}),
        "safetensors": (encode(two, "safetensors"), Form(member="b"), {"format": "safetensors", **small}),
        "sparse": (sparse_file(), AS_FOUND, {"format": "npz", **whole}),
        "its values": (sparse_file(), Form(member="data"),
                       {"format": "npz", "member": "data", "dtype": "float64", "shape": [11]}),
        "text": (b"1\n\n4\n\n5\n", AS_FOUND, {"format": "qaplib"}),
        "one of text": (b"1\n\n4\n\n5\n", Form("qaplib", "flow"),
                        {"format": "qaplib", "member": "flow", "dtype": "int64", "shape": [1, 1]}),
        "mtx": (b"%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 5\n", AS_FOUND,
                {"format": "mtx", "dtype": "int64", "shape": [2, 3]}),
        "auction": (np.array([1, 2, 3, 4], "<i4").tobytes(), Form(filename="x.bin"),
                    {"format": "auction", "dtype": "int32", "shape": [1, 2]}),
    }  # fmt: skip


@pytest.mark.parametrize("name", cases())
def test_a_reference_says_all_that_is_needed(jobs: Jobs, tmp_path: Path, name: str) -> None:
    data, form, said = cases()[name]
    file = tmp_path / "upload"
    file.write_bytes(data)
    with jobs.store.write([data]) as writer:
        uploaded = writer.commit("ann", form).reference
    assert uploaded == of_file(file, form) == {"blob": uploaded["blob"], **said}
    again = read(file, form_of("cost", uploaded))
    assert frozen(uploaded["blob"], again) == uploaded
    assert same(again.value, read(file, form).value)


def same(one: Decoded, other: Decoded) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, Csr):
        parts = ("indptr", "indices", "values")
        return isinstance(other, Csr) and all(same(getattr(one, part), getattr(other, part)) for part in parts)
    return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)


@pytest.mark.parametrize("value", [MATRIX, np.asfortranarray(MATRIX), MATRIX[::2], np.arange(3), GRAPH], ids=repr)
def test_an_array_has_the_reference_that_the_store_gives(jobs: Jobs, value: Array | Csr) -> None:
    reference = jobs.store.put(value, "ann")
    assert reference == of_array(value)
    assert same(jobs.store.resolve(reference, "ann"), value)
    assert {blob["format"] for blob in blobs(reference)} == {"npy"}
    assert names({"x": reference, "y": reference}, "ann") == [name_of(b["blob"], "ann") for b in blobs(reference)]


def test_a_frozen_form_is_held_against_the_bytes(jobs: Jobs) -> None:
    """What a job froze is checked again when it runs: a wrong form is an error, never another problem."""
    reference = jobs.store.put(MATRIX, "ann")
    for wrong, part in (({"dtype": "float32"}, "dtype"), ({"shape": [4, 3]}, "shape"), ({"member": "a"}, "member")):
        with pytest.raises(InvalidUpload) as caught:
            jobs.store.resolve({**reference, **wrong}, "ann")
        assert caught.value.field.endswith(f".{part}")
    with pytest.raises(InvalidUpload):
        jobs.store.resolve({**reference, "format": "npz"}, "ann")


def test_what_an_owner_may_say() -> None:
    assert form_of("x", {"blob": DIGEST, "links": {}, "member": None}) == Form()
    full = form_of("x", {"format": "raw", "dtype": "int8", "shape": [2, 0]})
    assert full == Form("raw", dtype="int8", shape=(2, 0))
    dtypes: list[Any] = ["f4,f4", "(2,)f4", "i4 ", {}, "x" * 100]
    shapes: list[Any] = [[1] * 9, {}, [1.0], [True], "3"]
    lies: list[dict[str, Any]] = [{"dtype": dtype} for dtype in dtypes] + [{"shape": shape} for shape in shapes]
    lies += [{"format": "csr"}, {"member": ["a"]}]
    for wrong in lies:
        with pytest.raises(InvalidUpload, match=rf"^x\.{next(iter(wrong))}: "):
            form_of("x", wrong)


def test_what_older_records_can_say() -> None:
    assert shown({"kind": "array", "digest": DIGEST}) == {"blob": DIGEST}
    parts = {"indptr": DIGEST, "indices": DIGEST, "values": DIGEST}
    csr = shown({"kind": "csr", **parts, "shape": [1, 1]})["csr"]
    assert csr == {**{name: {"blob": DIGEST, "format": "npy"} for name in parts}, "shape": [1, 1]}
    entry = {"dtype": "int64", "shape": [2]}
    assert written({"digest": DIGEST, **entry}) == {"blob": DIGEST, "format": "npy", **entry}
    assert written({"blob": DIGEST, "format": "raw", **entry})["format"] == "npy"


def test_sparse_files_that_lie() -> None:
    good: dict[str, Any] = {"data": np.ones(1), "indices": np.zeros(1, int), "indptr": np.array([0, 1])}
    good |= {"shape": np.array([1, 1]), "format": np.array(b"csr")}
    assert isinstance(read(encode(good, "npz")).value, Csr)
    changes: list[dict[str, Any]] = [
        *({"format": array} for array in (np.array([b"csr"] * 2), np.array([], "S3"), np.ones(2))),
        *({"shape": array} for array in (np.array([1.5, 1.0]), np.array(3), np.array([1]))),
        {"indptr": np.array([0.0, np.nan])},
        {"indices": np.zeros((1, 1), int)},
        {"data": np.ones((1, 1))},
    ]
    for change in changes:
        with pytest.raises(InvalidUpload, match=r"^benefit"):
            read(encode(good | change, "npz"), AS_FOUND, "benefit")


def test_text_beside_arrays_is_no_array() -> None:
    data = encode({"cost": MATRIX, "name": np.array("mine")}, "npz")
    assert np.array_equal(np.asarray(read(data, Form(member="cost")).value), MATRIX)
    for form in (Form(member="name"), Form("npz", "name")):
        with pytest.raises(InvalidUpload, match="expected integers or floats"):
            read(data, form)
    with pytest.raises(InvalidUpload, match="expected integers or floats"):
        read(encode({"name": np.array("mine")}, "npz"))
    with pytest.raises(InvalidUpload, match="holds no array"):
        read(tensors({"__metadata__": {}}))
