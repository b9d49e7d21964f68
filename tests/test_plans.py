"""The plan of each solver's room, kernels/<solver>/README.md, held against the room."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = [
    ROOT / "kernels" / room
    for room in (
        "lap",
        "auction",
        "uot",
        "qap",
        "gromov",
        "barycenter",
        "lowrank",
        "multimarginal",
        "lawler",
    )
]
SOURCE = re.compile(r"[\w/]+\.(?:py|cuh|cu)\b")
QUOTED = re.compile(r"`([A-Za-z_]\w*)`")
INCLUDED = re.compile(r"^ +(\w+\.cuh) .*<- (.+)$", re.MULTILINE)
MOST_LINES = 200


def plan(room: Path) -> str:
    return (room / "README.md").read_text()


def sources(room: Path) -> list[Path]:
    found = [path for path in room.rglob("*") if path.suffix in (".py", ".cu", ".cuh")]
    return [path for path in found if path.parent == room or path.name != "__init__.py"]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_file_that_a_plan_names_is_there(room: Path) -> None:
    places = (room, ROOT, ROOT / "kernels")
    named = {name for name in SOURCE.findall(plan(room)) if not any((place / name).exists() for place in places)}
    assert not {name for name in named if not list(room.rglob(name))}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_file_of_a_room_is_on_its_plan(room: Path) -> None:
    """By its name; its folder stands above it or in front."""
    assert {path.name for path in sources(room)} <= {Path(name).name for name in SOURCE.findall(plan(room))}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_name_that_a_plan_quotes_is_in_the_sources(room: Path) -> None:
    """A function, constant, field or option in backticks; renamed in the code, it must be renamed here."""
    beside = [*(ROOT / "kernels/problems").glob("*.py"), *(ROOT / "tests/kernels").glob(f"*{room.name}*")]
    beside += [ROOT / "kernels/layout.py", ROOT / "tests/kernels/test_layout.py"]
    words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in (*sources(room), *beside))))
    assert not {name for name in QUOTED.findall(plan(room)) if name not in words}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_the_picture_of_includes_is_true(room: Path) -> None:
    """A line `header  what it is  <- who includes it` for each header, and no other."""
    drawn = {header: set(users.split()) for header, users in INCLUDED.findall(plan(room))}
    found: dict[str, set[str]] = {path.name: set() for path in room.rglob("*.cuh")}
    papers = [path for path in (ROOT / "kernels/papers").rglob("*.cu*") if path.suffix in (".cu", ".cuh")]
    for path in (*sources(room), *papers):
        for header in re.findall(rf'#include "{room.name}/(?:\w+/)?(\w+\.cuh)"', path.read_text()):
            found[header].add(path.name if room in path.parents else str(path.relative_to(ROOT / "kernels")))
    assert drawn == found


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_plan_is_short(room: Path) -> None:
    assert len(plan(room).splitlines()) <= MOST_LINES


RECIPES = (ROOT / "docs/development.md").read_text()


def test_every_file_that_the_recipes_name_is_there() -> None:
    """In the room of a solver where no folder stands in front."""
    named = set(re.findall(r"`([\w./-]+\.(?:py|cuh|cu|md|txt|lock|toml|Dockerfile))`", RECIPES))
    assert len(named) > 30
    assert not {
        name for name in named if not (ROOT / name).exists() and not list((ROOT / "kernels").glob(f"**/{name}"))
    }


def test_every_name_that_the_recipes_quote_is_in_the_sources() -> None:
    files = [path for room in ("kernels", "tests", "docs") for path in (ROOT / room).rglob("*.py")]
    files += [*(ROOT / "kernels").rglob("*.cu*"), ROOT / "pyproject.toml", ROOT / "Makefile"]
    words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in files if path.is_file())))
    quoted = {
        name.rpartition(".")[2]
        for name in re.findall(r"`((?:\w+\.)?[A-Za-z_]\w*)`", RECIPES)
        if not (ROOT / name).exists()
    }
    assert len(quoted) > 20
    assert not quoted - words
