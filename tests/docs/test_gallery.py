"""Each program of the gallery runs, holds what it asserts, and draws the kind of picture that is shown."""

import re
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import pytest
from allot_client import Client

from docs.builder.gallery import PICTURES, programs
from examples.gallery.__main__ import NAMES
from tests.app.conftest import Service


def marks(path: Path) -> set[str]:
    """The kinds of marks and the size of a picture; how many there are may differ with the last digit of an answer."""
    root = ET.fromstring(path.read_text())
    return {re.sub(r"{.*}", "", one.tag) for one in root.iter()} | {str(root.get("viewBox"))}


@pytest.mark.parametrize("name", NAMES)
def test_a_program_draws_its_picture(service: Service, tmp_path: Path, name: str) -> None:
    with Client(service.url) as found:
        import_module(f"examples.gallery.{name}").draw(found).save(tmp_path / "picture.svg")
    assert marks(tmp_path / "picture.svg") == marks(PICTURES / f"{name}.svg")


def test_there_are_at_least_twelve() -> None:
    assert len(NAMES) >= 12
    assert sorted(NAMES) == [path.stem for path in programs()]
