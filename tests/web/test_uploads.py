"""Every kind of file through the page itself: what was understood is said, and the answer is right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import safetensors.numpy
import scipy.io
import scipy.sparse
from scipy.optimize import linear_sum_assignment

from tests.app.conftest import Service
from tests.web.browser import dropped, opened, solved, write_workbook

COST = np.random.default_rng(21).integers(1, 99, (7, 9))
BEST = int(COST[linear_sum_assignment(COST)].sum())
HEAD: list[Any] = ["cost", *(f"J{j}" for j in range(9))]
LINES: list[list[Any]] = [HEAD, *([f"P{i}", *map(int, row)] for i, row in enumerate(COST))]


def text(between: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text("\n".join(between.join(str(cell) for cell in line) for line in LINES))


DENSE: dict[str, Callable[[Path], Any]] = {
    "c.csv": text(","),
    "c.tsv": text("\t"),
    "c.xlsx": lambda path: write_workbook(path, {"Costs": LINES}),
    "c.npy": lambda path: np.save(path, COST),
    "c.npz": lambda path: np.savez(path, cost=COST),
    "c.safetensors": lambda path: safetensors.numpy.save_file({"cost": COST}, path),
}


READ_ELSEWHERE = ("c.tsv", "c.npz", "c.safetensors")
"""As others are, but for the decoder, which has tests of its own."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.again] * (name in READ_ELSEWHERE)) for name in DENSE]
)
def test_a_table_of_costs(browser: Any, service: Service, tmp_path: Path, name: str) -> None:
    DENSE[name](tmp_path / name)
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", tmp_path / name)
        page.wait_for_selector("text=What I understood")
        assert "7 × 9" in page.inner_text(".facts")
        assert f"{COST.min()} to {COST.max()}" in page.inner_text(".facts")
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        assert page.inner_text("h1").startswith(f"{BEST} ")
        people = page.get_by_role("rowheader").all_inner_texts()
        assert people[0] == ("Row 1" if name in ("c.npy", "c.npz", "c.safetensors") else "P0")


def test_a_list_of_pairs_with_a_title_and_currencies(browser: Any, service: Service, tmp_path: Path) -> None:
    """What a dispatcher's own system writes: a line for each pair."""
    lines = ["Quotes of Monday", "", "job;firm;price"]
    lines += [f"Job {i};Firm {j};{COST[i, j]},50 €" for i in range(7) for j in range(9) if (i, j) != (6, 8)]
    (tmp_path / "quotes.csv").write_text("\n".join(lines))
    with opened(browser, service.url) as (page, _):
        dropped(page, "assign", tmp_path / "quotes.csv")
        page.wait_for_selector("text=from a list of 62 pairs")
        assert "1 pair without a number" in page.inner_text(".facts")
        page.get_by_role("button", name="Find the best assignment").click()
        solved(page)
        allowed = np.where(np.arange(63).reshape(7, 9) == 62, np.inf, COST + 0.5)
        best = allowed[linear_sum_assignment(allowed)].sum()
        assert page.inner_text("h1").startswith(f"{best:g} ")
        assert page.get_by_role("rowheader").first.inner_text() == "Job 0"


def test_a_file_of_another_kind_says_what_to_do(browser: Any, service: Service, tmp_path: Path) -> None:
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    with opened(browser, service.url) as (page, heard):
        dropped(page, "assign", tmp_path / "old.xls")
        page.wait_for_selector("text=is an old Excel workbook, which is not read here; save the table as .xlsx or .csv")
        assert all("422" in error for error in heard.errors)
        heard.errors.clear()  # the browser reports every answer that is no success


def test_a_sparse_matrix_of_matrix_market(browser: Any, service: Service, tmp_path: Path) -> None:
    worth = scipy.sparse.csr_matrix(np.where(COST > 40, COST, 0) + np.eye(7, 9, dtype=int))
    scipy.io.mmwrite(tmp_path / "worth.mtx", worth)
    with opened(browser, service.url) as (page, _):
        dropped(page, "match", tmp_path / "worth.mtx")
        page.wait_for_selector("text=What I understood")
        assert "7 × 9" in page.inner_text(".facts")
        page.get_by_role("button", name="Find the best matching").click()
        solved(page)
        told = httpx.get(f"{service.url}/v1/jobs/{page.url.rsplit('/', 1)[1]}/result").json()
    taken = [(i, j) for i, j in enumerate(told["assignment"]) if j >= 0]
    full = worth.toarray()
    rows, columns = linear_sum_assignment(np.where(full, full, -10_000), maximize=True)
    assert sum(full[i, j] for i, j in taken) == full[rows, columns].sum()


def test_a_layout_of_qaplib_and_where_it_begins(browser: Any, service: Service, tmp_path: Path) -> None:
    rng = np.random.default_rng(22)
    flow, distance = (one + one.T for one in (np.triu(rng.integers(0, 9, (6, 6)), 1) for _ in range(2)))
    body = "\n\n".join("\n".join(" ".join(map(str, row)) for row in one) for one in (flow, distance))
    (tmp_path / "six.dat").write_text(f"6\n\n{body}\n")
    (tmp_path / "six.sln").write_text("6 99\n2 1 3 4 6 5\n")
    with opened(browser, service.url) as (page, _):
        page.goto("/solve/layout")
        page.locator("input[type=file]").set_input_files([tmp_path / "six.dat", tmp_path / "six.sln"])
        page.wait_for_selector("text=Starts at once")
        page.get_by_role("button", name="Find the best layout").click()
        solved(page, 60_000)
        job = page.url.rsplit("/", 1)[1]
        assert page.get_by_role("rowheader").first.inner_text().startswith("Department ")
    told = httpx.get(f"{service.url}/v1/jobs/{job}/result").json()
    places = np.array(told["permutation"])
    assert told["objective"] == (flow * distance[np.ix_(places, places)]).sum()
    assert "permutation0" in httpx.get(f"{service.url}/v1/jobs/{job}").json()["input_digests"]


