"""An upload is read in the memory that it came into, or as any other."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import seen_of
from tests.workers.test_arena import Nobody
from tests.workers.test_laid import long_array
from workers.store import handles
from workers.store.arena import MARK, Arena
from workers.store.codec import Form, Limits
from workers.store.expected import Expected
from workers.store.in_place import handle_of, read_in_place
from workers.store.upload import Writer

ANY = Limits()
SHAPE = 400, 500


@pytest.fixture
def came(tmp_path: Path) -> Iterator[Callable[..., Writer]]:
    """An upload in the arena that is there whole."""
    with ExitStack() as stack:

        def upload(array: Any, behind: bytes = b"") -> Writer:
            file = io.BytesIO()
            np.save(file, array)
            data = file.getvalue() + behind
            size = Expected(len(data), arena=Arena(tmp_path / f"{MARK}here", 1 << 26))
            writer = stack.enter_context(Writer(Nobody(), 1 << 40, tmp_path, look=True, size=size))
            writer.write(data)
            writer.look()
            return writer

        yield upload


def test_it_is_the_array_and_what_was_seen_of_it(came: Callable[..., Writer]) -> None:
    array = long_array()
    sink = came(array)
    reading = read_in_place(sink, Form(filename="cost.npy"), ANY)
    assert reading is not None
    found: Any = reading.value
    np.testing.assert_array_equal(found, array)
    seen = seen_of(found)
    assert seen is not None
    assert (seen.low, seen.high) == (array.min(), array.max())
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1.0
    handle = handle_of(found, sink)
    assert handle is not None
    np.testing.assert_array_equal(handles.single(handle), array)
    assert handle_of(np.array(found), sink) is None
    assert handle_of(found, None) is None


@pytest.mark.parametrize("form", [Form("raw"), Form(dtype="float64"), Form(shape=(1, 2)), Form(member="a")])
def test_what_claims_something_is_read_as_any_other(came: Callable[..., Writer], form: Form) -> None:
    assert read_in_place(came(np.ones(SHAPE)), form, ANY) is None


@pytest.mark.parametrize("array", [np.ones(SHAPE, order="F"), np.ones((0, 4)), np.ones(SHAPE, ">f8")])
def test_what_is_not_as_it_is_usually_written_is_read_as_any_other(came: Callable[..., Writer], array: Any) -> None:
    assert read_in_place(came(array), Form(), ANY) is None


def test_a_header_that_lies_and_an_array_that_is_too_large_are_read_as_any_other(came: Callable[..., Writer]) -> None:
    assert read_in_place(came(np.ones(SHAPE)), Form(), ANY) is not None
    assert read_in_place(came(np.ones(SHAPE), bytes(8)), Form(), ANY) is None
    assert read_in_place(came(np.ones(SHAPE)), Form(), Limits(max_elements=199_999)) is None


def test_what_lies_in_a_file_is_read_as_any_other(tmp_path: Path) -> None:
    with Writer(Nobody(), 1 << 40, tmp_path, look=True) as sink:
        np.save(file := io.BytesIO(), np.ones(SHAPE))
        sink.write(file.getvalue())
        sink.look()
        assert read_in_place(sink, Form(), ANY) is None
