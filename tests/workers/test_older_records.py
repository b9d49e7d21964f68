"""Jobs, results and uploads of the days when all owners shared their blobs and a note beside each said its form."""

import hashlib
import json
import time
from typing import Any

import numpy as np
import pytest

from kernels import Array
from tests.workers.test_codec import npy
from tests.workers.test_records import Held
from workers.jobs.job import State, Submission, UnknownBlob
from workers.jobs.queue import Jobs
from workers.runtime import child
from workers.runtime.document import Bench
from workers.store.codec import Form, InvalidUpload, encode
from workers.store.names import name_of

COST = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
FILE = npy(COST)


def lay_down(jobs: Jobs, data: bytes, owners: tuple[str, ...] = ("ann",), **form: Any) -> str:
    """A blob as it was kept then: a file named by its digest alone, a note, and its owners in Redis."""
    hexadecimal = hashlib.sha256(data).hexdigest()
    place = jobs.store.folder.temporary.parent / hexadecimal[:2] / hexadecimal
    place.write_bytes(data)
    note = {"digest": f"sha256:{hexadecimal}", "size": len(data), "format": None, "layout": {}, "created": 0.0}
    note |= {"member": None, "raw_dtype": None, "raw_shape": None, "filename": ""} | form
    place.with_suffix(".json").write_text(json.dumps(note))
    for owner in owners:
        jobs.store._redis.hset(f"allot:blob:sha256:{hexadecimal}", owner, time.time() + 60)
        jobs.store._redis.zadd("allot:blobs", {f"sha256:{hexadecimal}": time.time() + 60})
    return f"sha256:{hexadecimal}"


def older(jobs: Jobs, solver: str, inputs: dict[str, Any], digests: list[str]) -> Held:
    """A queued job with a record as it was written then."""
    held = Held(jobs)
    record = {"solver": solver, "inputs": json.dumps(inputs), "digests": json.dumps(digests)}
    jobs._redis.hset(f"allot:job:{held.id}", mapping=record)
    for digest in digests:
        jobs._redis.sadd(f"allot:refs:{digest}", held.id)
    return held


def answer(held: Held) -> dict[str, Any]:
    order = held.take("one")
    assert order is not None
    bench = Bench(held.records, held.jobs.store, "cpu", "a device")
    assert child.work([order], "a worker", bench)[0] == {held.id: "done"}
    job = held.jobs.get(held.id, "ann")
    assert job.state is State.SUCCEEDED, job.error
    return held.jobs.result(held.id, "ann")


FORMS: list[tuple[bytes, dict[str, Any], dict[str, Any]]] = [
    (FILE, {}, {"format": "npy", "dtype": "int64", "shape": [3, 3]}),
    (COST.tobytes(), {"format": "raw", "raw_dtype": "int64", "raw_shape": [3, 3]},
     {"format": "raw", "dtype": "int64", "shape": [3, 3]}),
    (encode({"a": COST, "b": COST + 9}, "npz"), {"member": "a"},
     {"format": "npz", "member": "a", "dtype": "int64", "shape": [3, 3]}),
    (FILE, {"format": "npy", "member": "a", "raw_dtype": "int8", "raw_shape": [9]},
     {"format": "npy", "dtype": "int64", "shape": [3, 3]}),
]  # fmt: skip


@pytest.mark.parametrize(("data", "form", "said"), FORMS, ids=["npy", "raw", "member", "npy with claims"])
def test_an_older_record_keeps_its_form(jobs: Jobs, data: bytes, form: dict[str, Any], said: dict[str, Any]) -> None:
    digest = lay_down(jobs, data, **form)
    held = older(jobs, "lap", {"cost": {"kind": "array", "digest": digest}}, [digest])
    with jobs.store.write([data]) as writer:  # what is uploaded meanwhile is another blob
        writer.commit("ann", Form("raw", dtype="uint8", shape=(len(data),)))
    found = answer(held)
    assert found["objective"] == 5
    assert found["input_digests"] == {"cost": {"blob": digest, **said}}


