"""Numbers that travel in fewer bytes than they are solved in widen without rounding, in every format."""

import io
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import Array
from tests.workers.test_codec import npy, tensors
from workers.store.codec import Form, InvalidUpload, Limits, decode, encode, read
from workers.store.inline import apart, carried, together, unpack
from workers.store.layouts import BadLayout
from workers.store.narrow import NARROW, checked_scale
from workers.store.outline import outline
from workers.store.reference import form_of, frozen, shown

WIDE = np.array([[1.0, -2.5, 3.25e30, np.inf], [0.0, -0.0, 2.0**-130, 1.0078125]], np.float32)
BRAIN = WIDE.astype(ml_dtypes.bfloat16)
BITS = BRAIN.view("<u2")
SHAPE = (2, 4)


def npz(array: Array) -> bytes:
    file = io.BytesIO()
    np.savez(file, cost=array, other=np.zeros(3))
    return file.getvalue()


BRAINS = {
    "raw": (BITS.tobytes(), Form("raw", dtype="bfloat16", shape=SHAPE)),
    "npy": (npy(BRAIN), Form(dtype="bfloat16")),
    "npz": (npz(BRAIN), Form(dtype="bfloat16", member="cost")),
    "safetensors": (
        tensors({"cost": {"dtype": "BF16", "shape": list(SHAPE), "data_offsets": [0, 16]}}, BITS.tobytes()),
        Form(),
    ),
}


def kept(data: bytes, folder: Path) -> Path:
    path = folder / "upload"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", BRAINS)
def test_bfloat16_is_taken_and_said(name: str, tmp_path: Path) -> None:
    data, form = BRAINS[name]
    path = kept(data, tmp_path)
    found = read(path, form)
    assert isinstance(found.value, np.ndarray)
    assert found.value.dtype == np.float32
    np.testing.assert_array_equal(found.value, BRAIN.astype(np.float32))
    reference = frozen("sha256:" + "0" * 64, found)
    assert reference["dtype"] == "bfloat16"
    again = read(path, form_of("cost", reference)).value
    np.testing.assert_array_equal(np.asarray(again), found.value)


def test_an_older_reference_names_what_bfloat16_became(tmp_path: Path) -> None:
    data, _ = BRAINS["safetensors"]
    found = decode(data, Form("safetensors", "cost", "float32", SHAPE))
    np.testing.assert_array_equal(np.asarray(found), BRAIN.astype(np.float32))


def test_two_unknown_bytes_are_bfloat16_only_where_that_is_said() -> None:
    with pytest.raises(InvalidUpload, match="said to be bfloat16"):
        decode(npy(BRAIN))
    with pytest.raises(InvalidUpload, match=r"file.dtype: is bfloat16; the npy bytes hold uint16"):
        decode(npy(BITS), Form(dtype="bfloat16"))
    with pytest.raises(InvalidUpload, match="expected integers or floats"):
        decode(npy(np.zeros((2, 2), "V3")), Form(dtype="bfloat16"))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("kind", ["raw", "npy", "npz", "safetensors"])
def test_a_scale_multiplies_integers_exactly(dtype: str, kind: str, tmp_path: Path) -> None:
    limits = np.iinfo(dtype)
    given = np.array([[limits.min, limits.max, 0], [1, 2, 3]], dtype)
    scale = float(np.float32(0.1))
    data = {"raw": given.tobytes(), "npy": npy(given), "npz": npz(given),
            "safetensors": encode({"cost": given}, "safetensors")}[kind]  # fmt: skip
    form = (
        Form("raw", dtype=dtype, shape=given.shape) if kind == "raw" else Form(member="cost" if kind == "npz" else None)
    )
    path = kept(data, tmp_path)
    found = read(path, Form(form.format, form.member, form.dtype, form.shape, scale=scale))
    assert isinstance(found.value, np.ndarray)
    assert found.value.dtype == np.float64
    for value, whole in zip(found.value.flat, given.flat, strict=True):
        assert Fraction(float(value)) == Fraction(scale) * int(whole)
    reference = frozen("sha256:" + "0" * 64, found)
    assert (reference["dtype"], reference["scale"]) == (dtype, scale)
    np.testing.assert_array_equal(np.asarray(read(path, form_of("cost", reference)).value), found.value)


@given(st.integers(1, 2**37 - 1), st.integers(-1000, 900), st.integers(-(2**15), 2**16 - 1))
def test_no_product_with_a_scale_that_is_taken_is_rounded(significand: int, exponent: int, whole: int) -> None:
    scale = checked_scale(float(Fraction(significand) * Fraction(2) ** exponent))
    assert Fraction(float(np.float64(whole) * scale)) == Fraction(scale) * whole


@pytest.mark.parametrize("scale", [0, -1.0, float("inf"), float("nan"), True, "1", 0.1, 2**37 + 1, 1e305, 10**400])
def test_a_scale_that_is_none_or_would_round_is_refused(scale: object) -> None:
    with pytest.raises(InvalidUpload, match=r"^cost.scale: is"):
        form_of("cost", {"scale": scale})


def test_the_nearest_scale_is_told() -> None:
    with pytest.raises(BadLayout, match=r"as 0\.10000000149011612 has"):
        checked_scale(0.1)
    assert checked_scale(0.10000000149011612) == 0.10000000149011612
    assert checked_scale(3) == 3.0


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float32", "uint32"])
def test_a_scale_goes_with_small_integers_alone(dtype: str) -> None:
    with pytest.raises(InvalidUpload, match=rf"file.scale: is given for {dtype}; it goes with int8"):
        decode(npy(np.ones((2, 2), dtype)), Form(scale=0.5))


def test_a_scale_does_not_go_with_bfloat16_or_several_arrays() -> None:
    with pytest.raises(InvalidUpload, match=r"file.scale: is given for bfloat16"):
        decode(BRAINS["raw"][0], Form("raw", dtype="bfloat16", shape=SHAPE, scale=0.5))
    with pytest.raises(InvalidUpload, match=r"file.member: is missing"):
        decode(npz(np.ones(3, np.int8)), Form(scale=0.5))


def test_an_outline_says_what_will_be_solved(tmp_path: Path) -> None:
    path = kept(BITS.tobytes(), tmp_path)
    assert outline(path, Form("raw", dtype="bfloat16", shape=SHAPE), 100) == (np.dtype(np.float32), SHAPE)
    assert outline(path, Form("raw", dtype="int16", shape=SHAPE, scale=2.0), 100) == (np.dtype(np.float64), SHAPE)


def test_what_travels_in_a_record_is_what_is_solved(tmp_path: Path) -> None:
    path = kept(npy(np.array([[1, 2], [3, 4]], np.int16)), tmp_path)
    found = read(path, Form(scale=0.25), limits=Limits())
    assert isinstance(found.value, np.ndarray)
    reference = carried(frozen("sha256:" + "0" * 64, found), found.value)
    bare, data = apart({"cost": reference})
    assert shown(bare["cost"]).keys() == {"digest", "format", "dtype", "shape", "scale"}
    np.testing.assert_array_equal(unpack(together(bare, data)["cost"]), [[0.25, 0.5], [0.75, 1.0]])
