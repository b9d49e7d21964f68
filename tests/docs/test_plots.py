"""Live plots: every point is a measured row; a page draws them, reads them out and tabulates them."""

import json
import re
from typing import Any

import pytest

from app.web.manual import leaves
from benchmarks.rows import read
from docs.builder.contents import ROOT
from docs.builder.plots import PLOTS, View, plots, with_plots
from tests.app.conftest import Service
from tests.web.browser import faults_of, is_too_wide, keep_picture, opened
from tests.web.conftest import browser

__all__ = ["browser"]


def series(told: dict[str, Any], view: str, name: str) -> dict[float, float]:
    found = next(one for one in told["views"] if one["name"] == view)
    points = next(one for one in found["series"] if one["name"] == name)["points"]
    return {x: y for x, y, _ in points}


def test_points_are_rows_that_were_proved() -> None:
    told = plots()["lap_time"]
    rows = [row for row in read("lap_h200") if row["family"] == "u" and row.get("holds") and "ms" in row]
    last = {row["n"]: row["ms"] for row in rows}
    assert series(told, "u, on an H200", "Allot") == {n: float(f"{ms:.5g}") for n, ms in last.items()}


def test_a_row_that_was_not_proved_has_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [{"family": "u", "n": n, "device": "gpu", "ms": n, "holds": n != 3, "command": "c"} for n in (1, 2, 3)]
    monkeypatch.setattr("docs.builder.plots.read", lambda name: shown if name == "lap_h200" else [])
    assert series(plots()["lap_time"], "u, on an H200", "Allot") == {1.0: 1.0, 2.0: 2.0}


def test_every_point_says_which_run_it_comes_from() -> None:
    for name, told in plots().items():
        points = [point for view in told["views"] for one in view["series"] for point in one["points"]]
        assert points, name
        assert {run for _, _, run in points} == set(range(len(told["runs"]))), name
        assert all("commit" in run or "Measured by us" in run for run in told["runs"]), name


def test_the_last_row_of_a_place_counts() -> None:
    view = View("v", "n", "ms")
    for ms in (3.0, 2.0):
        view.add("Allot", 8, ms, {})
    assert [point[:2] for point in view.series["Allot"]] == [(8, 2.0)]


@pytest.mark.parametrize(("line", "view"), [("one H200", "u, on an H200"), ("two cores", "u, on two cores")])
def test_the_figures_of_the_readme_were_measured(line: str, view: str) -> None:
    found = re.search(rf"^\| {line}[^|]*\| ([\d.]+) ms \| (\d+) ms \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert found
    told = plots()["lap_time"]
    assert float(found[1]) == float(f"{series(told, view, 'Allot')[4096]:.2g}")
    assert float(found[2]) == round(series(told, view, "scipy")[4096])


def test_only_pictures_that_have_rows_become_figures() -> None:
    plain = '<p><img src="/docs/images/day.jpg" alt="day"></p>'
    assert with_plots(plain) == plain
    made = with_plots(
        '<p><img src="/docs/images/lap_time.svg" alt="a">\n<img src="/docs/images/lap_parts.svg" alt="b"></p>'
    )
    assert made.count("<figure") == 2
    assert made.count("data-plot") == 1


def test_every_plot_is_on_a_page_and_its_script_with_it() -> None:
    pages = {name: leaf.plain.decode() for name, leaf in leaves().items() if leaf.media_type.startswith("text/html")}
    for plot in PLOTS:
        assert any(f'data-plot="{plot}"' in page for page in pages.values()), plot
    assert all(("plots.js" in page) == ("data-plot=" in page) for page in pages.values())
    assert json.loads(leaves()["plots.json"].plain).keys() == PLOTS.keys()


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.again), 390])
def test_a_plot_is_chosen_pointed_at_and_read_as_a_table(browser: Any, service: Service, width: int) -> None:
    with opened(browser, service.url, width) as (page, _):
        page.goto("/docs/benchmarks")
        page.wait_for_selector("figure.live svg")
        assert page.locator("figure.live").count() == len(PLOTS)
        plot = page.locator("figure[data-plot=lap_time]")
        plot.locator("select").select_option(label="u, on an H200")
        lines = plot.locator("path.line").count()
        plot.get_by_role("button", name="scipy").click()
        assert plot.locator("path.line").count() == lines - 1
        ours = plot.locator("path.line.ours").get_attribute("d")
        plot.get_by_label("log scale").uncheck()
        assert plot.locator("path.line.ours").get_attribute("d") != ours
        plot.locator("svg").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        said = plot.get_by_role("status").inner_text()
        assert said.startswith("Allot, n 512: ")
        assert "NVIDIA H200" in said
        assert "python -m benchmarks.lap_gpu" in said
        plot.locator("svg").hover(position={"x": 60, "y": 280})
        assert ", n 256: " in plot.get_by_role("status").inner_text()
        plot.get_by_text("The numbers").click()
        plot.locator("tbody tr").nth(20).wait_for()
        page.evaluate("scrollTo(0, 0)")  # what the head of the page half covers is too small a target
        assert faults_of(page) == []
        assert not is_too_wide(page)
        keep_picture(page, f"plots-{width}")
