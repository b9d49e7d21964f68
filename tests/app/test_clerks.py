"""Clerks and the room for bytes: limits are kept, owners are served in turn, and whatever dies is replaced."""

import asyncio
import gzip
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.http.config import HttpSettings
from app.http.main import create_app
from app.http.refusal import Refusal
from app.intake.clerks import Clerk, Clerks
from app.intake.room import Room
from kernels import InvalidProblem
from tests.app.conftest import LAP, Service, serve
from tests.app.test_bad_input import check, npy
from workers.jobs.job import StoreFull
from workers.store import handles
from workers.store.codec import InvalidUpload
from workers.store.unpack import Scratch

MIB = 1 << 20
AS_FOUND = {"format": None, "member": None, "dtype": None, "shape": None, "filename": "", "content_type": ""}


def errand(path: Path, **changes: Any) -> dict[str, Any]:
    plain = {"do": "read", "path": str(path), "form": AS_FOUND, "field": "body", "max_bytes": 1 << 30,
             "max_elements": 1 << 27, "scratch": str(path.parent / ".aside-"), "memory_bytes": 512 * MIB,
             "seconds": 5.0, "given_bytes": path.stat().st_size}  # fmt: skip
    return {**plain, **changes}


def freely(count: int) -> None:
    """Grants everything."""


@pytest.fixture(scope="module")
def clerk() -> Iterator[Clerk]:
    made = Clerk()
    yield made
    made.stop()


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "upload"
    path.write_bytes(gzip.compress(npy(np.eye(2))))
    return path


def test_a_clerk_reads_and_says_what_is_wrong(clerk: Clerk, packed: Path) -> None:
    told = clerk.ask(errand(packed), freely)
    assert (told["format"], told["value"]["shape"]) == ("npy", [2, 2])
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(InvalidUpload, match="does not inflate"):
        clerk.ask(errand(packed), freely)
    document = {"do": "document", "parts": []}
    packed.write_text(json.dumps({"solver": "lap", "inputs": {"cost": [[1, 2], [3]]}}))
    with pytest.raises(InvalidProblem, match="ragged"):
        clerk.ask(errand(packed, **document), freely)
    packed.write_text("[1,")
    with pytest.raises(Refusal, match="is not JSON"):
        clerk.ask(errand(packed, **document), freely)


def test_bytes_are_granted_before_they_are_written(clerk: Clerk, tmp_path: Path) -> None:
    path, folder = tmp_path / "upload", tmp_path
    path.write_bytes(gzip.compress(npy(np.zeros(5 * MIB))))
    seen: list[int] = []

    def grant(count: int) -> None:
        written = sum(file.stat().st_size for file in folder.glob(".aside-*"))
        assert written <= sum(seen)
        seen.append(count)

    told = clerk.ask(errand(path), grant)
    assert sum(seen) >= 40 * MIB
    assert Path(told["value"]["path"]).stat().st_size <= sum(seen)

    def refuse(count: int) -> None:
        raise Refusal(429, "no more")

    with pytest.raises(Refusal, match="no more"):
        clerk.ask(errand(path), refuse)
    clerk.ask(errand(path), freely)  # and it is there for the next


def test_an_errand_that_needs_too_much_memory_fails_alone(clerk: Clerk, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"[" + b"[1]," * 3_000_000 + b"1]")
    with pytest.raises(Refusal, match="bytes of memory") as refused:
        clerk.ask(errand(path, do="document", parts=[], memory_bytes=64 * MIB, given_bytes=0), freely)
    assert refused.value.status == 413
    path.write_bytes(npy(np.zeros((2000, 2000), np.uint8)))
    large = handles.hand(np.load(path, mmap_mode="c"), tmp_path, Scratch())
    weighing: dict[str, Any] = {
        "do": "weigh",
        "solver": "uot",
        "inputs": {"cost": large},
        "options": {},
        "texts": {},
        "asked": "cpu",
    }
    weighing |= {"workers": [], "limit_s": None, "outlined": False, "memory_bytes": 16 * MIB, "given_bytes": 0}
    with pytest.raises(Refusal, match="bytes of memory"):
        clerk.ask(errand(path, **weighing), freely)
    path.write_bytes(gzip.compress(npy(np.eye(2))))
    assert clerk.ask(errand(path), freely)["format"] == "npy"


def test_an_errand_that_needs_too_much_time_ends(clerk: Clerk, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b'{"solver": "lap", "inputs": {"cost": [' + b"[1]," * 20_000_000 + b"[1]]}}")
    begun = time.monotonic()
    with pytest.raises(Refusal, match="1 s that one upload may have") as refused:
        clerk.ask(errand(path, do="document", parts=[], seconds=1.0, memory_bytes=8 << 30, given_bytes=0), freely)
    assert refused.value.status == 413
    assert time.monotonic() - begun < 30
    path.write_bytes(gzip.compress(npy(np.eye(2))))
    assert clerk.ask(errand(path), freely)["format"] == "npy"


def test_a_clerk_that_was_killed_is_replaced(clerk: Clerk, packed: Path) -> None:
    clerk.ask(errand(packed), freely)
    assert clerk._process is not None
    before = clerk._process.pid
    os.kill(before, signal.SIGKILL)
    clerk._process.wait()
    clerk.ask(errand(packed), freely)
    assert clerk._process is not None
    assert clerk._process.pid != before