def test_an_older_sparse_record_runs(jobs: Jobs) -> None:
    arrays: dict[str, Array] = {
        "indptr": np.array([0, 1, 2]),
        "indices": np.array([1, 0], np.int32),
        "values": np.array([5, 6]),
    }
    digests = {name: lay_down(jobs, npy(array), format="npy") for name, array in arrays.items()}
    held = older(jobs, "auction", {"benefit": {"kind": "csr", **digests, "shape": [2, 2]}}, list(digests.values()))
    found = answer(held)
    assert found["objective"] == 11
    assert found["input_digests"]["benefit"]["csr"]["values"] == {"blob": digests["values"], "format": "npy"}


def test_a_job_lets_go_of_what_it_held_then(jobs: Jobs) -> None:
    digest = lay_down(jobs, FILE)
    place = jobs.store.path(digest, "nobody else")
    held = older(jobs, "lap", {"cost": {"kind": "array", "digest": digest}}, [digest])
    answer(held)
    jobs.store.delete(digest, "ann")
    assert jobs.store.sweep() == 0
    held.records.discard(held.id)
    assert jobs.store.sweep() > 0
    assert not place.exists()
    assert not place.with_suffix(".json").exists()


def test_an_older_result_is_read_as_it_was_written(jobs: Jobs) -> None:
    digest = lay_down(jobs, FILE, format="raw", raw_dtype="uint8", raw_shape=[len(FILE)])
    entry = {"digest": digest, "dtype": "int64", "shape": [3, 3]}
    np.testing.assert_array_equal(jobs.store.open_array(entry, "ann"), COST)


def test_an_older_upload_is_used_by_its_owners_alone(jobs: Jobs) -> None:
    digest = lay_down(jobs, FILE, owners=("ann", "eve"), format="raw", raw_dtype="uint8", raw_shape=[len(FILE)])
    assert jobs.store.stat(digest, "ann") is not None
    assert jobs.store.stat(digest, "bob") is None
    np.testing.assert_array_equal(np.asarray(jobs.store.read(digest, "ann").value), COST)  # what the bytes say
    given = {"cost": {"blob": digest}}
    job, _ = jobs.submit(Submission("ann", "lap", given, queue="cpu"))
    assert jobs._redis.smembers(f"allot:refs:{digest}") == {job.id}
    with pytest.raises(UnknownBlob, match=digest):
        jobs.submit(Submission("bob", "lap", given, queue="cpu"))
    for owner in ("ann", "eve"):
        jobs.store.delete(digest, owner)
        with pytest.raises(UnknownBlob):
            jobs.store.delete(digest, owner)
    assert jobs.store.sweep() == 0
    jobs.delete(job.id, "ann")
    assert jobs.store.sweep() == 1


def test_an_older_upload_that_says_nothing_is_asked_for_its_form(jobs: Jobs) -> None:
    digest = lay_down(jobs, COST.tobytes(), format="raw", raw_dtype="int64", raw_shape=[3, 3])
    with pytest.raises(InvalidUpload) as caught:
        jobs.store.read(digest, "ann", field="inputs.cost")
    assert caught.value.field == "inputs.cost.dtype"
    full = jobs.store.read(digest, "ann", Form("raw", dtype="int64", shape=(3, 3)))
    np.testing.assert_array_equal(np.asarray(full.value), COST)


def test_an_upload_anew_owes_nothing_to_the_older_one(jobs: Jobs) -> None:
    digest = lay_down(jobs, FILE, owners=("eve",), format="raw", raw_dtype="uint8", raw_shape=[len(FILE)])
    with jobs.store.write([FILE]) as writer:
        assert writer.commit("ann").reference["dtype"] == "int64"
    assert jobs._redis.hgetall(f"allot:blob:{digest}").keys() == {"eve"}
    assert jobs._redis.hgetall(f"allot:blob:{name_of(digest, 'ann')}").keys() == {"ann"}
    jobs.store.delete(digest, "eve")
    jobs.store.sweep()
    assert jobs.store.path(digest, "ann").read_bytes() == FILE
