"""Blobs in an S3-compatible bucket, with a folder of those that this machine has used as a cache."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.folder import Folder, hexadecimal
from workers.job import StoreFull, Unavailable, UnknownBlob

MISSING = {"404", "NoSuchKey", "NotFound"}
CACHE_S = 3600.0


class Bucket:
    """The same five verbs as `Folder`. `client` is a boto3 S3 client, or anything with its five methods."""

    def __init__(self, client: Any, bucket: str, prefix: str, cache: Folder) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._cache = cache
        self.temporary = cache.temporary

    def publish(self, digest: str, written: Path, sidecar: dict[str, Any], durable: bool = True) -> None:
        """Send the blob and then its sidecar: a blob that has a sidecar is whole."""
        if self.sidecar(digest) is None:
            self._ask("upload_file", str(written), self._bucket, self._key(digest))
            body = json.dumps(sidecar).encode()
            self._ask("put_object", Bucket=self._bucket, Key=self._key(digest, ".json"), Body=body)
        self._cache.publish(digest, written, sidecar, durable=False)

    def sidecar(self, digest: str) -> dict[str, Any] | None:
        """What was noted about the blob, None when it is not there."""
        found = self._ask("get_object", Bucket=self._bucket, Key=self._key(digest, ".json"))
        return None if found is None else dict(json.loads(found["Body"].read()))

    def path(self, digest: str) -> Path:
        """A local file that holds the blob, fetched when it is not in the cache. Raises UnknownBlob."""
        try:
            return self._cache.path(digest)
        except UnknownBlob:
            sidecar = self.sidecar(digest)
        if sidecar is None:
            raise UnknownBlob(f"there is no blob {digest}")
        with tempfile.NamedTemporaryFile(dir=self.temporary, delete=False) as file:
            fetched = Path(file.name)
        self._ask("download_file", self._bucket, self._key(digest), str(fetched))
        self._cache.publish(digest, fetched, sidecar, durable=False)
        return self._cache.path(digest)

    def delete(self, digest: str) -> None:
        """Remove the blob here and there; its sidecar first."""
        self._ask("delete_object", Bucket=self._bucket, Key=self._key(digest, ".json"))
        self._ask("delete_object", Bucket=self._bucket, Key=self._key(digest))
        self._cache.delete(digest)

    def older_than(self, seconds: float) -> Iterator[str]:
        """Empties the cache of what has not been fetched for an hour; a bucket's own lifecycle rules do the rest."""
        for digest in self._cache.older_than(min(seconds, CACHE_S)):
            self._cache.delete(digest)
        yield from ()

    def check(self) -> None:
        """Raise Unavailable when the bucket does not answer."""
        self._ask("head_bucket", Bucket=self._bucket)

    def _key(self, digest: str, suffix: str = "") -> str:
        return f"{self._prefix}{hexadecimal(digest)}{suffix}"

    def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self._client, verb)(*args, **kwargs)
        except Exception as error:  # botocore makes its exception classes at run time
            code = str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
            if code in MISSING and verb in ("get_object", "delete_object"):
                return None
            if code in ("QuotaExceeded", "InsufficientStorage"):
                raise StoreFull(f"the bucket {self._bucket} takes no more") from error
            raise Unavailable(f"the bucket {self._bucket} does not answer {verb}: {error}") from error
