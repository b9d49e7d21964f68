"""What a child leaves to its pauses: notes of what numba keeps, and steps that never come before a job."""

import socket
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from kernels import SOLVERS, Device
from workers.runtime import beside, child, loops
from workers.runtime.beside import Beside


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that numba keeps."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "cpu_1234"
    folder.mkdir()
    (folder / "path.py311.1.nbc").touch()
    (folder / "path.py311.nbi").touch()
    return folder / "path.py311.1.nbc"


def test_a_note_holds_while_all_files_are_there(kept: Path) -> None:
    assert not loops.kept(["lap"], "cpu")
    loops.note("lap", "cpu")
    assert loops.kept(["lap"], "cpu") == {"lap"}
    assert not loops.kept(["lap"], "gpu")
    assert not loops.kept(["qap"], "cpu")
    (kept.parent / "more.py311.nbi").touch()
    assert loops.kept(["lap"], "cpu") == {"lap"}
    kept.unlink()
    assert not loops.kept(["lap"], "cpu")


@pytest.mark.parametrize("changed", ["_sources", "_compiler"])
def test_a_note_is_of_these_sources_and_this_processor(
    kept: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    loops.note("lap", "cpu")
    assert loops.kept(["lap", "qap"], "cpu") == {"lap"}
    monkeypatch.setattr(loops, changed, lambda: ["another"])
    assert not loops.kept(["lap"], "cpu")


def test_a_source_that_was_touched_has_no_note(kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tree = tmp_path / "kernels"
    tree.mkdir()
    source = tree / "one.py"
    source.touch()
    monkeypatch.setattr(loops, "TREE", tree)
    loops.note("lap", "cpu")
    assert loops.kept(["lap"], "cpu") == {"lap"}
    source.write_text("# changed")
    assert not loops.kept(["lap"], "cpu")


def test_a_note_that_cannot_be_written_is_no_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    loops.note("lap", "cpu")
    assert not loops.kept(["lap"], "cpu")


def test_solvers_that_are_on_the_disk_are_left_for_later(
    kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run: list[str] = []

    def card(name: str) -> Any:
        return SimpleNamespace(
            name=name,
            modules={"cpu": name},
            warm_up=lambda device: run.append(name),
            steps=lambda device: [lambda: run.append(f"first of {name}"), lambda: run.append(f"second of {name}")],
        )

    cards = {name: card(name) for name in ("one", "two")}
    monkeypatch.setattr(child, "SOLVERS", cards)
    assert child._warm_up("cpu", ["one"], tmp_path / "locks", run.append) == ({}, [])
    assert child._warm_up("cpu", list(cards), tmp_path / "locks", run.append) == ({}, [cards["one"]])
    assert child._warm_up("cpu", list(cards), tmp_path / "locks", run.append) == ({}, list(cards.values()))
    assert run == ["0 of 1", "one", "1 of 1", "first of one", "0 of 1", "two", "1 of 1", "first of one"]


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket, IO[bytes]]]:
    """Both ends of a channel, and what is read from the second."""
    ours, theirs = socket.socketpair()
    with ours, theirs, theirs.makefile("rb") as lines:
        yield ours, theirs, lines


def waiting(names: list[str], run: list[str], broken: dict[str, str]) -> Beside:
    def card(name: str) -> Any:
        def part(number: int) -> None:
            run.append(f"{name} {number}")
            if (name, number) == ("bad", 1):
                raise RuntimeError("no such device")

        def steps(device: Device) -> list[Any]:
            if name == "worse":
                raise ImportError("no such module")
            return [partial(part, 1), partial(part, 2)]

        return SimpleNamespace(name=name, load=SOLVERS["lap"].load, steps=steps)

    return Beside([card(name) for name in names], "cpu", broken.update)


def test_a_job_that_waits_comes_before_any_step(line: tuple[socket.socket, socket.socket, IO[bytes]]) -> None:
    ours, theirs, lines = line
    run: list[str] = []
    found = waiting(["one", "two"], run, {}).lines(lines, theirs)
    for number in range(3):
        ours.sendall(b"%d\n" % number)
        assert next(found) == b"%d\n" % number
    assert run == []


def test_pauses_are_used_and_what_fails_is_told(
    line: tuple[socket.socket, socket.socket, IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs, lines = line
    monkeypatch.setattr(beside, "QUIET_S", 0.0)
    run: list[str] = []
    broken: dict[str, str] = {}
    steps = waiting(["one", "bad", "worse", "two"], run, broken)
    while steps._steps:
        steps._step()
    assert run == ["one 1", "one 2", "bad 1", "bad 2", "two 1", "two 2"]
    assert broken == {"bad": "RuntimeError: no such device", "worse": "ImportError: no such module"}
    ours.sendall(b"a job\n")
    begun = time.monotonic()
    assert next(steps.lines(lines, theirs)) == b"a job\n"
    assert time.monotonic() - begun < 5
    ours.close()
    assert list(steps.lines(lines, theirs)) == []


def test_other_steps_come_last_and_may_fail() -> None:
    run: list[str] = []

    def fails() -> None:
        run.append("fails")
        raise MemoryError("none left")

    steps = Beside([], "cpu", lambda broken: None, [fails, lambda: run.append("memory")])
    while steps._steps:
        steps._step()
    assert run == ["fails", "memory"]


def test_steps_run_while_nothing_comes(
    line: tuple[socket.socket, socket.socket, IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs, lines = line
    monkeypatch.setattr(beside, "QUIET_S", 0.01)
    run: list[str] = []
    steps = waiting(["one"], run, {})
    steps._steps.append(lambda: ours.sendall(b"a job\n"))
    assert next(steps.lines(lines, theirs)) == b"a job\n"
    assert run == ["one 1", "one 2"]


def test_a_job_comes_between_the_parts_of_one_solver(
    line: tuple[socket.socket, socket.socket, IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs, lines = line
    monkeypatch.setattr(beside, "BUSY_S", 0.0)
    run: list[str] = []
    monkeypatch.setattr(beside, "_comes", lambda channel, seconds: run == ["one 1"])
    steps = waiting(["one"], run, {})
    ours.sendall(b"a job\n")
    assert next(steps.lines(lines, theirs)) == b"a job\n"
    assert run == ["one 1"]


@pytest.mark.parametrize(("busy_s", "expected"), [(0.0, 7), (60.0, 2)])
def test_short_steps_share_a_pause(
    line: tuple[socket.socket, socket.socket, IO[bytes]], monkeypatch: pytest.MonkeyPatch, busy_s: float, expected: int
) -> None:
    """Memory is found in many of them, and a job that comes meanwhile waits for one."""
    ours, theirs, lines = line
    run: list[int] = []
    pauses: list[float] = []

    def comes(channel: socket.socket, seconds: float) -> bool:
        if seconds:
            pauses.append(seconds)
        return len(run) == 6

    monkeypatch.setattr(beside, "BUSY_S", busy_s)
    monkeypatch.setattr(beside, "_comes", comes)
    steps = Beside([], "cpu", lambda broken: None, [partial(run.append, number) for number in range(9)])
    ours.sendall(b"a job\n")
    assert next(steps.lines(lines, theirs)) == b"a job\n"
    assert run == list(range(6))
    assert len(pauses) == expected
    assert pauses == [beside.QUIET_S, *[beside.SHORT_S if busy_s else beside.QUIET_S] * (expected - 1)]


def test_after_a_long_step_a_client_is_waited_for_as_long_as_ever(
    line: tuple[socket.socket, socket.socket, IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs, lines = line
    monkeypatch.setattr(beside, "BUSY_S", 0.02)
    pauses: list[float] = []

    def comes(channel: socket.socket, seconds: float) -> bool:
        if seconds:
            pauses.append(seconds)
        return False

    monkeypatch.setattr(beside, "_comes", comes)
    steps: list[Any] = [*[lambda: None] * 3, lambda: time.sleep(0.03), lambda: time.sleep(0.03)]
    ours.sendall(b"a job\n")
    assert next(Beside([], "cpu", lambda broken: None, steps).lines(lines, theirs)) == b"a job\n"
    assert pauses == [beside.QUIET_S] * 2
