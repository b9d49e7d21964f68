import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from allot_client.cli import SOLVERS as COMMON
from scipy.sparse import csr_array, save_npz

from app.cli.main import main
from app.cli.solve import show_progress
from app.cli.start import Start
from kernels import SOLVERS, Progress
from tests.app.conftest import Service, wait_until_ready


def test_solve_a_cost_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "c.npy", np.array([[4, 1], [2, 0]]))
    assert main(["solve", str(tmp_path / "c.npy"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["solver"], found["objective"], found["assignment"]) == ("lap", 3, [1, 0])
    assert main(["solve", str(tmp_path / "c.npy"), "-o", "maximize=true"]) == 0
    assert "objective 4" in capsys.readouterr().out


def test_solve_a_sparse_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_npz(tmp_path / "g.npz", csr_array(np.array([[7, 4, 0], [0, 6, 3], [5, 0, 8]])))
    assert main(["solve", str(tmp_path / "g.npz")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("auction")
    assert "objective 21" in out


def test_solve_a_qaplib_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.dat").write_text("3\n0 1 2\n1 0 3\n2 3 0\n0 5 1\n5 0 2\n1 2 0\n")
    assert main(["solve", str(tmp_path / "a.dat"), "--time-limit", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objective"] == 24


def test_solve_two_spaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.csv").write_text("m,A,B,C\nA,0,3,5\nB,3,0,4\nC,5,4,0\n")
    (tmp_path / "y.csv").write_text("m,one,two,three\none,0,4,5\ntwo,4,0,3\nthree,5,3,0\n")
    told = [f"{side}_distance={tmp_path / side}.csv" for side in "xy"]
    for more in ([], ["--solver", "gromov"]):
        assert main(["solve", *told, *more, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["solver"], found["termination"], found["row_names"]) == ("gromov", "optimal", ["A", "B", "C"])
        assert np.argmax(found["plan"], axis=1).tolist() == [2, 1, 0]
    assert set(COMMON) == set(SOLVERS)


def test_solve_refuses_inputs_that_it_would_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.csv").write_text("who,A,B\nx,1,2\ny,3,1\n")
    (tmp_path / "cap.csv").write_text("who,capacity\nx,1\ny,2\n")
    cost, capacity = tmp_path / "c.csv", tmp_path / "cap.csv"
    assert main(["solve", f"cost={cost}", f"capacity={capacity}"]) == 2
    assert "capacity: is no input; the inputs of lap are cost" in capsys.readouterr().err
    assert main(["solve", f"flw={cost}", f"distance={cost}"]) == 2
    assert "flw: is no input; the inputs of qap are flow, distance" in capsys.readouterr().err
    assert main(["solve", str(cost), "--solver", "uot", "-o", "reg=0"]) == 2
    assert "--option reg: Input should be greater than 0, or 'auto'" in capsys.readouterr().err


def test_verify_asks_for_names_of_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("flow", "distance"):
        (tmp_path / f"{name}.csv").write_text("x,A,B,C\nA,0,1,2\nB,1,0,3\nC,2,3,0\n")
    files = [str(tmp_path / f"{name}.csv") for name in ("flow", "distance")]
    answer = str(tmp_path / "answer.json")
    named = [f"flow={files[0]}", f"distance={files[1]}"]
    assert main(["solve", *named, "--out", answer]) == 0
    assert main(["verify", answer, *named]) == 0
    capsys.readouterr()
    assert main(["verify", answer, *files]) == 2
    assert "distance.csv is a second cost; say NAME=FILE for each input" in capsys.readouterr().out


def test_a_first_start_says_that_jobs_wait(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[list[str]] = []
    told.append([])
    quick = Start(lambda: told[-1])
    quick.tell()
    told.append(["cpu-1"])
    quick.tell()
    assert quick.over()
    assert capsys.readouterr().out == ""  # ready at once: there is nothing to say
    monkeypatch.setattr(Start, "SILENT_S", -1.0)
    told.append([])
    slow = Start(lambda: told[-1])
    slow.tell()
    slow.tell()
    assert capsys.readouterr().out.count("Workers warm up; the first start compiles for minutes") == 1
    told.append(["cpu-1"])
    slow.tell()
    assert capsys.readouterr().out.startswith("Workers are ready after ")


def test_solve_shows_the_phase(capsys: pytest.CaptureFixture[str]) -> None:
    show_progress(Progress(iteration=45, objective=2.5, fraction=0.4, elapsed_s=12.0, phase="certify"))
    line = capsys.readouterr().err
    assert "12.0 s  certify 40%" in line
    assert "iteration 45  2.5" in line
    assert line.endswith("\r")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["-o", "speed=11"], "option of lap"),
        (["-o", "maximize=5"], "maximize"),
        (["--solver", "qap"], "flow"),
        (["--device", "gpu", "--solver", "lap"], "GPU|CUDA"),
    ],
)
def test_solve_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], told: str
) -> None:
    np.save(tmp_path / "c.npy", np.eye(2))
    assert main(["solve", str(tmp_path / "c.npy"), *more]) == 2
    captured = capsys.readouterr()
    assert re.search(told, captured.err)
    assert not captured.out
    assert main(["solve", str(tmp_path / "nothing.npy")]) == 2
    assert re.fullmatch(r"allot: there is no file \S+nothing.npy\n", capsys.readouterr().err)


def test_a_table_goes_in_and_comes_out_with_its_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs, pairs = tmp_path / "costs.csv", tmp_path / "pairs.csv"
    costs.write_text("who,day,late,night\nAnna,4,1,3\nBob,2,,5\nCleo,3,2,2\n")
    assert main(["solve", str(costs), "--out", str(pairs)]) == 0
    assert "Bob -> day" in capsys.readouterr().out
    assert pairs.read_text() == "row,column,value\nAnna,late,1\nBob,day,2\nCleo,night,2\n"
    assert main(["solve", str(costs), "-o", "maximize=true", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["objective"], found["row_names"], found["assignment"]) == (11, ["Anna", "Bob", "Cleo"], [0, 2, 1])


def test_of_fewer_departments_those_that_were_given_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trips.csv").write_text("x,A,B\nA,0,1\nB,1,0\n")
    (tmp_path / "metres.csv").write_text("x,r,s,t\nr,0,2,2\ns,2,0,1\nt,2,1,0\n")
    named, table, answer = [f"flow={tmp_path}/trips.csv", f"distance={tmp_path}/metres.csv"], "rooms.csv", "rooms.json"
    assert main(["solve", *named, "--out", str(tmp_path / table)]) == 0
    assert re.findall("  (.) -> [st]", capsys.readouterr().out) == ["A", "B"]
    assert re.fullmatch("facility,location\nA,[st]\nB,[st]\n", (tmp_path / table).read_text())
    assert main(["solve", *named, "--out", str(tmp_path / answer)]) == 0
    assert main(["verify", str(tmp_path / answer), *named]) == 0


def test_a_list_of_the_best_is_a_table_of_all(tmp_path: Path) -> None:
    costs, table = tmp_path / "costs.csv", tmp_path / "kb.csv"
    costs.write_text(",a,b,c\nx,1,4,9\ny,2,3,9\n")
    assert main(["solve", str(costs), "-o", "k_best=3", "--out", str(table)]) == 0
    assert table.read_text() == ("rank,row,column,value\n1,x,a,1\n1,y,b,3\n2,x,b,4\n2,y,a,2\n3,x,a,1\n3,y,c,9\n")
    np.save(tmp_path / "c.npy", np.stack([np.eye(2), 1 - np.eye(2)]))
    assert main(["solve", str(tmp_path / "c.npy"), "--out", str(table)]) == 0
    assert table.read_text() == "problem,row,column\n0,0,1\n0,1,0\n1,0,0\n1,1,1\n"


def test_a_line_of_json_for_each_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for k in range(3):
        (tmp_path / f"{k}.csv").write_text(f"{k},9\n9,{k}\n")
    assert main(["solve", *(str(tmp_path / f"{k}.csv") for k in range(3)), "--json"]) == 0
    assert [json.loads(line)["objective"] for line in capsys.readouterr().out.splitlines()] == [0, 2, 4]
    assert main(["solve", *(str(tmp_path / f"{k}.csv") for k in range(3)), "--out", str(tmp_path / "a.npz")]) == 2
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.parametrize("solver", ["lap", "auction", "uot"])
def test_an_infeasible_answer_is_told_and_leaves_a_table_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], solver: str
) -> None:
    costs, kept = tmp_path / "costs.csv", tmp_path / "keep.csv"
    costs.write_text(",a,b\nx,1,\ny,2,\n")
    kept.write_text("old,good\n")
    asked = ["solve", str(costs), "--solver", solver] + (["-o", "method=exact"] if solver == "uot" else [])
    assert main(asked) == 0
    plainly = capsys.readouterr().out
    assert "infeasible (verified)" in plainly
    assert "hall_rows = " in plainly
    assert main([*asked, "--out", str(kept)]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1:] == plainly.splitlines()[1:]
    assert captured.err == f"allot: an infeasible answer is no table, so nothing was written to {kept}\n"
    assert kept.read_text() == "old,good\n"
    assert main([*asked, "--out", str(tmp_path / "answer.json")]) == 0
    assert json.loads((tmp_path / "answer.json").read_text())["termination"] == "infeasible"
    assert {path.name for path in tmp_path.iterdir()} == {"costs.csv", "keep.csv", "answer.json"}


def test_what_cannot_be_written_leaves_the_file_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "several.npy", np.ones((2, 3, 3)))
    np.save(tmp_path / "one.npy", np.eye(3))
    kept = tmp_path / "keep.csv"
    kept.write_text("old,good\n")
    kept.chmod(0o600)
    asked = ["--out", str(kept)]
    assert main(["solve", str(tmp_path / "several.npy"), "--solver", "uot", "-o", "reg=0.5", *asked]) == 2
    captured = capsys.readouterr()
    assert "uot by" in captured.out
    assert captured.err.startswith("allot: this answer is no table, so nothing was written")

    def full(path: Path, rows: Any) -> None:
        path.write_text("row,")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("allot_client.saving.write_table", full)
        assert main(["solve", str(tmp_path / "one.npy"), *asked]) == 2
    captured = capsys.readouterr()
    assert "objective 0" in captured.out
    assert captured.err == f"allot: {kept} cannot be read or written: No space left on device\n"
    assert kept.read_text() == "old,good\n"
    assert main(["solve", str(tmp_path / "one.npy"), *asked]) == 0
    assert kept.read_text().startswith("row,column,value\n")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"several.npy", "one.npy", "keep.csv"}


