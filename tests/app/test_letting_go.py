"""What a request has held is free once it was answered, and not when the collector comes, which is seldom."""

import gc
import io
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import numpy as np
import pytest

from app.http.server import COLLECT_EVERY_S, LEAST_PAUSES, Collecting
from app.intake.received import _close_parts
from app.intake.room import Room
from app.intake.visit import Visit
from tests.app.conftest import LAP

N = 40


@pytest.fixture
def uncollected() -> Iterator[Callable[[], set[str]]]:
    """Names the types of this project, and of arrays, that only the collector freed since the test began."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)

    def found() -> set[str]:
        gc.collect()
        return {
            f"{type(one).__module__}.{type(one).__name__}"
            for one in gc.garbage
            if type(one).__module__.partition(".")[0] in ("app", "workers", "numpy")
        }

    try:
        yield found
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def _npy(array: Any) -> bytes:
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def test_lists_are_let_go(client: httpx.Client, uncollected: Callable[[], set[str]]) -> None:
    cost = np.arange(N * N).reshape(N, N).tolist()
    for _ in range(3):
        assert client.post("/v1/jobs", json={"solver": "lap", "inputs": {"cost": cost}}).status_code == 202
    assert uncollected() == set()


def test_sparse_matrices_are_let_go(client: httpx.Client, uncollected: Callable[[], set[str]]) -> None:
    csr = {"indptr": [0, 2, 3], "indices": [0, 1, 1], "values": [1.0, 2.0, 3.0], "shape": [2, 2]}
    for _ in range(3):
        answer = client.post("/v1/jobs", json={"solver": "auction", "inputs": {"benefit": {"csr": csr}}})
        assert answer.status_code == 202, answer.text
    assert uncollected() == set()


def test_files_are_let_go(client: httpx.Client, uncollected: Callable[[], set[str]]) -> None:
    cost = _npy(np.random.default_rng(0).integers(0, 100, (150, 150)))
    for _ in range(3):
        answer = client.post("/v1/jobs", data={"job": '{"solver": "lap"}'}, files={"cost": cost})
        assert answer.status_code == 202, answer.text
        blob = client.post("/v1/blobs", content=cost).json()["blob"]
        job = {"solver": "lap", "inputs": {"cost": {"blob": blob}}}
        assert client.post("/v1/jobs", json=job).status_code == 202
    assert uncollected() == set()


def test_answers_and_refusals_are_let_go(client: httpx.Client, uncollected: Callable[[], set[str]]) -> None:
    for _ in range(3):
        answer = client.post("/v1/jobs", json=LAP, headers={"Prefer": "wait=30"})
        assert answer.status_code == 200
        job = answer.json()["id"]
        assert client.get(f"/v1/jobs/{job}/result", headers={"Accept": "application/x-npz"}).status_code == 200
        assert client.post("/v1/jobs", json={"solver": "lap", "inputs": {"cost": [[1, "x"]]}}).status_code == 422
        assert client.post("/v1/jobs", json={"solver": "nothing", "inputs": {}}).status_code == 422
    assert uncollected() == set()


class Ring:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def test_what_others_leave_behind_is_collected_at_times() -> None:
    now = [0.0]
    collecting = Collecting(lambda: now[0])
    left = weakref.ref(Ring())
    gc.disable()
    try:
        now[0] = COLLECT_EVERY_S - 1
        assert not collecting.if_due()
        assert left() is not None
        now[0] = COLLECT_EVERY_S
        assert collecting.if_due()
        assert left() is None
        assert not collecting.if_due()
    finally:
        gc.enable()


def test_a_slow_collection_is_followed_by_a_longer_pause() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.5  # so that each collection seems to take as long
        return now[0]

    collecting = Collecting(clock)
    now[0] = COLLECT_EVERY_S + 1
    assert collecting.if_due()
    now[0] += COLLECT_EVERY_S + 1
    assert not collecting.if_due()
    now[0] += LEAST_PAUSES * 0.5
    assert collecting.if_due()


def test_all_is_closed_though_closing_one_fails(tmp_path: Path) -> None:
    room, closed = Room(tmp_path, 100, 100), []

    def fail(why: str) -> None:
        closed.append(why)
        raise OSError(why)

    desk: Any = SimpleNamespace(store=SimpleNamespace(folder=SimpleNamespace(temporary=tmp_path)))

    def request() -> None:
        with Visit(desk, "ann", room.held("ann")) as visit:
            visit.held.take(60)
            visit.aside().write_bytes(b"x")
            visit.closing += [partial(closed.append, "first"), partial(fail, "second"), partial(fail, "third")]

    with pytest.raises(OSError, match="third"):
        request()
    assert closed == ["third", "second", "first"]
    assert list(tmp_path.iterdir()) == []
    room.held("ann").take(100)  # nothing of it is taken any more


def test_all_parts_are_closed_though_closing_one_fails() -> None:
    sinks = [Mock(**{"close.side_effect": why}) for why in (OSError("first"), None, None)]
    reader: Any = SimpleNamespace(parts={str(k): SimpleNamespace(sink=sink) for k, sink in enumerate(sinks)})
    with pytest.raises(OSError, match="first"):
        _close_parts(reader)
    assert all(sink.close.called for sink in sinks)
