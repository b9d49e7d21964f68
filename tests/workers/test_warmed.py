"""What a GPU's child finds compiled on the disk, and what it runs all the same."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernels import Device
from workers.runtime import child, gpu_memory, warmed

H100 = "NVIDIA H100, CuPy 14, NVRTC 13"


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a service on an H100, which is not there yet."""
    monkeypatch.setattr(gpu_memory, "compiled_for", lambda: H100)
    folder = tmp_path / "service/cupy"
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_service_begins_with_what_the_user_has(own: Path, tmp_path: Path) -> None:
    user = tmp_path / "user"
    (user / "a folder").mkdir(parents=True)
    for name in ("one.cubin", "two.cubin"):
        (user / name).write_bytes(name.encode())
    own.mkdir(parents=True)
    (own / "two.cubin").write_bytes(b"its own")
    warmed.begin_with(user)
    assert files(own) == {"one.cubin": b"one.cubin", "two.cubin": b"its own"}


def test_where_there_is_nothing_to_begin_with(own: Path, tmp_path: Path) -> None:
    warmed.begin_with(tmp_path / "nothing")
    assert not own.exists()
    own.mkdir(parents=True)
    (own / "one").touch()
    warmed.begin_with(own)
    assert list(files(own)) == ["one"]


def test_what_was_run_by_other_sources_or_on_another_device_counts_for_nothing(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed.note("lap")
    assert warmed.is_warm("lap")
    assert not warmed.is_warm("qap")
    with monkeypatch.context() as other:
        other.setattr(gpu_memory, "compiled_for", lambda: H100.replace("14", "15"))
        assert not warmed.is_warm("lap")
    assert warmed.is_warm("lap")
    monkeypatch.setattr(warmed, "_sources", lambda: "changed")
    assert not warmed.is_warm("lap")


def test_a_child_runs_the_forms_of_a_solver_once_for_each_folder(
    own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def warm_up(device: Device) -> None:
        """Nothing to compile."""

    run: list[str] = []

    def solve_each_form(card: Any, device: Device) -> None:
        run.append(card.name)
        if card.name == "bad":
            raise ValueError("one form of many")

    names, whole = ("bad", "good", "fine"), {"warm_up": warm_up, "steps": lambda device: [lambda: None]}
    cards = {name: SimpleNamespace(name=name, modules={"gpu": name}, **whole) for name in names}
    monkeypatch.setattr(child, "SOLVERS", cards)
    monkeypatch.setattr(child, "solve_each_form", solve_each_form)
    for later in ([], ["good", "fine"]):
        broken, left = child._warm_up("gpu", list(cards), tmp_path / "locks", run.append)
        assert (broken, [card.name for card in left]) == ({}, later)
    assert [one for one in run if one in cards] == ["bad", "good", "fine", "bad"]
    assert run[-1] == "2 of 2"
