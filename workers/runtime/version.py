"""Which Allot this is."""

import functools
import importlib.metadata
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@functools.cache
def allot_version() -> str:
    """The installed version; in a source tree that was never installed the one that pyproject.toml names."""
    try:
        return importlib.metadata.version("allot")
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        return str(tomllib.loads(PROJECT.read_text())["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "0"
