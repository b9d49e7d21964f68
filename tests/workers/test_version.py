"""The version of an installed Allot, and of one that runs from its source tree."""

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.runtime import version

ROOT = Path(__file__).parents[2]
NAMED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
NEVER_INSTALLED = """
import importlib.metadata as metadata
known = metadata.version
def version(name):
    if name == "allot":
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.version = version
from app.cli.main import main
main()
"""


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No metadata of any package."""

    def version_of(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version_of)
    version.allot_version.cache_clear()
    yield
    version.allot_version.cache_clear()


@pytest.mark.usefixtures("unknown")
def test_a_tree_that_was_never_installed_knows_its_version() -> None:
    assert version.allot_version() == NAMED


@pytest.mark.usefixtures("unknown")
def test_without_its_project_file_it_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "PROJECT", ROOT / "nowhere.toml")
    assert version.allot_version() == "0"


def test_the_command_line_starts_without_an_installed_package() -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "client")])
    said = subprocess.run(
        [sys.executable, "-c", NEVER_INSTALLED, "--version"], env=os.environ | {"PYTHONPATH": path}, cwd=ROOT,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.strip() == f"allot {NAMED}"
