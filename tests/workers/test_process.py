"""Other processes of the service load the code that this one did."""

import sys
from pathlib import Path

import pytest

from workers.runtime.process import ROOT, program


def test_the_folder_where_a_service_was_started_is_looked_into_only_where_its_code_lies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    assert program("some.module", "1") == [sys.executable, "-m", "some.module", "1"]
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert program("some.module") == [sys.executable, "-P", "-m", "some.module"]
    gone.rmdir()
    assert program("some.module") == [sys.executable, "-P", "-m", "some.module"]
