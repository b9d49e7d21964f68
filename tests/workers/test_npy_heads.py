"""Heads of .npy files: the same bytes as NumPy's, and the same reading of them."""

import io
import itertools
from typing import Any

import numpy as np
import pytest

from workers.store import npy_heads
from workers.store.layouts import LONGEST_NPY_HEADER, BadLayout, npy_place

KINDS = [np.dtype(f"<{kind}{size}") for kind in "iuf" for size in (2, 4, 8)] + [np.dtype(f"|{kind}1") for kind in "biu"]
EXTENTS = (0, 1, 7, 10, 60, 999, 70_001, 123_456_789_012_345)


def by_numpy(dtype: np.dtype[Any], shape: tuple[int, ...], fortran: bool = False) -> bytes:
    file = io.BytesIO()
    told = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": fortran, "shape": shape}
    np.lib.format.write_array_header_1_0(file, told)
    return file.getvalue()


def read_by_numpy(head: bytes) -> Any:
    file = io.BytesIO(head)
    np.lib.format.read_magic(file)
    return np.lib.format.read_array_header_1_0(file, max_header_size=LONGEST_NPY_HEADER)


@pytest.mark.parametrize("count", range(5))
def test_heads_are_those_of_numpy(count: int) -> None:
    for kind, shape in zip(itertools.cycle(KINDS), itertools.product(EXTENTS, repeat=count), strict=False):
        head = by_numpy(kind, shape)
        assert npy_heads.worded(kind, shape) == head
        assert npy_heads.heard(head) == (shape, False, kind) == read_by_numpy(head)


def test_of_an_earlier_numpy_they_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy_heads, "_agrees", lambda: False)
    monkeypatch.setattr(npy_heads, "_quickly", lambda dtype, shape: b"")
    assert npy_heads.worded(np.dtype("<f8"), (3, 5)) == by_numpy(np.dtype("<f8"), (3, 5))


@pytest.mark.parametrize("kind", [">f8", "<U3", "<c16", "V2", "<M8[s]"])
def test_other_types_are_left_to_numpy(kind: str) -> None:
    head = by_numpy(np.dtype(kind), (3,))
    assert npy_heads.heard(head) is None
    if kind != "V2":
        assert npy_heads.worded(np.dtype(kind), (3,)) == head


def test_columns_may_come_first() -> None:
    assert npy_heads.heard(by_numpy(np.dtype("<f4"), (3, 4), True)) == ((3, 4), True, np.dtype("<f4"))


@pytest.mark.parametrize(
    ("words", "other"),
    [
        (b"(3, 4)", b"(03, 4)"),
        (b"(3, 4)", b"(-3, 4)"),
        (b"(3, 4)", b"(3 4)"),
        (b"(3, 4)", b"(3)"),
        (b"(3, 4)", b"(3, 4,)"),
        (b"(3, 4)", b"(1234567890123456789, 4)"),
        (b"'<f8'", b"'<f7'"),
        (b"'<f8'", b"'|f8'"),
        (b"'<f8'", b"'<b1'"),
        (b"'descr'", b"'name'"),
        (b"False", b"0"),
        (b"}", b"} + {}"),
        (b"\n", b" "),
        (b", }", b", 'more': 1, }"),
    ],
)
def test_what_numpy_does_not_write_is_left_to_it(words: bytes, other: bytes) -> None:
    head = by_numpy(np.dtype("<f8"), (3, 4))
    assert head.count(words) == 1
    changed = head.replace(words, other)
    changed = changed[:8] + (len(changed) - 10).to_bytes(2, "little") + changed[10:]
    assert npy_heads.heard(changed) is None
    try:
        shape, fortran, dtype = read_by_numpy(changed)
    except Exception:
        with pytest.raises(BadLayout):
            npy_place(changed)
    else:
        assert npy_place(changed) == (dtype, shape, len(changed), fortran)
