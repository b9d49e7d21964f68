"""Several files at a time: which of them cannot be read, and which of them do not belong together."""

from pathlib import Path
from typing import Any

import httpx

from tests.app.conftest import Service
from tests.web.browser import dropped, opened, solved

COSTS = "cost,A,B,C\nAnn,4,1,3\nBen,2,0,5\n"


def test_a_bad_file_is_named_and_the_others_are_read(browser: Any, service: Service, tmp_path: Path) -> None:
    """“File: is empty” said not which, and the others were dropped."""
    (tmp_path / "costs.csv").write_text(COSTS)
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    (tmp_path / "photo.csv").write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(range(256)))
    (tmp_path / "what.doc").write_bytes(bytes(range(200, 256)) * 9)
    with opened(browser, service.url) as (page, heard):
        page.goto("/solve/assign")
        names = ["costs.csv", "old.xls", "photo.csv", "what.doc"]
        page.locator("input[type=file]").set_input_files([tmp_path / name for name in names])
        page.wait_for_selector("text=What I understood")
        told = page.inner_text(".notice")
        assert "old.xls is an old Excel workbook, which is not read here; save the table as .xlsx or .csv." in told
        assert "photo.csv holds no text; expected a table of numbers." in told
        assert "what.doc is of no kind that is read here; save the table as .csv, .xlsx or .npy." in told
        assert len(heard.errors) == 3
        heard.errors.clear()  # the browser reports every answer that is no success
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)


def test_a_table_by_any_name(browser: Any, service: Service, tmp_path: Path) -> None:
    """It was refused in the words of the API, which name no file."""
    (tmp_path / "costs.bak").write_text(COSTS)
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", tmp_path / "costs.bak")
        page.wait_for_selector("text=rows and columns, named")


def test_text_without_a_number_is_not_solved(browser: Any, service: Service, tmp_path: Path) -> None:
    """Its answer was that no answer exists; proved."""
    (tmp_path / "names.csv").write_text("a,b,c\n,,\nAnn,x,\nBen,,y\nCy,z,\nDee,,\nEve,,\n")
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", tmp_path / "names.csv")
        page.wait_for_selector("text=names holds no number.")
        assert page.get_by_role("button", name="Find the best assignment").is_disabled()


def test_positions_go_by_names_and_others_are_left_out(browser: Any, service: Service, tmp_path: Path) -> None:
    """They were taken in the order of their file, as many as there were, and gave the rows their names."""
    (tmp_path / "costs.csv").write_text(COSTS)
    (tmp_path / "people.csv").write_text("who,x,y\nCy,9,9\nBen,2,2\nAnn,1,1\n")
    (tmp_path / "jobs.csv").write_text("job,x,y\nP,1,1\nQ,2,2\n")
    with opened(browser, service.url) as (page, _):
        page.goto("/solve/assign")
        names = ["costs.csv", "people.csv", "jobs.csv"]
        page.locator("input[type=file]").set_input_files([tmp_path / name for name in names])
        page.wait_for_selector("text=jobs has 2 positions, and the table 3 columns, so I leave it out.")
        assert page.get_by_text("so I leave it out").count() == 1
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        note = httpx.get(f"{service.url}/v1/jobs/{page.url.rsplit('/', 1)[1]}/note").json()
    assert note["from"] == [[1, 1], [2, 2]]
    assert "to" not in note
    assert (note["rows"], note["columns"]) == (["Ann", "Ben"], ["A", "B", "C"])


def test_amounts_go_by_names_and_what_is_wrong_with_them_is_said(
    browser: Any, service: Service, tmp_path: Path
) -> None:
    """They were taken as they came: demand before supply was refused, or taken for it."""
    (tmp_path / "costs.csv").write_text("cost,S,T\nA,1,4\nB,2,1\n")
    (tmp_path / "demand.csv").write_text("shop,tons\nS,10\nT,20\n")
    (tmp_path / "supply.csv").write_text("plant,tons\nA,25\nB,5\n")
    (tmp_path / "swapped.csv").write_text("plant,tons\nB,5\nA,25\n")
    (tmp_path / "less.csv").write_text("plant,tons\nA,20\nB,5\n")
    (tmp_path / "more.csv").write_text("plant,tons\nA,20\nB,5\nC,5\n")
    with opened(browser, service.url) as (page, heard):

        def laid(*names: str) -> None:
            page.goto("/solve/transport")
            page.locator("input[type=file]").set_input_files([tmp_path / f"{name}.csv" for name in names])
            page.get_by_text("No", exact=True).click()

        laid("costs", "demand", "swapped")
        page.wait_for_selector("text=swapped is in another order than the rows of costs: “B” where “A” is.")
        laid("costs", "demand", "more")
        page.wait_for_selector("text=more has 3 amounts, costs has 2 rows.")
        laid("costs", "demand", "less")
        page.wait_for_selector("text=less adds up to 25, demand to 30.")
        laid("costs", "demand", "supply")
        page.get_by_role("button", name="Find the cheapest plan").click()
        solved(page)
        told = httpx.get(f"{service.url}/v1/jobs/{page.url.rsplit('/', 1)[1]}/result").json()
        (tmp_path / "shapes.csv").write_text("shape,a,b\nP,1,2\nQ,1,1\n")
        dropped(page, "average", tmp_path / "shapes.csv")
        page.wait_for_selector("text=shapes has sums from 2 to 3; expected the same sum in each.")
        assert all("422" in error for error in heard.errors)
        heard.errors.clear()
    assert [round(sum(row)) for row in told["plan"]] == [25, 5]
