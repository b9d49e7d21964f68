import asyncio
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from app.http.metrics import PHASES, Exporter, Metrics
from tests.app.conftest import LAP, Service
from workers.jobs.queue import Jobs
from workers.jobs.seconds import OBSERVE, histograms
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis

Post = Callable[..., httpx.Response]


def value(text: str, name: str, **labels: str) -> float:
    """The sum of a metric over the series that have these labels."""
    found = 0.0
    for shown, number in re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.M):
        has = dict(re.findall(r'(\w+)="([^"]*)"', shown))
        if labels.items() <= has.items():
            found += float(number)
    return found


def test_requests_are_counted(client: httpx.Client) -> None:
    client.get("/v1/jobs/" + "0" * 32)
    text = client.get("/metrics").text
    assert value(text, "allot_http_requests_total", method="GET", route="/v1/jobs/{job_id}", status="404") >= 1
    assert value(text, "allot_workers", device="cpu") >= 1


def test_jobs_are_counted_and_timed(client: httpx.Client, post: Post) -> None:
    post(LAP)  # and with it all that other tests have left in the line
    before = client.get("/metrics").text
    answer = post(LAP).json()
    after = client.get("/metrics").text
    lap = {"solver": "lap"}
    for event in ("submitted", "succeeded"):
        name = "allot_jobs_total"
        assert value(after, name, event=event, **lap) == value(before, name, event=event, **lap) + 1
    for phase, (name, _) in PHASES.items():
        here = {**lap, "device": "cpu"}
        assert value(after, f"{name}_count", **here) == value(before, f"{name}_count", **here) + 1, phase
        assert value(after, f"{name}_bucket", le="+Inf", **here) == value(after, f"{name}_count", **here)
        spent = value(after, f"{name}_sum", **here) - value(before, f"{name}_sum", **here)
        respond = answer["timings_ms"]["respond"] if phase == "total" else 0.0
        assert 1000 * spent == pytest.approx(answer["timings_ms"][phase] - respond, abs=0.1)
    assert value(after, "allot_jobs_running", queue="cpu") == 0


