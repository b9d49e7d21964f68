"""Uploads of any size, cut anywhere, in memory or not: bytes, digest and sight are those of a plain look at the file.

The sizes that matter are borders: of leaves, of pieces, of what is handed to threads. Here they are a hundredth of what
they are, so that a test meets them often.
"""

import hashlib
import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import glance, together
from tests.workers.test_arena import Nobody
from tests.workers.totals import total_of
from workers.store import blocks, digests, pieces, pool, slab, upload
from workers.store.arena import MARK, Arena
from workers.store.expected import Expected
from workers.store.upload import Writer

LEAF, PIECE = 4 << 10, 32 << 10
SHOWN = ("low", "high", "plus", "minus", "masked")
TYPES = ("<f4", "<f8", "<i4", "<i8")
ODD = (np.inf, -np.inf, np.nan)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Borders as near to each other as pages allow."""
    for module in (blocks, digests, pool, upload):
        monkeypatch.setattr(module, "PIECE", PIECE)
    for module in (blocks, digests, pieces):
        monkeypatch.setattr(module, "LEAF", LEAF)
    monkeypatch.setattr(digests, "LEAVES", {digests.TREE: LEAF})
    monkeypatch.setattr(pieces, "SHORT", LEAF // 8)
    monkeypatch.setattr(blocks, "STEP", 2 * LEAF)
    monkeypatch.setattr(blocks, "SEEN", LEAF)
    monkeypatch.setattr(blocks, "END", 4 * PIECE)
    monkeypatch.setattr(slab, "STEP", PIECE)
    monkeypatch.setattr(upload, "WORTH_A_SLAB", 2 * LEAF)
    pool.pool.cache_clear()
    yield
    pool.pool.cache_clear()


def plain_digest(data: bytes) -> str:
    if len(data) <= PIECE:
        return f"sha256:{hashlib.sha256(data).hexdigest()}"
    whole = hashlib.sha256(f"allot sha256u {LEAF}\n".encode() + len(data).to_bytes(8, "little"))
    for at in range(0, len(data), LEAF):
        whole.update(hashlib.sha256(data[at : at + LEAF]).digest())
    return f"sha256u:{whole.hexdigest()}"


def drawn(rng: random.Random) -> Any:
    """An array whose file ends near a border, with odd numbers at odd places."""
    dtype = np.dtype(rng.choice([*TYPES, *TYPES, "<f2"]))
    border = rng.choice([LEAF, 2 * LEAF, *(k * PIECE for k in (1, 2, 3, 4, 5, 6))])
    count = max(1, (border - rng.choice([0, 128])) // dtype.itemsize + rng.randint(-3, 3) * rng.choice([1, 16, 300]))
    array = (1000 * np.random.default_rng(rng.randrange(1 << 30)).standard_normal(count)).astype(dtype)
    places = (0, count - 1, rng.randrange(count), min(count - 1, (PIECE - 128) // dtype.itemsize))
    for _ in range(rng.choice([0, 0, 1, 2])):
        array[rng.choice(places)] = rng.choice(ODD) if dtype.kind == "f" else np.iinfo(dtype).min
    return array


def sent(writer: Writer, data: bytes, rng: random.Random) -> None:
    """By `write`, by `place` and `came`, and by both in turn; the slab may be left in the middle."""
    portion, share = rng.choice([1000, LEAF, 3 * LEAF + 17, PIECE, 2 * PIECE + 5]), rng.random()
    leaves, at = rng.randrange(len(data)) if rng.random() < 0.1 else None, 0
    while at < len(data):
        if leaves is not None and at >= leaves and writer._blocks is not None:
            writer._blocks.leave()
            leaves = None
        count = min(rng.randint(1, portion), len(data) - at)
        memory = writer.place() if rng.random() < share else None
        if memory is None:
            writer.write(data[at : at + count])
        else:
            count = min(count, len(memory))
            memory[:count] = data[at : at + count]
            writer.came(count)
        at += count


def checks(writer: Writer, data: bytes, array: Any, is_whole: bool, sums: bool) -> list[Callable[[], None]]:
    """What must hold in whatever order it is asked for."""
    known = is_whole and array.dtype.str in TYPES
    plain = together([glance(array.view(np.uint8), array.dtype.str, False)]) if known else None

    def saw() -> None:
        sight = writer.sight
        if sight is None:
            return
        assert plain is not None
        assert [getattr(sight.seen, name) for name in SHOWN] == [getattr(plain, name) for name in SHOWN]
        assert (sight.dtype, sight.size) == (array.dtype.str, array.size)
        assert sight.seen.total == (total_of(array) if sums else None)

    def lies() -> None:
        assert writer.memory is None or bytes(writer.memory) == data

    def named() -> None:
        assert writer.digest == plain_digest(data)

    def written() -> None:
        assert writer.flush().read_bytes() == data

    return [saw, lies, named, written]


@pytest.mark.parametrize("block", range(4))
def test_bytes_digest_and_sight_are_those_of_a_plain_look(small: None, block: int, tmp_path: Path) -> None:
    seen = 0
    for seed in range(60 * block, 60 * block + 60):
        rng = random.Random(seed)
        array, file = drawn(rng), io.BytesIO()
        np.save(file, array)
        said, data = len(file.getvalue()), file.getvalue()
        behind = rng.choice([*(0,) * 12, 1, LEAF, -1, -LEAF])
        data = data + b"x" * behind if behind >= 0 else data[: max(200, said + behind)]
        is_whole, sums = len(data) == said, rng.random() < 0.7
        most = rng.choice([said, said, said + PIECE, said - 1, 0])
        arena = Arena(tmp_path / f"{MARK}one", 32 * PIECE) if rng.random() < 0.85 else None
        size = Expected(most, rng.random() < 0.2, arena)
        with Writer(Nobody(), 1 << 40, tmp_path, sums=sums, look=True, size=size) as writer:
            sent(writer, data, rng)
            asked = checks(writer, data, array, is_whole, sums)
            for check in rng.sample(asked, len(asked)):
                check()
            seen += writer.sight is not None
    assert seen > 15


@pytest.mark.parametrize("block", range(4))
def test_threads_find_the_first_mark_wherever_it_lies(small: None, block: int, tmp_path: Path) -> None:
    mark, found = b"\r\n--a-boundary", 0
    for seed in range(40 * block, 40 * block + 40):
        rng = random.Random(seed)
        array, file = drawn(rng), io.BytesIO()
        np.save(file, array)
        data = bytearray(file.getvalue())
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            border = rng.choice([LEAF, 2 * LEAF, 3 * LEAF, PIECE, 2 * PIECE, rng.randrange(len(data))])
            place = border - rng.randint(0, len(mark))
            if 200 < place < len(data) - len(mark):
                data[place : place + len(mark)] = mark
        part = rng.choice([0, 0, rng.randrange(1, len(mark))])  # of one that goes on behind the end
        data[len(data) - part :] = mark[:part]
        following = rng.choice([mark[part:], b"none", b"", mark[part:-1]])
        size = Expected(len(data), arena=Arena(tmp_path / f"{MARK}one", 32 * PIECE))
        with Writer(Nobody(), 1 << 40, tmp_path, look=rng.random() < 0.5, size=size) as writer:
            writer.seek(mark)
            until = len(data) if rng.random() < 0.7 or len(data) <= 300 else rng.randrange(300, len(data) + 1)
            writer.write(bytes(data[:200]))  # what is written was searched before
            portion, at = rng.choice([1000, LEAF, 3 * LEAF + 17, PIECE]), 200
            while at < until and (memory := writer.place()) is not None:
                count = min(rng.randint(1, portion), until - at, len(memory))
                memory[:count] = data[at : at + count]
                writer.came(count)
                at += count
            if not writer.seeks:
                continue
            assert at == until
            seen = bytes(data[:until]) + following
            wanted = next(k for k in range(len(seen) + 1) if seen.startswith(mark, k) or mark.startswith(seen[k:]))
            first = writer.marked(following[: len(mark) - 1])
            assert first == (wanted if wanted < until else None), seed
            if first is not None:
                found += 1
                assert b"".join(writer.cut(first)) == seen[first:until]
                assert writer.flush().read_bytes() == seen[:first]
                assert writer.digest == plain_digest(seen[:first])
    assert found > 10
