"""Traces of OpenTelemetry: a request, its job's wait in the queue, and every phase of its solve, across processes.

They are made and sent only where OTEL_EXPORTER_OTLP_ENDPOINT is set and the extra `otel` is installed. Everywhere else
a span costs nothing and keeps the trace that it was given.
"""

import contextlib
import functools
import importlib.util
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

ENDPOINT = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
SEND_EVERY_MS = "1000"
"""A worker's child may be killed: what it has measured by then should be on its way."""
log = logging.getLogger(__name__)


class Span:
    """One stretch of work. This one is not recorded."""

    recorded = False

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent

    def name(self, text: str) -> None:
        """Call it something else."""

    def set(self, **attributes: Any) -> None:
        """Note attributes; None is none."""

    def end(self, at: float | None = None) -> None:
        """It is over, now or at a time since 1970."""


class _Recorded(Span):
    recorded = True

    def __init__(self, span: Any) -> None:
        context = span.get_span_context()
        flags = int(context.trace_flags)
        super().__init__(f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}")
        self._span = span

    def name(self, text: str) -> None:
        self._span.update_name(text)

    def set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            if value is not None:
                self._span.set_attribute(name, value)

    def end(self, at: float | None = None) -> None:
        self._span.end(None if at is None else int(1e9 * at))


def prepare() -> None:
    """Load what spans need, where they are sent: half a second of imports, which the first request would pay."""
    _tracer()


@functools.cache
def _tracer() -> Any:
    """The tracer of this process, None where nothing is to be sent."""
    if not any(os.environ.get(name) for name in ENDPOINT):
        return None
    if importlib.util.find_spec("opentelemetry.exporter") is None:
        log.warning("%s is set, but the extra `otel` is not installed: no traces are sent", ENDPOINT[0])
        return None
    os.environ.setdefault("OTEL_BSP_SCHEDULE_DELAY", SEND_EVERY_MS)
    os.environ.setdefault("OTEL_SERVICE_NAME", "allot")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("allot")


def begin(
    name: str,
    parent: str = "",
    kind: str = "internal",
    at: float | None = None,
    links: Sequence[str] = (),
    **attributes: Any,
) -> Span:
    """A span that its caller ends.

    Args:
        name: of the span.
        parent: a traceparent; "" begins a trace.
        kind: of OpenTelemetry's, in small letters.
        at: its begin, in seconds since 1970; now when left out.
        links: traceparents of other spans that it has to do with.
        attributes: None is none.
    """
    tracer = _tracer()
    if tracer is None:
        return Span(parent)
    from opentelemetry.trace import Link, SpanKind, get_current_span

    others = [Link(get_current_span(_context(one)).get_span_context()) for one in links if one]
    started = None if at is None else int(1e9 * at)
    made = tracer.start_span(name, _context(parent), SpanKind[kind.upper()], links=others, start_time=started)
    span = _Recorded(made)
    span.set(**attributes)
    return span


def _context(parent: str) -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if parent.endswith("-00"):  # nobody before us has sampled it: we decide, and keep its id
        parent = parent[:-2] + "01"
    return TraceContextTextMapPropagator().extract({"traceparent": parent})


@contextlib.contextmanager
def span(name: str, parent: str = "", kind: str = "internal", **attributes: Any) -> Iterator[Span]:
    """A span as long as the block."""
    found = begin(name, parent, kind, **attributes)
    try:
        yield found
    finally:
        found.end()


def job(
    job_id: str, record: Mapping[str, str], waited_until: float
) -> contextlib.AbstractContextManager["Phases", bool | None]:
    """The spans of a job in the process that solves it: its wait in the queue, and its run with its phases.

    Args:
        job_id: of the job.
        record: its record.
        waited_until: Redis's time at which it was taken.
    """
    if _tracer() is None:
        return contextlib.nullcontext(Phases(Span(record.get("traceparent", ""))))
    return _job(job_id, record, waited_until)


@contextlib.contextmanager
def _job(job_id: str, record: Mapping[str, str], waited_until: float) -> Iterator["Phases"]:
    parent, attributes = record.get("traceparent", ""), _facts(job_id, record)
    begin("queue", parent, "consumer", float(record.get("created_at") or 0), **attributes).end(waited_until)
    with span("run", parent, "consumer", **attributes) as run:
        phases = Phases(run)
        try:
            yield phases
        finally:
            phases.end()


class Batch:
    """The spans of several jobs that are solved in one go.

    The batch has a trace of its own, in which its span links to each request. Each job has in its own trace what one
    that is solved alone has: its wait, its run with a link to the batch, and the phases in it, which are the batch's.
    """

    def __init__(self, records: Mapping[str, Mapping[str, str]], waited_until: float) -> None:
        self._records, self._waited_until = records, waited_until
        self._phases = [("load", time.time())]
        parents = [record.get("traceparent", "") for record in records.values()]
        self._span = begin("batch", links=parents) if _tracer() else Span("")
        self._span.set(**{"allot.jobs": len(records)})

    def enter(self, phase: str, since_s: float = 0.0) -> None:
        """All are in their next phase, and have been for so long."""
        self._phases.append((phase, time.time() - since_s))

    def end(self, answered: Collection[str] = ()) -> None:
        """The batch is over, and these jobs are answered; the others are solved again by themselves."""
        if not isinstance(self._span, _Recorded):
            return
        now, link = time.time(), [self._span.traceparent]
        self._tell_phases(self._span, now)
        self._span.end(now)
        for job_id in answered:
            record = self._records[job_id]
            facts = _facts(job_id, record) | {"allot.solved_together": len(answered)}
            parent, made_at = record.get("traceparent", ""), float(record.get("created_at") or 0)
            begin("queue", parent, "consumer", made_at, **facts).end(self._waited_until)
            run = begin("run", parent, "consumer", self._phases[0][1], link, **facts)
            self._tell_phases(run, now)
            run.end(now)

    def _tell_phases(self, span: Span, now: float) -> None:
        ends = [at for _, at in self._phases[1:]] + [now]
        for (phase, at), until in zip(self._phases, ends, strict=True):
            begin(phase, span.traceparent, at=at).end(until)


def _facts(job_id: str, record: Mapping[str, str]) -> dict[str, Any]:
    return {"allot.job_id": job_id, "allot.solver": record.get("solver"), "allot.owner": record.get("owner")}


class Phases:
    """One span for each phase of a run, as its deadline reports them."""

    def __init__(self, run: Span) -> None:
        self.run = run
        self._phase = ""
        self._span: Span | None = None

    def watched(self, progress: Callable[[Any], None]) -> Callable[[Any], None]:
        """What a deadline is to report to in place of `progress`."""
        if not isinstance(self.run, _Recorded):
            return progress

        def tell(news: Any) -> None:
            if news.phase != self._phase:
                self.end()
                self._phase, self._span = news.phase, begin(news.phase, self.run.traceparent)
            progress(news)

        return tell

    def end(self) -> None:
        """The last phase is over."""
        if self._span is not None:
            self._span.end()
        self._span = None
