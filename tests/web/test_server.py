"""The server's part of the workbench: pages, previews, samples and pictures."""

import io
from typing import Any

import httpx
import numpy as np
import openpyxl
import pytest

from app.web.pages import assets
from tests.app.conftest import LAP

PAGES = ("/", "/solve", "/solve/layout", "/jobs", "/jobs/" + "0" * 32, "/compare", "/workers")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_one_document_under_a_strict_policy(client: httpx.Client, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert "<style" not in page.text
    assert " style=" not in page.text
    assert page.text.count("<script") == page.text.count('<script type="module" crossorigin src="/assets/')


def test_assets_are_packed_and_never_change(client: httpx.Client) -> None:
    for name, asset in assets().items():
        if name == "index.html":
            continue
        answer = client.get(f"/assets/{name}")
        assert answer.content == asset.plain
        assert answer.headers["content-encoding"] == "gzip"
        assert "immutable" in answer.headers["cache-control"]
    assert client.get("/assets/index.html").status_code == 404
    assert client.get("/assets/..%2fpages.py").status_code == 404
    assert client.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


def preview(client: httpx.Client, content: bytes, filename: str, **asked: str) -> dict[str, Any]:
    answer = client.post("/v1/previews", params={"filename": filename, **asked}, content=content)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_a_table_becomes_a_job_without_being_sent_again(client: httpx.Client) -> None:
    told = preview(client, b"minutes,J1,J2\nAnn,4,1\nBen,2,\n", "c.csv", missing="inf")
    (sheet,) = told["sheets"]
    assert sheet["row_names"] == ["Ann", "Ben"]
    assert sheet["facts"]["infinite"] == 1
    assert sheet["cells"] == [["minutes", "J1", "J2"], ["Ann", 4, 1], ["Ben", 2, None]]
    job = {"solver": "lap", "inputs": {"cost": sheet["reference"]}}
    answer = client.post("/v1/jobs", json=job, headers={"Prefer": "wait=30"}).json()
    assert answer["objective"] == 3
    assert answer["assignment"] == [1, 0]


def test_a_workbook_with_a_bad_cell(client: httpx.Client) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Trips"
    for row in (["", "A", "B"], ["A", 0, 2], ["B", "n/a", 0]):
        sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    (seen,) = preview(client, stream.getvalue(), "t.xlsx")["sheets"]
    assert seen["faults"][0] | {"names": []} == {"cell": "B3", "row": 1, "column": 0, "found": "n/a", "names": []}
    assert seen["facts"]["symmetric"] is False


def test_files_of_arrays(client: httpx.Client) -> None:
    stream = io.BytesIO()
    np.save(stream, np.eye(70))
    (seen,) = preview(client, stream.getvalue(), "c.npy")["sheets"]
    assert seen["shape"] == [70, 70]
    assert seen["heat"]["height"] == 35
    assert seen["facts"]["symmetric"] is True
    told = preview(client, b"2\n0 1\n1 0\n0 5\n5 0\n", "two.dat")
    assert [sheet["name"] for sheet in told["sheets"]] == ["flow", "distance"]
    mtx = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n2 2 4\n"
    (seen,) = preview(client, mtx, "m.mtx")["sheets"]
    assert (seen["role"], seen["facts"]["stored"]) == ("sparse", 2)
    (seen,) = preview(client, b"3 10\n2 1 3\n", "t.sln")["sheets"]
    assert seen["role"] == "order"


@pytest.mark.parametrize(
    ("content", "filename", "words"),
    [
        (b"", "a.csv", "is empty"),
        (b"\n\n", "a.csv", "holds no cells"),
        (b"not a zip", "a.xlsx", "not a workbook"),
        (b"\xd0\xcf\x11\xe0", "a.xls", "an old Excel workbook, which is not read here; save the table as .xlsx"),
        (b"%PDF-1.7", "a.PDF", "is a PDF"),
        (b"3 1\n1 1 2", "a.sln", "permutation"),
        (b"x" * 100, "a.npy", "file"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(client: httpx.Client, content: bytes, filename: str, words: str) -> None:
    answer = client.post("/v1/previews", params={"filename": filename}, content=content)
    assert answer.status_code == 422
    assert words in answer.json()["detail"]


def test_samples_are_answered_like_files(client: httpx.Client) -> None:
    told = client.get("/v1/samples/taxis").json()
    assert [sheet["role"] for sheet in told["sheets"]] == ["matrix", "points", "points"]
    assert client.get("/v1/samples/none").status_code == 404


def test_a_picture_of_a_plan_and_of_a_part_of_it(client: httpx.Client) -> None:
    x = [[i / 40, 0.0] for i in range(40)]
    job = {"solver": "uot", "inputs": {"x": x, "y": x}, "options": {"reg": 0.01}}
    answer = client.post("/v1/jobs", json=job, headers={"Prefer": "wait=30"}).json()
    packed = client.get(answer["links"]["result"], headers={"Accept": "application/x-npz"}).content
    plan = np.load(io.BytesIO(packed))["plan"]
    at = f"/v1/jobs/{answer['id']}/picture"
    whole = client.get(at, params={"array": "plan", "most": 20}).json()
    assert (whole["shape"], whole["height"]) == ([40, 40], 20)
    assert whole["rows"][0] == pytest.approx(plan[:2].sum(), rel=1e-3)
    part = client.get(at, params={"array": "plan", "top": 10, "bottom": 20, "left": 10, "right": 15}).json()
    assert (part["height"], part["width"]) == (10, 5)
    assert part["values"][0] == pytest.approx(plan[10, 10], rel=1e-3)
    assert client.get(at, params={"array": "none"}).status_code == 404
    assert client.get(at, params={"array": "f"}).status_code == 422
    assert client.get(at, params={"array": "plan", "top": 99}).status_code == 422


def test_another_owners_answer_has_no_picture(client: httpx.Client) -> None:
    client.post("/v1/jobs", json=LAP)
    assert client.get(f"/v1/jobs/{'0' * 32}/picture", params={"array": "plan"}).status_code == 404
