"""The same store over a bucket, with a client that keeps objects in a dictionary."""

import dataclasses
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.config import Settings
from workers.job import Unavailable, UnknownBlob
from workers.store import Store, open_store


class ClientError(Exception):
    def __init__(self, code: str) -> None:
        self.response = {"Error": {"Code": code}}


class FakeS3:
    """The calls of boto3's client that a bucket makes, with its manner of saying that a key is not there."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.broken = False

    def upload_file(self, path: str, bucket: str, key: str) -> None:
        self._check(bucket)
        self.objects[key] = Path(path).read_bytes()

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        return {"ContentLength": len(self._found(Bucket, Key, "404"))}

    def get_object(self, *, Bucket: str, Key: str, Range: str = "bytes=0-") -> dict[str, Any]:
        first, _, last = Range.removeprefix("bytes=").partition("-")
        found = self._found(Bucket, Key, "NoSuchKey")
        return {"Body": io.BytesIO(found[int(first) : int(last or len(found)) + 1])}

    def download_file(self, bucket: str, key: str, path: str) -> None:
        Path(path).write_bytes(self._found(bucket, key, "404"))

    def _found(self, bucket: str, key: str, missing: str) -> bytes:
        self._check(bucket)
        if key not in self.objects:
            raise ClientError(missing)
        return self.objects[key]

    def delete_object(self, *, Bucket: str, Key: str) -> None:
        self._check(Bucket)
        self.objects.pop(Key, None)

    def head_bucket(self, *, Bucket: str) -> None:
        self._check(Bucket)

    def _check(self, bucket: str) -> None:
        assert bucket == "matrices"
        if self.broken:
            raise ClientError("InternalError")


@pytest.fixture
def client() -> FakeS3:
    return FakeS3()


@pytest.fixture
def store(settings: Settings, client: FakeS3) -> Store:
    made = open_store(dataclasses.replace(settings, store_url="s3://matrices/allot/"), client=client)
    made._redis.flushall()
    return made


def test_another_machine_fetches_what_this_one_kept(store: Store, client: FakeS3, settings: Settings) -> None:
    reference = store.put_array(np.eye(3), "ann")
    assert all(key.startswith("allot/") for key in client.objects)
    shutil.rmtree(settings.data_dir / "cache")
    elsewhere = open_store(dataclasses.replace(settings, store_url="s3://matrices/allot"), client=client)
    np.testing.assert_array_equal(elsewhere.open_array(reference, "ann"), np.eye(3))
    store.delete(reference["blob"], "ann")
    assert store.sweep() == 1
    assert client.objects == {}
    with pytest.raises(UnknownBlob):
        store.open_array(reference, "ann")


def test_a_bucket_that_does_not_answer(store: Store, client: FakeS3) -> None:
    client.broken = True
    with pytest.raises(Unavailable, match="matrices"):
        store.check()
    with pytest.raises(Unavailable):
        store.put_array(np.eye(4), "ann")
    client.broken = False
    assert store.put_array(np.eye(4), "ann")


def test_an_unknown_kind_of_store(settings: Settings) -> None:
    with pytest.raises(ValueError, match="expected file:"):
        open_store(dataclasses.replace(settings, store_url="ftp://somewhere"))
