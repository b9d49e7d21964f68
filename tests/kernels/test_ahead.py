"""What was sent ahead is found once, by the array that it was sent for. Memory of the host stands in for a device's."""

import ctypes
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernels.ahead import LEAST_BYTES, Ahead, is_sent, sent_ahead

COUNT = LEAST_BYTES // 8


class OnDevice:
    """Of CuPy's arrays, what is used."""

    def __init__(self, size: int, dtype: Any) -> None:
        self.memory = np.zeros(size, dtype)
        self.data = types.SimpleNamespace(ptr=self.memory.ctypes.data)

    def reshape(self, shape: tuple[int, ...]) -> Any:
        return self.memory.reshape(shape)


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A library of devices that has one, and how often somebody waited for its stream."""
    found: list[int] = []
    stream = types.SimpleNamespace(ptr=0, synchronize=lambda: found.append(1))
    library: Any = types.ModuleType("cupy")
    library.empty = OnDevice
    library.cuda = types.SimpleNamespace(
        get_current_stream=lambda: stream,
        runtime=types.SimpleNamespace(memcpyAsync=lambda to, of, count, kind, stream: ctypes.memmove(to, of, count)),
        memory=types.SimpleNamespace(OutOfMemoryError=MemoryError),
    )
    room: Any = types.ModuleType("kernels.gpu_room")
    room.bytes_unused, room.bytes_free = lambda: 0, lambda: 1 << 40
    monkeypatch.setitem(sys.modules, "cupy", library)
    monkeypatch.setitem(sys.modules, "kernels.gpu_room", room)
    Ahead.forget()
    yield found
    Ahead.forget()


def send(array: Any, lies: int | None = None) -> None:
    sent = Ahead.of(array, lies)
    assert sent is not None
    sent.send(0, array.nbytes // 2)
    sent.send(array.nbytes // 2, array.nbytes)
    sent.all_sent()


def test_each_of_several_is_found_once_in_any_order() -> None:
    arrays = [np.full((COUNT // 8, 8), k, float) for k in range(3)]
    for one in arrays:
        send(one)
    for k in (2, 0, 1):
        assert is_sent(arrays[k])
        np.testing.assert_array_equal(sent_ahead(arrays[k].reshape(8, -1)), k)
        assert sent_ahead(arrays[k]) is None
        assert not is_sent(arrays[k])


def test_it_is_read_where_it_lies() -> None:
    seen, lies = np.zeros(COUNT), np.arange(COUNT, dtype=float)
    send(seen, lies.ctypes.data)
    np.testing.assert_array_equal(sent_ahead(seen), lies)


def test_no_other_array_finds_it() -> None:
    one = np.zeros((COUNT // 4, 4))
    send(one)
    for other in (one[1:], one.T, one.view(np.int64), one[:, :2], np.zeros((COUNT // 4, 4))):
        assert sent_ahead(other) is None
    Ahead.forget()
    assert sent_ahead(one) is None


def test_nothing_is_found_of_an_array_that_is_gone() -> None:
    kept = np.zeros(COUNT)
    gone = kept[:]
    send(gone)
    del gone
    assert sent_ahead(kept) is None


def test_who_frees_memory_waits_for_what_nobody_has_asked_for(waited: list[int]) -> None:
    Ahead.come()
    one = np.zeros(COUNT)
    send(one)
    Ahead.come()
    assert len(waited) == 1
    sent_ahead(one)
    Ahead.come()
    assert len(waited) == 1


@pytest.mark.parametrize("array", [np.zeros(COUNT - 1), np.zeros((COUNT, 2))[:, 0], np.zeros((COUNT, 2), order="F")])
def test_what_is_short_or_not_in_one_piece_is_not_sent(array: Any) -> None:
    assert Ahead.of(array) is None
