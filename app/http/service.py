"""What the service says of itself: solvers, devices, estimates, health, metrics, documentation."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from app.answers.answer import json_response
from app.http.auth import owner as owner_of
from app.http.errors import problem
from app.http.schemas import components, takes_qaplib
from app.intake.submit import Checked, check, received
from kernels import SOLVERS, Device, Estimate, Solver
from workers.jobs.job import DoesNotFit, NoSuchDevice, StoreFull, Unavailable
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.store.store import Store

DOCS = Path(__file__).with_name("docs.html")
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CONTENT_POLICY = "default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'"
Owner = Annotated[str, Depends(owner_of)]


async def home() -> Response:
    """Send a browser to the documentation."""
    return RedirectResponse("/docs")


async def docs() -> Response:
    """The API's documentation; it loads nothing from elsewhere."""
    return HTMLResponse(DOCS.read_text(), headers={"Content-Security-Policy": CONTENT_POLICY})


async def solvers(owner: Owner) -> Response:
    """List every solver with the JSON Schema of its inputs and options, and an example that works when posted."""
    _, models = components()
    return json_response({"solvers": [_solver(card, models) for card in SOLVERS.values()]})


def _solver(card: Solver, models: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": card.name,
        "summary": card.summary,
        "devices": list(card.modules),
        "inputs": [asdict(spec) for spec in card.inputs],
        "files": ["qaplib", "sln"] if takes_qaplib(card) else [],
        "inputs_schema": models[f"{card.name.capitalize()}Inputs"],
        "options_schema": card.options.model_json_schema(),
        "warm_start": dict(card.warm_start),
        "example": dict(card.example),
    }


async def devices(request: Request, owner: Owner) -> Response:
    """List what there is to solve on: the kinds of device and every worker that is alive."""
    workers = await run_in_threadpool(request.app.state.jobs.workers)
    kinds = sorted({worker.device for worker in workers})
    return json_response({"devices": kinds, "workers": [asdict(worker) for worker in workers]})


async def estimate(request: Request, owner: Owner) -> Response:
    """Say what a job would need, without solving it: bytes and seconds per device, and which one it would get."""
    state = request.app.state
    async with received(request) as (text, parts):

        def work() -> dict[str, Any]:
            checked = check(text, parts, state.store, state.jobs, owner, state.settings)
            return _estimates(checked, state.jobs, state.settings)

        return json_response(await run_in_threadpool(work))


def _estimates(checked: Checked, jobs: Jobs, settings: Settings) -> dict[str, Any]:
    card, problem, options = checked.card, checked.problem, checked.options
    asked = checked.request.time_limit_s
    limit_s = min(settings.default_time_limit_s if asked is None else asked, settings.max_time_limit_s)
    needs: dict[Device, Any] = {
        device: _two_digits(card.estimate(problem, options, device).within(limit_s)) for device in card.modules
    }
    told: dict[str, Any] = {"solver": card.name, "estimates": needs, "device": None, "fits": True}
    try:
        told["device"] = jobs.place(card, problem, options, checked.request.device)
    except (DoesNotFit, NoSuchDevice) as reason:
        told |= {"fits": not isinstance(reason, DoesNotFit), "reason": str(reason)}
    return told


def _two_digits(needs: Estimate) -> dict[str, Any]:
    """As it is told: nobody knows more digits. Bytes are a bound, so they are rounded up."""
    return {
        name: round_up(value) if isinstance(value, int) else float(f"{value:.2g}")
        for name, value in asdict(needs).items()
    }


def round_up(count: int) -> int:
    """To two significant digits."""
    step = 10 ** max(0, len(str(count)) - 2)
    return int(-(-count // step) * step)


async def livez() -> Response:
    """Answer while the process lives."""
    return json_response({"status": "alive"})


async def readyz(request: Request) -> Response:
    """Answer 200 when a job could be solved now: Redis, store, and a worker that has just been heard of."""
    checks = await run_in_threadpool(_checks, request.app.state.jobs, request.app.state.store)
    if all(told == "ok" for told in checks.values()):
        return json_response({"status": "ready", "checks": checks})
    wrong = "; ".join(f"{name}: {told}" for name, told in checks.items() if told != "ok")
    return problem(503, f"Not ready: {wrong}.", {"Retry-After": "1"}, checks=checks)


def _checks(jobs: Jobs, store: Store) -> dict[str, str]:
    told = {"redis": "ok", "store": "ok", "worker": "ok"}
    try:
        jobs.ping()
        states = [worker.state for worker in jobs.workers()]
        if not states:
            told["worker"] = "none has been heard of lately"
        elif not {"idle", "busy"} & set(states):
            told["worker"] = f"none can solve yet: {', '.join(states)}"
    except (Unavailable, StoreFull) as error:
        told |= {"redis": str(error), "worker": "not known without Redis"}
    try:
        store.check()
    except (Unavailable, StoreFull, OSError) as error:
        told["store"] = f"cannot be written: {error}"
    return told


async def metrics(request: Request, owner: Owner) -> Response:
    """Prometheus metrics."""
    state = request.app.state

    def work() -> bytes:
        text: bytes = state.metrics.render(state.jobs.counts(), state.jobs.workers())
        return text

    return Response(await run_in_threadpool(work), media_type=METRICS_TYPE)
