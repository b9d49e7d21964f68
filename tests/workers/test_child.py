"""What a child tells of the solvers that it cannot warm up."""

from types import SimpleNamespace
from typing import Any

import pytest

from kernels import Device
from workers.runtime import child


def test_only_a_solver_that_fails_its_own_warm_up_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def warm(name: str) -> Any:
        def warm_up(device: Device) -> None:
            if name == "bad":
                raise RuntimeError("no kernel image")

        return SimpleNamespace(name=name, modules={"gpu": name}, warm_up=warm_up)

    met = []

    def fails(card: Any, device: Device) -> None:
        met.append(card.name)
        raise ValueError("one form of many")

    monkeypatch.setattr(child, "SOLVERS", {name: warm(name) for name in ("bad", "good")})
    monkeypatch.setattr(child, "solve_each_form", fails)
    told: list[str] = []
    assert child._warm_up("gpu", ["bad", "good"], told.append) == {"bad": "RuntimeError: no kernel image"}
    assert met == ["good"]
    assert told == ["0 of 4", "2 of 4", "3 of 4", "4 of 4"]
