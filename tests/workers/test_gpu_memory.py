"""Staging, with ordinary memory in place of page-locked: where arrays lie, and that they are the same."""

import contextlib
import ctypes
import errno
import fcntl
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import Ahead, Csr, Seen, locked, note, seen_of
from kernels.locked import CHUNK
from workers.runtime import gpu_memory
from workers.store.arena import BLOCK, MARK, Arena
from workers.store.layouts import npy


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were locked, each time."""
    sizes: list[int] = []

    def lock(address: int, count: int) -> Callable[[], object]:
        sizes.append(count)
        return lambda: None

    monkeypatch.setattr(locked, "page_lock", lock)
    return sizes


def test_inputs_are_read_into_one_buffer(tmp_path: Path, taken: list[int]) -> None:
    big = np.random.default_rng(0).random((700, 13))
    np.save(tmp_path / "c.npy", big)
    np.save(tmp_path / "f.npy", np.asfortranarray(big))
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("c", "f")}
    graph = Csr(np.arange(4), np.array([2, 0, 1], np.int32), np.ones(3), (3, 3))
    staging = gpu_memory.Staging(1 << 20)
    for _ in range(3):
        staged = staging.stage({**mapped, "graph": graph, "none": np.empty((0, 3))})
        for name in mapped:
            array = staged[name]
            assert isinstance(array, np.ndarray)
            assert not isinstance(array, np.memmap)
            assert array.ctypes.data % 64 == staged["c"].ctypes.data % 64  # type: ignore[union-attr]
            np.testing.assert_array_equal(array, big)
        assert isinstance(staged["graph"], Csr)
        np.testing.assert_array_equal(staged["graph"].indices, graph.indices)
    assert taken == [1 << 20]  # 2 x 72800 bytes and the graph, taken once


def test_it_grows_and_has_a_limit(taken: list[int]) -> None:
    staging = gpu_memory.Staging(3 * CHUNK // 2)
    staging.stage({"a": np.zeros(100)})
    staging.stage({"a": np.zeros(CHUNK // 8 + 1)})
    assert taken == [CHUNK, 3 * CHUNK // 2]
    large = np.zeros(CHUNK // 4)
    assert staging.stage({"a": large})["a"] is large


def test_inputs_of_several_jobs_lie_side_by_side(taken: list[int]) -> None:
    staging = gpu_memory.Staging(2 * CHUNK)
    given = [np.full((20, 5), k, float) for k in range(4)]
    with staging.several():
        staged = [staging.stage({"a": one})["a"] for one in given]
        large = np.zeros(CHUNK // 4)
        assert staging.stage({"a": large})["a"] is large  # there is room for it by itself alone
        for one, there in zip(given, staged, strict=True):
            np.testing.assert_array_equal(there, one)
            assert there is not one
    again = staging.stage({"a": given[3]})["a"]
    assert again.ctypes.data == staged[0].ctypes.data  # type: ignore[union-attr]
    with staging.several():
        assert staging.stage({"a": given[2]})["a"].ctypes.data == again.ctypes.data  # type: ignore[union-attr]


def test_without_room_inputs_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(address: int, count: int) -> Callable[[], object]:
        raise RuntimeError("this system locks only what it allocates itself")

    monkeypatch.setattr(locked, "page_lock", none_left)
    given = np.zeros(10)
    assert gpu_memory.Staging(1 << 20).stage({"a": given})["a"] is given


def test_memory_is_taken_ahead_in_steps_half_for_inputs_and_half_for_plans(
    taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_memory, "AHEAD", 2 * CHUNK)
    answers = locked.Rooms(3 * CHUNK)
    monkeypatch.setattr(gpu_memory, "ANSWERS", answers)
    staging = gpu_memory.Staging(8 * CHUNK)
    *found, last, locked_last = gpu_memory.taken_ahead(staging, 9 * CHUNK)
    pages: list[int] = []
    monkeypatch.setattr(locked, "_find", lambda address, count: pages.append(count))
    for step in found:
        step()
    assert pages == [2 * CHUNK, 2 * CHUNK, 2 * CHUNK, CHUNK]  # a plan has no more
    assert taken == []
    for step in (last, locked_last):
        step()
    staging.stage({"a": np.zeros(CHUNK // 4)})
    assert taken == [4 * CHUNK, 3 * CHUNK]
    assert len(pages) == 4
    assert gpu_memory.taken_ahead(staging, 0) == []


def test_slabs_for_an_upload_and_a_result_are_found_beside_that(
    taken: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu_memory, "AHEAD", CHUNK)
    monkeypatch.setattr(gpu_memory, "ANSWERS", locked.Rooms(4 * CHUNK))
    pages: list[int] = []
    monkeypatch.setattr(locked, "_find", lambda address, count: pages.append(count))
    arena = Arena(tmp_path / f"{MARK}ahead", 16 * CHUNK)
    steps = gpu_memory.taken_ahead(gpu_memory.Staging(4 * CHUNK), 7 * CHUNK, arena)
    assert len(steps) == 3 * 4 + 2
    seen = []
    for one in steps[:12]:
        one()
        seen.append(sizes(arena))
    assert seen[3] == [2 * CHUNK]  # that of an upload comes first
    assert seen[-1] == [3 * CHUNK, 3 * CHUNK]
    assert pages == [CHUNK] * 6
    assert gpu_memory.taken_ahead(gpu_memory.Staging(CHUNK), 0, arena) == []


def test_memory_that_is_not_there_ahead_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "posix_fallocate", full)
    arena = Arena(tmp_path / f"{MARK}full", 16 << 20)
    gpu_memory._found_in(arena, 8 << 20)
    assert not list(arena._taken.iterdir())


def sizes(arena: Arena) -> list[int]:
    """Of its spare slabs, all of whose pages are there."""
    found = [path.stat() for path in arena.spare.iterdir()]
    assert all(one.st_blocks * BLOCK >= one.st_size for one in found)
    return sorted(one.st_size for one in found)


class Sent:
    """Stands in for `Ahead`: what came of the memory by the time that it was sent."""

    def __init__(self, array: Any) -> None:
        self.array, self.pieces, self.whole = array, list[tuple[int, int, bytes]](), False

    def send(self, begin: int, end: int) -> None:
        self.pieces.append((begin, end, self.array.reshape(-1).view(np.uint8)[begin:end].tobytes()))

    def all_sent(self) -> None:
        self.whole = True


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Sent]]:
    """What is sent ahead, in pieces of LEAST_PIECE."""
    found: list[Sent] = []

    def ahead_of(array: Any, lies: int | None = None) -> Sent:
        found.append(Sent(array))
        return found[-1]

    monkeypatch.setattr(Ahead, "of", ahead_of)
    monkeypatch.setattr(gpu_memory, "READERS", 8)
    gpu_memory._readers.cache_clear()
    yield found
    gpu_memory._readers.cache_clear()


def test_what_a_solver_copies_whole_is_sent_as_it_is_read(tmp_path: Path, taken: list[int], sent: list[Sent]) -> None:
    costs, weights = np.random.default_rng(0).random((2, 3 * gpu_memory.LEAST_PIECE // 16))
    mapped = {}
    for name, array in (("cost", costs), ("a", weights)):
        np.save(tmp_path / f"{name}.npy", array)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    staging = gpu_memory.Staging(1 << 24)
    staged = staging.stage(mapped, {"cost": "f"})
    assert [one.array is staged["cost"] for one in sent] == [True]
    assert sent[0].whole
    pieces = sorted(sent[0].pieces)
    assert [(begin, end) for begin, end, _ in pieces] == [(0, 1 << 20), (1 << 20, costs.nbytes)]
    assert b"".join(there for _, _, there in pieces) == costs.tobytes()
    with staging.several():
        staging.stage(mapped, {"cost": "f"})
    staging.stage({"cost": costs}, {"cost": "f"})  # comes from no file
    assert len(sent) == 1


def test_what_was_not_read_whole_was_not_sent(tmp_path: Path, taken: list[int], sent: list[Sent]) -> None:
    np.save(tmp_path / "a.npy", np.zeros(1 << 18))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    with (tmp_path / "a.npy").open("r+b") as file:
        file.truncate(1 << 20)
    with pytest.raises(OSError, match="shorter"):
        gpu_memory.Staging(1 << 22).stage({"a": mapped}, ["a"])
    assert not sent[0].whole
    assert len(sent[0].pieces) < 2


def test_a_blob_cut_short_is_an_error(tmp_path: Path, taken: list[int]) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(1000))
    mapped = np.load(path, mmap_mode="r")
    with path.open("r+b") as file:
        file.truncate(500)
    with pytest.raises(OSError, match="shorter"):
        gpu_memory.Staging(1 << 20).stage({"a": mapped})


def test_what_was_seen_goes_along_and_nothing_of_the_job_before(tmp_path: Path, taken: list[int]) -> None:
    first, second = np.random.default_rng(1).random((2, 40, 40))
    staging, seen = gpu_memory.Staging(1 << 20), Seen(0.0, 1.0, checksum=7)
    np.save(tmp_path / "first.npy", first)
    mapped = np.load(tmp_path / "first.npy", mmap_mode="r")
    note(mapped, seen)
    staged = staging.stage({"cost": mapped})["cost"]
    assert seen_of(staged) == seen
    again = staging.stage({"cost": second})["cost"]
    assert isinstance(staged, np.ndarray)
    assert isinstance(again, np.ndarray)
    assert staged.ctypes.data == again.ctypes.data  # the memory of the job before, which is still held here
    assert seen_of(again) is None
    assert seen_of(staged) is None


def test_nothing_of_the_job_before_is_said_of_a_part_of_what_lies_in_its_place(taken: list[int]) -> None:
    """A member of a batch begins where the matrix of the job before did, and is as large."""
    first, batch = np.random.default_rng(1).random((40, 40)), np.full((3, 40, 40), -5.0)
    staging = gpu_memory.Staging(1 << 20)
    note(first, Seen(0.0, 1.0, total=7))
    for how in (contextlib.nullcontext(), staging.several()):
        staged = staging.stage({"cost": first})["cost"]  # which is still held below
        assert seen_of(staged) is not None
        with how:
            members = staging.stage({"cost": batch})["cost"]
        assert isinstance(members, np.ndarray)
        assert seen_of(members[0]) is None
        assert seen_of(staged) is None


def test_what_was_seen_stays_where_several_jobs_lie_side_by_side(taken: list[int]) -> None:
    matrices, staging = list(np.random.default_rng(1).random((2, 40, 40))), gpu_memory.Staging(1 << 20)
    with staging.several():
        for k, matrix in enumerate(matrices):
            note(matrix, Seen(0.0, 1.0, total=k))
        staged = [staging.stage({"cost": matrix})["cost"] for matrix in matrices]
        assert [seen_of(one) for one in staged] == [Seen(0.0, 1.0, total=k) for k in range(2)]


def test_a_name_in_the_arena_may_be_another_slabs_by_now(tmp_path: Path, taken: list[int]) -> None:
    """Equal bytes came again and were settled: their slab is being written anew, and the job has mapped the first."""
    array, file = np.arange(100.0), io.BytesIO()
    np.save(file, array)
    with ThreadPoolExecutor(1) as threads:
        arena = Arena(tmp_path / f"{MARK}here", 1 << 20)
        slabs = [arena.take(len(file.getvalue()), threads) for _ in range(2)]
        mapped: Any = None
        for slab in slabs:
            assert slab is not None
            slab.view[:] = file.getvalue()
            slab.written()
            arena.lay("a", slab.path)
            mapped = npy(arena.blobs / "a", 100) if mapped is None else mapped
            slab.close()
        with (arena.blobs / "a").open("r+b") as anew:
            fcntl.flock(anew, fcntl.LOCK_EX)  # as who takes it holds it, and writes before the name is gone to us
            anew.write(bytes(len(file.getvalue())))
            anew.flush()
            np.testing.assert_array_equal(gpu_memory.Staging(1 << 20).stage({"a": mapped})["a"], array)


def test_a_mapped_file_may_lose_its_name(tmp_path: Path, taken: list[int]) -> None:
    np.save(tmp_path / "a.npy", np.arange(100.0))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    (tmp_path / "a.npy").unlink()
    np.testing.assert_array_equal(gpu_memory.Staging(1 << 20).stage({"a": mapped})["a"], np.arange(100.0))


class Driver:
    """What is called of CUDA's driver; `fails` is the call that answers with an error."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[str] = []
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        def call(*_: object) -> int:
            self.calls.append(name)
            return 100 if name == self._fails else 0

        return call


@pytest.mark.parametrize(
    ("fails", "calls"),
    [
        ("", ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]),
        ("cuInit", ["cuInit"]),
        ("cuDeviceGet", ["cuInit", "cuDeviceGet"]),
    ],
)
def test_a_context_is_made_where_the_driver_has_a_device(
    fails: str, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(fails)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    gpu_memory.wake()
    assert driver.calls == calls


def test_a_machine_without_a_driver_says_nothing() -> None:
    gpu_memory.wake("there is no such library")
