import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from app.http import errors
from app.http.config import HttpSettings
from app.http.main import create_app
from kernels import InvalidProblem
from tests.app.conftest import LAP, serve
from tests.app.test_bad_input import check
from workers.jobs import job
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis
from workers.store import codec

RAISED = [
    (InvalidProblem("cost", "is wrong"), 422),
    (codec.InvalidUpload("cost", "is wrong"), 422),
    (job.UnknownJob("no"), 404),
    (job.UnknownBlob("no"), 404),
    (job.NotEnded("not yet"), 409),
    (job.JobFailed("cancelled", job.State.CANCELLED), 409),
    (job.JobFailed("failed", job.State.FAILED, {"code": "certificate"}), 500),
    (job.IdempotencyConflict("other body"), 409),
    (job.Expired("gone"), 410),
    (job.UploadTooLarge("too large"), 413),
    (job.DigestMismatch("differs"), 422),
    (job.QueueFull("many wait"), 429),
    (job.OverQuota("yours wait", "queued", 5, 3.0), 429),
    (job.QuotaFull("yours are many"), 507),
    (job.NoSuchDevice("no gpu"), 503),
    (job.Unavailable("away"), 503),
    (job.StoreFull("full"), 507),
    (job.DoesNotFit("large", 10, 5), 507),
    (RuntimeError("secret detail"), 500),
]


def raising(error: Exception) -> httpx.Response:
    app = FastAPI()
    errors.install(app)

    @app.get("/")
    def route() -> None:
        raise error

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/")

    return asyncio.run(ask())


@pytest.mark.parametrize(("error", "status"), RAISED, ids=lambda value: type(value).__name__)
def test_every_exception_has_its_status(error: Exception, status: int) -> None:
    check(raising(error), status)


def test_the_table_is_whole() -> None:
    assert errors.TABLE.keys() <= {type(error) for error, _ in RAISED}


def test_what_can_be_tried_again_says_when() -> None:
    for error in (job.QueueFull("many"), job.Unavailable("away"), job.NotEnded("not yet")):
        assert int(raising(error).headers["retry-after"]) >= 1


def test_a_fault_of_ours_shows_no_data() -> None:
    answer = raising(RuntimeError("secret detail"))
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.fixture
def orphaned(tmp_path: Path) -> Iterator[str]:
    """The address of an API whose Redis has gone."""
    redis = EmbeddedRedis(tmp_path)
    app = create_app(Settings(redis_url=redis.start(), data_dir=tmp_path), HttpSettings())
    address, stop = serve(app)
    redis.stop()
    yield address
    stop()


def test_without_redis(orphaned: str) -> None:
    assert httpx.get(f"{orphaned}/livez").status_code == 200
    answers = [httpx.get(f"{orphaned}/readyz"), httpx.get(f"{orphaned}/v1/jobs")]
    answers.append(httpx.post(f"{orphaned}/v1/jobs", json=LAP))
    for answer in answers:
        check(answer, 503)
        assert "/" not in answer.json()["detail"].replace("I/O", "")  # where Redis is is nobody's business
