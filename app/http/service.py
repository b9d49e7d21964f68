"""What the service says of itself: solvers, devices, estimates, health, metrics."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from app.answers.answer import json_bytes, json_response
from app.http.auth import Caller, caller
from app.http.auth import owner as owner_of
from app.http.errors import problem
from app.http.media import JSON
from app.http.metrics import MEDIA_TYPE
from app.http.schemas import components
from app.intake.built import weigh_up
from app.intake.gathered import gather
from app.intake.parsed import parse
from app.intake.received import receive, visit_of
from kernels import SOLVERS, Solver
from workers.jobs.job import DoesNotFit, StoreFull, Unavailable

MOVING = ("state", "heartbeat_age_s", "host_bytes")
MOVING_OF_GPU = {"bytes_free", "bytes_used", "utilisation", "use_per_minute", "readings"}
READY_S = 0.8
"""Of a check; /readyz answers within a second, whatever hangs."""
LOG = logging.getLogger("allot.http")
Owner = Annotated[str, Depends(owner_of)]


async def solvers(owner: Owner) -> Response:
    """List every solver with the JSON Schema of its inputs and options, and an example that works when posted."""
    return Response(_all_solvers(), media_type=JSON)


@cache
def _all_solvers() -> bytes:
    """They never change, and their schemas take 0.1 s of the event loop to make."""
    _, models = components()
    return json_bytes({"solvers": [_solver(card, models) for card in SOLVERS.values()]})


def _solver(card: Solver, models: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": card.name,
        "summary": card.summary,
        "devices": list(card.modules),
        "inputs": [asdict(spec) for spec in card.inputs],
        "files": list(card.files),
        "inputs_schema": models[f"{card.name.capitalize()}Inputs"],
        "options_schema": card.options.model_json_schema(),
        "warm_start": dict(card.warm_start),
        "example": dict(card.example),
    }


async def devices(request: Request, found: Annotated[Caller, Depends(caller)]) -> Response:
    """List what there is to solve on: the kinds of device and every worker that is alive.

    What a worker does just now, and how much memory is left to it, tells of all owners' work: `state` and the figures
    that move are shown to keys of the scope `metrics` only.
    """
    workers = [asdict(one) for one in await run_in_threadpool(request.app.state.jobs.workers, True)]
    if "metrics" not in found.scopes:
        for worker in workers:
            for name in MOVING:
                del worker[name]
            if worker["gpu"]:
                worker["gpu"] = {name: value for name, value in worker["gpu"].items() if name not in MOVING_OF_GPU}
    return json_response({"devices": sorted({worker["device"] for worker in workers}), "workers": workers})


async def estimate(request: Request, owner: Owner) -> Response:
    """Say what a job would need, without solving it: bytes and seconds per device, and which one it would get."""
    with visit_of(request, owner) as visit:
        gathered = await gather(await parse(await receive(request, visit)), outlines=True)
        asked, settings = gathered.request.time_limit_s, request.app.state.settings
        limit_s = min(settings.default_time_limit_s if asked is None else asked, settings.max_time_limit_s)
        weighed, _ = await weigh_up(gathered, limit_s)
    needs = {device: _two_digits(found) for device, found in weighed.needs.items()}
    told: dict[str, Any] = {"solver": gathered.card.name, "estimates": needs, "device": weighed.device, "fits": True}
    if weighed.refusal is not None:
        told |= {"fits": not isinstance(weighed.refusal, DoesNotFit), "reason": str(weighed.refusal)}
    return json_response(told)


def _two_digits(needs: Mapping[str, float]) -> dict[str, Any]:
    """As it is told: nobody knows more digits. Bytes are a bound, so they are rounded up."""
    return {name: round_up(value) if isinstance(value, int) else float(f"{value:.2g}") for name, value in needs.items()}


def round_up(count: int) -> int:
    """To two significant digits."""
    step = 10 ** max(0, len(str(count)) - 2)
    return int(-(-count // step) * step)


async def livez() -> Response:
    """Answer while the process lives."""
    return json_response({"status": "alive"})


async def readyz(request: Request) -> Response:
    """Answer 200 when a job could be solved now: Redis, store, and a worker that has just been heard of."""
    state = request.app.state
    told = {"redis": "ok", "store": "ok", "worker": "ok"}
    if state.lame:
        told["service"] = "stopping"
    await asyncio.gather(_check_redis(state, told), _check_store(state, told))
    if all(one == "ok" for one in told.values()):
        return json_response({"status": "ready", "checks": told})
    wrong = "; ".join(f"{name}: {one}" for name, one in told.items() if one != "ok")
    return problem(503, f"Not ready: {wrong}.", {"Retry-After": "1"}, checks=told)


async def _check_redis(state: Any, told: dict[str, str]) -> None:
    try:
        async with asyncio.timeout(READY_S):
            await run_sync(state.jobs.ping, **_aside(state))
            states = [worker.state for worker in await run_sync(state.jobs.workers, True, **_aside(state))]
    except (Unavailable, StoreFull) as wrong:
        told |= {"redis": str(wrong), "worker": "not known without Redis"}
        return
    except TimeoutError:
        told |= {"redis": "does not answer", "worker": "not known without Redis"}
        return
    if not states:
        told["worker"] = "none has been heard of lately"
    elif not {"idle", "busy"} & set(states):
        told["worker"] = f"none can solve yet: {', '.join(states)}"


async def _check_store(state: Any, told: dict[str, str]) -> None:
    try:
        async with asyncio.timeout(READY_S):
            await run_sync(state.store.check, **_aside(state))
    except StoreFull as wrong:
        told["store"] = f"cannot be written: {wrong}"
    except (Unavailable, OSError) as wrong:  # of which TimeoutError is one
        LOG.warning("the store cannot be written: %s", wrong)
        why = wrong.strerror if isinstance(wrong, OSError) else None
        told["store"] = f"cannot be written: {why}" if why else "cannot be written"


def _aside(state: Any) -> dict[str, Any]:
    """Threads of their own: checks that hang must not take those that requests need."""
    return {"abandon_on_cancel": True, "limiter": state.checks}


async def metrics(request: Request, owner: Owner) -> Response:
    """Prometheus metrics."""
    state = request.app.state
    return Response(await run_in_threadpool(state.metrics.render, state.jobs), media_type=MEDIA_TYPE)
