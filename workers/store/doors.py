"""Other doors for big data: files and S3 objects that lie where the operator said that an owner may read.

Both doors are shut until the operator opens them. What an owner names is copied into the store as an upload is, so that
a job keeps the digest of what it read, whatever becomes of the file or the object afterwards.

A file is named relative to one of the owner's folders. No part of its name may be "..", "." or empty. The name is
resolved first, symbolic links and all, and what it leads to must lie inside the folder. The resolved path is then
walked from that folder, part by part, and no part may be a link by then: a link that is put there in between opens
nothing.

An object is named "s3://bucket/key" and must begin with one of the owner's prefixes, each of which ends with a slash.
The bucket of the store is never read, whatever the prefixes say. Nothing else is ever asked for: the address of the
service is the operator's, and a client is told nothing but that there is no such thing that they may read.
"""

import functools
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from workers.jobs.job import Unavailable, UploadTooLarge
from workers.runtime.config import Settings
from workers.store.upload import Writer

EVERYBODY = "*"
"""Stands for any owner in what the operator lists."""
CHUNK = 1 << 20
LONGEST = 1024
URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/([^\x00-\x1f\x7f\\]+)")
PREFIX = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/([^\x00-\x1f\x7f\\]*/)?")
DENIED = {"404", "403", "NoSuchKey", "NoSuchBucket", "NotFound", "AccessDenied", "PermanentRedirect", "301", "307"}
"""What a service answers where there is nothing that may be read; a redirect is not followed."""
Entries = Mapping[str, tuple[str, ...]]


class NotOpen(ValueError):
    """The door is shut, or what is named is nothing that this owner may read. Both are told in the same words."""


def entries(text: str, name: str) -> dict[str, tuple[str, ...]]:
    """`owner=value` entries, separated by spaces or commas, as values by owner; "*" is every owner.

    Raises:
        ValueError: an entry without an owner or a value; names the variable.
    """
    found: dict[str, tuple[str, ...]] = {}
    for entry in text.replace(",", " ").split():
        owner, _, value = entry.partition("=")
        if not owner or not value:
            raise ValueError(f"{name} holds {entry!r}; expected owner=value, or *=value for every owner")
        found[owner] = (*found.get(owner, ()), value)
    return found


