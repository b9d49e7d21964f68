"""The same client for asyncio."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, cast

import httpx

from allot_client import body as bodies
from allot_client import flows, mapping, tasks
from allot_client.client import LIMITS, _answer, broken, headers_of, settings
from allot_client.errors import refusal
from allot_client.events import Event, Lines
from allot_client.gates import CALL, gate_here
from allot_client.results import (
    AuctionResult,
    BarycenterResult,
    GromovResult,
    Home,
    LapResult,
    LowRankResult,
    MultimarginalResult,
    QuadraticResult,
    Result,
    TransportResult,
)
from allot_client.together import likeness

T = TypeVar("T")


class AsyncJob:
    """A job of the service; see `Job`."""

    def __init__(self, client: AsyncClient, job_id: str, home: Home = tasks.NO_HOME) -> None:
        self._client, self.id, self._home = client, job_id, home

    def __repr__(self) -> str:
        return f"AsyncJob({self.id!r})"

    async def view(self) -> dict[str, Any]:
        """The job as the service shows it."""
        return await self._client._run(flows.view(self.id, self._client.retry))

    async def wait(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Wait for the end and return the view."""
        return await self._client._run(flows.wait(self.id, timeout_s, self._client.retry))

    async def result(self, timeout_s: float | None = None) -> Result:
        """Wait for the answer."""
        return await self._client._run(flows.result_of(self.id, self._home, timeout_s, self._client.retry))

    async def cancel(self) -> dict[str, Any]:
        """Stop it and keep the best answer found so far."""
        return await self._client._run(flows.cancel(self.id, self._client.retry))

    async def delete(self) -> None:
        """Stop it and forget it and its result."""
        await self._client._run(flows.delete(self.id, self._client.retry))

    async def events(self) -> AsyncIterator[Event]:
        """State changes, progress and incumbents as they come; see `Job.events`."""
        lines, attempt = Lines(), 0
        while True:
            try:
                async with self._client._http.stream(
                    "GET", f"/v1/jobs/{self.id}/events", headers=lines.headers()
                ) as stream:
                    if stream.status_code >= 400:
                        await stream.aread()
                        raise refusal(stream.status_code, flows.problem(_answer(stream)))
                    async for line in stream.aiter_lines():
                        if event := lines.feed(line):
                            attempt = 0
                            yield event
                    return
            except httpx.TransportError as error:
                attempt += 1
                await asyncio.sleep(flows.after_break(self.id, attempt, self._client.retry, error))


