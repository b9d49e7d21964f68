"""Workers that start together share the work of compiling."""

import subprocess
import sys
import threading
from pathlib import Path

from kernels import SOLVERS
from workers.runtime.in_turn import in_turn

CARDS = [SOLVERS["lap"], SOLVERS["auction"], SOLVERS["uot"]]


def test_two_begin_with_different_solvers_and_both_come_to_all(tmp_path: Path) -> None:
    first, second = in_turn(CARDS, tmp_path, "cpu"), in_turn(CARDS, tmp_path, "cpu")
    assert (next(first).name, next(second).name) == ("lap", "uot"), "one from either end"
    assert next(second).name == "auction"
    late: list[str] = []
    waiting = threading.Thread(target=lambda: late.extend(card.name for card in second))
    waiting.start()
    waiting.join(0.2)
    assert not late, "lap is still being compiled"
    assert [card.name for card in first] == ["auction", "uot"]
    waiting.join(10)
    assert late == ["lap"]


def test_other_devices_have_nothing_to_do_with_it(tmp_path: Path) -> None:
    first, second = in_turn(CARDS, tmp_path, "cpu"), in_turn(CARDS, tmp_path, "gpu")
    assert next(first) is next(second)


def test_a_process_that_dies_holds_nobody_up(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, sys\nfrom kernels import SOLVERS\nfrom workers.runtime.in_turn import in_turn\n"
        "next(in_turn([SOLVERS['lap']], pathlib.Path(sys.argv[1]), 'cpu'))\nos._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert [card.name for card in in_turn(CARDS, tmp_path, "cpu")] == ["lap", "auction", "uot"]
