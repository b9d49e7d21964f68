"""Prometheus metrics: requests as they pass, jobs and workers as Redis knows them when somebody asks."""

import os
import time
from collections.abc import Iterable, MutableMapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Receive, Scope, Send

from workers.jobs.job import WorkerInfo

BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)


class Metrics:
    """What this process has counted."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "allot_http_requests_total", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "allot_http_request_seconds", "Time to answer", ["method", "route"], buckets=BUCKETS, registry=self.registry
        )

    def render(self, counts: dict[str, dict[str, float]], workers: Iterable[WorkerInfo]) -> bytes:
        """The text format: this process's counters, and gauges of what all processes share."""
        registry = CollectorRegistry()
        jobs = Gauge("allot_jobs", "Jobs by what happened, and by solver or queue", ["what", "of"], registry=registry)
        for what, by_name in counts.items():
            for name, value in by_name.items():
                jobs.labels(what, name).set(value)
        alive = Gauge("allot_workers", "Workers alive", ["device", "state"], registry=registry)
        free = Gauge("allot_gpu_free_bytes", "Free memory of a GPU", ["worker"], registry=registry)
        for worker in workers:
            alive.labels(worker.device, worker.state).inc()
            if worker.gpu:
                free.labels(worker.name).set(worker.gpu["bytes_free"])
        return generate_latest(self.counted()) + generate_latest(registry)

    def counted(self) -> CollectorRegistry:
        """What this process has counted, or all that share PROMETHEUS_MULTIPROC_DIR, those that died included."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return registry

    class Middleware:
        """Times each request under the route it matched; a path that matched none counts as "none"."""

        def __init__(self, app: ASGIApp, metrics: "Metrics") -> None:
            self.app, self.metrics = app, metrics

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            """Pass the request on."""
            if scope["type"] != "http":
                await self.app(scope, receive, send)
                return
            begun, status = time.perf_counter(), 500

            async def watch(message: MutableMapping[str, Any]) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                    message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
                await send(message)

            try:
                await self.app(scope, receive, watch)
            finally:
                route = getattr(scope.get("route"), "path", "none")
                method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "DELETE") else "other"
                self.metrics.requests.labels(method, route, str(status)).inc()
                self.metrics.seconds.labels(method, route).observe(time.perf_counter() - begun)
