"""Headers of a request on the short way: looked up by name, and read once while a client says the same."""

from http.client import HTTPConnection
from pathlib import Path

import pytest
from fastapi import Request, Response
from starlette.datastructures import Headers

from app.http.auth import load_keys, new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from app.http.short import Known
from tests.app.listening import Listening
from workers.runtime.config import Settings

SENT = [(b"prefer", b"wait=1"), (b"host", b"a"), (b"prefer", b"wait=2"), (b"x-odd", "ä".encode("latin-1"))]


@pytest.mark.parametrize("name", ["Prefer", "prefer", "HOST", "x-odd", "accept"])
def test_they_are_found_as_starlette_finds_them(name: str) -> None:
    scope = {"type": "http", "headers": SENT}
    ours, theirs = Known(scope), Headers(scope=scope)
    assert ours.get(name) == theirs.get(name)
    assert ours.get(name, "none") == theirs.get(name, "none")
    assert (name in ours) == (name in theirs)
    assert ours.getlist(name) == theirs.getlist(name)
    if name in theirs:
        assert ours[name] == theirs[name]
    else:
        with pytest.raises(KeyError):
            ours[name]


def statuses(port: int, asked: list[dict[str, str]]) -> list[int]:
    """What posts of an empty document are answered with, all on one connection."""
    line, found = HTTPConnection("127.0.0.1", port, timeout=30), []
    for headers in asked:
        line.request("POST", "/v1/jobs", b"{}", {"Content-Type": "application/json", **headers})
        answer = line.getresponse()
        answer.read()
        found.append(answer.status)
    line.close()
    return found


def test_what_was_made_of_headers_is_of_the_very_same_ones(tmp_path: Path) -> None:
    secret, entry = new_key("ann")
    http = HttpSettings(api_keys=(entry,))
    listening = Listening(create_app(Settings(redis_url="unix:///nowhere", data_dir=tmp_path), http), http)
    good, bad = {"Authorization": f"Bearer {secret}"}, {"Authorization": "Bearer x"}
    other = {"Content-Type": "text/plain", **good}
    picky = {"Accept": "application/xml", **good}
    packed = {"Accept": "application/x-npz", **good}
    try:
        assert statuses(listening.port, [{}, good, good, {}, bad, good]) == [401, 422, 422, 401, 401, 422]
        assert statuses(listening.port, [good, other, other, good]) == [422, 415, 415, 422]
        assert statuses(listening.port, [good, picky, picky, good]) == [422, 406, 406, 422]
        assert statuses(listening.port, [packed, {"Prefer": "wait=1", **packed}, packed]) == [406, 422, 406]
    finally:
        listening.stop()


def test_a_key_that_is_taken_back_is_refused_on_the_same_connection(tmp_path: Path) -> None:
    secret, entry = new_key("ann")
    http = HttpSettings(api_keys=(entry, new_key("bob")[1]))
    app = create_app(Settings(redis_url="unix:///nowhere", data_dir=tmp_path), http)
    listening = Listening(app, http)
    line = HTTPConnection("127.0.0.1", listening.port, timeout=30)
    try:
        for status in (422, 401):
            line.request("POST", "/v1/jobs", b"{}", {"Authorization": f"Bearer {secret}"})
            answer = line.getresponse()
            answer.read()
            assert answer.status == status
            app.state.keys = load_keys(HttpSettings(api_keys=(new_key("bob")[1],)))
    finally:
        line.close()
        listening.stop()


def test_what_a_proxy_says_of_its_client_is_heard_in_each_request(tmp_path: Path) -> None:
    http = HttpSettings()
    app = create_app(Settings(redis_url="unix:///nowhere", data_dir=tmp_path), http)

    async def who(request: Request) -> Response:
        return Response(f"{request.client.host} {request.url.scheme}" if request.client else "")

    app.add_api_route("/who", who)
    listening = Listening(app, http)
    line, found = HTTPConnection("127.0.0.1", listening.port, timeout=30), []
    said = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
    try:
        for headers in ({}, said, {}, {"X-Forwarded-For": "192.0.2.8"}, said):
            line.request("GET", "/who", headers=headers)
            found.append(line.getresponse().read().decode())
    finally:
        line.close()
        listening.stop()
    here = "127.0.0.1 http"
    assert found == [here, "192.0.2.7 https", here, "192.0.2.8 http", "192.0.2.7 https"]
