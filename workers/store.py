"""Arrays by content digest, each kept while an upload's time runs or a job holds it.

The store keeps the bytes that came, named by their sha256, and a sidecar that says what they decode to. Who may
see a blob and who holds it is in Redis (scripts.py: KEEP, CONDEMN), the bytes are in a folder or a bucket. A blob is
unknown to all but the owners who uploaded it or whose job made it.
"""

import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from kernels import Array, Csr
from workers.bucket import Bucket
from workers.codec import AS_FOUND, Decoded, Form, InvalidUpload, Limits, decode, describe
from workers.config import Settings
from workers.connection import connect, guarded
from workers.folder import Folder, hexadecimal
from workers.job import DigestMismatch, InputRef, StoreFull, UnknownBlob, UploadTooLarge
from workers.records import Records

CHUNK = 1 << 20
SPARE_BYTES = 64 << 20
"""Uploads are refused while less than this is free on disk: Redis needs to append."""
SWEEP_BATCH = 200
BRIEF_S = 600.0  # from the writing of a job's arrays until the job holds them


@dataclass(frozen=True)
class BlobInfo:
    """What a blob is. `layout` is `codec.describe`'s kind, dtype and shape; `member` picks one array of many."""

    digest: str
    size: int
    format: str | None
    layout: dict[str, Any]
    created: float
    member: str | None = None
    raw_dtype: str | None = None
    raw_shape: list[int] | None = None
    filename: str = ""

    @property
    def dtype(self) -> str | None:
        """Of the array (or of the values of a sparse matrix); None for a file of several."""
        return self.layout.get("dtype")

    @property
    def shape(self) -> list[int] | None:
        """Of the array or sparse matrix; None for a file of several."""
        return self.layout.get("shape")

    @property
    def form(self) -> Form:
        """How to read it."""
        shape = tuple(self.raw_shape) if self.raw_shape is not None else None
        return Form(self.format, self.member, self.raw_dtype, shape, self.filename)


class Writer:
    """One upload on its way to disk: `write` chunks, then `commit`. Leaving the `with` block drops the rest."""

    def __init__(self, store: "Store", max_bytes: int) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._file = tempfile.NamedTemporaryFile(dir=store.folder.temporary, delete=False)  # noqa: SIM115
        self._hash = hashlib.sha256()
        self.path = Path(self._file.name)
        self.size = 0

    @property
    def digest(self) -> str:
        """Of what has been written so far."""
        return f"sha256:{self._hash.hexdigest()}"

    def write(self, chunk: bytes | memoryview) -> int:
        """Append to the upload.

        Raises:
            UploadTooLarge: past the limit.
            StoreFull: the disk is.
        """
        self.size += len(chunk)
        if self.size > self._max_bytes:
            raise UploadTooLarge(f"the upload is larger than {self._max_bytes} bytes")
        self._hash.update(chunk)
        try:
            return self._file.write(chunk)
        except OSError as error:
            raise _full(error) from error

    def flush(self) -> Path:
        """Everything written so far is in `path`."""
        self._file.flush()
        return self.path

    def commit(self, owner: str, form: Form = AS_FOUND, field: str = "file", expected: str | None = None) -> BlobInfo:
        """Check that the bytes decode, and make them the owner's blob.

        Raises:
            InvalidUpload: they do not decode.
            DigestMismatch: they have another digest than `expected`.
            StoreFull, Unavailable: they cannot be kept now.
        """
        if expected is not None and expected != self.digest:
            raise DigestMismatch(f"the bytes that came have digest {self.digest}; expected {expected[:80]}")
        decoded = decode(self.flush(), form, field, self._store.limits)
        return self._store.adopt(self, owner, describe(decoded), form)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


