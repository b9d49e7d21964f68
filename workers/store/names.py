"""What a blob is called, in Redis and among files: its digest, and whose it is."""

import functools
import hashlib
import re

from workers.jobs.job import UnknownBlob
from workers.store.digests import DIGEST, WORDS

NAME = re.compile(r"sha256([tu]?):([0-9a-f]{64})(?::([0-9a-f]{32}))?")
FILE = re.compile(r"([0-9a-f]{64})([tu]?)(?:\.([0-9a-f]{32}))?")


@functools.lru_cache(1024)
def name_of(digest: str, owner: str) -> str:
    """What an owner's bytes of that digest are kept as, here and in Redis.

    Every owner's are kept apart, also where they are equal: what one does with his can then take no time, no room
    and no answer from another, and nobody can find out what others have. A name without an owner is of before that.

    Raises:
        UnknownBlob: it is not a digest.
    """
    hexadecimal(digest)
    return f"{digest}:{hashlib.sha256(owner.encode()).hexdigest()[:32]}"


def hexadecimal(digest: str) -> str:
    """The hexadecimal part of a well-formed digest, which alone may become part of a path.

    Raises:
        UnknownBlob: it is not a digest.
    """
    if not DIGEST.fullmatch(digest):
        raise UnknownBlob(f"{digest[:80]!r} is not a digest; expected {WORDS}")
    return digest.partition(":")[2]


@functools.lru_cache(1024)
def file_of(name: str) -> str:
    """The file name of a blob's name. Raises UnknownBlob."""
    found = NAME.fullmatch(name)
    if found is None:
        raise UnknownBlob(f"{name[:80]!r} is not the name of a blob")
    return f"{found[2]}{found[1]}" + (f".{found[3]}" if found[3] else "")


def is_name(name: str) -> bool:
    """Whether a file may have this name of a blob; junk in Redis may say another."""
    return NAME.fullmatch(name) is not None


def name_in(file: re.Match[str]) -> str:
    """The blob's name that a file name (FILE) was made of."""
    return ":".join([f"sha256{file[2]}", *(part for part in (file[1], file[3]) if part)])