def test_the_way_back_is_counted_and_told_as_a_header(post: Post) -> None:
    answer = post(LAP)
    spent: dict[str, float] = answer.json()["timings_ms"]
    told = {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([\d.]+)", answer.headers["server-timing"])}
    assert 0 <= spent["respond"] < spent["total"]
    assert told.keys() == spent.keys()
    assert all(told[name] == pytest.approx(ms, abs=0.06) for name, ms in spent.items())


FLAT = """
local flat, record, sums = redis.call('HGETALL', 'allot:job:' .. ARGV[1]), {}, {}
for i = 1, #flat, 2 do record[flat[i]] = flat[i + 1] end
add_seconds(sums, record)
keep_seconds(sums)
"""
"""One job counted, as the scripts that end jobs do it."""


def test_every_job_falls_into_one_bucket(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as url:
        jobs = Jobs(Settings(redis_url=url, data_dir=tmp_path))
        observe = jobs._redis.register_script(OBSERVE + FLAT)
        for number, spent in enumerate(({"solve": 0.5}, {"solve": 1.0}, {"solve": 1.5}, {"solve": 1e9, "queued": 3})):
            jobs._redis.hset(f"allot:job:{number}", mapping={"solver": "lap", "queue": "cpu"})
            jobs._redis.hset(f"allot:job:{number}", "timings_ms", json.dumps(spent))
            observe(args=[number])
        for broken in ("", "7", "{", '{"solve": "soon"}'):
            jobs._redis.hset("allot:job:x", mapping={"solver": "lap", "queue": "cpu", "timings_ms": broken})
            observe(args=["x"])
        queued, solve = jobs.seconds()
        assert (queued.phase, sum(queued.counts), queued.sum_s) == ("queued", 1, 0.003)
        assert dict(solve.cumulative()) | {"0.001": 2, "0.0025": 3, "+Inf": 4} == dict(solve.cumulative())
        assert solve.sum_s == pytest.approx(1e6 + 0.003)
    assert histograms({}) == []


def test_what_earlier_releases_counted_still_counts(tmp_path: Path) -> None:
    former = {"solve:lap:cpu:1": 2, "solve:lap:cpu:sum": 1.25, "total:gone:gpu:18": 1, "total:gone:gpu:sum": 4e6}
    with EmbeddedRedis(tmp_path) as url:
        jobs = Jobs(Settings(redis_url=url, data_dir=tmp_path))
        jobs._redis.hset("allot:seconds", mapping=former)
        jobs._redis.hset("allot:job:a", mapping={"solver": "lap", "queue": "cpu", "timings_ms": '{"solve": 0.5}'})
        jobs._redis.register_script(OBSERVE + FLAT)(args=["a"])
        solve, total = jobs.seconds()
    assert (solve.phase, solve.solver, solve.device, solve.counts[0]) == ("solve", "lap", "cpu", sum(solve.counts))
    assert sum(solve.counts) == 3
    assert solve.sum_s == pytest.approx(0.00175)
    assert (total.solver, total.counts[-1], total.sum_s) == ("gone", 1, 4000)


def test_no_timing_is_too_long_or_too_odd_to_be_counted(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as url:
        jobs = Jobs(Settings(redis_url=url, data_dir=tmp_path))
        observe = jobs._redis.register_script(OBSERVE + FLAT)
        for said in ("1e300", "1e999", "-3", "NaN"):
            told = {"solver": "lap", "queue": "cpu", "timings_ms": f'{{"solve": {said}}}'}
            jobs._redis.hset("allot:job:a", mapping=told)
            observe(args=["a"])
        (solve,) = jobs.seconds()
    assert (solve.counts[0], solve.counts[-1], solve.sum_s) == (1, 2, 2e9)


def test_metrics_have_a_port_of_their_own(service: Service) -> None:
    exporter = Exporter("127.0.0.1", 0, service.app.state.metrics, service.app.state.jobs)
    try:
        here = f"http://127.0.0.1:{exporter.port}"
        told = httpx.get(f"{here}/metrics")
        assert "allot_jobs_waiting" in told.text
        assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert httpx.get(f"{here}/").status_code == 404
    finally:
        exporter.stop()
    away = Exporter("127.0.0.1", 0, Metrics(), Jobs(Settings(redis_url="unix:///nowhere", data_dir=Path("/tmp"))))
    try:
        told = httpx.get(f"http://127.0.0.1:{away.port}/metrics", timeout=20)
        assert (told.status_code, "\nallot_redis_up 0.0\n" in told.text, "nowhere" in told.text) == (200, True, False)
        assert "allot_http_requests_total" in told.text  # what this process has counted outlives Redis
        assert "allot_jobs_waiting" not in told.text
    finally:
        away.stop()


def test_devices_tell_what_others_do_to_the_scope_alone(tmp_path: Path) -> None:
    plain, entry = new_key("ann")
    scoped, more = new_key("ops")
    keys = (entry, f"{more};read,metrics")
    gpu = {"uuid": "GPU-1", "name": "H100", "bytes_total": 80, "bytes_free": 7, "bytes_used": 9, "utilisation": 5}
    gpu |= {"readings": [{"celsius": 61}]}
    worker = {"device": "gpu", "queue": "gpu", "state": "busy", "heartbeat": time.time() + 1000, "host_bytes": 1}
    with EmbeddedRedis(tmp_path) as url:
        app = create_app(Settings(redis_url=url, data_dir=tmp_path), HttpSettings(api_keys=keys))
        app.state.jobs._redis.hset("allot:workers", "gpu-1-1", json.dumps(worker | {"gpu": gpu}))

        async def shown(secret: str) -> dict[str, Any]:
            bearer = {"Authorization": f"Bearer {secret}"}
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                told: dict[str, Any] = (await client.get("/v1/devices", headers=bearer)).json()["workers"][0]
                return told

        everybody, whoever_may = asyncio.run(shown(plain)), asyncio.run(shown(scoped))
    assert whoever_may.keys() - everybody.keys() == {"state", "heartbeat_age_s", "host_bytes"}
    moving = {"bytes_free", "bytes_used", "utilisation", "readings"}
    assert whoever_may["gpu"].keys() - everybody["gpu"].keys() == moving
    assert everybody["gpu"]["name"] == "H100"
