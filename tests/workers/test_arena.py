"""Memory that is used again: nobody reads another's bytes, no death leaves it held, and without room it is files."""

import contextlib
import fcntl
import io
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workers.laid import SIZE, laid
from workers.store import in_hand
from workers.store.arena import BLOCK, MARK, YOUNGER, Arena, arena_of, is_slab, leased
from workers.store.codec import Limits
from workers.store.digests import PIECE, digest_of
from workers.store.expected import Expected
from workers.store.in_hand import InHand
from workers.store.layouts import npy as read_npy
from workers.store.resized import roomy
from workers.store.sizes import keep_size
from workers.store.slab import STEP
from workers.store.upload import Writer

HOLD = """
import os, sys, time
from pathlib import Path
from workers.store.arena import Arena, leased
from concurrent.futures import ThreadPoolExecutor
import numpy as np
arena = Arena(Path(sys.argv[1]), 1 << 30)
if sys.argv[2] == "map":
    with leased(Path(sys.argv[3])) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        found = np.memmap(file, np.uint8, "c")
else:
    found = arena.take(int(sys.argv[3]), ThreadPoolExecutor(1))
print("held", flush=True)
time.sleep(60)
"""


def lay(arena: Arena, threads: Any, file: str, fill: int, size: int = SIZE) -> Path:
    return laid(arena, threads, file, bytes([fill]) * size)


class Nobody:
    limits = Limits()

    def adopt(self, writer: Writer, owner: str, brief: bool = False) -> None:
        raise AssertionError


def body(count: int, seed: int = 0) -> bytes:
    file = io.BytesIO()
    np.save(file, np.random.default_rng(seed).random(count))
    return file.getvalue()


def held_by(*told: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, *told], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_memory_is_used_again_and_its_old_name_is_gone(arena: Arena, threads: Any) -> None:
    path = lay(arena, threads, "a", 1)
    inode = path.stat().st_ino
    arena.settled("a")
    assert lay(arena, threads, "b", 2).stat().st_ino == inode
    assert arena.find("a") is None
    assert not arena.is_laid("a")
    assert arena.is_laid("b")


def test_who_writes_waits_for_the_pages_of_fresh_memory_alone(arena: Arena, threads: Any) -> None:
    """Those of a slab that the process had before are in its mapping; for another they are brought there."""

    class Idle(ThreadPoolExecutor):
        def submit(self, *_: Any) -> Future[Any]:  # type: ignore[override]
            asked.append(Future())
            return asked[-1]

    asked: list[Future[Any]] = []
    lay(arena, threads, "a", 1)
    arena.settled("a")
    for who, is_asked in ((arena, False), (Arena(arena.root, arena.most), True)):
        slab = who.take(SIZE, Idle(1))
        assert slab is not None
        slab.ready(0)
        assert bool(asked) == is_asked
        for one in asked:
            one.set_result(None)
        slab.close()


def spared(arena: Arena, threads: Any, size: int) -> Path:
    """A slab that nobody needs any more."""
    lay(arena, threads, "gone", 1, size)
    arena.settled("gone")
    arena.drop("gone")
    (path,) = arena.spare.iterdir()
    return path


