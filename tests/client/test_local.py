import os
from pathlib import Path

import psutil
import pytest
from allot_client import Client, Unreachable


def test_a_service_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the folder of somebody's own program, whose packages have names that ours have."""
    monkeypatch.setenv("ALLOT_REDIS_URL", "redis://127.0.0.1:9")  # of another service, which is not meant
    monkeypatch.chdir(tmp_path)
    for name in ("app", "workers", "kernels"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('this is no package of allot')")
    mine = psutil.Process()
    before = set(mine.children(recursive=True))
    with Client.local(workers=1) as client:
        assert client.lap([[4, 1], [2, 0]]).objective == 3
        family = set(mine.children(recursive=True)) - before
        assert len(family) >= 4  # the service, Redis, a worker and its child
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []


def test_what_did_not_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app").mkdir()
    (tmp_path / "app/__init__.py").write_text("raise ImportError('there is no allot here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path) + os.pathsep + os.environ["PYTHONPATH"])
    with pytest.raises(Unreachable, match="there is no allot here"):
        Client.local()
