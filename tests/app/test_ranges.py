"""Parts of a blob by `Range`, as RFC 9110 has it, with the service's own words where there are none."""

from collections.abc import Iterator

import httpx
import pytest

from tests.app.conftest import Service

DATA = b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }".ljust(127) + b"\n" + bytes(32)


@pytest.fixture(scope="module")
def blob(service: Service) -> Iterator[str]:
    with httpx.Client(base_url=service.url) as client:
        yield f"{service.url}{client.post('/v1/blobs', content=DATA).raise_for_status().headers['Location']}"


@pytest.mark.parametrize(
    ("said", "part"),
    [("bytes=0-3", slice(0, 4)), ("bytes=4-", slice(4, None)), ("Bytes = -5", slice(-5, None)),
     (f"bytes=0-{10**17}", slice(None)), (f"bytes=-{10**17}", slice(None))],
)  # fmt: skip
def test_a_part(blob: str, said: str, part: slice) -> None:
    answer = httpx.get(blob, headers={"Range": said})
    assert answer.status_code == 206
    assert answer.content == DATA[part]


@pytest.mark.parametrize("said", ["items=0-1", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-3", "bytes=0-1;2"])
def test_what_names_no_bytes_is_left_out(blob: str, said: str) -> None:
    answer = httpx.get(blob, headers={"Range": said})
    assert (answer.status_code, answer.content) == (200, DATA)


@pytest.mark.parametrize("said", [f"bytes={len(DATA)}-", f"bytes={10**17}-{10**17}", "bytes=-0", "bytes=0-1,9999-"])
def test_what_lies_beyond_the_end_is_refused(blob: str, said: str) -> None:
    answer = httpx.get(blob, headers={"Range": said})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{len(DATA)}"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == f"Range {said} goes beyond the blob; it has {len(DATA)} bytes."


def test_a_part_of_what_may_have_changed(blob: str) -> None:
    for tag, status in ((httpx.get(blob).headers["ETag"], 206), ('"another"', 200)):
        assert httpx.get(blob, headers={"Range": "bytes=0-3", "If-Range": tag}).status_code == status
