"""The checksum that says whether a device read what arrived: by its definition, in pieces, and after stray writes."""

import numpy as np
import pytest

from kernels.certificates.gpu import checksum as checked
from kernels.certificates.gpu.checksum import KEYS, PIECE, STRIDE, Pending, checksum
from kernels.problems import Array

LOW = 2**32 - 1


def key(k: int) -> int:
    h = (k % KEYS + 1) * 0x9E3779B1 & LOW
    h = (h ^ (h >> 15)) * 0x85EBCA77 & LOW
    low = h ^ (h >> 13)
    h = (low + 0x165667B1 & LOW) * 0xC2B2AE3D & LOW
    return ((h ^ (h >> 16)) << 32 | low) + k // KEYS * STRIDE


def by_definition(raw: bytes) -> int:
    raw += bytes(-len(raw) % 8)
    total = 0
    for k in range(len(raw) // 8):
        y = (int.from_bytes(raw[8 * k : 8 * k + 8], "little") + key(k)) % 2**64
        total += (y & LOW) * (y >> 32)
    return total % 2**64


@pytest.mark.parametrize("size", [1, 7, 8, 9, 4000, PIECE - 4, PIECE, PIECE + 12, 3 * PIECE + 5])
def test_it_is_what_the_text_says(size: int) -> None:
    raw = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert checksum(raw) == by_definition(raw.tobytes())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int64])
def test_shape_and_type_do_not_matter(dtype: type) -> None:
    array: Array = (np.random.default_rng(1).random((37, 41, 3)) * 1e9).astype(dtype)
    assert checksum(array) == checksum(np.frombuffer(array.tobytes(), np.uint8))


def test_several_threads_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = np.random.default_rng(2).integers(0, 256, 5 * PIECE + 77, np.uint8)
    alone = checksum(raw)
    monkeypatch.setattr(checked, "SHARE", PIECE)
    monkeypatch.setattr(checked, "THREADS", 4)
    assert checksum(raw) == alone


def test_checksums_of_several_arrays() -> None:
    arrays: list[Array] = [np.arange(5.0), np.arange(9), np.zeros(0)]
    pending = Pending(arrays)
    assert [pending.of(array) for array in arrays] == [checksum(array) for array in arrays]
    assert pending.of(np.arange(7)) == checksum(np.arange(7))


def written(rng: np.random.Generator, raw: Array, kind: str) -> Array:
    """What a stray write may leave."""
    out = raw.copy()
    first, last = sorted(rng.choice(raw.size, 2, replace=False).tolist())
    if kind == "bit":
        out.view(np.uint8)[first] ^= 1 << int(rng.integers(8))
    elif kind == "zeros":
        out[first:last] = 0
    elif kind == "negated":
        out.view(np.uint32)[2 * first : 2 * last] ^= np.uint32(1 << 31)
    elif kind == "exchanged":
        out[[first, last]] = out[[last, first]]
    elif kind == "moved":
        out[first + 1 : last] = raw[first : last - 1]
    return out


@pytest.mark.parametrize("kind", ["bit", "zeros", "negated", "exchanged", "moved"])
def test_stray_writes_are_seen(kind: str) -> None:
    """Also into numbers whose low bits are all 0, and of opposite signs: what simple sums overlook."""
    rng = np.random.default_rng([3, *kind.encode()])
    for numbers in (rng.random(200), rng.integers(1, 9, 200).astype(np.float64), np.ldexp(1.0, np.arange(200) % 9)):
        for _ in range(300):
            raw = numbers.view(np.uint64)
            wrong = written(rng, raw, kind)
            if (wrong != raw).any():
                assert checksum(wrong) != checksum(raw)
