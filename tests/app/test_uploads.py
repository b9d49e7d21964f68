"""Uploads in ranges: any order, several at once, broken off and continued; finished only when every byte is there."""

import hashlib
import io
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.conftest import Service
from tests.app.test_bad_input import check, npy
from workers.jobs.queue import Jobs
from workers.store.ranges import NoUpload, OtherLength, Ranges, TooMany, merged

DATA = npy(np.arange(40_000, dtype=np.float64).reshape(200, 200))


def name() -> str:
    return uuid.uuid4().hex


def put(client: httpx.Client, upload: str, first: int, data: bytes, total: int, **params: str) -> httpx.Response:
    headers = {"Content-Range": f"bytes {first}-{first + len(data) - 1}/{total}"}
    return client.put(f"/v1/uploads/{upload}", content=data, headers=headers, params=params)


def test_ranges_in_any_order_and_at_once_make_one_blob(ann: httpx.Client) -> None:
    upload, step = name(), 20_000
    starts = list(range(0, len(DATA), step))[::-1]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda at: put(ann, upload, at, DATA[at : at + step], len(DATA)), starts))
    made = [answer for answer in answers if answer.status_code == 201]
    assert {answer.status_code for answer in answers} <= {201, 202}
    assert made
    digest = "sha256:" + hashlib.sha256(DATA).hexdigest()
    assert made[0].json()["blob"] == digest
    assert made[0].json()["shape"] == [200, 200]
    assert ann.get(f"/v1/blobs/{digest}").content == DATA
    check(ann.get(f"/v1/uploads/{upload}"), 404)


def test_a_break_is_continued(ann: httpx.Client) -> None:
    upload, half = name(), len(DATA) // 2
    first = put(ann, upload, half, DATA[half:], len(DATA))
    assert first.status_code == 202
    assert first.json()["received"] == [[half, len(DATA) - 1]]
    assert first.headers["location"] == f"/v1/uploads/{upload}"

    def broken() -> Any:
        yield DATA[:1000]
        raise RuntimeError

    headers = {"Content-Range": f"bytes 0-{half - 1}/{len(DATA)}", "Content-Length": str(half)}
    with pytest.raises(RuntimeError):
        ann.put(f"/v1/uploads/{upload}", content=broken(), headers=headers)
    assert ann.get(f"/v1/uploads/{upload}").json()["received"] == [[half, len(DATA) - 1]]
    assert put(ann, upload, 10, DATA[10:half], len(DATA)).json()["received"] == [[10, len(DATA) - 1]]
    assert put(ann, upload, 0, DATA[:20], len(DATA)).status_code == 201


def test_the_form_is_said_as_for_a_blob_and_what_is_wrong_can_be_mended(ann: httpx.Client) -> None:
    raw, upload = np.arange(12, dtype=np.float32).tobytes(), name()
    put(ann, upload, 24, raw[24:], len(raw))
    check(put(ann, upload, 0, raw[:24], len(raw)), 422)
    wrong = "sha256:" + "0" * 64
    check(put(ann, upload, 0, raw[:24], len(raw), dtype="float32", shape="3,4", digest=wrong), 422)
    made = put(ann, upload, 0, raw[:24], len(raw), dtype="float32", shape="3,4")
    assert made.status_code == 201
    assert made.json()["shape"] == [3, 4]


def test_an_upload_is_its_owners(ann: httpx.Client, bob: httpx.Client) -> None:
    upload = name()
    put(ann, upload, 0, b"secret", 100)
    check(bob.get(f"/v1/uploads/{upload}"), 404)
    check(bob.delete(f"/v1/uploads/{upload}"), 404)
    assert put(bob, upload, 6, b"other", 50).json()["received"] == [[6, 10]]
    assert ann.get(f"/v1/uploads/{upload}").json()["received"] == [[0, 5]]
    assert ann.delete(f"/v1/uploads/{upload}").status_code == 204
    check(ann.delete(f"/v1/uploads/{upload}"), 404)
    assert bob.delete(f"/v1/uploads/{upload}").status_code == 204


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (None, 422), ("bytes 0-5/*", 422), ("bytes 5-0/10", 422), ("bytes 0-10/10", 422), ("bytes -5/10", 422),
        ("items 0-5/10", 422), ("bytes 0-5/10, 6-7/10", 422), ("bytes 0-5/99999999999999999999", 422),
        ("bytes 0-5/999999999999999", 413), ("bytes 0-4/10", 413), ("bytes 0-6/10", 400),
        ("bytes 0-5/\u0661\u0660", 422),
    ],
)  # fmt: skip
def test_ranges_that_lie_are_refused(ann: httpx.Client, said: str | None, status: int) -> None:
    upload = name()
    headers: dict[bytes, bytes] = {} if said is None else {b"Content-Range": said.encode()}
    check(ann.put(f"/v1/uploads/{upload}", content=b"123456", headers=headers), status)
    after = ann.get(f"/v1/uploads/{upload}")
    assert after.status_code == 404 or after.json()["received"] == []


