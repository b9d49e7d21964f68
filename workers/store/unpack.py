"""Inflating what strangers send: gzip, zstd and zip members, streamed to disk and stopped at a limit."""

import gzip
import lzma
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import zstandard

from workers.store.disk import room

CHUNK = 1 << 20
STEP = 8 << 20
"""Bytes that are charged at once."""
RATIO = 200
"""Above this ratio, and above `FREE_BYTES`, a stream is taken for a bomb. Real matrices pack 2 to 20 times."""
FREE_BYTES = 64 << 20
LONGEST_WINDOW = 1 << 27  # of zstd: what `zstd --long` writes by default

LONGEST_DIRECTORY = 1 << 16
"""Of a zip file, which is read whole: a million names take 20 s and a gigabyte."""

GZIP, ZSTD, ZIP = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"


ZIP_FAULTS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, KeyError, OSError, struct.error)
"""What zipfile raises at headers that lie: offsets before the file, unknown methods, names that are no text."""


@dataclass(frozen=True)
class Scratch:
    """Where what is inflated goes: files beside the packed one.

    Attributes:
        prefix: of their names.
        charge: is asked before so many more bytes are written; what it raises ends the inflating.
        kept: the files outlive the reading, for another process to map; who made the prefix deletes them.
    """

    prefix: str = ".unpacked-"
    charge: Callable[[int], object] = lambda count: None
    kept: bool = False

    def done_with(self, path: Path) -> None:
        """The file has been mapped; a mapping outlives its name."""
        if not self.kept:
            path.unlink()


PASSING = Scratch()


class TooLarge(ValueError):
    """It inflates to more than is allowed."""


class Damaged(ValueError):
    """It does not inflate."""


def packing(head: bytes) -> str | None:
    """ "gzip", "zstd" or None, from the first bytes."""
    return "gzip" if head.startswith(GZIP) else "zstd" if head.startswith(ZSTD) else None


def unpack(path: Path, how: str, max_bytes: int, scratch: Scratch = PASSING) -> Path:
    """Inflate the whole of `path` into a new temporary file beside it, which the caller deletes.

    Raises:
        TooLarge: past `max_bytes`, or past the ratio of any honest matrix.
        Damaged: not that format, or cut short.
        StoreFull: the disk is.
    """
    with path.open("rb") as packed:
        stream: Any
        if how == "gzip":
            stream = gzip.GzipFile(fileobj=packed)
        else:
            opener = zstandard.ZstdDecompressor(max_window_size=LONGEST_WINDOW)
            stream = opener.stream_reader(packed, read_across_frames=True)
        return _inflate(stream, path, path.stat().st_size, max_bytes, scratch)


def members(path: Path) -> list[zipfile.ZipInfo]:
    """The directory of a zip file.

    Raises:
        Damaged: not a zip file.
        TooLarge: it names more files than any upload needs.
    """
    try:
        with path.open("rb") as file:
            told = zipfile._EndRecData(file)  # type: ignore[attr-defined]  # where ZipFile itself looks
        length = 0 if told is None else told[zipfile._ECD_SIZE]  # type: ignore[attr-defined]
        if length > LONGEST_DIRECTORY:
            raise TooLarge(f"has a directory of {length} bytes; the limit is {LONGEST_DIRECTORY}")
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except TooLarge:
        raise
    except (ValueError, EOFError, *ZIP_FAULTS) as error:
        raise Damaged(f"is not a zip file: {error}") from error


def unpack_member(path: Path, member: zipfile.ZipInfo, max_bytes: int, scratch: Scratch = PASSING) -> Path:
    """Inflate one member into a new temporary file beside `path`, which the caller deletes. Raises as `unpack`."""
    if member.file_size > max_bytes:
        raise TooLarge(f"{member.filename} says that it inflates to {member.file_size} bytes; the limit is {max_bytes}")
    if member.flag_bits & 1:
        raise Damaged(f"{member.filename} is encrypted")
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            return _inflate(stream, path, member.compress_size, max_bytes, scratch)
    except (TooLarge, Damaged):
        raise
    except (ValueError, *ZIP_FAULTS) as error:
        raise Damaged(f"{member.filename}: {error}") from error


def _inflate(stream: IO[bytes], beside: Path, packed_bytes: int, max_bytes: int, scratch: Scratch) -> Path:
    allowed = min(max_bytes, max(FREE_BYTES, RATIO * packed_bytes))
    target = tempfile.NamedTemporaryFile(dir=beside.parent, prefix=scratch.prefix, delete=False)  # noqa: SIM115
    try:
        with room(), target:
            written = charged = 0
            while chunk := stream.read(CHUNK):
                written += len(chunk)
                if written > allowed:
                    raise TooLarge(f"inflates to more than {allowed} bytes from {packed_bytes}")
                if written > charged:
                    scratch.charge(STEP)
                    charged += STEP
                target.write(chunk)
        return Path(target.name)
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, *ZIP_FAULTS) as error:
        Path(target.name).unlink(missing_ok=True)
        raise Damaged(f"does not inflate: {error}") from error
    except BaseException:
        Path(target.name).unlink(missing_ok=True)
        raise
