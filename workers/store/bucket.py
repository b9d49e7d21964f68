"""Blobs in an S3-compatible bucket, with a folder of those that this machine has used as a cache."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.jobs.job import StoreFull, Unavailable, UnknownBlob
from workers.store.disk import room
from workers.store.folder import Folder
from workers.store.names import file_of

MISSING = {"404", "NoSuchKey", "NotFound"}
ASKED_FOR_ONE = {"head_object", "get_object", "download_file", "delete_object"}
MISSED = object()
"""The answer of a bucket that does not have the key."""
CACHE_S = 3600.0


class Bucket:
    """The same verbs as `Folder`. `client` is a boto3 S3 client, or anything with the methods that are called here."""

    def __init__(self, client: Any, bucket: str, prefix: str, cache: Folder) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._cache = cache
        self.temporary = cache.temporary

    def publish(self, name: str, written: Path, durable: bool = True) -> None:
        """Send the blob, whether or not it is there: every upload does all the work."""
        self._ask("upload_file", str(written), self._bucket, self._key(name))
        self._cache.publish(name, written, durable=False)

    def lay(self, name: str, written: Path, patient: bool = True) -> bool:
        """Put a finished file where this machine's processes find it, to be sent by `settle`; False without room."""
        return self._cache.lay(name, written, patient)

    def settle(self, name: str) -> None:
        """Send a laid blob; returns at once where it was sent."""
        if self._cache.is_laid(name):
            self._ask("upload_file", str(self._cache.path(name)), self._bucket, self._key(name))
            self._cache.settle(name)

    def swift(self, name: str) -> Path | None:
        """None: there is no arena before a bucket."""
        return None

    def left(self, seconds: float) -> Iterator[str]:
        """Names of what was laid so long ago that whoever laid it has died."""
        return self._cache.left(seconds)

    def remark(self, name: str, text: bytes, coming: bool = False) -> None:
        """Write down, on this machine, what was seen of the blob's numbers."""
        self._cache.remark(name, text, coming)

    def remarked(self, name: str) -> bytes:
        """What was written down on this machine."""
        return self._cache.remarked(name)

    def path(self, name: str, settled: bool = True) -> Path:
        """A local file that holds the blob, fetched when it is not in the cache. Raises UnknownBlob.

        `settled` says nothing here: there is no arena before a bucket.
        """
        try:
            return self._cache.path(name)
        except UnknownBlob:
            pass
        with tempfile.NamedTemporaryFile(dir=self.temporary, delete=False) as file:
            fetched = Path(file.name)
        try:
            if self._ask("download_file", self._bucket, self._key(name), str(fetched)) is MISSED:
                raise UnknownBlob(f"there is no blob {name[:72]}")
            self._cache.publish(name, fetched, durable=False)
        finally:
            fetched.unlink(missing_ok=True)
        return self._cache.path(name)

    def start(self, name: str, count: int) -> tuple[bytes, int] | None:
        """The first bytes of the blob and the size of all, None when it is not there."""
        there = self._ask("head_object", Bucket=self._bucket, Key=self._key(name))
        if there is MISSED:
            return None
        size = int(there["ContentLength"])
        asked = {"Range": f"bytes=0-{min(count, size) - 1}"} if size else {}
        found = self._ask("get_object", Bucket=self._bucket, Key=self._key(name), **asked)
        return None if found is MISSED else (bytes(found["Body"].read()), size)

    def note(self, digest: str) -> dict[str, Any]:
        """What was noted beside a blob in the days when all owners shared it; {} where nothing was."""
        found = self._ask("get_object", Bucket=self._bucket, Key=self._key(digest, ".json"))
        return {} if found is MISSED else dict(json.loads(found["Body"].read()))

    def delete(self, name: str) -> None:
        """Remove the blob here and there."""
        if name.count(":") == 1:
            self._ask("delete_object", Bucket=self._bucket, Key=self._key(name, ".json"))
        self._ask("delete_object", Bucket=self._bucket, Key=self._key(name))
        self._cache.delete(name)

    def older_than(self, seconds: float) -> Iterator[str]:
        """Empties the cache of what has not been fetched for an hour; a bucket's own lifecycle rules do the rest."""
        for name in self._cache.older_than(min(seconds, CACHE_S)):
            self._cache.delete(name)
        yield from ()

    def free(self) -> int | None:
        """None: a bucket has no size."""
        return None

    def check(self) -> None:
        """Raise Unavailable when the bucket does not answer."""
        self._ask("head_bucket", Bucket=self._bucket)

    def _key(self, name: str, suffix: str = "") -> str:
        return f"{self._prefix}{file_of(name)}{suffix}"

    def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        try:
            with room():  # of the cache, which boto fills
                return getattr(self._client, verb)(*args, **kwargs)
        except StoreFull:
            raise
        except Exception as error:  # botocore makes its exception classes at run time
            code = str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
            if code in MISSING and verb in ASKED_FOR_ONE:
                return MISSED
            if code in ("QuotaExceeded", "InsufficientStorage"):
                raise StoreFull(f"the bucket {self._bucket} takes no more") from error
            raise Unavailable(f"the bucket {self._bucket} does not answer {verb}: {error}") from error
