import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
from scipy.sparse import csr_array, save_npz

from app.cli.main import main
from app.cli.solve import show_progress
from kernels import Progress
from tests.app.conftest import wait_until_ready


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
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :])["objective"] == 24


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
    assert re.search(told, capsys.readouterr().out)
    assert main(["solve", str(tmp_path / "nothing.npy")]) == 2


def test_doctor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--data-dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for subject in ("python", "wheels", "redis", "disk", "gpu", "keys"):
        assert subject in out


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
