"""Prometheus metrics: requests as they pass, jobs and workers as Redis knows them when somebody asks.

Names are listed in docs/deploying.md; alert rules and dashboards read them.
"""

import functools
import os
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from app.http.config import COUNTS
from workers.jobs.job import Unavailable, WorkerInfo
from workers.jobs.queue import Jobs
from workers.jobs.seconds import Seconds

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
READINGS = {
    "utilisation": ("allot_gpu_utilization_ratio", "Share of the last second in which a kernel ran"),
    "bytes_used": ("allot_gpu_used_bytes", "Memory of a GPU that is in use, by whomever"),
    "celsius": ("allot_gpu_temperature_celsius", "Temperature of the chip"),
}
METHODS = ("GET", "HEAD", "POST", "DELETE")
"""That are counted by their names; there may be any others."""
NOW = ("waiting", "running")
DAMAGED = "damaged"
PHASES = {
    "queued": ("allot_job_queue_seconds", "From submission until a worker took the job"),
    "solve": ("allot_job_solve_seconds", "In the solver"),
    "certify": ("allot_job_certify_seconds", "In the certificate"),
    "total": ("allot_job_seconds", "From submission to the stored answer"),
}


class Metrics:
    """What this process has counted, or, with a folder, all processes that share it."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or os.environ.get(COUNTS)
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "allot_http_requests_total", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "allot_http_request_seconds", "Time to answer", ["method", "route"], buckets=BUCKETS, registry=self.registry
        )
        self._requests = functools.cache(self.requests.labels)
        self._seconds = functools.cache(self.seconds.labels)

    def render(self, jobs: Jobs) -> bytes:
        """The text format. While Redis is away it has what this process counted, and says so."""
        registry = CollectorRegistry()
        up = Gauge("allot_redis_up", "1 while Redis answers", registry=registry)
        try:
            counts, seconds, workers = jobs.counts(), jobs.seconds(), jobs.workers()
        except Unavailable:
            up.set(0)
        else:
            up.set(1)
            registry.register(_Jobs(counts, seconds))
            _gauges(registry, counts, workers)
        return generate_latest(self._counted()) + generate_latest(registry)

    def _counted(self) -> CollectorRegistry:
        """Counters of all processes, of those that died too, where there are several."""
        if self._folder is None:
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._folder)  # type: ignore[no-untyped-call]
        return registry

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request and its time, under the route that it matched; "none" where it matched none."""
        method = method if method in METHODS else "other"
        self._requests(method, route, str(status)).inc()
        self._seconds(method, route).observe(seconds)


class _Jobs(Collector):
    """Counters and histograms that Redis keeps: every process tells the same."""

    def __init__(self, counts: Mapping[str, Mapping[str, float]], seconds: Iterable[Seconds]) -> None:
        self._counts, self._seconds = counts, list(seconds)

    def collect(self) -> Iterable[Any]:
        """The families of metrics."""
        total = CounterMetricFamily("allot_jobs", "Jobs by what happened to them", labels=["event", "solver"])
        for event, by_solver in self._counts.items():
            for solver, value in by_solver.items() if event not in (*NOW, DAMAGED) else ():
                total.add_metric([event, solver], value)
        yield total
        damaged = CounterMetricFamily("allot_damaged", "What stood in Redis and could not be read", labels=["what"])
        for what in ("record", "blob"):
            damaged.add_metric([what], self._counts.get(DAMAGED, {}).get(what, 0.0))
        yield damaged
        for phase, (name, about) in PHASES.items():
            family = HistogramMetricFamily(name, about, labels=["solver", "device"])
            for one in self._seconds:
                if one.phase == phase:
                    family.add_metric([one.solver, one.device], list(one.cumulative()), one.sum_s)
            yield family


def _gauges(
    registry: CollectorRegistry, counts: Mapping[str, Mapping[str, float]], workers: Iterable[WorkerInfo]
) -> None:
    for what in NOW:
        gauge = Gauge(f"allot_jobs_{what}", f"Jobs {what} now", ["queue"], registry=registry)
        for queue, value in counts.get(what, {}).items():
            gauge.labels(queue).set(value)
    alive = Gauge("allot_workers", "Workers alive", ["device", "state"], registry=registry)
    free = Gauge("allot_gpu_free_bytes", "Free memory of a GPU", ["worker"], registry=registry)
    moving = {name: Gauge(*about, ["worker", "gpu"], registry=registry) for name, about in READINGS.items()}
    for worker in workers:
        alive.labels(worker.device, worker.state).inc()
        if worker.gpu:
            free.labels(worker.name).set(worker.gpu["bytes_free"])
            for reading in worker.gpu.get("readings", ()):
                for name in moving.keys() & reading.keys():
                    moving[name].labels(worker.name, reading["uuid"]).set(reading[name])


class Exporter:
    """/metrics on a port of its own, for a scraper that has no key: whoever can reach the port may read it.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, host: str, port: int, metrics: Metrics, jobs: Jobs) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                status, text = (200, metrics.render(jobs)) if self.path == "/metrics" else (404, b"see /metrics\n")
                self.send_response(status)
                self.send_header("Content-Type", MEDIA_TYPE if status == 200 else "text/plain")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Scrapes are not worth a line."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