def test_cells_of_two_days(browser: Any, service: Service, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(23)
    for day, count in ((2, 12), (4, 15)):
        with h5py.File(tmp_path / f"day{day}.h5ad", "w") as file:
            obs = file.create_group("obs")
            obs.attrs["_index"] = "barcode"
            names = [f"<i>d{day}</i>-{i}" for i in range(count)]
            obs.create_dataset("barcode", data=names, dtype=h5py.string_dtype())
            file.create_dataset("obsm/X_pca", data=rng.normal(size=(count, 3)))
    with opened(browser, service.url) as (page, _):
        page.goto("/solve/transport")
        page.locator("input[type=file]").set_input_files([tmp_path / "day2.h5ad", tmp_path / "day4.h5ad"])
        page.wait_for_selector("text=Starts at once")
        page.get_by_role("button", name="Find the cheapest plan").click()
        solved(page)
        assert page.get_by_role("rowheader").first.inner_text().startswith("<i>d2</i>-")


def test_thousands_of_points_are_saved_as_a_picture(browser: Any, service: Service, tmp_path: Path) -> None:
    """They are drawn on a canvas, which could not be found when it was to be saved."""
    rng = np.random.default_rng(24)
    x = rng.random((1200, 2)).round(4)
    job = httpx.post(
        f"{service.url}/v1/jobs",
        json={"solver": "lap", "inputs": {"cost": rng.integers(1, 99, (1200, 4)).T.tolist()}},
        headers={"Prefer": "wait=30"},
        timeout=60,
    ).json()["id"]
    note = {"title": "Many", "from": x.tolist(), "to": x[::-1].tolist()}
    assert httpx.put(f"{service.url}/v1/jobs/{job}/note", json=note).is_success
    with opened(browser, service.url) as (page, _):
        page.goto(f"/jobs/{job}")
        solved(page)
        page.wait_for_selector("canvas.many")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="PNG", exact=True).click()
        waiting.value.save_as(tmp_path / "many.png")
        assert (tmp_path / "many.png").read_bytes().startswith(b"\x89PNG")
        page.get_by_role("button", name="SVG", exact=True).click()
        page.wait_for_selector("text=too many lines here for an SVG")


def test_what_was_not_kept_is_not_run_again(browser: Any, service: Service) -> None:
    """A small request is forgotten: "Run again" sent what only names it, and was refused."""
    told = {"solver": "qap", "inputs": {"flow": [[0, 1], [1, 0]], "distance": [[0, 3], [3, 0]]}}
    jobs = [
        httpx.post(f"{service.url}/v1/jobs", json=told | more, headers={"Prefer": "wait=30"}, timeout=60).json()["id"]
        for more in ({}, {"keep_inputs": True})
    ]
    with opened(browser, service.url) as (page, _):
        page.goto(f"/jobs/{jobs[0]}")
        solved(page)
        assert page.get_by_role("button", name="Run").count() == 0
        assert page.get_by_text("were not kept, so it cannot be run again from here").count() == 1
        page.wait_for_selector("text=There is no plan: what was given was not kept")
        page.goto("/jobs")
        page.locator(f"#job-{jobs[0]}").get_by_role("checkbox").check()
        assert page.get_by_role("button", name="Copy").is_disabled()
        page.locator(f"#job-{jobs[0]}").get_by_role("checkbox").uncheck()
        page.locator(f"#job-{jobs[1]}").get_by_role("checkbox").check()
        newest = page.locator("tr[id^=job-]").first.get_attribute("id")
        page.get_by_role("button", name="Copy").click()
        page.wait_for_function("was => document.querySelector('tr[id^=job-]').id !== was", arg=newest)


def test_a_long_answer_is_printed_without_empty_pages(browser: Any, service: Service) -> None:
    """Rows that are not in view were so much empty paper: 570 pages of it, for 10,000 rows."""
    x = np.random.default_rng(25).random((60, 2)).round(3).tolist()
    told = {"solver": "uot", "inputs": {"x": x, "y": x}, "options": {"reg": 0.5, "reg_m": "inf"}}
    job = httpx.post(f"{service.url}/v1/jobs", json=told, headers={"Prefer": "wait=30"}, timeout=60).json()["id"]
    with opened(browser, service.url) as (page, _):
        page.goto(f"/jobs/{job}")
        solved(page)
        assert "3,600 rows" in page.inner_text("h2:has-text('Result') + span")
        paper = page.pdf(landscape=True, format="A4")
        assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") < 20
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        page.emulate_media(media="print")
        assert page.get_by_text("of 3,600; a file holds all of them").is_visible()
        light = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
        page.emulate_media(media="screen")
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") != light  # dark ink is for paper
