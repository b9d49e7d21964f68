"""The fuzzer itself: what it must find in answers that lie, and what it writes down of a run."""

import json
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import Certificate, Solution, Termination
from kernels.certificates.exact.statement import Claim
from tests.fuzz import report, tally, truth
from tests.fuzz.case import Case
from tests.fuzz.command import main
from tests.fuzz.draw import Seeded, barred
from tests.fuzz.judge import judge_answer, late
from tests.fuzz.mutate import _changed, corrupted
from tests.fuzz.outcome import Outcome, run
from tests.fuzz.pool import Failure, Plan, Tally
from tests.fuzz.scaled import differs, scaled_case

RNG = np.random.default_rng(17)
CASES = {
    "lap": Case("lap", "unit", {"cost": RNG.random((4, 4))}),
    "lap, integers": Case("lap", "small", {"cost": RNG.integers(0, 9, (4, 5))}),
    "auction": Case("auction", "unit", {"benefit": RNG.random((4, 4))}),
    "uot": Case("uot", "unit", {"cost": RNG.random((3, 4))}, {"reg": 0.1, "reg_m": (0.5, "inf")}),
    "qap": Case("qap", "small", {"flow": RNG.integers(0, 9, (4, 4)), "distance": RNG.integers(0, 9, (4, 4))}),
    "barycenter": Case("barycenter", "unit", {"histograms": np.full((3, 4), 0.25), "cost": RNG.random((3, 4))},
                       {"method": "exact"}),
    "lowrank": Case("lowrank", "unit", {"cost": RNG.random((4, 5))}, {"rank": 3}),
    "multimarginal": Case("multimarginal", "unit", {"cost": RNG.random((2, 3, 4))}, {"reg": 0.1}),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {name: run(case, limit_s=5.0) for name, case in CASES.items()}


def kinds(case: Case, outcome: Outcome, **lies: Any) -> set[str]:
    assert outcome.solution is not None
    assert outcome.certificate is not None
    word = lies.pop("word", outcome.solution.termination)
    solution = replace(outcome.solution, termination=word, arrays=lies.pop("arrays", outcome.solution.arrays))
    return {verdict.kind for verdict in judge_answer(case, solution, replace(outcome.certificate, **lies))}


@pytest.mark.parametrize("name", CASES)
def test_lies_are_found(name: str, outcomes: dict[str, Outcome]) -> None:
    case, outcome = CASES[name], outcomes[name]
    certificate = outcome.certificate
    assert certificate is not None
    assert certificate.objective is not None
    assert kinds(case, outcome) == set()
    better = -1 if name == "auction" else 1
    beyond = certificate.objective + better * (1 if isinstance(certificate.objective, int) else 0.1)
    assert kinds(case, outcome, bound=beyond) & {"misleading", "unshown"}
    cheaper = certificate.objective - better * (1 if isinstance(certificate.objective, int) else 0.1)
    assert kinds(case, outcome, objective=cheaper) & {"wrong", "misleading"}
    assert kinds(case, outcome, bound=cheaper, gap_abs=0) == {"misleading"}
    assert "refused" in kinds(case, outcome, holds=False)
    nothing: dict[str, Any] = {"objective": None, "bound": None, "gap_abs": None, "word": Termination.CONVERGED}
    assert "refused" in kinds(case, outcome, **nothing)
    if name != "uot":
        assert "wrong" in kinds(case, outcome, word=Termination.INFEASIBLE)


def test_an_answer_that_is_none_is_wrong(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["lap"]
    assert outcome.solution is not None
    twice = {**outcome.solution.arrays, "assignment": np.zeros(4, np.int64)}
    assert kinds(CASES["lap"], outcome, arrays=twice) == {"wrong"}
    assert kinds(CASES["lap"], outcome, arrays={}) == {"wrong"}


def test_corruption_changes_something_and_leaves_the_original() -> None:
    solution = Solution(Termination.OPTIMAL, "m", {"u": np.ones(3), "assignment": np.arange(3)}, evidence={})
    seen = set()
    for k in range(200):
        what, bad = corrupted(Seeded(3, k), solution)
        seen.add(what)
        assert bad is not solution
    assert seen == {"u", "assignment", "termination"}
    assert solution.arrays["u"].tolist() == [1, 1, 1]


def test_other_units_are_answered_alike() -> None:
    assert differs(CASES["lap"], "cpu", 3) == ""
    assert scaled_case(CASES["lap, integers"], 3) is None
    found = scaled_case(CASES["uot"], 5)
    assert found is not None
    scaled, k = found
    assert scaled.options == {"reg": 0.1 * 2.0**k, "reg_m": (0.5 * 2.0**k, "inf")}


def test_an_objective_to_stop_at_has_a_unit() -> None:
    flow, distance = RNG.random((2, 5, 5))
    case = Case("qap", "unit", {"flow": flow, "distance": distance}, {"target": 40.0, "best_known": 3})
    found = scaled_case(case, 5)
    assert found is not None
    scaled, k = found
    assert k != 0
    assert scaled.options == {"target": 40.0 * 2.0**k, "best_known": 3 * 2.0**k}
    assert differs(case, "cpu", 5) == ""


def test_a_dual_that_is_no_number_takes_nothing_from_what_rounding_may_leave() -> None:
    claim = Claim("optimal", 1e-54, -2e-17, 2e-17, 1.0, 0.0, {"u": np.array([1.0, np.nan]), "v": np.array([0.5])})
    finite = replace(claim, arrays={"u": np.array([1.0]), "v": np.array([0.5])})
    assert truth.limit(claim, Fraction(0)) == truth.limit(finite, Fraction(0)) > 1e-54


def test_lines_and_everything_are_forbidden_at_times() -> None:
    seen = [barred(Seeded(4, k), (3, 4, 5)) for k in range(300)]
    assert any(one.all() for one in seen)
    assert any(one.all(axis=2).any() and not one.all() for one in seen)
    assert any(one.all(axis=(1, 2)).any() and not one.all() for one in seen)
    assert sum(not one.any() for one in seen) > 20


def test_counts_are_written_and_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = Counter({("lap", "unit", "right"): 5, ("lap", "unit", "wrong"): 1})
    whole = Tally(counts, [Failure("lap", 3, "unit", "wrong", "x")])
    whole.mutations[("lap", "covered")] = 7
    path = tmp_path / "rows.jsonl"
    for _ in range(2):
        report.write(path, report.row(Plan(1, 6, 1.0, ("lap",)), whole))
    assert [json.loads(line)["cases"] for line in path.read_text().splitlines()] == [6, 6]
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- fuzz -->\n<!-- /fuzz -->\nb\n")
    assert tally.main([str(path), "--into", str(page)]) == 0
    current, row = f"**{report.certificate_version()}**", "12 | 2 | 0 | 0 | 0 | 0 | 14 | 0 |"
    assert re.search(rf"\| cpu \| {re.escape(current)} \| [\d: -]{{16}} \| {re.escape(row)}", page.read_text())
    assert "In bold: " in page.read_text()
    assert tally.main([str(path)]) == 0
    assert capsys.readouterr().out.startswith("| device |")


def test_rows_come_newest_first_and_say_where_none_is_of_this_version() -> None:
    row = dict.fromkeys(tally.COUNTS, 1) | {"device": "cpu"}
    times = (("old", "08:00"), ("new", "09:30"), ("old", "08:10"))
    lines = [json.dumps(row | {"certificates": name, "when": f"2026-01-02T{at}:05Z"}) for name, at in times]
    shown = tally.table(tally.added_up(lines), tally.last_runs(lines)).splitlines()
    assert shown[2].startswith("| cpu | new | 2026-01-02 09:30 | 1 |")
    assert shown[3].startswith("| cpu | old | 2026-01-02 08:10 | 2 |")
    assert shown[-1].startswith("No run is of the certificates as they are here, ")


def test_the_command_runs_counts_and_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = tmp_path / "rows.jsonl"
    arguments = ["--cases", "20", "--seconds", "60", "--seed", "1", "--solver", "lap", "--into", str(tmp_path)]
    assert main([*arguments, "--row", str(row)]) == 0
    assert "seed 1" in capsys.readouterr().out
    found = json.loads(row.read_text())
    assert found["cases"] == 20
    assert (found["wrong"], found["misleading"], found["refused"]) == (0, 0, 0)


@pytest.mark.parametrize(("gap", "plain", "wanted"), [(1e-2, True, False), (1e-9, True, True), (1e-2, False, True)])
def test_plain_iterations_are_late_only_with_the_gap_they_were_asked_for(gap: float, plain: bool, wanted: bool) -> None:
    options = {"acceleration": False} if plain else {}
    case = Case("uot", "late", {"cost": np.ones((1, 1))}, options, None)
    certificate = Certificate(1.0, 1.0 - gap, gap, gap, 0.0, True, "")
    assert late(case, certificate) is wanted


def test_bytes_are_corrupted_too() -> None:
    """The log of a proof is made of bytes."""
    before = np.arange(9, dtype=np.uint8)
    changed = [_changed(Seeded(seed, 0, 0), before.copy()) for seed in range(60)]
    assert all(one.dtype == np.uint8 and one.shape == before.shape for one in changed)
    assert sum(bool((one != before).any()) for one in changed) > 40
