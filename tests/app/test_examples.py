import ast
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.app.conftest import Service

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


PROGRAMS = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh") and path.stem != "__init__")


@pytest.mark.parametrize("name", PROGRAMS)
def test_example_runs(service: Service, tmp_path: Path, name: str) -> None:
    command = [sys.executable if name.endswith(".py") else "bash", str(EXAMPLES / name)]
    if name == "colour_transfer.py":
        command += ["--url", service.url, "--out", str(tmp_path), "--shrink", "4"]
    env = os.environ | {"ALLOT_URL": service.url}
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_examples_send_parameters_that_exist(service: Service, name: str) -> None:
    """A query parameter that the API does not know is ignored, so that running an example does not show it."""
    api = httpx.get(f"{service.url}/openapi.json").json()
    operations = [operation for path in api["paths"].values() for operation in path.values()]
    known = {given["name"] for operation in operations for given in operation.get("parameters", [])}
    assert parameters(EXAMPLES / name) <= known


def parameters(path: Path) -> set[str]:
    """The keys of every `params={...}` in a file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "params":
            assert isinstance(node.value, ast.Dict), f"{path.name}: parameters are written where they are sent"
            found |= {str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)}
    return found
