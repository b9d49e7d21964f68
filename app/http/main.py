"""create_app(): settings, routes, error handlers and what lives as long as the process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.datastructures import State

from app.agents import mounted
from app.answers.waiting import Waiting
from app.http import errors, openapi, routes
from app.http.around import Around
from app.http.auth import load_keys
from app.http.config import HttpSettings
from app.http.limits import Limits
from app.http.metrics import Metrics
from app.http.short import Straight
from app.http.turns import Turns
from app.intake.clerks import Clerks
from app.intake.room import Room
from app.intake.settling import Settling
from app.intake.visit import Desk
from app.web import routes as workbench
from kernels import pace_here
from workers.jobs.entry import Entry
from workers.jobs.notes import Notes
from workers.jobs.queue import Jobs
from workers.jobs.shares import Shares
from workers.runtime import traces
from workers.runtime.config import Settings
from workers.runtime.version import allot_version
from workers.store.doors import doors_of
from workers.store.store import open_store

ABOUT = (
    "Assignment and transport problems over HTTP: dense and sparse linear assignment, unbalanced optimal transport, "
    "quadratic assignment. Every answer comes with a certificate that other code has checked."
)

UNUSED: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
"""FastAPI's own telemetry, which asks for its settings at every request; requests are traced and counted here."""
CLERK_AFTER_S = 1.0
"""Of the service's life. Who sends something for a clerk before waits for it."""


def create_app(settings: Settings | None = None, http: HttpSettings | None = None) -> FastAPI:
    """The API over the Redis and the store that `settings` name. Both default to the environment's.

    Raises:
        BadKeys, OSError: the API keys cannot be read.
    """
    settings = settings or Settings.from_env()
    http = http or HttpSettings.from_env()
    keys = load_keys(http, settings.redis_url)
    app = FastAPI(title="Allot", version=allot_version(), description=ABOUT, docs_url=None, redoc_url=None,
                  lifespan=_lifespan, telemetry=UNUSED)  # fmt: skip
    app.state = Kept()
    app.state.settings, app.state.http, app.state.keys = settings, http, keys
    app.state.jobs, app.state.store = Jobs(settings), open_store(settings)
    app.state.store.quota_of = app.state.jobs.quotas.of
    app.state.notes, app.state.shares = Notes(settings, app.state.jobs), Shares(settings, app.state.jobs)
    clerks = Clerks(http.clerks, http.clerk_bytes, http.clerk_s)
    room = Room(app.state.store.folder.temporary, http.all_bytes, http.owner_bytes)
    doors = doors_of(settings, http.file_dirs, http.url_prefixes)
    entry = Entry(settings, app.state.jobs.quotas)
    app.state.desk = Desk(app.state.store, app.state.jobs, entry, settings, http.max_json_bytes, clerks, room, doors)
    app.state.settling = Settling(app.state.store)
    app.state.waiting = Waiting(settings.redis_url)
    app.state.limits, app.state.lame = Limits(http, app.state.jobs.quotas.last), False
    app.state.turns, app.state.checks = Turns(), CapacityLimiter(8)
    app.state.metrics = Metrics()
    app.add_middleware(Straight, service=app)
    app.add_middleware(Around, metrics=app.state.metrics)
    errors.install(app)
    routes.install(app)
    workbench.install(app)
    mounted.install(app)
    openapi.install(app)
    return app


class Kept(State):
    """What lives as long as the application. Its attributes are Python's own: each request reads a dozen."""

    def __setattr__(self, key: Any, value: Any) -> None:
        object.__setattr__(self, key, value)

    def __delattr__(self, key: Any) -> None:
        object.__delattr__(self, key)


async def _clerk_later(clerks: Clerks) -> None:
    """Loading it takes most of a second, which workers that start now need more."""
    await asyncio.sleep(CLERK_AFTER_S)
    await clerks.prepare()


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    traces.prepare()
    pace_here()  # some 10 ms of measuring, and numpy.random: the first request would wait for both
    app.state.waiting.start()
    prepared = asyncio.create_task(_clerk_later(app.state.desk.clerks))
    async with app.state.agents.running() if app.state.agents else nullcontext():
        yield
    prepared.cancel()
    app.state.waiting.end()  # long polls and event streams answer now, so that the server can stop
    app.state.desk.clerks.close()
    await app.state.settling.finish()
    if app.state.store.slabs is not None:
        app.state.store.slabs.close()
    app.state.desk.entry.close()
    await app.state.waiting.stop()
