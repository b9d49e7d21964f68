"""`allot solve` and `allot verify` of general costs: from a file of four dimensions, with what proves the bound."""

from pathlib import Path

import numpy as np

from tests.app.test_verify import Printed, solved, verified
from tests.instances.lawler import general

SHORT = ("--option", "rounds=2", "--option", "sweeps=6")


def test_multipliers_are_gone_through_again(tmp_path: Path, capsys: Printed) -> None:
    file = str(tmp_path / "cost.npy")
    np.save(file, general(9, 9)["cost"])
    given = (file, "--solver", "lawler", *SHORT, "--option", "duals=true")
    document = solved(capsys, *given)
    code, told = verified(tmp_path, capsys, document, file)
    assert (code, "the multipliers prove" in told) == (0, True), told
    document["certificate"]["bound"] += 1
    code, told = verified(tmp_path, capsys, document, file)
    assert (code, "NO" in told) == (1, True), told


def test_an_answer_without_multipliers_cannot_be_told(tmp_path: Path, capsys: Printed) -> None:
    file = str(tmp_path / "cost.npy")
    np.save(file, general(9, 9, np.float64)["cost"])
    document = solved(capsys, file, "--solver", "lawler", *SHORT, "--option", "maximize=true")
    code, told = verified(tmp_path, capsys, document, file, "--option", "maximize=true")
    assert (code, "option duals" in told, "NO" in told) == (1, True, False), told
    small = str(tmp_path / "small.npy")
    np.save(small, general(4, 5, np.float64)["cost"])
    document = solved(capsys, small, "--solver", "lawler", "--option", 'fixed={"0": 2}')
    code, told = verified(tmp_path, capsys, document, small, "--option", 'fixed={"0": 2}')
    assert (code, document["termination"]) == (0, "optimal"), told