class AsyncClient:
    """Talks to one service from asyncio; see `Client`."""

    def __init__(self, url: str | None = None, api_key: str | None = None, retry: flows.Retry = flows.Retry()) -> None:
        address, headers = settings(url, api_key)
        self.url, self.retry, self._known = address, retry, flows.Known()
        self._http = httpx.AsyncClient(base_url=address, headers=headers, timeout=60.0, limits=LIMITS)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def lap(
        self, cost: Any = None, *, x: Any = None, y: Any = None, u0: Any = None, v0: Any = None,
        reject_rows: Any = None, reject_cols: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> LapResult:  # fmt: skip
        """Linear assignment; see `Client.lap`."""
        others = {"x": x, "y": y, "u0": u0, "v0": v0, "reject_rows": reject_rows, "reject_cols": reject_cols}
        return cast(LapResult, await self._solve(tasks.lap(cost, options, others), timeout_s))

    async def auction(
        self, benefit: Any = None, *, x: Any = None, y: Any = None, prices0: Any = None, assignment0: Any = None,
        reject: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> AuctionResult:  # fmt: skip
        """Assignment by auction; see `Client.auction`."""
        inputs = {
            "benefit": benefit, "x": x, "y": y, "prices0": prices0, "assignment0": assignment0, "reject": reject,
        }  # fmt: skip
        return cast(AuctionResult, await self._solve(tasks.task("auction", inputs, options), timeout_s))

    async def uot(
        self, cost: Any = None, *, x: Any = None, y: Any = None, a: Any = None, b: Any = None, f0: Any = None,
        g0: Any = None, sizes: Any = None, regs: Any = None, regs_m: Any = None, cost_xx: Any = None,
        cost_yy: Any = None, labels: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> TransportResult:  # fmt: skip
        """Entropic optimal transport; see `Client.uot`."""
        inputs = {
            "cost": cost, "x": x, "y": y, "a": a, "b": b, "f0": f0, "g0": g0, "sizes": sizes, "regs": regs,
            "regs_m": regs_m, "cost_xx": cost_xx, "cost_yy": cost_yy, "labels": labels,
        }  # fmt: skip
        return cast(TransportResult, await self._solve(tasks.transport(inputs, options), timeout_s))

    async def qap(
        self, flow: Any, distance: Any = None, *, linear: Any = None, permutation0: Any = None, tree0: Any = None,
        timeout_s: float | None = None, **options: Any,
    ) -> QuadraticResult:  # fmt: skip
        """Quadratic assignment; see `Client.qap`."""
        others = {"linear": linear, "permutation0": permutation0, "tree0": tree0}
        return cast(QuadraticResult, await self._solve(tasks.quadratic(flow, distance, others, options), timeout_s))

    async def barycenter(
        self, histograms: Any = None, *, cost: Any = None, x: Any = None, support: Any = None,
        measure_weights: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> BarycenterResult:  # fmt: skip
        """Wasserstein barycenter; see `Client.barycenter`."""
        inputs = {
            "histograms": histograms, "cost": cost, "x": x, "support": support, "measure_weights": measure_weights,
        }  # fmt: skip
        return cast(BarycenterResult, await self._solve(tasks.task("barycenter", inputs, options), timeout_s))

    async def gromov(
        self, x_distance: Any = None, y_distance: Any = None, *, x: Any = None, y: Any = None, a: Any = None,
        b: Any = None, cost: Any = None, x_features: Any = None, y_features: Any = None, plan0: Any = None,
        timeout_s: float | None = None, **options: Any,
    ) -> GromovResult:  # fmt: skip
        """Gromov-Wasserstein of two spaces; see `Client.gromov`."""
        inputs = {
            "x_distance": x_distance, "y_distance": y_distance, "x": x, "y": y, "a": a, "b": b, "cost": cost,
            "x_features": x_features, "y_features": y_features, "plan0": plan0,
        }  # fmt: skip
        return cast(GromovResult, await self._solve(tasks.task("gromov", inputs, options), timeout_s))

    async def lowrank(
        self, cost: Any = None, *, x: Any = None, y: Any = None, row_factors: Any = None, column_factors: Any = None,
        a: Any = None, b: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> LowRankResult:  # fmt: skip
        """Transport by a coupling of low rank; see `Client.lowrank`."""
        inputs = {
            "cost": cost, "x": x, "y": y, "row_factors": row_factors, "column_factors": column_factors, "a": a, "b": b,
        }  # fmt: skip
        return cast(LowRankResult, await self._solve(tasks.task("lowrank", inputs, options), timeout_s))

    async def multimarginal(
        self, cost: Any = None, *, x: Any = None, y: Any = None, z: Any = None, pair_weights: Any = None,
        a: Any = None, b: Any = None, c: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> MultimarginalResult:  # fmt: skip
        """Optimal transport among three measures; see `Client.multimarginal`."""
        inputs = {"cost": cost, "x": x, "y": y, "z": z, "pair_weights": pair_weights, "a": a, "b": b, "c": c}
        return cast(MultimarginalResult, await self._solve(tasks.task("multimarginal", inputs, options), timeout_s))

    async def lawler(
        self, cost: Any, *, permutation0: Any = None, timeout_s: float | None = None, **options: Any
    ) -> QuadraticResult:
        """Quadratic assignment with general costs; see `Client.lawler`."""
        inputs = {"cost": cost, "permutation0": permutation0}
        return cast(QuadraticResult, await self._solve(tasks.task("lawler", inputs, options), timeout_s))

    async def submit(self, solver: str, inputs: Mapping[str, Any] | str | os.PathLike[str], **options: Any) -> AsyncJob:
        """Place a job and return at once."""
        task = tasks.of(solver, inputs, options)
        view = await self._run(flows.submit(task, self.retry))
        return AsyncJob(self, view["id"], task.home)

    def job(self, job_id: str) -> AsyncJob:
        """A job that was placed before."""
        return AsyncJob(self, job_id)

    async def jobs(self, state: str | None = None, solver: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Views of the caller's jobs, newest first."""
        params = {name: value for name, value in (("state", state), ("solver", solver)) if value}
        while True:
            page = await self._run(flows.page({**params, "limit": "100"}, self.retry))
            for view in page["jobs"]:
                yield view
            if page["next"] is None:
                return
            params["cursor"] = page["next"]

    async def solvers(self) -> Any:
        """Every solver's inputs and options."""
        return await self._run(flows.document("/v1/solvers", self.retry))

    async def devices(self) -> Any:
        """GPUs and workers."""
        return await self._run(flows.document("/v1/devices", self.retry))

    async def upload(self, array: Any) -> bodies.Blob:
        """Send an array once; the blob stands for it in any number of jobs."""
        return await self._run(flows.upload(tasks.to_upload(array), {}, self.retry))

    def map(
        self, solve: Callable[[Any], Awaitable[T]], problems: Iterable[Any], concurrency: int = 16,
        progress: bool = False, return_exceptions: bool = False,
    ) -> AsyncIterator[T]:  # fmt: skip
        """Apply `solve` to each problem, `concurrency` at a time; see `Client.map`."""
        return mapping.in_tasks(self, solve, problems, concurrency, progress, return_exceptions)

    async def _solve(self, task: flows.Task, timeout_s: float | None) -> Result:
        kind = None if timeout_s is not None or CALL.get() is None else likeness(task)
        if kind is not None and (gate := gate_here(self._run)) is not None:
            return cast(Result, await gate.solve(task, kind))
        return await self._run(flows.solve(task, timeout_s, self.retry))

    async def _run(self, flow: flows.Flow[T]) -> T:
        sent: Any = None
        try:
            while True:
                step = flow.send(sent)
                if isinstance(step, flows.Pause):
                    await asyncio.sleep(step.seconds)
                    sent = None
                elif isinstance(step, flows.Knowing):
                    sent = self._known
                else:
                    sent = await self._carry_out(step)
        except StopIteration as end:
            return cast(T, end.value)

    async def _carry_out(self, call: flows.Call) -> flows.Answer:
        try:
            response = await self._http.request(
                call.method, call.path, params=dict(call.params), headers=headers_of(call),
                content=_content(call.body),
                timeout=httpx.Timeout(call.timeout_s, connect=5.0),
            )  # fmt: skip
        except httpx.TransportError as error:
            return flows.Answer(0, {}, b"", broken(self.url, error))
        return _answer(response)


def _content(body: bodies.Body | None) -> bytes | AsyncIterator[bytes] | None:
    content = None if body is None else body.content()
    return content if content is None or isinstance(content, bytes) else _slices(content)


async def _slices(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def as_completed(jobs: Sequence[AsyncJob]) -> AsyncIterator[AsyncJob]:
    """The jobs in the order in which they end."""

    async def ended(job: AsyncJob) -> AsyncJob:
        await job.wait()
        return job

    for future in asyncio.as_completed([ended(job) for job in jobs]):
        yield await future
