"""A minute of the fuzzer: fixed seeds, one new seed, Hypothesis, and every case that once failed."""

import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels.certificates import boxed
from kernels.certificates.metrics import boxes
from tests.fuzz.case import Case, from_json, kept, to_json
from tests.fuzz.command import REGRESSIONS
from tests.fuzz.families import FAMILIES, draw_case
from tests.fuzz.judge import SEVERE, Verdict, judge
from tests.fuzz.outcome import run
from tests.fuzz.pool import Plan, Tally, prove_small_ones_by_boxes
from tests.fuzz.shrink import as_python, shrunk, sort_of
from tests.fuzz.strategies import Hypothetical
from tests.fuzz.trial import try_case

SHARE_S = 5.0
SHORT_S = {"gromov": 1.0}
"""Where a second shows as much: its cases are all small, and `make fuzz` draws more."""


@pytest.fixture(autouse=True)
def small_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((boxed, "FEWEST"), (boxes, "LEAF"), (boxes, "BLOCK")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back when the test is over
    prove_small_ones_by_boxes()


def bad(found: list[Verdict]) -> list[Verdict]:
    return [verdict for verdict in found if verdict.kind in SEVERE]


@pytest.mark.parametrize("solver", FAMILIES)
@pytest.mark.parametrize("seed", [1, None])
def test_a_share_of_the_cases(solver: str, seed: int | None) -> None:
    plan = Plan(random.randrange(10**9) if seed is None else seed, 10**9, SHARE_S, (solver,))
    print(f"seed {plan.seed}")
    tally, until, k = Tally(), time.monotonic() + SHORT_S.get(solver, SHARE_S), 0
    while time.monotonic() < until:
        try_case(plan, k, tally)
        k += 1
    shown = [f for f in tally.failures if f.kind in (*SEVERE, "mutation", "scale")]
    assert not shown, f"python -m tests.fuzz --seed {plan.seed} --solver {solver}: {shown[:3]}"


@pytest.mark.parametrize("solver", FAMILIES)
def test_hypothesis_finds_nothing(solver: str) -> None:
    @settings(max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def nothing_is_wrong(data: Any) -> None:
        case = draw_case(Hypothetical(data), solver)
        found = bad(judge(case, run(case)))
        assert not found, f"{found[0]}\n{as_python(case)}"

    nothing_is_wrong()


@pytest.mark.parametrize("path", kept(REGRESSIONS), ids=lambda path: path.stem)
def test_what_once_failed(path: Path) -> None:
    case = from_json(path.read_text())
    assert not bad(judge(case, run(case)))


@pytest.mark.parametrize("solver", FAMILIES)
def test_a_case_is_read_back_bit_by_bit(solver: str) -> None:
    from tests.fuzz.draw import Seeded

    for k in range(30):
        case = draw_case(Seeded(7, k), solver)
        assert to_json(from_json(to_json(case))) == to_json(case)


def test_a_failing_case_is_made_small() -> None:
    def fails(case: Case) -> bool:
        return bool((case.inputs["cost"] == 7).any())

    import numpy as np

    cost = np.arange(30).reshape(5, 6)
    case = Case("lap", "a family", {"cost": cost, "v0": np.zeros(6)}, {"maximize": True, "method": "sap"}, 0.1)
    small = shrunk(case, fails)
    assert small.inputs.keys() == {"cost"}
    assert (small.inputs["cost"].tolist(), small.options, small.time_limit_s) == ([[7]], {}, None)


def test_verdicts_that_differ_in_numbers_alone_are_one_sort() -> None:
    assert sort_of("bound 1.5e-300 is beyond the optimum -3") == sort_of("bound 12 is beyond the optimum 1e+5")
