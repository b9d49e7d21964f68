"""Traces that arrive at a collector: of a job that is solved alone, and of jobs that are solved together."""

import gzip
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import LAP, serve, wait_until_ready
from tests.workers.service import eventually
from workers.runtime import traces
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis
from workers.runtime.supervisor import Supervisor

TRACE = "0af7651916cd43dd8448eb211c80319c"
JOBS = 6


class Collector(HTTPServer):
    """Takes what an exporter sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def of(self, trace: str) -> dict[str, Any]:
        """The spans of a trace, by name."""
        return {span.name: span for span in self.spans if span.trace_id.hex() == trace}

    def until(self, wanted: set[str], *traces: str) -> list[dict[str, Any]]:
        """The spans of each trace, once all of them have those."""
        eventually(lambda: all(wanted <= self.of(trace).keys() for trace in traces), 20)
        return [self.of(trace) for trace in traces]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.server.spans.extend(scope.spans)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@dataclass
class Traced:
    url: str
    collector: Collector
    worker: int


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """A service whose spans all go to one collector."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `otel` is not installed")
    folder: Path = tmp_path_factory.mktemp("traced")
    collector = Collector()
    with pytest.MonkeyPatch.context() as patch, EmbeddedRedis(folder) as redis_url:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        traces._tracer.cache_clear()
        settings = Settings(redis_url=redis_url, data_dir=folder, warm_solvers="lap,qap")
        supervisor = Supervisor(settings, cpu_workers=1, gpus=[])
        supervisor.start()
        url, stop = serve(create_app(settings, HttpSettings()))
        try:
            wait_until_ready(url)
            yield Traced(url, collector, supervisor.alive()[0])
        finally:
            stop()
            supervisor.stop(drain=False)
            collector.shutdown()
            traces._tracer.cache_clear()


def test_a_child_that_is_ready_has_what_spans_need(traced: Traced) -> None:
    (child,) = psutil.Process(traced.worker).children()
    loaded = {Path(one.path).name.partition(".")[0] for one in child.memory_maps()}
    assert "_message" in loaded  # protobuf's, with which spans are written; it comes last of all imports


def test_an_api_process_that_listens_has_what_spans_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    traces._tracer.cache_clear()
    try:
        with EmbeddedRedis(tmp_path) as redis_url:
            _, stop = serve(create_app(Settings(redis_url=redis_url, data_dir=tmp_path), HttpSettings()))
            stop()
        assert traces._tracer.cache_info().currsize == 1
    finally:
        traces._tracer.cache_clear()


def asked(traced: Traced, job: dict[str, Any], trace: str, wait: str = "wait=30") -> httpx.Response:
    headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "Prefer": wait}
    return httpx.post(f"{traced.url}/v1/jobs", json=job, headers=headers, timeout=60)


def test_a_job_is_one_trace_from_the_request_to_its_certificate(traced: Traced) -> None:
    problem = {"flow": [[0, 1], [1, 0]], "distance": [[0, 2], [2, 0]]}
    answer = asked(traced, {"solver": "qap", "inputs": problem}, TRACE)
    assert answer.status_code == 200, answer.text
    (spans,) = traced.collector.until({"POST /v1/jobs", "queue", "run", "load", "solve", "certify"}, TRACE)
    assert spans["solve"].parent_span_id == spans["run"].span_id
    assert spans["run"].parent_span_id == spans["POST /v1/jobs"].span_id
    assert not spans["run"].links


def test_jobs_that_are_solved_together_have_a_trace_each_and_one_of_their_batch(traced: Traced) -> None:
    ids = [f"{k + 1:032x}" for k in range(JOBS)]
    os.kill(traced.worker, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(JOBS) as pool:
            answers = list(pool.map(lambda trace: asked(traced, LAP, trace, "wait=0"), ids))
    finally:
        os.kill(traced.worker, signal.SIGCONT)
    jobs = {answer.json()["id"] for answer in answers}
    told = traced.collector.until({"POST /v1/jobs", "queue", "run", "load", "solve", "certify"}, *ids)
    with_others = [trace for trace, spans in zip(ids, told, strict=True) if spans["run"].links]
    assert len(with_others) >= JOBS - 1  # the first was handed to the worker by itself
    together = traced.collector.until({"store"}, *with_others)
    (batch_of,) = {spans["run"].links[0].trace_id.hex() for spans in together}
    (batch,) = traced.collector.until({"batch", "load", "solve", "certify", "store"}, batch_of)
    assert {one.trace_id.hex() for one in batch["batch"].links} == {spans["run"].trace_id.hex() for spans in together}
    for spans in together:
        assert spans["run"].links[0].span_id == batch["batch"].span_id
        assert spans["run"].parent_span_id == spans["POST /v1/jobs"].span_id
        phases = [spans[name] for name in ("load", "solve", "certify", "store")]
        assert all(one.parent_span_id == spans["run"].span_id for one in phases)
        assert [one.start_time_unix_nano for one in phases] == sorted(one.start_time_unix_nano for one in phases)
        assert all(one.end_time_unix_nano >= one.start_time_unix_nano for one in phases)
    assert {value(spans["run"], "allot.job_id") for spans in told} == jobs


def value(span: Any, name: str) -> str:
    return next(str(one.value.string_value) for one in span.attributes if one.key == name)
