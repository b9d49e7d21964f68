"""The commands that talk to a service, and those of the client alone."""

import gzip
import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from allot_client.cli import main
from allot_client.extents import answered_extents
from allot_client.files import Wanted, read_for_service, read_job

from app.cli.main import main as allot
from tests.app.conftest import Service, long_job
from tests.client.test_books import book

COSTS = "who,day,late,night\nAnna,4,1,3\nBob,2,,5\nCleo,3,2,2\n"
Run = Callable[..., str]


@pytest.fixture
def run(service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command that works; its output."""
    monkeypatch.setenv("ALLOT_URL", service.url)

    def run_it(*arguments: object) -> str:
        capsys.readouterr()
        status = main([str(one) for one in arguments])
        captured = capsys.readouterr()
        assert status == 0, captured.err
        return captured.out

    return run_it


def test_solve(run: Run, tmp_path: Path) -> None:
    costs, out = tmp_path / "costs.csv", tmp_path / "pairs.tsv"
    costs.write_text(COSTS)
    told = run("solve", costs, "--out", out)
    assert "the best possible; proved" in told
    assert "Bob -> day" in told
    assert out.read_text() == "row\tcolumn\tvalue\nAnna\tlate\t1\nBob\tday\t2\nCleo\tnight\t2\n"
    lines = run("solve", costs, costs, "--json").splitlines()
    assert [json.loads(line)["objective"] for line in lines] == [5, 5]


def test_solve_other_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "n3.dat").write_text("3\n0 1 2\n1 0 3\n2 3 0\n0 5 1\n5 0 2\n1 2 0\n")
    assert json.loads(run("solve", tmp_path / "n3.dat", "--time-limit", 2, "--json"))["objective"] == 24
    np.savez(tmp_path / "p.npz", cost=np.eye(3), a=np.ones(3), b=np.ones(3))
    run("solve", tmp_path / "p.npz", "-o", "reg=0.1", "--out", tmp_path / "plan.npz")
    assert np.load(tmp_path / "plan.npz")["plan"].shape == (3, 3)
    np.save(tmp_path / "c.npy", np.eye(80))
    assert json.loads(run("solve", tmp_path / "c.npy", "--json", "-o", "maximize=true"))["objective"] == 80


def test_a_layout_gets_the_names_of_both_its_tables(run: Run, tmp_path: Path) -> None:
    for name, lines in (("flow", "ABC"), ("distance", "123")):
        head, rows = ",".join(lines), zip(lines, ("0,1,2", "1,0,3", "2,3,0"), strict=True)
        (tmp_path / name).with_suffix(".csv").write_text(f"x,{head}\n" + "".join(f"{a},{b}\n" for a, b in rows))
    flow, distance = tmp_path / "flow.csv", tmp_path / "distance.csv"
    job = run("submit", f"flow={flow}", f"distance={distance}").strip()
    told = run("get", job, "--like", f"flow={flow}", f"distance={distance}")
    assert re.search(r"^  A -> [123]$", told, re.MULTILINE)
    assert re.search(r"^  A -> [012]$", run("get", job, "--like", flow), re.MULTILINE)  # whose rooms it does not name


@pytest.mark.parametrize("name", ["points.csv", "half.npy", "short.npy", "graph.npz"])
def test_an_answer_holds_for_the_file_that_was_given(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    rng, path, out = np.random.default_rng(3), tmp_path / name, tmp_path / "answer.json"
    given: list[object] = [path]
    if name == "points.csv":
        path.write_text(",g1,g2,g3\na,1,2,4\nb,3,1,0\n")
        given = [f"x={path}", f"y={path}"]
    elif name == "graph.npz":
        sp.save_npz(path, sp.csr_array(rng.random((6, 6)) + np.eye(6)))
    else:
        np.save(path, (99 * rng.random((5, 7))).astype(np.float16 if name == "half.npy" else np.int16))
    metrics = ("correlation", "cosine", "euclidean") if name == "points.csv" else ("",)
    for metric in metrics:
        run("solve", *given, *(["-o", f"metric={metric}", "-o", "reg=0.1"] if metric else []), "--out", out)
        assert allot(["verify", str(out), *map(str, given)]) == 0, capsys.readouterr().out
        if metric:
            other = tmp_path / "other.csv"
            other.write_text(",g1,g2,g3\na,1,2,4\nb,3,1,1\n")
            assert allot(["verify", str(out), f"x={other}", f"y={path}"]) == 1


def test_of_fewer_departments_than_rooms_those_that_were_given_are_told(run: Run, tmp_path: Path) -> None:
    wards, rooms = ["A", "B", "C"], ["r1", "r2", "r3", "r4", "r5"]
    trips, metres = np.ones((3, 3), int) - np.eye(3, dtype=int), np.abs(np.subtract.outer(range(5), range(5)))
    clinic = book(tmp_path / "clinic.xlsx", flow=(wards, trips.tolist()), distance=(rooms, metres.tolist()))
    table, arrays = tmp_path / "r.csv", tmp_path / "r.npz"
    job = run("submit", clinic).strip()
    asked = (["solve", clinic], ["get", job, "--like", clinic])
    for named in asked:
        told = run(*named, "--out", table)
        assert re.findall(r"^  (\w) -> r[1-5]$", told, re.MULTILINE) == wards
        assert [line.partition(",r")[0] for line in table.read_text().splitlines()] == ["facility,location", *wards]
    told = run("get", job, "--out", table)
    assert re.search(r"^permutation = \[\d \d \d\]$", told, re.MULTILINE)
    assert len(table.read_text().splitlines()) == 4
    run("get", job, "--like", clinic, "--out", arrays)
    assert sorted(np.load(arrays)["permutation"]) == [0, 1, 2, 3, 4]  # what `permutation0` and `allot verify` take


def test_a_sparse_file_is_a_graph_whatever_wrote_it(run: Run, tmp_path: Path) -> None:
    graph = sp.csr_array(np.diag([3.0, 4, 5]) + np.diag([9.0, 1], 1))
    mtx, packed, npz, plain = (tmp_path / name for name in ("g.mtx", "g.mtx.gz", "g.npz", "plain.npz"))
    scipy.io.mmwrite(mtx, graph.tocoo())
    packed.write_bytes(gzip.compress(mtx.read_bytes()))
    sp.save_npz(npz, graph)
    np.savez(plain, graph.toarray())
    for given in ([npz], [mtx], [packed], [f"benefit={mtx}"], [f"benefit={npz}"]):
        assert json.loads(run("solve", *given, "--json"))["objective"] == 12
    assert json.loads(run("solve", f"benefit={plain}", "--json"))["objective"] == 14  # what is 0 there is no hole
    assert json.loads(run("solve", plain, "--json"))["solver"] == "lap"
    assert json.loads(run("solve", f"cost={mtx}", "-o", "reg=0.5", "--solver", "uot", "--json"))["solver"] == "uot"


def test_a_list_of_the_best_names_no_line_that_is_not_there(run: Run, tmp_path: Path) -> None:
    named, plain = tmp_path / "costs.csv", tmp_path / "plain.csv"
    named.write_text(COSTS)
    plain.write_text("1,9\n9,8\n")
    options = ("-o", "k_best=2", "-o", "cost_limit=2.5")
    told = run("solve", named, *options)
    assert re.findall(r"^  (.*) -> (.*)$", told, re.MULTILINE) == [("Anna", "late"), ("Bob", "day"), ("Cleo", "night")]
    assert "assignment  [ 0 -1]" in re.sub(r" += +", "  ", run("solve", plain, *options))


@pytest.mark.parametrize("command", [main, allot])
def test_of_several_files_one_that_is_wrong_ends_no_other(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: Any
) -> None:
    monkeypatch.setenv("ALLOT_URL", service.url)
    files = {"good": "1,2\n3,5\n", "empty": "", "words": "1,2\n3,four\n", "last": "4,2\n1,9\n"}
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(text)
    given = [str(tmp_path / f"{name}.csv") for name in ("good", "empty", "absent", "words", "last")]
    assert command(["solve", *given, "--names", "none", "--json"]) == 2
    told = capsys.readouterr()
    assert [json.loads(line)["objective"] for line in told.out.splitlines()] == [5, 3]
    wrong = told.err.splitlines()
    assert len(wrong) == 3
    assert all(path in line for path, line in zip((given[1], given[2], given[3]), wrong, strict=True))


def test_what_a_file_holds_is_told_where_it_does_not_say_enough(tmp_path: Path) -> None:
    path = tmp_path / "frames.npz"
    frames: dict[str, Any] = {f"frame{k}": np.eye(2) for k in range(9)}
    np.savez(path, **frames)
    holds = "frame0, frame1, frame2, frame3, frame4 and 4 more"
    with pytest.raises(ValueError, match=f"frames.npz holds {holds}; expected cost among them"):
        read_job([f"cost={path}"], Wanted(), read_for_service)
    with pytest.raises(ValueError, match=f"the file holds {holds}, by which no solver is known"):
        read_job([str(path)], Wanted(), read_for_service)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia"])
def test_a_sparse_file_is_the_same_matrix_in_each_layout(tmp_path: Path, layout: str) -> None:
    costs = np.array([[1.0, 9, 0], [0, 1, 9], [5, 0, 1], [0, 0, 2]])  # no place that is 0 may be taken
    sp.save_npz(tmp_path / "g.npz", sp.csr_array(costs).asformat(layout))
    found = read_for_service(tmp_path / "g.npz")
    assert found.values.all()
    assert (sp.csr_array((found.values, found.indices, found.indptr), found.shape).toarray() == costs).all()


def test_a_sparse_file_in_another_layout_is_refused_where_nobody_can_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sp.save_npz(tmp_path / "g.npz", sp.csc_array(np.eye(3)))
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ValueError, match=r"g\.npz is sparse in layout csc; expected csr"):
        read_for_service(tmp_path / "g.npz")


def test_submit_get_jobs(run: Run, tmp_path: Path) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text(COSTS)
    job = run("submit", costs).strip()
    assert re.fullmatch("[0-9a-f]{32}", job)
    out = tmp_path / "answer.csv"
    assert "late" not in run("get", job)
    assert "Anna -> late" in run("get", job, "--like", costs, "--out", out)
    assert out.read_text().splitlines()[1] == "Anna,late,1"
    assert run("watch", job).startswith("queued\n")
    assert job in run("jobs", "--limit", 100)
    views = [json.loads(line) for line in run("jobs", "--json", "--limit", 3).splitlines()]
    assert len(views) <= 3
    assert views[0]["id"] == job


def test_an_infeasible_answer_leaves_a_table_alone(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    costs, kept = tmp_path / "costs.csv", tmp_path / "keep.csv"
    costs.write_text(",a,b\nx,1,\ny,2,\n")
    kept.write_text("old,good\n")
    job = run("submit", costs).strip()
    for asked in (["solve", costs], ["get", job]):
        capsys.readouterr()
        assert main([*map(str, asked), "--out", str(kept)]) == 0
        captured = capsys.readouterr()
        assert "infeasible (verified)" in captured.out
        assert f"nothing was written to {kept}" in captured.err
        assert kept.read_text() == "old,good\n"


def test_tables_of_another_shape_name_no_answer(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs, other, larger, out = (tmp_path / name for name in ("costs.csv", "other.csv", "larger.csv", "g.csv"))
    costs.write_text(COSTS)
    other.write_text(",a,b\nx,1,2\ny,2,3\n")
    larger.write_text("1,2,3,4\n" * 4)
    (tmp_path / "n3.dat").write_text("3\n0 1 2\n1 0 3\n2 3 0\n0 5 1\n5 0 2\n1 2 0\n")
    pairs, layout = run("submit", costs).strip(), run("submit", tmp_path / "n3.dat", "--time-limit", 2).strip()
    for job, like, told in (
        (pairs, [other], f"{other} has 2 rows and 2 columns, and the answer has 3 rows and 3 columns"),
        (pairs, [larger], f"{larger} has 4 rows and 4 columns, and the answer has 3 rows and 3 columns"),
        (
            layout,
            [f"distance={other}"],
            f"distance={other} has 2 locations, and the answer has 3 facilities and 3 locations",
        ),
    ):
        for more in ([], ["--out", str(out)]):
            capsys.readouterr()
            assert main(["get", job, "--like", *map(str, like), *more]) == 2
            captured = capsys.readouterr()
            assert captured.err == f"allot: --like {told}\n"
            assert not captured.out
    assert not out.exists()
    clinic = book(tmp_path / "clinic.xlsx", flow=(["A", "B"], [[0, 1], [1, 0]]), distance=np.eye(3, dtype=int).tolist())
    job = run("submit", clinic).strip()
    assert "A -> " in run("get", job, "--like", other.with_name("clinic.xlsx"))
    assert main(["get", job, "--like", str(costs)]) == 2
    assert f"{costs} has 3 facilities, and the answer has 2 facilities and 3 locations" in capsys.readouterr().err
    assert "x -> " in run("get", job, "--like", other)
    for arrays, known in (({"plan": np.eye(2, 3)}, (2, 3)), ({"permutation": np.arange(3)}, (None, 3))):
        assert answered_extents({}, arrays) == known  # of services that do not tell the shapes of inputs


def test_watch_and_cancel(run: Run, tmp_path: Path) -> None:
    request = long_job(60)
    inputs: dict[str, Any] = {name: np.array(value) for name, value in request["inputs"].items()}
    np.savez(tmp_path / "q.npz", **inputs)
    job = run("submit", tmp_path / "q.npz", "--time-limit", 60).strip()
    assert run("cancel", job).startswith(job)
    last = run("watch", job, "--json").splitlines()
    assert json.loads(last[-2])["event"] == "state" or "event" in json.loads(last[0])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["solve", "nothing.csv"], "there is no file nothing.csv"),
        (["solve", "bad.csv"], "bad.csv: cell B2 holds 'x'"),
        (["solve", "good.csv", "--out", "plan.pdf"], "expected a name that ends in .npz"),
        (["solve", "good.csv", "-o", "colour"], "colour is not NAME=VALUE"),
        (["solve", "good.csv", "-o", "colour=red"], "unknown"),
        (["get", "0" * 32], "no job"),
    ],
)
def test_what_goes_wrong_is_told_in_a_sentence(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    arguments: list[str], told: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("ALLOT_URL", service.url)
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("a,b\n1,x\n")
    Path("good.csv").write_text("1,2\n3,4\n")
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("allot: ")
    assert told in captured.err
    assert not captured.out


def test_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "--url", "http://127.0.0.1:9"]) == 2
    assert "nothing answers at http://127.0.0.1:9" in capsys.readouterr().err


def test_annotated_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With as much of anndata as is used; `tests/client/test_names.py` has the real one, where it is installed."""
    cells = type("AnnData", (), {"X": np.eye(3), "obs_names": list("abc"), "var_names": list("xyz")})
    cells.__module__ = "anndata._core.anndata"

    def read(path: Path) -> Any:
        if path.read_bytes() != b"cells":
            raise OSError("no HDF5")
        return cells()

    monkeypatch.setitem(sys.modules, "anndata", types.SimpleNamespace(read_h5ad=read))
    left, broken, out = tmp_path / "left.h5ad", tmp_path / "broken.h5ad", tmp_path / "plan.csv"
    left.write_bytes(b"cells")
    broken.write_bytes(b"no cells")
    run("solve", f"x={left}", f"y={left}", "-o", "reg=0.1", "--out", out)
    assert out.read_text().splitlines()[0] == ",a,b,c"
    assert main(["solve", f"x={broken}", f"y={left}"]) == 2
    assert capsys.readouterr().err == "allot: broken.h5ad: is no AnnData file (OSError)\n"