class Store:
    """Blobs, their owners and their holders."""

    def __init__(self, folder: Folder | Bucket, redis: Any, settings: Settings) -> None:
        self.folder = folder
        self.limits = Limits(settings.max_upload_bytes, settings.max_elements)
        self._records = Records(redis)
        self._redis = redis
        self._settings = settings

    def writer(self) -> Writer:
        """Begin an upload. Raises StoreFull when the disk nearly is."""
        if shutil.disk_usage(self.folder.temporary).free < SPARE_BYTES:
            raise StoreFull(f"less than {SPARE_BYTES} bytes are free on the store's disk")
        return Writer(self, self.limits.max_bytes)

    def write(self, chunks: Iterable[bytes]) -> Writer:
        """An upload of all `chunks`, still to be committed."""
        writer = self.writer()
        try:
            for chunk in chunks:
                writer.write(chunk)
        except BaseException:
            writer.__exit__(None, None, None)
            raise
        return writer

    @guarded
    def adopt(self, writer: Writer, owner: str, layout: dict[str, Any], form: Form, brief: bool = False) -> BlobInfo:
        """Keep a finished upload whose layout is known (`Writer.commit` finds it out first)."""
        shape, now = None if form.shape is None else list(form.shape), time.time()
        how = (form.member, form.dtype, shape, form.filename)
        info = BlobInfo(writer.digest, writer.size, form.format, layout, now, *how)
        writer.flush()
        keep_s = min(BRIEF_S, self._settings.blob_ttl_s) if brief else self._settings.blob_ttl_s
        self._records.keep(info.digest, owner, info.created + keep_s)
        try:
            self.folder.publish(info.digest, writer.path, asdict(info), durable=not brief)
        except OSError as error:
            raise _full(error) from error
        return info

    def put_array(self, array: Array, owner: str, brief: bool = False) -> str:
        """Keep one array as .npy; returns its digest. `brief`: a job will hold it at once; no wait for the disk."""
        with Writer(self, max(self.limits.max_bytes, array.nbytes + CHUNK)) as writer:
            np.lib.format.write_array(writer, np.asanyarray(array), allow_pickle=False)
            return self.adopt(writer, owner, describe(array), Form("npy"), brief).digest

    def put(self, value: Array | Csr, owner: str) -> InputRef:
        """Keep an array or a sparse matrix for the job that is about to hold it; returns how the job refers to it.

        Small ones are not forced to disk: three waits of 3 ms would be most of a small job's time.
        """

        def keep(array: Array) -> str:
            return self.put_array(array, owner, brief=array.nbytes < CHUNK)

        if isinstance(value, Csr):
            parts = {name: keep(getattr(value, name)) for name in ("indptr", "indices", "values")}
            return {"kind": "csr", **parts, "shape": list(value.shape)}
        return {"kind": "array", "digest": keep(value)}

    def load(self, digest: str) -> Decoded:
        """What a blob decodes to; arrays are mapped, not read.

        Raises:
            UnknownBlob: there is none.
            InvalidUpload: it holds something else than its sidecar says (the disk lies).
        """
        info = self.stat(digest)
        if info is None:
            raise UnknownBlob(f"there is no blob {digest}")
        return decode(self.folder.path(digest), info.form, digest, self.limits)

    def open_array(self, digest: str) -> Array:
        """The one array that a blob holds, mapped. Raises UnknownBlob, InvalidUpload."""
        value = self.load(digest)
        if not isinstance(value, np.ndarray):
            raise InvalidUpload(digest, f"holds {describe(value)['kind']}; expected one dense array")
        return value

    def resolve(self, reference: InputRef) -> Array | Csr:
        """What an input of a job refers to. Raises UnknownBlob, InvalidUpload."""
        if reference["kind"] == "csr":
            indptr, indices, values = (self.open_array(reference[name]) for name in ("indptr", "indices", "values"))
            return Csr(indptr, indices, values, (int(reference["shape"][0]), int(reference["shape"][1])))
        value = self.load(reference["digest"])
        if isinstance(value, dict):
            raise InvalidUpload(reference["digest"], f"holds {', '.join(value)}; expected one array")
        return value

    def path(self, digest: str) -> Path:
        """A local file with the blob's bytes. Raises UnknownBlob."""
        return self.folder.path(digest)

    def stream(self, digest: str) -> Iterator[bytes]:
        """The blob's bytes in chunks. Raises UnknownBlob."""
        with self.path(digest).open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk

    @guarded
    def stat(self, digest: str, owner: str | None = None) -> BlobInfo | None:
        """What is known of a blob; None when it is not there or (with `owner`) not his."""
        hexadecimal(digest)
        if owner is not None and not self._redis.hexists(f"allot:blob:{digest}", owner):
            return None
        sidecar = self.folder.sidecar(digest)
        if sidecar is None:
            return None
        return BlobInfo(**sidecar)

    @guarded
    def delete(self, digest: str, owner: str) -> None:
        """The owner gives the blob up; its bytes stay while a job or another owner holds them. Raises UnknownBlob."""
        hexadecimal(digest)
        if not self._redis.hdel(f"allot:blob:{digest}", owner):
            raise UnknownBlob(f"there is no blob {digest}")
        self._redis.zadd("allot:blobs", {digest: time.time()})

    def check(self) -> None:
        """Raise Unavailable or OSError when the store cannot be written."""
        self.folder.check()

    @guarded
    def sweep(self) -> int:
        """Delete what nobody holds any more; returns how many blobs went."""
        due = self._redis.zrangebyscore("allot:blobs", "-inf", time.time(), start=0, num=SWEEP_BATCH)
        return sum(self._bury(digest) for digest in due)

    @guarded
    def scrub(self) -> int:
        """Delete files that Redis has never heard of (it lost its memory, or a sweep was cut short)."""
        gone = 0
        for digest in list(self.folder.older_than(max(self._settings.blob_ttl_s, 3600.0))):
            if not self._redis.exists(f"allot:blob:{digest}", f"allot:refs:{digest}"):
                gone += self._bury(digest)
        return gone

    def _bury(self, digest: str) -> int:
        if not self._records.condemn(digest):
            return 0
        self.folder.delete(digest)
        self._records.buried(digest)
        return 1


def open_store(settings: Settings, redis: Any = None, client: Any = None) -> Store:
    """The store that the settings name. `client` stands in for boto3's.

    Raises:
        ValueError: the URL is of no known kind.
    """
    redis = connect(settings.redis_url) if redis is None else redis
    url = urlsplit(settings.store_url or "file:")
    if url.scheme == "file":
        root = Path(url.path) if url.path else settings.data_dir / "blobs"
        return Store(Folder(root), redis, settings)
    if url.scheme == "s3":
        if client is None:
            import boto3  # extra `s3`

            client = boto3.client("s3", endpoint_url=settings.s3_endpoint_url or None)
        bucket = Bucket(client, url.netloc, url.path, Folder(settings.data_dir / "cache"))
        return Store(bucket, redis, settings)
    raise ValueError(f"the store is {settings.store_url!r}; expected file:, file:///a/folder or s3://bucket/prefix")


def _full(error: OSError) -> Exception:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"the store's disk is full: {os.strerror(error.errno)}")
    return error