def test_inputs_by_name_and_the_plan_as_arrays(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("cell,gene1,gene2\nc1,0,0\nc2,1,1\n")
    (tmp_path / "y.tsv").write_text("\tgene1\tgene2\nd1\t0\t0.5\nd2\t1\t1.5\nd3\t2\t2\n")
    (tmp_path / "b.csv").write_text("mass\n0.5\n0.25\n0.25\n")
    out, table = tmp_path / "plan.npz", tmp_path / "plan.csv"
    named = [f"{name}={tmp_path / file}" for name, file in (("x", "x.csv"), ("y", "y.tsv"), ("b", "b.csv"))]
    assert main(["solve", *named, "-o", "reg=0.5", "--out", str(out)]) == 0
    found = np.load(out)
    assert found["plan"].shape == (2, 3)
    assert (found["row_names"].tolist(), found["column_names"].tolist()) == (["c1", "c2"], ["d1", "d2", "d3"])
    assert main(["solve", *named, "-o", "reg=0.5", "--out", str(table)]) == 0
    assert table.read_text().startswith(",d1,d2,d3\nc1,")


def test_progress_stays_off_what_is_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "c.npy", np.arange(9).reshape(3, 3))
    assert main(["solve", str(tmp_path / "c.npy"), "--progress"]) == 0
    assert capsys.readouterr().err == ""


