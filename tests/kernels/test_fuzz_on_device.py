"""The fuzzer's small cases are certified on the device, by each of its certificates."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, solve_and_prove
from tests.conftest import need_gpu
from tests.fuzz.pool import ON_THE_DEVICE, Plan, Tally, certify_small_ones_on_the_device
from tests.fuzz.trial import try_case

SMALL: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "gpu_assignment": ("lap", {"cost": np.array([[4.0, 1.0], [2.0, 3.0]])}, {}),
    "gpu_auction": ("auction", {"benefit": np.array([[7, 4], [6, 3]])}, {}),
    "gpu_transport": ("uot", {"cost": np.array([[0.0, 1.0], [1.0, 0.5]])}, {"reg": 0.5}),
    "gpu_points": ("lap", {"x": np.eye(3), "y": np.eye(3)[::-1].copy()}, {"metric": "euclidean"}),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", SMALL)
def test_small_problems_are_certified_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need_gpu()
    for module in ON_THE_DEVICE:
        monkeypatch.setattr(import_module(module), "FEWEST", 1 << 40)
    certify_small_ones_on_the_device()
    solver, inputs, options = SMALL[name]
    card = SOLVERS[solver]
    given = card.options(**options)
    _, certificate = solve_and_prove(card, card.build(inputs, given), given, Deadline(30), "gpu")
    assert certificate.holds
    assert certificate.facts["certified_on"] == "gpu"


def test_each_certificate_of_a_device_is_among_them() -> None:
    assert {module.rpartition(".")[2] for module in ON_THE_DEVICE} == set(SMALL)


def test_where_answers_were_certified_is_counted() -> None:
    tally = Tally()
    for k in range(6):
        try_case(Plan(3, 6, 60.0, ("lap",)), k, tally)
    assert tally.certified["lap", "cpu"] == tally.cases - tally.of("turned away")
