"""The client on a bad line: refusals, broken connections, bytes that are there already."""

import asyncio
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from allot_client import AsyncClient, Busy, Client, Retry, Unreachable

QUICK = Retry(attempts=4, first_s=0.001, longest_s=0.002)
DONE: dict[str, Any] = {
    "id": "0" * 32, "solver": "lap", "termination": "optimal", "objective": 3, "method": "sap", "device": "cpu",
    "iterations": 1, "timings_ms": {}, "assignment": [1, 0], "duals": {"u": [0, 0], "v": [1, 2]},
    "certificate": {"bound": 3, "gap_abs": 0, "gap_rel": 0.0, "max_violation": 0, "holds": True, "proved": "yes"},
}  # fmt: skip
Answer = Callable[[httpx.Request], httpx.Response]


class Line(httpx.MockTransport):
    """Answers with `weather` one after another (an exception breaks the connection), then with the result."""

    def __init__(self, *weather: int | Exception) -> None:
        self.weather, self.requests, self.bodies = list(weather), list[httpx.Request](), list[bytes]()
        super().__init__(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self.bodies.append(request.read() if isinstance(request.stream, httpx.SyncByteStream) else b"")
        if not self.weather:
            return httpx.Response(200, json=DONE)
        now = self.weather.pop(0)
        if isinstance(now, Exception):
            raise now
        return httpx.Response(now, json={"title": "no", "detail": "not now"}, headers={"Retry-After": "0"})


def client_on(line: httpx.MockTransport) -> Client:
    client = Client("http://test", retry=QUICK)
    client._http = httpx.Client(base_url="http://test", transport=line)
    return client


COST = np.arange(90.0 * 90).reshape(90, 90)


@pytest.mark.parametrize("trouble", [429, 503, httpx.ReadError("reset"), httpx.RemoteProtocolError("gone")])
@pytest.mark.parametrize("cost", [[[4, 1], [2, 0]], COST], ids=["json", "bytes"])
def test_a_request_is_sent_again_with_its_key_and_its_body(trouble: Any, cost: Any) -> None:
    line = Line(trouble, trouble)
    assert client_on(line).lap(cost).objective == 3
    assert len(line.requests) == 3
    assert len({request.headers["Idempotency-Key"] for request in line.requests}) == 1
    assert len(set(line.bodies)) == 1
    assert len(line.bodies[0]) == int(line.requests[0].headers["Content-Length"])


def test_two_jobs_have_two_keys() -> None:
    line = Line()
    client = client_on(line)
    assert [client.lap([[1]]).objective for _ in range(2)] == [3, 3]
    assert len({request.headers["Idempotency-Key"] for request in line.requests}) == 2


def test_patience_has_an_end() -> None:
    with pytest.raises(Busy, match="not now"):
        client_on(Line(*[429] * 9)).lap([[1]])
    with pytest.raises(Unreachable, match="4 attempts"):
        client_on(Line(*[httpx.ReadError("reset")] * 9)).lap([[1]])


def test_asyncio_is_as_patient() -> None:
    async def main() -> list[httpx.Request]:
        line = Line(429, httpx.ReadError("reset"))
        client = AsyncClient("http://test", retry=QUICK)
        client._http = httpx.AsyncClient(base_url="http://test", transport=line)
        assert (await client.lap([[4, 1], [2, 0]])).objective == 3
        return line.requests

    requests = asyncio.run(main())
    assert len(requests) == 3
    assert len({request.headers["Idempotency-Key"] for request in requests}) == 1


def test_bytes_that_are_there_are_not_sent() -> None:
    there: set[str] = set()
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        if request.method == "HEAD":
            return httpx.Response(200 if request.url.path.removeprefix("/v1/blobs/") in there else 404)
        request.read()
        there.add(request.url.params["digest"])
        return httpx.Response(201, json={"blob": request.url.params["digest"], "format": "npy"})

    client = client_on(httpx.MockTransport(answer))
    first, second = client.upload(COST), client.upload(COST.copy())
    assert asked == ["HEAD", "POST", "HEAD"]
    assert first.digest == second.digest
    client.upload(COST + 1)
    assert asked[3:] == ["HEAD", "POST"]


def test_events_go_on_behind_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    seen: list[str | None] = []

    def broken() -> Any:
        yield b'id: 1-0\nevent: state\ndata: {"state": "running"}\n\n'
        yield b'id: 2-0\nevent: incumbent\ndata: {"objective": 9}\n\n'
        raise httpx.ReadError("reset")

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Last-Event-ID"))
        if len(seen) == 1:
            return httpx.Response(200, content=broken())
        rest = {"state": "succeeded"}
        return httpx.Response(200, content=f"id: 3-0\nevent: state\ndata: {json.dumps(rest)}\n\n".encode())

    events = list(client_on(httpx.MockTransport(answer)).job("1" * 32).events())
    assert [event.kind for event in events] == ["state", "incumbent", "state"]
    assert seen == [None, "2-0"]


def test_map_ends_with_the_first_exception() -> None:
    sent: list[int] = []

    def solve(problem: int) -> int:
        sent.append(problem)
        if problem == 3:
            raise ValueError("three")
        return problem

    found: list[int] = []
    with pytest.raises(ValueError, match="three"):
        found.extend(client_on(Line()).map(solve, range(1000), concurrency=2))
    assert len(sent) < 20


def test_a_call_costs_a_millisecond_more_than_its_request_at_most() -> None:
    """Of this thread's own time. A core that is shared takes longer over the same: the best of five counts."""
    raw, client = httpx.Client(base_url="http://test", transport=Line()), client_on(Line())
    document = {"solver": "lap", "inputs": {"cost": [[4, 1], [2, 0]]}}

    def seconds(call: Callable[[], object]) -> float:
        begun = time.thread_time()
        call()
        return time.thread_time() - begun

    ways = (lambda: raw.post("/v1/jobs", json=document).json(), lambda: client.lap([[4, 1], [2, 0]]))

    def more() -> float:
        spent = [statistics.median(seconds(way) for _ in range(200)) for way in ways]
        return spent[1] - spent[0]

    assert any(more() < 1e-3 for _ in range(5))


@pytest.mark.parametrize("bar", ["tqdm", "rich", "none"])
def test_bars_are_shown_where_there_is_something_to_draw_them(
    bar: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from allot_client import watching

    if bar != "none":
        pytest.importorskip(bar)
    monkeypatch.setattr(watching, "find_spec", lambda name: object() if name == bar else None)
    assert list(client_on(Line()).map(lambda k: k, range(5), progress=True)) == list(range(5))
    captured = capsys.readouterr()
    shown = captured.err + captured.out
    assert (not shown) if bar == "none" else ("5/5" in shown or "100%" in shown)
