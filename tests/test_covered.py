"""The figure of coverage that README.md quotes is the one that was measured."""

import json

from tests.covered import BEGIN, END, KEPT, ROOT, measured, quote, sentence


def of(run: int, there: int) -> dict[str, dict[str, int]]:
    return {
        "summary": {"covered_lines": run, "num_statements": there - 2, "covered_branches": 1, "num_branches": 2},
    }


def test_a_figure_counts_lines_and_branches_of_the_code_alone() -> None:
    files = {"app/a.py": of(5, 10), "kernels/lap/b.py": of(29, 30), "tests/c.py": of(0, 1000)}
    percent = measured({"files": files})
    assert percent == {"app": 60.0, "kernels": 100.0, "all": 90.0}
    said = sentence({"percent": percent, "gpu": False})
    assert said == "Tests run 90% of the code's lines and branches without a GPU (app 60%, kernels 100%)."
    assert quote(f"a {BEGIN}before{END} b", {"percent": percent, "gpu": False}) == f"a {BEGIN}{said}{END} b"


def test_the_page_quotes_what_was_measured_last() -> None:
    page = (ROOT / "README.md").read_text()
    if (ROOT / KEPT).exists():
        assert quote(page, json.loads((ROOT / KEPT).read_text())) == page
    assert page.count(BEGIN) == page.count(END) == 1
