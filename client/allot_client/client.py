"""The client: arrays in, a proved answer out.

from allot_client import Client

client = Client()                       # ALLOT_URL and ALLOT_API_KEY, else http://127.0.0.1:8000
answer = client.lap(cost)               # NumPy, torch, CuPy, JAX, pandas, ...
answer.assignment, answer.objective, answer.gap
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar, cast

import httpx

from allot_client import body as bodies
from allot_client import flows, mapping, tasks
from allot_client.errors import UnusableKey, refusal
from allot_client.events import Event, Lines
from allot_client.gates import CALL, gate_here
from allot_client.quick import answered, nothing_at, open_quick
from allot_client.reading import content_of
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
from allot_client.watching import open_bar

DEFAULT_URL = "http://127.0.0.1:8000"
LIMITS = httpx.Limits(max_connections=256, max_keepalive_connections=64)
"""More are kept open than httpx keeps, so that `map` does not connect anew for each problem."""
T = TypeVar("T")


def settings(url: str | None, api_key: str | None) -> tuple[str, dict[str, str]]:
    """The service's address and the headers of every request.

    Raises:
        UnusableKey: the key has a character that no header carries; blanks around it, as files end with, are left out.
    """
    address = url or os.environ.get("ALLOT_URL") or DEFAULT_URL
    if "://" not in address:  # as curl takes it
        address = f"http://{address}"
    key = (api_key or os.environ.get("ALLOT_API_KEY") or "").strip()
    strange = next((place for place, letter in enumerate(key, 1) if not "!" <= letter <= "~"), None)
    if strange is not None:
        raise UnusableKey(
            f"character {strange} of the API key is none of a key; expected ASCII letters, digits and signs"
        )
    return address.rstrip("/").removesuffix("/v1"), {"Authorization": f"Bearer {key}"} if key else {}


class Job:
    """A job of the service. Whatever asks about it goes to the service; nothing is remembered but its id."""

    def __init__(self, client: Client, job_id: str, home: Home = tasks.NO_HOME) -> None:
        self._client, self.id, self._home = client, job_id, home

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    def view(self) -> dict[str, Any]:
        """The job as the service shows it: state, queue position, progress, timings."""
        return self._client._run(flows.view(self.id, self._client.retry))

    @property
    def state(self) -> str:
        """queued, running, succeeded, failed or cancelled."""
        return str(self.view()["state"])

    def wait(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Wait for the end and return the view. Raises WaitedTooLong; the job then goes on."""
        return self._client._run(flows.wait(self.id, timeout_s, self._client.retry))

    def result(self, timeout_s: float | None = None) -> Result:
        """Wait for the answer. Raises JobFailed, JobCancelled or WaitedTooLong."""
        return self._client._run(flows.result_of(self.id, self._home, timeout_s, self._client.retry))

    def cancel(self) -> dict[str, Any]:
        """Stop it and keep the best answer found so far."""
        return self._client._run(flows.cancel(self.id, self._client.retry))

    def delete(self) -> None:
        """Stop it and forget it and its result."""
        self._client._run(flows.delete(self.id, self._client.retry))

    def events(self) -> Iterator[Event]:
        """State changes, progress and incumbents as they come, from the first; ends with the job.

        A connection that breaks is opened again behind the last event that came.
        """
        lines, attempt = Lines(), 0
        while True:
            try:
                with self._client._http.stream("GET", f"/v1/jobs/{self.id}/events", headers=lines.headers()) as stream:
                    if stream.status_code >= 400:
                        stream.read()
                        raise refusal(stream.status_code, flows.problem(_answer(stream)))
                    for line in stream.iter_lines():
                        if event := lines.feed(line):
                            attempt = 0
                            yield event
                    return
            except httpx.TransportError as error:
                attempt += 1
                time.sleep(flows.after_break(self.id, attempt, self._client.retry, error))


