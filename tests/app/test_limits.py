import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.limits import Bucket, Limits
from app.http.main import create_app
from app.http.refusal import Refusal
from tests.app.test_bad_input import check
from tests.app.test_waiting import Idle, ask, idle  # noqa: F401
from tests.workers.service import allowed
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis


def test_a_bucket_fills_as_time_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bucket = Bucket(rate=10, burst_s=2)
    assert [bucket.take() for _ in range(20)] == [0.0] * 20
    assert bucket.take() == pytest.approx(0.1)
    now[0] += 0.11
    assert bucket.take() == 0
    now[0] += 3600
    assert [bucket.take() for _ in range(20)] == [0.0] * 20  # and never more than one burst
    assert bucket.take() > 0


def test_buckets_of_owners_who_left_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    limits = Limits(HttpSettings(requests_per_s=1))
    for number in range(100):
        limits.request(f"owner{number}")
    now[0] += 200
    limits.request("one")
    assert limits._buckets.keys() == {"one"}


def test_a_bucket_that_fills_slowly_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    limits = Limits(HttpSettings(requests_per_s=0.001))
    limits.request("ann")
    clock[0] += 100  # of 1,000 that a request takes to earn
    with pytest.raises(Refusal):
        limits.request("ann")


def test_one_owner_at_their_limit_leaves_others_theirs() -> None:
    limits = Limits(HttpSettings(requests_per_s=2))
    for _ in range(4):
        limits.request("ann")
    with pytest.raises(Refusal) as refused:
        limits.request("ann")
    assert refused.value.status == 429
    assert refused.value.headers == {
        "Retry-After": "1", "RateLimit-Policy": '"requests";q=4', "RateLimit": '"requests";r=0;t=1'
    }  # fmt: skip
    limits.request("bob")


def test_requests_of_a_key_are_counted(tmp_path: Path) -> None:
    secret, entry = new_key("ann")
    with EmbeddedRedis(tmp_path) as url:
        http = HttpSettings(api_keys=(entry,), requests_per_s=0.02)
        app = create_app(Settings(redis_url=url, data_dir=tmp_path), http)

        async def run() -> list[httpx.Response]:
            transport, bearer = httpx.ASGITransport(app), {"Authorization": f"Bearer {secret}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=bearer) as client:
                return [await client.get("/v1/solvers") for _ in range(3)]

        answers = asyncio.run(run())
    assert [answer.status_code for answer in answers] == [200, 429, 429]
    assert 40 <= int(answers[-1].headers["retry-after"]) <= 50
    check(answers[-1], 429)


def test_requests_with_a_link_are_counted_by_address(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as url:
        http = HttpSettings(api_keys=(new_key("ann")[1],), requests_per_s=0.02, share_days=7)
        app = create_app(Settings(redis_url=url, data_dir=tmp_path), http)

        async def run(*addresses: str) -> list[int]:
            found = []
            for address in addresses:
                transport = httpx.ASGITransport(app, client=(address, 1))
                link = {"Allot-Share": "no such link"}
                async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=link) as client:
                    found.append((await client.get("/v1/shared")).status_code)
            return found

        assert asyncio.run(run("192.0.2.1", "192.0.2.1", "192.0.2.2")) == [404, 429, 404]


def test_so_many_may_wait_for_one_owner(idle: Idle, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    limits = Limits(HttpSettings(max_waiters_per_owner=3, max_streams_per_owner=2))
    monkeypatch.setattr(idle.app.state, "limits", limits)
    job = idle.job()

    async def run() -> dict[str, Any]:
        here = f"/v1/jobs/{job.id}"
        held = [asyncio.create_task(ask(idle.port, "GET", f"{here}?wait=30")) for _ in range(3)]
        held += [asyncio.create_task(ask(idle.port, "GET", f"{here}/events")) for _ in range(2)]
        while (limits.held("waiters"), limits.held("streams")) != (3, 2):
            await asyncio.sleep(0.02)
        refused = [await ask(idle.port, "GET", f"{here}?wait=30"), await ask(idle.port, "GET", f"{here}/events")]
        for status, told in refused:
            assert status == 429
            assert b"retry-after: 1" in told
            assert b"ratelimit: " in told
        assert (await ask(idle.port, "GET", here))[0] == 200  # who does not wait is answered
        await ask(idle.port, "POST", f"{here}/cancel")
        return {"held": await asyncio.gather(*held)}

    assert {status for status, _ in asyncio.run(run())["held"]} == {200}
    assert (limits.held("waiters"), limits.held("streams")) == (0, 0)


def test_streams_that_are_asked_for_at_once_count_at_once(idle: Idle, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    limits = Limits(HttpSettings(max_streams_per_owner=2))
    monkeypatch.setattr(idle.app.state, "limits", limits)
    job = idle.job()

    async def run() -> list[int]:
        here = f"/v1/jobs/{job.id}"
        asked = [asyncio.create_task(ask(idle.port, "GET", f"{here}/events")) for _ in range(12)]
        await asyncio.wait(asked, timeout=allowed(3.0))  # two stay
        await ask(idle.port, "POST", f"{here}/cancel")
        return [status for status, _ in await asyncio.gather(*asked)]

    assert sorted(asyncio.run(run())) == [200] * 2 + [429] * 10
    assert limits.held("streams") == 0


def test_a_stream_counts_until_it_ends_or_is_dropped() -> None:
    async def two() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def run() -> None:
        limits = Limits(HttpSettings())
        dropped, read = (limits.held_stream("ann", two()) for _ in range(2))
        assert limits.held("streams") == 2
        del dropped
        assert limits.held("streams") == 1
        assert [piece async for piece in read] == [b"one", b"two"]
        assert limits.held("streams") == 0

    asyncio.run(run())


def test_a_preference_to_wait_is_dropped_where_too_many_wait(
    idle: Idle,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idle.app.state, "limits", Limits(HttpSettings(max_waiters_per_owner=0)))
    job = {"solver": "lap", "inputs": {"cost": [[1, 2], [3, 4]]}}
    begun = time.monotonic()
    answer = httpx.post(f"{idle.url}/v1/jobs", json=job, headers={"Prefer": "wait=30"}, timeout=40)
    assert (answer.status_code, "preference-applied" in answer.headers) == (202, False)
    assert time.monotonic() - begun < min(25, allowed(10))  # and not the 30 s that it preferred