def test_a_clerk_knows_no_secrets(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOT_API_KEYS", "secret")
    clerk = Clerk()
    try:
        clerk.ask(errand(packed), freely)
        assert clerk._process is not None
        assert b"ALLOT_API_KEYS" not in Path(f"/proc/{clerk._process.pid}/environ").read_bytes()
    finally:
        clerk.stop()


class Slow:
    """Stands in for a clerk: takes its time, and notes whose errand it did."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def ask(self, told: dict[str, Any], charge: Callable[[int], object]) -> dict[str, Any]:
        time.sleep(0.05)
        self._done.append(told["of"])
        return {}

    def stop(self) -> None:
        """Nothing runs."""


def served(count: int, asked: list[str]) -> list[str]:
    done: list[str] = []
    clerks = Clerks(count, 0, 0.0)
    clerks._idle = [Slow(done) for _ in range(count)]  # type: ignore[misc]

    async def run() -> None:
        await asyncio.gather(*(clerks.ask(owner, {"of": owner}, 0, freely) for owner in asked))

    asyncio.run(run())
    assert not clerks._waiting
    assert len(clerks._idle) == count
    return done


def test_an_owner_leaves_one_clerk_to_others() -> None:
    done = served(2, ["ann"] * 20 + ["bob"])
    assert done.index("bob") < 3


def test_owners_are_served_in_turn() -> None:
    done = served(1, ["ann"] * 10 + ["bob"] * 10 + ["eve"] * 10)
    assert sorted(done[1:7]) == ["ann", "ann", "bob", "bob", "eve", "eve"]


def test_too_many_errands_of_one_owner_are_refused() -> None:
    with pytest.raises(Refusal, match="wait to be read") as refused:
        served(1, ["ann"] * 300)
    assert refused.value.status == 429
    assert refused.value.headers


def test_room_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(tmp_path, most=100, each=60)
    with room.held("ann") as ann, room.held("bob") as bob:
        ann.take(60)
        with pytest.raises(Refusal) as refused:
            ann.take(1)
        assert refused.value.status == 429
        bob.take(40)
        with pytest.raises(Refusal) as refused:
            bob.take(1)
        assert refused.value.status == 503
    with room.held("ann") as ann:
        ann.take(60)
        monkeypatch.setattr("workers.store.disk.SPARE_BYTES", 1 << 60)
        with pytest.raises(StoreFull):
            ann.take(0)


@pytest.fixture(scope="module")
def narrow(service: Service) -> Iterator[str]:
    """An API with room for 32 MiB on the way."""
    url, stop = serve(create_app(service.settings, HttpSettings(owner_bytes=32 * MIB, clerks=1)))
    yield url
    stop()


def test_what_an_upload_inflates_to_counts(narrow: str, service: Service) -> None:
    large = gzip.compress(npy(np.zeros((2, 3 * MIB))))
    answer = httpx.post(f"{narrow}/v1/blobs", content=large, timeout=60)
    check(answer, (413, 429, 422))
    body = {"job": json.dumps({"solver": "lap"})}
    files = {"cost": ("c.npy.gz", large)}
    answer = httpx.post(f"{narrow}/v1/jobs", data=body, files=files, timeout=60)
    check(answer, (413, 429, 422))
    assert not list((service.settings.data_dir / "blobs" / "tmp").glob(".aside-*"))
    assert httpx.post(f"{narrow}/v1/estimates", json=LAP).status_code == 200  # the room was given back


def test_what_is_shown_before_it_is_solved_counts_too(narrow: str, service: Service) -> None:
    """Of a preview: the bytes that come, and what they inflate to."""
    sent = npy(np.ones((2, 3 * MIB)))
    for filename, content in (("c.npy", sent), ("c.csv", sent), ("c.npy.gz", gzip.compress(sent))):
        answer = httpx.post(f"{narrow}/v1/previews", params={"filename": filename}, content=content, timeout=60)
        assert answer.status_code in (413, 422, 429), filename
    assert not list((service.settings.data_dir / "blobs" / "tmp").glob(".aside-*"))
    small = httpx.post(f"{narrow}/v1/previews", params={"filename": "c.csv"}, content=b"1,2\n3,4\n")
    assert small.status_code == 200  # the room was given back


def test_a_long_text_is_read_from_disk_and_goes(narrow: str, service: Service) -> None:
    cost = np.random.default_rng(0).integers(0, 1000, (150, 150)).tolist()
    whole = {"solver": "lap", "inputs": {"cost": cost}}
    told = httpx.post(f"{narrow}/v1/jobs", json=whole, headers={"Prefer": "wait=30"}, timeout=60).json()
    again = httpx.post(f"{narrow}/v1/jobs", data={"job": json.dumps(whole)}, files={"x": b""}, timeout=60)
    check(again, 422, "x")
    part = httpx.post(f"{narrow}/v1/jobs", files={"job": (None, json.dumps(whole))}, headers={"Prefer": "wait=30"})
    assert part.json()["objective"] == told["objective"]
    assert part.json()["input_digests"] == told["input_digests"]
    assert not list((service.settings.data_dir / "blobs" / "tmp").glob(".aside-*"))