@pytest.mark.parametrize("size", [SIZE - 100, SIZE - SIZE // 5, SIZE + 1, 2 * SIZE])
def test_a_spare_slab_of_nearly_that_size_is_cut_or_lengthened(arena: Arena, threads: Any, size: int) -> None:
    inode = spared(arena, threads, SIZE).stat().st_ino
    path = lay(arena, threads, "b", 2, size)
    assert (path.stat().st_ino, path.stat().st_size) == (inode, size)
    assert path.read_bytes() == b"\2" * size
    assert list(arena.laid()) == [("b", size)]


@pytest.mark.parametrize("size", [SIZE // 2, 2 * SIZE + 1])
def test_a_spare_slab_of_quite_another_size_is_left(arena: Arena, threads: Any, size: int) -> None:
    inode = spared(arena, threads, SIZE).stat().st_ino
    assert lay(arena, threads, "b", 2, size).stat().st_ino != inode


@pytest.mark.parametrize("more", [-100, 0, 100])
def test_one_of_many_uploads_of_nearly_a_size_gives_its_slab_to_the_next(arena: Arena, threads: Any, more: int) -> None:
    small = SIZE // 8
    oldest = lay(arena, threads, "0", 1, small).stat().st_ino
    arena.settled("0")
    for number in range(1, 1 + YOUNGER):
        assert lay(arena, threads, str(number), number, small + number).stat().st_ino != oldest
        arena.settled(str(number))
    assert arena.find("0") is not None  # nobody knew yet that more would come
    path = lay(arena, threads, "next", 9, small + 10 + more)
    assert (path.stat().st_ino, path.read_bytes()) == (oldest, b"\x09" * (small + 10 + more))
    assert [arena.find(str(number)) is not None for number in range(1 + YOUNGER)] == [False] + [True] * YOUNGER


def test_a_blob_whose_slab_keeps_its_size_keeps_its_name(arena: Arena, threads: Any) -> None:
    small = SIZE // 8
    for number in range(2 + YOUNGER):
        lay(arena, threads, str(number), number, small)
    with (arena.blobs / "0").open("rb") as held:
        keep_size(held.fileno())
        for number in range(2 + YOUNGER):
            arena.settled(str(number))
        lay(arena, threads, "next", 9, small + 10)
        assert arena.find("0") is not None
        assert arena.find("1") is None


def test_what_a_slab_is_lengthened_by_is_fresh_memory(tmp_path: Path, threads: Any) -> None:
    arena = Arena(tmp_path / f"{MARK}large", 4 * STEP)
    spared(arena, threads, STEP)
    slab = arena.take(2 * STEP, threads)
    assert slab is not None
    assert slab.path.stat().st_blocks * 512 < 2 * STEP
    slab.ready(STEP)  # who writes there waits for its pages
    assert slab.path.stat().st_blocks * 512 >= 2 * STEP
    slab.close()


def test_a_slab_whose_writer_died_before_its_pages_were_there_is_fresh(tmp_path: Path, threads: Any) -> None:
    arena = Arena(tmp_path / f"{MARK}large", 4 * STEP)
    process = held_by(str(arena.root), "take", str(2 * STEP))
    process.kill()
    process.wait()
    slab = arena.take(STEP + STEP // 2 + STEP // 4, threads)  # is cut
    assert slab is not None
    slab.ready(0)
    assert slab.path.stat().st_blocks * 512 >= STEP
    slab.close()


def test_no_slab_is_lengthened_beyond_the_room_that_there_is(arena: Arena, threads: Any) -> None:
    for file in "abc":
        lay(arena, threads, file, 1)
    spared(arena, threads, SIZE)
    assert arena.take(SIZE + 1, threads) is None
    assert [path.stat().st_size for path in arena.spare.iterdir()] == [SIZE]  # and it is spare as before
    assert arena.take(SIZE, threads) is not None


def test_what_no_disk_has_is_never_taken(arena: Arena, threads: Any) -> None:
    for number in range(4):
        lay(arena, threads, f"laid-{number}", number)
    assert arena.take(SIZE, threads) is None
    assert arena.take(SIZE // 2, threads) is None
    arena.settled("laid-2")
    lay(arena, threads, "next", 9)
    assert [arena.is_laid(f"laid-{number}") for number in range(4)] == [True, True, False, True]
    assert sorted(file for file, _ in arena.laid()) == ["laid-0", "laid-1", "laid-3", "next"]


def test_another_size_gets_the_room_of_those_that_a_disk_has(arena: Arena, threads: Any) -> None:
    for file in "abcd":
        lay(arena, threads, file, 1)
    for file in "abcd":
        arena.settled(file)
    lay(arena, threads, "long", 2, 2 * SIZE)
    assert [arena.find(file) is not None for file in "abcd"] == [False, False, True, True]
    assert arena.take(5 * SIZE, threads) is None


def test_what_somebody_maps_is_not_written_until_they_have_died(arena: Arena, threads: Any) -> None:
    path = lay(arena, threads, "a", 7)
    arena.settled("a")
    process = held_by(str(arena.root), "map", str(path))
    try:
        taken = [arena.take(SIZE, threads) for _ in range(4)]
        assert [one is None for one in taken] == [False, False, False, True]
        assert path.read_bytes() == bytes([7]) * SIZE
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert arena.take(SIZE, threads) is not None
    assert arena.find("a") is None


def test_a_mapping_here_holds_on_too_and_slices_of_it(arena: Arena, threads: Any, tmp_path: Path) -> None:
    array = np.arange(SIZE // 8)
    file = io.BytesIO()
    np.save(file, array)
    slab = arena.take(len(file.getvalue()), threads)
    assert slab is not None
    slab.view[:] = file.getvalue()
    slab.written()
    found: Any = read_npy(slab.path, SIZE)[5:9]
    arena.lay("a", slab.path)
    arena.settled("a")
    slab.close()
    del slab
    others = [one for _ in range(4) if (one := arena.take(file.getbuffer().nbytes, threads)) is not None]
    assert len(others) == 2  # three would fit
    for one in others:
        one.view[:] = b"x" * len(one.view)
    assert found.tolist() == [5, 6, 7, 8]
    assert found.base.base is not None
    del found
    assert arena.take(file.getbuffer().nbytes, threads) is not None


def test_whoever_opened_a_slab_before_it_was_taken_sees_that_it_is_another(arena: Arena, threads: Any) -> None:
    path = lay(arena, threads, "a", 1)
    arena.settled("a")
    descriptor = os.open(path, os.O_RDONLY)
    slab = arena.take(SIZE, threads)
    assert slab is not None
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(descriptor)
    with pytest.raises(FileNotFoundError), leased(slab.path):
        raise AssertionError
    with pytest.raises(FileNotFoundError), leased(path):
        raise AssertionError


def test_a_writer_that_dies_leaves_its_slab_to_the_next(arena: Arena, threads: Any) -> None:
    process = held_by(str(arena.root), "write", str(4 * SIZE))
    assert arena.take(4 * SIZE, threads) is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert arena.take(4 * SIZE, threads) is not None


def test_a_frozen_process_with_the_lock_holds_nobody_up(arena: Arena, threads: Any) -> None:
    with (arena.root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert arena.take(SIZE, threads) is None
    assert arena.take(SIZE, threads) is not None


@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_memory_that_is_not_there_is_no_error(pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found out piece by piece, and the body goes on in a file."""
    large, real = Arena(tmp_path / f"{MARK}large", 16 * PIECE), os.posix_fallocate
    data = body(PIECE // 8 * 5)

    def full(descriptor: int, at: int, count: int) -> None:
        if at >= pieces * PIECE:
            raise OSError(28, "no room")
        real(descriptor, at, count)

    monkeypatch.setattr(os, "posix_fallocate", full)
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data), arena=large)) as writer:
        writer.write(data)
        assert not is_slab(writer.flush())
        assert writer.path.read_bytes() == data
        assert writer.digest == digest_of(data)
    monkeypatch.undo()
    found: list[int] = []

    def noted(descriptor: int, at: int, count: int) -> None:
        found.append(at)
        real(descriptor, at, count)

    monkeypatch.setattr(os, "posix_fallocate", noted)
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data), arena=large)) as writer:
        writer.write(data)
        assert is_slab(writer.flush())
    assert sorted(found) == list(range(0, len(data), PIECE))  # what was left of the first was no whole slab


def test_what_is_announced_and_never_comes_takes_no_memory(tmp_path: Path) -> None:
    large = Arena(tmp_path / f"{MARK}large", 64 * PIECE)
    data = body(PIECE // 8 * 40)
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data), arena=large)) as writer:
        writer.write(data[: PIECE + 1])
        assert writer.path.stat().st_blocks * 512 <= 6 * PIECE
    (spare,) = large.spare.iterdir()
    assert spare.stat().st_size == len(data)


def test_a_hand_that_is_closed_holds_nothing(arena: Arena, threads: Any) -> None:
    hand = InHand(Arena(arena.root, 16 * SIZE))
    lay(arena, threads, "a", 1)
    arena.settled("a")
    hand.prepare(SIZE, threads)
    assert len(list(arena._taken.iterdir())) == 1
    hand.close()
    hand.prepare(SIZE, threads)  # one that was asked for before
    assert not list(arena._taken.iterdir())
    arena.clear()
    assert not arena.root.exists()


def test_a_slab_in_hand_is_the_next_of_its_size(arena: Arena, threads: Any) -> None:
    hand = InHand(Arena(arena.root, 16 * SIZE))
    lay(arena, threads, "a", 1)
    lay(arena, threads, "b", 2)
    arena.settled("a")  # nobody may take the other yet
    for _ in range(2):
        hand.prepare(SIZE, threads)
    assert [path.stat().st_size for path in arena._taken.iterdir()] == [SIZE]
    assert arena.find("a") is None
    assert arena.find("b") is not None
    slab = hand.take(SIZE, threads)
    assert slab is not None
    assert bytes(slab.view[:2]) == b"\1\1"
    other = hand.take(SIZE, threads)
    assert other is not None
    assert other.path != slab.path
    other.close()
    slab.close()


def test_a_slab_in_hand_is_a_new_one_while_the_last_is_in_use(
    arena: Arena, threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = InHand(Arena(arena.root, 64 * SIZE))
    lay(arena, threads, "a", 1)  # of whom no disk has the bytes yet
    hand.prepare(SIZE, threads)
    (path,) = arena._taken.iterdir()
    assert path.stat().st_blocks * 512 >= path.stat().st_size > SIZE
    slab = hand.take(SIZE, threads)
    assert slab is not None
    assert slab.path == path
    assert slab.size == SIZE
    slab.close()
    monkeypatch.setattr(in_hand, "NEW", SIZE)  # which it is longer than
    (spare,) = arena.spare.iterdir()
    spare.unlink()
    hand.prepare(SIZE, threads)
    assert not hand._slabs


def test_a_slab_in_hand_goes_back_where_another_size_is_asked_for(arena: Arena, threads: Any) -> None:
    hand = InHand(Arena(arena.root, 16 * SIZE))
    lay(arena, threads, "a", 1)
    arena.settled("a")
    hand.prepare(SIZE, threads)
    other = hand.take(3 * SIZE, threads)
    assert other is not None
    assert [path.stat().st_size for path in arena.spare.iterdir()] == [SIZE]
    other.close()
    hand.prepare(SIZE, threads)
    own = hand.take(SIZE, threads)
    assert own is not None
    own.close()
    assert sorted(path.stat().st_size for path in arena.spare.iterdir()) == [SIZE, 3 * SIZE]
    hand.prepare(3 * SIZE, threads)  # too large a part of all
    assert not list(arena._taken.iterdir())


def test_there_is_one_slab_in_hand_however_many_prepare(
    arena: Arena, threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in "abc":
        lay(arena, threads, file, 1)
    for file in "abc":
        arena.settled(file)
    hand, both, take = InHand(Arena(arena.root, 16 * SIZE)), threading.Barrier(2), Arena.take_used

    def late(own: Arena, size: int, pool: Any) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):  # the other thread is not let in
            both.wait(0.2)
        return take(own, size, pool)

    monkeypatch.setattr(Arena, "take_used", late)
    list(threads.map(lambda _: hand.prepare(SIZE, threads), range(2)))
    assert len(hand._slabs) == 1
    assert len(list(arena._taken.iterdir())) == 1


def test_a_slab_in_the_hand_of_who_dies_is_anybodys(arena: Arena, threads: Any) -> None:
    lay(arena, threads, "a", 1)
    arena.settled("a")
    code = (
        "import os, signal, sys\nfrom concurrent.futures import ThreadPoolExecutor\nfrom pathlib import Path\n"
        "from workers.store.arena import Arena\nfrom workers.store.in_hand import InHand\n"
        "InHand(Arena(Path(sys.argv[1]), 1 << 30)).prepare(int(sys.argv[2]), ThreadPoolExecutor(2))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(arena.root), str(SIZE)])
    assert len(list(arena._taken.iterdir())) == 1
    slab = arena.take(SIZE, threads)
    assert slab is not None
    assert bytes(slab.view[:2]) == b"\1\1"
    slab.close()


def stale(arena: Arena, threads: Any, size: int) -> Path:
    """The oldest of so many blobs of nearly that size that it may be taken; a disk has all but the last one."""
    for k in range(YOUNGER + 1):
        lay(arena, threads, f"{k}", k, size - k)
    for k in range(YOUNGER):
        arena.settled(f"{k}")
    found = arena.find("0")
    assert found is not None
    return found


def test_a_slab_in_hand_is_cut_for_an_upload_of_nearly_its_size(tmp_path: Path, threads: Any) -> None:
    arena = Arena(tmp_path / f"{MARK}near", 1 << 24)
    hand, size = InHand(arena), SIZE
    inode = stale(arena, threads, size).stat().st_ino
    for k in (1, 2):
        hand.prepare(size - YOUNGER - k, threads)
        (taken,) = arena._taken.iterdir()
        assert taken.stat().st_ino == inode
        assert taken.stat().st_blocks * BLOCK >= taken.stat().st_size > size
        slab = hand.take(size + k, threads)
        assert slab is not None
        assert (slab.path, slab.size, len(slab.view)) == (taken, size + k, size + k)
        assert taken.stat().st_size == size + k
        assert slab.is_whole
        slab.view[:] = bytes([7]) * slab.size
        assert taken.read_bytes() == bytes([7]) * (size + k)
        slab.close()


def test_a_slab_that_comes_back_to_its_length_is_mapped_already(tmp_path: Path, threads: Any) -> None:
    arena = Arena(tmp_path / f"{MARK}near", 1 << 24)
    stale(arena, threads, SIZE)
    hand = InHand(arena)
    for k in (1, 2, 3):
        hand.prepare(SIZE - 100 * k, threads)
        slab = hand.take(SIZE + 100 * k, threads)
        assert slab is not None
        assert slab._is_used == (k > 1)
        slab.close()


def test_a_slab_in_hand_is_not_cut_where_somebody_keeps_its_size_or_it_is_far_too_long(
    tmp_path: Path, threads: Any
) -> None:
    arena = Arena(tmp_path / f"{MARK}near", 1 << 24)
    stale(arena, threads, SIZE)
    hand = InHand(arena)
    hand.prepare(SIZE + 100, threads)
    (taken,) = arena._taken.iterdir()
    length = taken.stat().st_size
    descriptor = os.open(taken, os.O_RDONLY)
    keep_size(descriptor)
    other = hand.take(SIZE + 100, threads)
    assert other is not None
    assert other.path != taken
    assert os.fstat(descriptor).st_size == length
    os.close(descriptor)
    other.close()
    hand.prepare(SIZE + 100, threads)
    short = hand.take(SIZE // 2, threads)
    assert short is not None
    assert not hand._slabs
    short.close()


def test_a_slab_that_has_no_memory_for_a_longer_upload_is_spare_again(
    tmp_path: Path, threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = Arena(tmp_path / f"{MARK}near", 1 << 24)
    stale(arena, threads, SIZE)

    def none(found: Any, size: int) -> Any:
        raise OSError("there is no memory")

    monkeypatch.setattr("workers.store.arena.whole", none)
    assert arena.take_near(SIZE + 100, threads) is None
    assert not list(arena._taken.iterdir())
    assert len(list(arena.spare.iterdir())) == 1


def test_no_slab_is_given_up_for_the_length_of_one_in_hand(tmp_path: Path, threads: Any) -> None:
    arena = Arena(tmp_path / f"{MARK}near", 2 * (YOUNGER + 2) * SIZE)
    stale(arena, threads, SIZE)
    assert arena.take_near(SIZE + 100, threads) is None
    assert arena.find("0") is not None
    small = arena.take_near(SIZE - 100, threads)
    assert small is not None
    small.close()


def test_uploads_of_one_kind_ask_for_one_length() -> None:
    lengths = {roomy(1 << 20, 0)}
    for size in range(1 << 20, (1 << 20) + (1 << 14), 1 << 10):
        lengths.add(roomy(size, max(lengths)))
    assert len(lengths) == 1
    assert roomy(1 << 22, max(lengths)) > 1 << 22
    assert roomy(1 << 10, max(lengths)) < 1 << 11


def test_no_arena_where_there_can_be_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert arena_of(tmp_path, str(tmp_path / "file"), 1) is None
    assert arena_of(tmp_path, "", 1) is None


def test_the_end_of_a_service_gives_memory_back_but_what_no_disk_has(arena: Arena, threads: Any) -> None:
    lay(arena, threads, "laid", 1)
    lay(arena, threads, "kept", 2)
    arena.settled("kept")
    arena.clear()
    assert arena.find("kept") is None
    assert arena.find("laid") is not None