@dataclass(frozen=True)
class Doors:
    """What each owner may read beside what they upload.

    Attributes:
        folders: by owner, absolute.
        prefixes: by owner, each "s3://bucket/..." with a slash at its end.
        own_bucket: that of the store.
        client: makes a boto3 S3 client, or what stands for one.
    """

    folders: Entries = field(default_factory=dict)
    prefixes: Entries = field(default_factory=dict)
    own_bucket: str = ""
    client: Callable[[], Any] | None = None

    def __post_init__(self) -> None:
        for folder in (folder for owned in self.folders.values() for folder in owned):
            if not os.path.isabs(folder) or not os.path.isdir(folder):
                raise ValueError(f"ALLOT_FILE_DIRS names {folder!r}; expected the absolute path of a folder")
        for prefix in (prefix for owned in self.prefixes.values() for prefix in owned):
            if not PREFIX.fullmatch(prefix):
                raise ValueError(f"ALLOT_URL_PREFIXES names {prefix!r}; expected s3://bucket/ or s3://bucket/prefix/")

    def copy(self, kind: str, name: str, owner: str, writer: Writer, most: int, take: Callable[[int], object]) -> None:
        """Copy what is named into `writer`; `kind` is "file" or "url".

        Args:
            most: bytes that an upload may have.
            take: is asked before so many bytes are written.

        Raises:
            NotOpen: there is no such thing that this owner may read.
            UploadTooLarge: it is larger than an upload may be.
            Unavailable: the service that has it does not answer, or stopped on the way.
        """
        source = self._file(name, owner) if kind == "file" else self._object(name, owner)
        with source as (pieces, size):
            if size > most:
                raise UploadTooLarge(f"{name[:80]} has {size} bytes; at most {most} are taken")
            for piece in pieces:
                take(len(piece))
                writer.write(piece)
            if writer.size != size:
                raise Unavailable(f"{writer.size} bytes of {size} came; try again")

    @contextmanager
    def _file(self, name: str, owner: str) -> Iterator[tuple[Iterator[bytes], int]]:
        descriptor = self._opened(name, _of(self.folders, owner))
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            yield _pieces(file, size), size

    def _opened(self, name: str, folders: Sequence[str]) -> int:
        parts = name.split("/")
        is_plain = 0 < len(name) <= LONGEST and "\0" not in name and not {"", ".", ".."} & set(parts)
        for folder in folders if is_plain else ():
            root = Path(os.path.realpath(folder))
            try:
                target = Path(os.path.realpath(root.joinpath(*parts)))
                if target != root:
                    return walked(root, target.relative_to(root).parts)
            except (OSError, ValueError):  # not there, not below the folder, no name for a file
                continue
        raise NotOpen(f"names {name[:80]!r}, which is no file that you may read here")

    @contextmanager
    def _object(self, url: str, owner: str) -> Iterator[tuple[Iterator[bytes], int]]:
        bucket, key = self._named(url, _of(self.prefixes, owner))
        assert self.client is not None
        try:
            found = self.client().get_object(Bucket=bucket, Key=key)
        except Exception as error:  # botocore makes its exception classes at run time
            code = str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
            if code in DENIED:
                raise _no_object(url) from None
            raise Unavailable(f"the bucket {bucket} does not answer") from error
        body, size = found["Body"], int(found["ContentLength"])
        try:
            yield _guarded(_pieces(body, size), bucket), size
        finally:
            getattr(body, "close", lambda: None)()

    def _named(self, url: str, prefixes: Sequence[str]) -> tuple[str, str]:
        found = URL.fullmatch(url) if len(url) <= LONGEST else None
        if found is None or {"", ".", ".."} & set(found[2].split("/")):
            raise _no_object(url)
        if self.client is None or found[1] == self.own_bucket or not url.startswith(tuple(prefixes)):
            raise _no_object(url)
        return found[1], found[2]


CLOSED = Doors()


def doors_of(settings: Settings, folders: str, prefixes: str) -> Doors:
    """The doors that `ALLOT_FILE_DIRS` and `ALLOT_URL_PREFIXES` open. Raises ValueError for entries that are none."""
    store = urlsplit(settings.store_url or "file:")

    @functools.cache
    def client() -> Any:
        import boto3  # extra `s3`

        return boto3.client("s3", endpoint_url=settings.s3_endpoint_url or None)

    listed, own = entries(prefixes, "ALLOT_URL_PREFIXES"), store.netloc if store.scheme == "s3" else ""
    return Doors(entries(folders, "ALLOT_FILE_DIRS"), listed, own, client if listed else None)


def _no_object(url: str) -> NotOpen:
    return NotOpen(f"names {url[:80]!r}, which is no object that you may read here")


def _of(listed: Entries, owner: str) -> tuple[str, ...]:
    return (*listed.get(owner, ()), *listed.get(EVERYBODY, ()))


def walked(root: Path, parts: Sequence[str]) -> int:
    """Open a regular file below `root`, part by part, and follow no link on the way. Raises OSError."""
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        # A pipe would keep whoever opens it waiting for a writer.
        found = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(f"{parts[-1]} is no regular file")
    return found


def _pieces(file: Any, size: int) -> Iterator[bytes]:
    """At most one byte beyond `size`, which tells what grew meanwhile."""
    left = size + 1
    while left > 0 and (piece := file.read(min(CHUNK, left))):
        left -= len(piece)
        yield piece


def _guarded(pieces: Iterator[bytes], bucket: str) -> Iterator[bytes]:
    try:
        yield from pieces
    except Exception as error:  # of the connection, whichever library it is
        raise Unavailable(f"the bucket {bucket} stopped on the way") from error
