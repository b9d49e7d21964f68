"""Digests by either scheme: in one thread, in any portions, and by the words of the documentation alone."""

import hashlib
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from workers.jobs.job import UnknownBlob
from workers.store.digests import PIECE, Following, Hashed, digest_of, digest_of_file
from workers.store.folder import FILE, file_of, name_in, name_of

SIZES = (0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 12345)


def as_documented(data: bytes) -> str:
    """docs/trust.md, in the standard library's words."""
    if len(data) <= 4194304:
        return "sha256:" + hashlib.sha256(data).hexdigest()
    pieces = [data[start : start + 4194304] for start in range(0, len(data), 4194304)]
    told = b"allot sha256t 4194304\n" + len(data).to_bytes(8, "little")
    return "sha256t:" + hashlib.sha256(told + b"".join(hashlib.sha256(piece).digest() for piece in pieces)).hexdigest()


def some(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("portion", [1 << 20, PIECE, 7_000_001])
def test_portions_do_not_matter(size: int, portion: int, tmp_path: Path) -> None:
    data = some(size)
    hashed = Hashed()
    for start in range(0, size, portion):
        hashed.write(data[start : start + portion])
    assert hashed.digest == as_documented(data) == digest_of(np.frombuffer(data, np.uint8))
    (tmp_path / "bytes").write_bytes(data)
    assert digest_of_file(tmp_path / "bytes") == hashed.digest


def test_a_plain_digest_is_that_of_all_bytes() -> None:
    data = some(2 * PIECE + 5)
    plain = "sha256:" + hashlib.sha256(data).hexdigest()
    assert digest_of(data, like=plain) == plain
    assert digest_of(data, like="sha256t:" + "0" * 64) == as_documented(data)


def test_every_byte_and_their_order_count() -> None:
    data = bytearray(some(2 * PIECE))
    seen = {digest_of(data), digest_of(data + b"\0"), digest_of(data[PIECE:] + data[:PIECE])}
    data[-1] ^= 1
    assert len({*seen, digest_of(data)}) == 4


def test_names_and_files_tell_the_schemes_apart() -> None:
    for digest in ("sha256:" + "a" * 64, "sha256t:" + "a" * 64):
        name = name_of(digest, "ann")
        found = FILE.fullmatch(file_of(name))
        assert found is not None
        assert name_in(found) == name
        found = FILE.fullmatch(file_of(digest))
        assert found is not None
        assert name_in(found) == digest
    assert file_of("sha256:" + "a" * 64) != file_of("sha256t:" + "a" * 64)
    for wrong in ("sha256t:" + "A" * 64, "sha256tt:" + "a" * 64, "sha256t:" + "a" * 63, "sha512:" + "a" * 64):
        with pytest.raises(UnknownBlob):
            name_of(wrong, "ann")


def test_a_piece_is_hashed_while_it_fills_by_any_number_of_threads() -> None:
    memory, wanted = bytearray(1 << 20), random.Random(0).randbytes(1 << 20)
    following = Following(memory)
    with ThreadPoolExecutor(4) as threads:
        for start in range(0, 900_000, 45_000):
            memory[start : start + 45_000] = wanted[start : start + 45_000]
            following.came(start + 45_000)
            for _ in range(3):
                threads.submit(following.follow)
        memory[900_000:] = wanted[900_000:]
        assert following.digest(len(wanted)) == hashlib.sha256(wanted).digest()
        memory[:] = bytes(len(memory))  # the memory is another's by now
        following.follow()
    short = Following(wanted)
    assert short.digest(10) == hashlib.sha256(wanted[:10]).digest()