def test_one_upload_has_one_length(ann: httpx.Client) -> None:
    upload = name()
    put(ann, upload, 0, b"1234", 100)
    check(put(ann, upload, 4, b"1234", 101), 409)
    check(put(ann, "../etc", 0, b"1234", 100), 404)
    check(put(ann, "short", 0, b"1234", 100), 422)


def test_a_packed_file_may_come_in_ranges(ann: httpx.Client) -> None:
    import zstandard

    packed, upload = zstandard.compress(DATA), name()
    assert put(ann, upload, 100, packed[100:], len(packed)).status_code == 202
    made = put(ann, upload, 0, packed[:100], len(packed))
    assert made.json()["shape"] == [200, 200]
    cut, other = packed[:-20], name()
    put(ann, other, 0, cut[:50], len(cut))
    check(put(ann, other, 50, cut[50:], len(cut)), 422)
    bomb, third = zstandard.compress(b"\0" * (80 << 20)), name()
    check(put(ann, third, 0, bomb, len(bomb)), 422)
    for left in (other, third):
        assert ann.delete(f"/v1/uploads/{left}").status_code == 204


# --- the files behind it -------------------------------------------------------------------------------------------


def test_ranges_that_touch_are_one() -> None:
    assert merged([(5, 9), (0, 3), (3, 5), (20, 30), (22, 25)]) == ((0, 9), (20, 30))


def test_a_list_that_was_cut_short_counts_as_none(tmp_path: Path) -> None:
    ranges = Ranges(tmp_path, "ann", "name")
    ranges.begin(10)
    assert not ranges.add((0, 5)).whole
    lists = list(tmp_path.glob("*.json"))
    lists[0].write_bytes(lists[0].read_bytes()[:5])
    with pytest.raises(NoUpload):
        ranges.progress()
    ranges.begin(12)
    assert ranges.progress().spans == ()
    with pytest.raises(OtherLength):
        ranges.begin(10)


def test_swept_bytes_are_not_counted_as_there(tmp_path: Path) -> None:
    ranges = Ranges(tmp_path, "ann", "name")
    ranges.begin(10)
    ranges.add((0, 5))
    ranges.data.unlink()
    with pytest.raises(NoUpload):
        ranges.add((5, 10))
    ranges.begin(10)
    assert ranges.add((5, 10)).spans == ((5, 10),)


def test_uploads_under_way_and_their_holes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.store.ranges.MOST_UPLOADS", 2)
    monkeypatch.setattr("workers.store.ranges.MOST_RANGES", 3)
    one = Ranges(tmp_path, "ann", "one")
    one.begin(100)
    Ranges(tmp_path, "ann", "two").begin(100)
    with pytest.raises(TooMany, match="under way"):
        Ranges(tmp_path, "ann", "three").begin(100)
    Ranges(tmp_path, "bob", "three").begin(100)
    for first in (0, 10, 20):
        one.add((first, first + 1))
    with pytest.raises(TooMany, match="apart"):
        one.add((30, 31))
    assert one.add((1, 10)).spans == ((0, 11), (20, 21))
    one.drop()
    Ranges(tmp_path, "ann", "three").begin(100)


def test_many_at_once_lose_no_range(tmp_path: Path) -> None:
    Ranges(tmp_path, "ann", "name").begin(400)

    def one(k: int) -> None:
        ranges = Ranges(tmp_path, "ann", "name")
        with ranges.writing(4 * k) as hole:
            hole.write(bytes([k] * 4))
            hole.settle()
        ranges.add((4 * k, 4 * k + 4))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(100)))
    ranges = Ranges(tmp_path, "ann", "name")
    assert ranges.progress().whole
    assert io.BytesIO(ranges.data.read_bytes()).read() == b"".join(bytes([k] * 4) for k in range(100))


def test_uploads_under_way_count_for_the_quota(service: Service, ann: httpx.Client, bob: httpx.Client) -> None:
    """They are no blobs yet, and lie on the disk for days all the same."""
    quotas = Jobs(service.settings).quotas
    quotas.set("ann", {"bytes": "1000"})
    time.sleep(1.0)
    try:
        answers = [
            one.put(f"/v1/uploads/quota-{k:04}", content=b"abcd", headers={"Content-Range": "bytes 0-3/400"})
            for one in (ann, bob)
            for k in range(3)
        ]
        assert [answer.status_code for answer in answers] == [202, 202, 507, 202, 202, 202]
        again = ann.put("/v1/uploads/quota-0001", content=b"abcd", headers={"Content-Range": "bytes 4-7/400"})
        assert again.status_code == 202  # its bytes are counted once
    finally:
        quotas.set("ann", {"bytes": ""})
        for one in (ann, bob):
            for k in range(3):
                one.delete(f"/v1/uploads/quota-{k:04}")
        time.sleep(0.6)
