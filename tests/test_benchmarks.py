"""The measurements that docs quote: rows, what others published, and plots."""

import json
import math
import re
from pathlib import Path

import pytest

from benchmarks import auction_large
from benchmarks.bare import bare_ms, bare_per_s
from benchmarks.last_mile import ROWS as ROWS_OF_THE_LAST_MILE
from benchmarks.last_mile import chosen
from benchmarks.report.__main__ import pages, stale
from benchmarks.report.page import Table, filled
from benchmarks.report.qap import thinned
from benchmarks.rows import tag_of
from benchmarks.small_jobs import bodies

ROOT = Path(__file__).parent.parent
ROWS = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))
PEERS = sorted((ROOT / "benchmarks/peers").glob("*.json"))
PLOTS = sorted((ROOT / "docs/images").glob("*.svg"))
LARGEST_PLOT = 160_000


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_a_file_of_a_gpus_rows_is_named_after_it(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    tags = {tag_of(row["gpu"]) for row in rows if "gpu" in row}
    assert len(tags) <= 1, "two kinds of GPU share a file"
    named = re.search(r"_([a-z]*\d+)$", path.stem)
    assert tags == ({named[1]} if named else set())


def test_gpus_have_short_names() -> None:
    assert [tag_of(gpu) for gpu in ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "Tesla K20")] == ["h200", "h100", "k20"]


@pytest.mark.parametrize("path", PEERS, ids=lambda path: path.stem)
def test_figures_of_others_say_where_they_come_from(path: Path) -> None:
    found = json.loads(path.read_text())
    assert len(found["source"].split()) > 5
    assert found["unit"] == "ms"
    for run in found.get("runs", []):
        assert len(run["ms"]) <= len(found["sizes"])


@pytest.mark.parametrize("path", PLOTS, ids=lambda path: path.stem)
def test_plots_are_small(path: Path) -> None:
    assert path.stat().st_size <= LARGEST_PLOT


def test_a_thinned_curve_keeps_its_end_and_what_can_be_seen() -> None:
    curve = [[0.001, 9.0], [1.0, 5.0], [1.001, 4.0], [1.002, 3.0], [10.0, 0.0]]
    assert thinned(curve) == [[0.001, 9.0], [1.002, 3.0], [10.0, 0.0]]


def test_every_table_of_the_pages_is_what_its_rows_say() -> None:
    assert len(pages()) >= 5
    assert stale() == [], "python -m benchmarks.report writes them"


def test_a_table_fills_the_place_of_its_name() -> None:
    text = "a\n<!-- rows: one -->\nold\n<!-- end -->\nb\n"
    tables = {"one": lambda: Table(["x", "y"], [["z", 1234.5], [None, 0.0123]])}
    wanted = "| x | y |\n| --- | --- |\n| z | 1,234 |\n| - | 0.0123 |\n"
    assert filled(text, tables) == f"a\n<!-- rows: one -->\n{wanted}<!-- end -->\nb\n"
    assert filled(filled(text, tables), tables) == filled(text, tables)
    with pytest.raises(KeyError):
        filled(text, {})
    with pytest.raises(ValueError, match="another length"):
        Table(["x"], [[1, 2]]).markdown()


def test_the_last_mile_asks_for_every_row_on_a_gpu_and_what_a_cpu_can_take_on_a_cpu() -> None:
    on_cpu, on_gpu = chosen("", "cpu", 1), chosen("", "gpu", 1)
    assert set(on_cpu) < set(on_gpu)
    assert [row.name for row in chosen("", "gpu", 2) if row not in on_gpu] == ["uot 30,000 x 30,000 float32, plan"]
    assert len({row.name for row in ROWS_OF_THE_LAST_MILE}) == len(ROWS_OF_THE_LAST_MILE)
    assert all(row.goal < row.must for row in ROWS_OF_THE_LAST_MILE)


def test_a_bare_copy_sends_all_bytes() -> None:
    assert 0 < bare_ms(3 << 20) < 60_000


def test_an_empty_application_answers_what_a_service_would() -> None:
    assert bare_per_s(bodies(4), connections=4, seconds=0.2) > 0


@pytest.mark.parametrize("case", [*auction_large.CASES, *auction_large.OTHERS])
def test_a_large_auction_can_be_tried_small(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    row = auction_large.one(case, 40_000, 1000, "cpu", 60)
    assert (row["edges"], row["holds"], row["termination"]) == (40_000, True, "optimal")
    assert row["ms"] > 0
    monkeypatch.setattr(auction_large, "is_planted", lambda *given: False)
    assert math.isnan(auction_large.one(case, 40_000, 1000, "cpu", 60)["ms"])
