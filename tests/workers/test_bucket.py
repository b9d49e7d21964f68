"""The same store over a bucket, with a client that keeps objects in a dictionary."""

import dataclasses
import hashlib
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.jobs.job import Unavailable, UnknownBlob
from workers.runtime.config import Settings
from workers.store.codec import encode
from workers.store.reference import of_array
from workers.store.store import Store, open_store


class ClientError(Exception):
    def __init__(self, code: str) -> None:
        self.response = {"Error": {"Code": code}}


class FakeS3:
    """The calls of boto3's client that a bucket makes, with its manner of saying that a key is not there."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.broken = False
        self.calls: list[str] = []

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
        self.calls.append(sys._getframe(1).f_code.co_name)
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


def test_an_upload_is_sent_whoever_has_the_bytes(store: Store, client: FakeS3) -> None:
    def calls(owner: str) -> list[str]:
        client.calls.clear()
        with store.write([encode({"x": np.eye(3)}, "npy")]) as writer:
            writer.commit(owner)
        return list(client.calls)

    assert calls("ann") == calls("ann") == calls("bob") == ["upload_file"]
    assert len(client.objects) == 2
    info = store.stat(of_array(np.eye(3))["blob"], "bob")
    assert info is not None
    assert (info.size, info.dtype, info.shape) == (200, "float64", [3, 3])
    assert store.stat(of_array(np.eye(3))["blob"], "eve") is None
    client.objects.clear()
    assert store.stat(of_array(np.eye(3))["blob"], "bob") is None


def test_an_older_blob_in_a_bucket_keeps_its_form(store: Store, client: FakeS3) -> None:
    data, digest = np.eye(3).tobytes(), hashlib.sha256(np.eye(3).tobytes()).hexdigest()
    note = {"format": "raw", "member": None, "raw_dtype": "float64", "raw_shape": [3, 3], "filename": ""}
    client.objects |= {f"allot/{digest}": data, f"allot/{digest}.json": json.dumps(note).encode()}
    reference = {"kind": "array", "digest": f"sha256:{digest}"}
    np.testing.assert_array_equal(np.asarray(store.resolve(reference, "ann")), np.eye(3))
    store.folder.delete(f"sha256:{digest}")
    assert client.objects == {}
    with pytest.raises(UnknownBlob):
        store.resolve(reference, "ann")


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