class Client:
    """Talks to one service; safe to share among threads. Use it as a context manager, or call `close`.

    Args:
        url: the service's address; ALLOT_URL, else http://127.0.0.1:8000.
        api_key: ALLOT_API_KEY where it is left out.
        retry: how often requests are sent again that were refused for the moment, or broke.
    """

    def __init__(self, url: str | None = None, api_key: str | None = None, retry: flows.Retry = flows.Retry()) -> None:
        address, headers = settings(url, api_key)
        self.url, self.retry, self._known = address, retry, flows.Known()
        self._http = self._made = httpx.Client(base_url=address, headers=headers, timeout=60.0, limits=LIMITS)
        self._quick = open_quick(address, headers)
        self._on_close: list[Callable[[], None]] = []

    @classmethod
    def local(cls, workers: int | None = None) -> Client:
        """Start a service of one's own (the `allot` package must be installed) and return its client.

        It stops when the client is closed, or with this process.
        """
        from allot_client.local import start

        url, stop = start(workers)
        client = cls(url)
        client._on_close.append(stop)
        return client

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and the service where `local` started it."""
        self._http.close()
        if self._quick is not None:
            self._quick.close()
        while self._on_close:
            self._on_close.pop()()

    def lap(
        self, cost: Any = None, *, x: Any = None, y: Any = None, u0: Any = None, v0: Any = None,
        reject_rows: Any = None, reject_cols: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> LapResult:  # fmt: skip
        """Linear assignment of a matrix (n_rows, n_cols), a batch, or a list of matrices of different sizes.

        Or of points x and y, or lists of such, a problem each: `metric` is sqeuclidean, euclidean, cityblock, cosine,
        correlation, inner, or iou of boxes (x1, y1, x2, y2), which is 1 - intersection over union. Lists of points are
        sent as they are where the service works their costs out to the same bits. With `cost_limit` a pair is formed
        only where that is cheaper than the limit; the objective then counts the limit for each line of the shorter side
        that stays alone. `reject_rows` and `reject_cols` are prices of leaving each row and column; for a list of
        matrices, lists of such.
        """
        others = {"x": x, "y": y, "u0": u0, "v0": v0, "reject_rows": reject_rows, "reject_cols": reject_cols}
        task = tasks.lap(cost, options, others)
        return cast(LapResult, self._solve(task, timeout_s))

    def auction(
        self, benefit: Any = None, *, x: Any = None, y: Any = None, prices0: Any = None, assignment0: Any = None,
        reject: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> AuctionResult:  # fmt: skip
        """Assignment by auction: a dense or sparse benefit matrix, or points x and y.

        `prices0` and `assignment0` are where it begins; a row with a price in `reject` may stay alone.
        """
        inputs = {
            "benefit": benefit, "x": x, "y": y, "prices0": prices0, "assignment0": assignment0, "reject": reject,
        }  # fmt: skip
        return cast(AuctionResult, self._solve(tasks.task("auction", inputs, options), timeout_s))

    def uot(
        self, cost: Any = None, *, x: Any = None, y: Any = None, a: Any = None, b: Any = None, f0: Any = None,
        g0: Any = None, sizes: Any = None, regs: Any = None, regs_m: Any = None, cost_xx: Any = None,
        cost_yy: Any = None, labels: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> TransportResult:  # fmt: skip
        """Optimal transport, entropic or exact, unbalanced or balanced, from costs or from points.

        `x` and `y` may be lists of clouds of different sizes, and then `a`, `b`, `f0` and `g0` lists of vectors: one
        job solves them all, and `TransportResult.each` gives the answers one by one. With `labels`, a word or number
        for each column, the answer has `label` and `label_share` of each row, certified. A sparse `cost` (SciPy's)
        lets mass move along its stored entries alone, and so does the sparse `plan` of the answer.
        """
        inputs = {
            "cost": cost, "x": x, "y": y, "a": a, "b": b, "f0": f0, "g0": g0, "sizes": sizes, "regs": regs,
            "regs_m": regs_m, "cost_xx": cost_xx, "cost_yy": cost_yy, "labels": labels,
        }  # fmt: skip
        return cast(TransportResult, self._solve(tasks.transport(inputs, options), timeout_s))

    def qap(
        self, flow: Any, distance: Any = None, *, linear: Any = None, permutation0: Any = None, tree0: Any = None,
        timeout_s: float | None = None, **options: Any,
    ) -> QuadraticResult:  # fmt: skip
        """Quadratic assignment from flow and distance matrices, or from the path of a QAPLIB file.

        `permutation0` is where the search begins, and `tree0` the log of a proof that is to go on.
        """
        others = {"linear": linear, "permutation0": permutation0, "tree0": tree0}
        return cast(QuadraticResult, self._solve(tasks.quadratic(flow, distance, others, options), timeout_s))

    def barycenter(
        self, histograms: Any = None, *, cost: Any = None, x: Any = None, support: Any = None,
        measure_weights: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> BarycenterResult:  # fmt: skip
        """Wasserstein barycenter of 2 to 100 measures, with a lower bound.

        On given points: `histograms` (k, n) with `cost` (m, n) or (k, m, n), or with points `x` (n, d) and a `support`
        (m, d). `reg` 0 solves it as a linear programme. From clouds `x` (k, n, d) alone the points of the answer move.
        """
        inputs = {
            "histograms": histograms, "cost": cost, "x": x, "support": support, "measure_weights": measure_weights,
        }  # fmt: skip
        return cast(BarycenterResult, self._solve(tasks.task("barycenter", inputs, options), timeout_s))

    def gromov(
        self, x_distance: Any = None, y_distance: Any = None, *, x: Any = None, y: Any = None, a: Any = None,
        b: Any = None, cost: Any = None, x_features: Any = None, y_features: Any = None, plan0: Any = None,
        timeout_s: float | None = None, **options: Any,
    ) -> GromovResult:  # fmt: skip
        """Gromov-Wasserstein of two spaces, each given by its distances or by its points.

        With `cost`, or features whose squared distances it is, the fused one; `alpha` is the share of the distances.
        """
        inputs = {
            "x_distance": x_distance, "y_distance": y_distance, "x": x, "y": y, "a": a, "b": b, "cost": cost,
            "x_features": x_features, "y_features": y_features, "plan0": plan0,
        }  # fmt: skip
        return cast(GromovResult, self._solve(tasks.task("gromov", inputs, options), timeout_s))

    def lowrank(
        self, cost: Any = None, *, x: Any = None, y: Any = None, row_factors: Any = None, column_factors: Any = None,
        a: Any = None, b: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> LowRankResult:  # fmt: skip
        """Optimal transport by a coupling of low rank, with a lower bound.

        From points `x` (m, d) and `y` (n, d), from factors of the costs, or from costs (m, n). `rank` is an option. The
        answer is factors; `plan` of it writes the coupling out.
        """
        inputs = {
            "cost": cost, "x": x, "y": y, "row_factors": row_factors, "column_factors": column_factors, "a": a, "b": b,
        }  # fmt: skip
        return cast(LowRankResult, self._solve(tasks.task("lowrank", inputs, options), timeout_s))

    def multimarginal(
        self, cost: Any = None, *, x: Any = None, y: Any = None, z: Any = None, pair_weights: Any = None,
        a: Any = None, b: Any = None, c: Any = None, timeout_s: float | None = None, **options: Any,
    ) -> MultimarginalResult:  # fmt: skip
        """Optimal transport among three measures, with a lower bound.

        `cost` (l, m, n) are the costs of all triples. Instead, three clouds `x`, `y`, `z`: a triple costs the sum of
        the distances of its pairs, by `pair_weights`. `reg` 0 solves it as a linear programme.
        """
        inputs = {"cost": cost, "x": x, "y": y, "z": z, "pair_weights": pair_weights, "a": a, "b": b, "c": c}
        return cast(MultimarginalResult, self._solve(tasks.task("multimarginal", inputs, options), timeout_s))

    def lawler(
        self, cost: Any, *, permutation0: Any = None, timeout_s: float | None = None, **options: Any
    ) -> QuadraticResult:
        """Quadratic assignment with Lawler's general costs, with a lower bound.

        `cost` (m, n, m, n) is what facility i at place p and facility k at place q cost together; m <= n <= 40.
        `maximize` takes it as what they are worth. `permutation0` is where the search begins.
        """
        inputs = {"cost": cost, "permutation0": permutation0}
        return cast(QuadraticResult, self._solve(tasks.task("lawler", inputs, options), timeout_s))

    def submit(self, solver: str, inputs: Mapping[str, Any] | str | os.PathLike[str], **options: Any) -> Job:
        """Place a job and return at once: inputs by name, or the path of a QAPLIB file."""
        task = tasks.of(solver, inputs, options)
        view = self._run(flows.submit(task, self.retry))
        return Job(self, view["id"], task.home)

    def job(self, job_id: str) -> Job:
        """A job that was placed before."""
        return Job(self, job_id)

    def jobs(self, state: str | None = None, solver: str | None = None) -> Iterator[dict[str, Any]]:
        """Views of the caller's jobs, newest first."""
        params = {name: value for name, value in (("state", state), ("solver", solver)) if value}
        while True:
            page = self._run(flows.page({**params, "limit": "100"}, self.retry))
            yield from page["jobs"]
            if page["next"] is None:
                return
            params["cursor"] = page["next"]

    def upload(self, array: Any) -> bodies.Blob:
        """Send an array once; the blob stands for it in any number of jobs.

        It is named by the digest of its bytes, and nothing is sent when the service has them.
        """
        return self._run(flows.upload(tasks.to_upload(array), {}, self.retry))

    def solvers(self) -> Any:
        """Every solver's inputs and options."""
        return self._run(flows.document("/v1/solvers", self.retry))

    def devices(self) -> Any:
        """GPUs and workers."""
        return self._run(flows.document("/v1/devices", self.retry))

    def map(
        self, solve: Callable[[Any], T], problems: Iterable[Any], concurrency: int = 16, progress: bool = False,
        return_exceptions: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Apply `solve` to each problem, `concurrency` at a time; answers in the problems' order.

        Small assignments that wait at the same moment go in one job, where `solve` is `client.lap`, `partial` of it, or
        calls it. Each has its own answer or error; `id` and `timings_ms` are those of the job that they share. At most
        256 small problems are read ahead, or twice `concurrency` others. `progress` shows a bar, where tqdm or rich is
        installed. The first exception ends it, and what waits is not sent; with `return_exceptions` it stands in its
        problem's place, and the others go on.
        """
        return mapping.in_threads(self, solve, problems, concurrency, progress, return_exceptions)

    def _solve(self, task: flows.Task, timeout_s: float | None) -> Result:
        kind = None if timeout_s is not None or CALL.get() is None else likeness(task)
        if kind is not None and (gate := gate_here(self._run)) is not None:
            return cast(Result, gate.put(task, kind).result())
        return self._run(flows.solve(task, timeout_s, self.retry))

    def _run(self, flow: flows.Flow[T]) -> T:
        sent: Any = None
        try:
            while True:
                step = flow.send(sent)
                if isinstance(step, flows.Pause):
                    time.sleep(step.seconds)
                    sent = None
                elif isinstance(step, flows.Knowing):
                    sent = self._known
                else:
                    sent = self._carry_out(step)
        except StopIteration as end:
            return cast(T, end.value)

    def _carry_out(self, call: flows.Call) -> flows.Answer:
        own = self._http is not self._made or any(self._http.event_hooks.values())  # of somebody who looks on
        if self._quick is not None and not own and self._quick.takes(call):
            return answered(self._quick, self.url, call)
        content = None if call.body is None else call.body.content()
        try:
            with self._http.stream(
                call.method, call.path, params=dict(call.params), headers=headers_of(call), content=content,
                timeout=httpx.Timeout(call.timeout_s, connect=5.0),
            ) as response:  # fmt: skip
                is_file = response.headers.get("content-type", "").startswith(flows.SAFETENSORS)
                found = content_of(response, call.timeout_s) if is_file else response.read()
                return flows.Answer(response.status_code, response.headers, found)
        except httpx.TransportError as error:
            return flows.Answer(0, {}, b"", broken(self.url, error))


def broken(url: str, error: httpx.TransportError) -> str:
    """Why no answer came, in words."""
    if isinstance(error, httpx.ConnectError):
        return nothing_at(url, error)
    return f"{type(error).__name__} at {url}: {error}"


def headers_of(call: flows.Call) -> dict[str, str]:
    """The headers of a call; the length of a body is known, so that it is not sent in chunks."""
    return {**call.headers, **({"Content-Length": str(call.body.length)} if call.body else {})}


def _answer(response: httpx.Response) -> flows.Answer:
    return flows.Answer(response.status_code, response.headers, response.content)


def as_completed(jobs: Sequence[Job], concurrency: int = 64, progress: bool = False) -> Iterator[Job]:
    """The jobs in the order in which they end; `progress` shows a bar, where tqdm or rich is installed."""
    from concurrent.futures import as_completed as completed

    step, close = open_bar(progress, len(jobs))
    with ThreadPoolExecutor(max(1, min(concurrency, len(jobs)))) as pool:
        ended = {pool.submit(job.wait): job for job in jobs}
        try:
            for future in completed(ended):
                future.result()
                step()
                yield ended[future]
        finally:
            for future in ended:
                future.cancel()
            close()
