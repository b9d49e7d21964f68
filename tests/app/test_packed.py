"""A long answer is sent from its mapping, into which threads bring the pages that come next."""

import asyncio
import gc
import resource
import time
import weakref
from collections.abc import MutableMapping
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import Response

from app.answers import packed
from app.http.media import PACKED
from kernels import READ, Array, advise


@pytest.fixture
def mapped(tmp_path: Path) -> Array:
    """What is mapped as an answer is."""
    path = tmp_path / "array.npy"
    np.save(path, np.random.default_rng(0).random(1 << 18))
    return np.lib.format.open_memmap(path, "c")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Where each step begins, and how many bytes it has."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(packed, "LONG", 1 << 20)
    monkeypatch.setattr(packed, "STEP", 1 << 18)
    monkeypatch.setattr(packed, "SLICE", 1 << 16)
    monkeypatch.setattr(packed, "_bring", lambda part: found.append((part.ctypes.data, part.nbytes)))
    return found


def wait_for(steps: list[tuple[int, int]], count: int) -> None:
    until = time.monotonic() + 60
    while len(steps) < count and time.monotonic() < until:
        time.sleep(0.001)


def test_pages_are_brought_ahead_of_the_slices_and_all_of_them_once(
    mapped: Array, steps: list[tuple[int, int]]
) -> None:
    head, *slices = [bytes(one) for one in packed.safetensors(b"head", [mapped])]
    assert head == b"head"
    assert b"".join(slices) == mapped.tobytes()
    wait_for(steps, mapped.nbytes // packed.STEP)
    assert sorted(steps) == [(mapped.ctypes.data + at, packed.STEP) for at in range(0, mapped.nbytes, packed.STEP)]


def test_pages_are_not_brought_further_ahead_than_that(mapped: Array, steps: list[tuple[int, int]]) -> None:
    slices = packed.safetensors(b"", [mapped])
    next(slices)
    assert not steps
    next(slices)
    wait_for(steps, packed.AHEAD)
    time.sleep(0.05)
    assert len(steps) == packed.AHEAD


def test_a_shorter_array_is_sent_as_it_lies(mapped: Array, steps: list[tuple[int, int]]) -> None:
    assert b"".join(packed.safetensors(b"", [mapped[:1000]])) == mapped[:1000].tobytes()
    assert not steps


def test_what_was_brought_is_not_brought_again(mapped: Array) -> None:
    if advise(mapped.ctypes.data - mapped.ctypes.data % PAGESIZE, PAGESIZE, READ) != 0:
        pytest.skip("this system brings pages as they are read")
    packed._bring(mapped)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    sum(mapped[:: PAGESIZE // 16])
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before < 16


@pytest.mark.parametrize("media", PACKED)
def test_who_leaves_leaves_no_mapping_behind(media: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "SLICE", 1 << 16)
    np.save(tmp_path / "array.npy", np.random.default_rng(0).random(1 << 20))
    gc.disable()
    try:
        asyncio.run(nothing_is_left(tmp_path / "array.npy", media))
    finally:
        gc.enable()


async def nothing_is_left(path: Path, media: str) -> None:
    array = np.lib.format.open_memmap(path, "c")
    mapping = weakref.ref(array.base)
    response = packed.packed({"plan": array}, media, "plan", {}, b"{}")
    del array
    assert mapping() is not None
    await begun_and_left(response)
    del response
    assert mapping() is None


async def begun_and_left(response: Response) -> None:
    """Have it sent to a client that takes three messages and goes."""
    gone = asyncio.Event()
    taken: list[str] = []

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        taken.append(message["type"])
        if len(taken) == 3:
            gone.set()
        await asyncio.sleep(0)

    await response({"type": "http"}, receive, send)
