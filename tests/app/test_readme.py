"""What README.md says to type works, on the files of examples/ that it names."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.main import main
from tests.app.conftest import Service
from tests.workers.service import allowed

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "README.md").read_text()
BLOCKS = [block for k, block in enumerate(re.split(r"^```.*$", TEXT, flags=re.MULTILINE)) if k % 2]
LINES = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines()]
CURLS = [line for line in LINES if line.startswith("curl localhost:8000")]
FILES = sorted(set(re.findall(r"examples/[\w./-]+\.\w+", TEXT)))


def test_the_files_are_there() -> None:
    assert len(FILES) >= 3
    assert [name for name in FILES if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("line", CURLS, ids=[str(k) for k in range(len(CURLS))])
def test_requests(service: Service, line: str) -> None:
    there = re.sub(r"wait=\d+", "wait=60", line.replace("localhost:8000", service.url))  # of a busy machine
    done = subprocess.run(["bash", "-c", there], cwd=ROOT, capture_output=True, text=True, timeout=90)
    answer = json.loads(done.stdout)
    assert answer["state"] == "succeeded"
    assert answer["certificate"]["holds"]


def test_python(service: Service) -> None:
    (code,) = (block for block in BLOCKS if "from allot_client import Client" in block)
    env = os.environ | {"ALLOT_URL": service.url}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=allowed(60), env=env)
    assert done.returncode == 0, done.stderr
    assert "optimal" in done.stdout


def test_solve_and_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (command,) = (line.split("  ")[0].split() for line in LINES if line.startswith("allot solve"))
    pairs = tmp_path / "pairs.csv"
    assert main([str(pairs) if part == "pairs.csv" else part for part in command[1:]]) == 0
    assert pairs.read_text().startswith("row,column,value\nAda,")
    capsys.readouterr()
    assert main(["solve", "examples/costs.csv", "--json"]) == 0
    (tmp_path / "answer.json").write_text(capsys.readouterr().out)
    (command,) = (line.split("  ")[0].split() for line in LINES if line.startswith("allot verify"))
    assert main([str(tmp_path / "answer.json") if part == "answer.json" else part for part in command[1:]]) == 0


def test_the_answer_that_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/command-line.md").read_text()
    (shown,) = re.findall(r"^\$ allot solve (\S+)\n(.*?)  \.\.\.\n", page, flags=re.MULTILINE | re.DOTALL)
    assert main(["solve", shown[0]]) == 0
    told = [re.sub(r"\d+\.\d ms", "", text) for text in (shown[1], capsys.readouterr().out)]
    assert told[1].startswith(told[0])