def test_the_clients_commands_are_there(service: Service, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("4,1\n2,0\n")
    assert main(["submit", str(tmp_path / "c.csv"), "--url", service.url]) == 0
    job = capsys.readouterr().out.strip()
    assert main(["get", job, "--url", service.url]) == 0
    assert "objective 3" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert re.fullmatch(r"allot \d+\.\d+\S*\n", capsys.readouterr().out)


def test_doctor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--data-dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for subject in ("python", "wheels", "redis", "disk", "gpu", "keys"):
        assert subject in out


def test_a_worker_is_found_by_its_data_folder(
    service: Service, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALLOT_REDIS_URL", raising=False)
    assert main(["worker", "--check", "--data-dir", str(service.settings.data_dir)]) == 0
    assert "alive: cpu-" in capsys.readouterr().out
    assert main(["worker", "--check", "--data-dir", str(tmp_path)]) == 2


def test_a_worker_is_not_given_up_while_redis_is_away(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOT_REDIS_URL", "redis://127.0.0.1:1/0")
    assert main(["worker", "--check"]) == 0
    assert "processes of workers here: " in capsys.readouterr().err
    monkeypatch.setattr("app.cli.serve.WORKER", "no process runs this")
    assert main(["worker", "--check"]) == 1


def test_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", "alice"]) == 0
    assert "alice=sha256:" in capsys.readouterr().out
    assert main(["key", "no good"]) == 2


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_serve_leaves_no_orphans(tmp_path: Path, how: signal.Signals) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
    serve = ["serve", "--port", "0", "--workers", "1", "--data-dir", str(tmp_path)]
    command = [sys.executable, "-m", "app.cli.main", *serve]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as process:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None
        family = [psutil.Process(process.pid)]
        try:
            wait_until_ready(address[0])
            job = {"solver": "lap", "inputs": {"cost": [[4, 1], [2, 0]]}}
            answer = httpx.post(f"{address[0]}/v1/jobs", json=job, headers={"Prefer": "wait=30"}, timeout=40)
            assert answer.json()["objective"] == 3
            family += psutil.Process(process.pid).children(recursive=True)
            assert len(family) >= 4  # the service, Redis, a worker and its child
        finally:
            process.send_signal(how)
            status = process.wait(30)
    assert status == (-how if how is signal.SIGKILL else 0)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []


def test_an_option_of_a_solver_given_as_a_flag_is_told_how(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["solve", str(tmp_path / "n3.dat"), "--starts=3"])
    assert "-o starts=VALUE" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["solve", str(tmp_path / "n3.dat"), "--seed", "3"])
    assert "given as -o seed=VALUE" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_fault(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.random.default_rng(0).random((3000, 3000)))
    command = f"{sys.executable} -m app.cli.main solve {tmp_path / 'c.npy'} --json | head -c 10"
    found = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
