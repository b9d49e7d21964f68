"""Digests by any scheme: in one thread, in any portions, and by the words of the documentation alone."""

import hashlib
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from workers.jobs.job import UnknownBlob
from workers.store.digests import LEAF, OLD_TREE, PIECE, TREE, Following, Hashed, digest_of, digest_of_file
from workers.store.names import FILE, file_of, name_in, name_of
from workers.store.pieces import Filling

SIZES = (0, 1, LEAF, LEAF + 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + LEAF, 3 * PIECE + 12345)


def as_documented(data: bytes, scheme: str = "sha256u", leaf: int = 524288) -> str:
    """docs/trust.md, in the standard library's words."""
    if len(data) <= 4194304:
        return "sha256:" + hashlib.sha256(data).hexdigest()
    leaves = [data[start : start + leaf] for start in range(0, len(data), leaf)]
    told = f"allot {scheme} {leaf}\n".encode() + len(data).to_bytes(8, "little")
    return f"{scheme}:" + hashlib.sha256(told + b"".join(hashlib.sha256(one).digest() for one in leaves)).hexdigest()


def some(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("portion", [100_001, 1 << 20, PIECE, 7_000_001])
@pytest.mark.parametrize(("scheme", "leaf"), [(TREE, 524288), (OLD_TREE, 4194304)])
def test_portions_do_not_matter(size: int, portion: int, scheme: str, leaf: int, tmp_path: Path) -> None:
    data, name = some(size), f"{scheme}:" + "0" * 64
    hashed = Hashed(scheme)
    for start in range(0, size, portion):
        hashed.write(data[start : start + portion])
        assert hashed.size == min(size, start + portion)
    assert hashed.digest == as_documented(data, scheme, leaf) == digest_of(np.frombuffer(data, np.uint8), name)
    (tmp_path / "bytes").write_bytes(data)
    assert digest_of_file(tmp_path / "bytes", name) == hashed.digest
    assert digest_of(data) == digest_of_file(tmp_path / "bytes") == as_documented(data)


def test_a_plain_digest_is_that_of_all_bytes() -> None:
    data = some(2 * PIECE + 5)
    plain = "sha256:" + hashlib.sha256(data).hexdigest()
    assert digest_of(data, like=plain) == plain


def test_every_byte_and_their_order_count() -> None:
    data = bytearray(some(2 * PIECE))
    seen = {digest_of(data), digest_of(data + b"\0"), digest_of(data[LEAF:] + data[:LEAF])}
    seen.add(digest_of(data, like="sha256t:" + "0" * 64))
    data[-1] ^= 1
    assert len({*seen, digest_of(data)}) == 5


def test_names_and_files_tell_the_schemes_apart() -> None:
    for digest in ("sha256:" + "a" * 64, "sha256t:" + "a" * 64, "sha256u:" + "a" * 64):
        name = name_of(digest, "ann")
        found = FILE.fullmatch(file_of(name))
        assert found is not None
        assert name_in(found) == name
        found = FILE.fullmatch(file_of(digest))
        assert found is not None
        assert name_in(found) == digest
    assert len({file_of(f"sha256{which}:" + "a" * 64) for which in ("", "t", "u")}) == 3
    for wrong in ("sha256t:" + "A" * 64, "sha256tt:" + "a" * 64, "sha256t:" + "a" * 63, "sha512:" + "a" * 64):
        with pytest.raises(UnknownBlob):
            name_of(wrong, "ann")


def test_a_piece_is_hashed_while_it_fills_by_any_number_of_threads() -> None:
    memory, wanted = bytearray(1 << 20), random.Random(0).randbytes(1 << 20)
    with ThreadPoolExecutor(4) as threads:
        following = Following(memory, threads)
        for start in range(0, 900_000, 45_000):
            memory[start : start + 45_000] = wanted[start : start + 45_000]
            following.came(start + 45_000)
            for _ in range(3):
                threads.submit(following.follow)
        memory[900_000:] = wanted[900_000:]
        following.end(len(wanted))
        assert following.digests() == hashlib.sha256(wanted).digest()
        memory[:] = bytes(len(memory))  # the memory is another's by now
        following.follow()
        short = Following(wanted, threads)
        short.end(10)
        assert short.digests() == hashlib.sha256(wanted[:10]).digest()


@pytest.mark.parametrize("portion", [45_000, LEAF, 1 << 20, 1_900_000, PIECE])
@pytest.mark.parametrize("size", [10, LEAF, 3 * LEAF + 1, PIECE - 100_000, PIECE])
def test_leaves_are_hashed_while_a_piece_fills(portion: int, size: int) -> None:
    memory, wanted = bytearray(PIECE), random.Random(size).randbytes(size)
    with ThreadPoolExecutor(4) as threads:
        piece = Filling(memory, 0, None, False, threads)
        for start in range(0, size, portion):
            end = min(size, start + portion)
            memory[start:end] = wanted[start:end]
            piece.came(end, 2 * LEAF)
        piece.end(size, LEAF)
        found = piece.done().digests
    assert found == b"".join(hashlib.sha256(wanted[at : at + LEAF]).digest() for at in range(0, size, LEAF))
