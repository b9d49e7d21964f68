import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.conftest import Service

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")))
def test_example_runs(service: Service, tmp_path: Path, name: str) -> None:
    command = [sys.executable if name.endswith(".py") else "bash", str(EXAMPLES / name)]
    if name == "colour_transfer.py":
        command += ["--url", service.url, "--out", str(tmp_path), "--shrink", "8"]
    env = os.environ | {"ALLOT_URL": service.url}
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout
