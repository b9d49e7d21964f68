"""Of the definitions that scripts share, each is sent those that it needs."""

import re
from pathlib import Path

import pytest

from workers.jobs import scripts
from workers.jobs.scripts import SHARED, _definitions, _file, needed, text
from workers.jobs.seconds import OBSERVE
from workers.rq import LUA

SCRIPTS = sorted(file.stem for file in Path(scripts.__file__).parent.glob("*.lua") if file.stem not in SHARED)
ALL = "\n".join([LUA, OBSERVE, *map(_file, SHARED)])
NAMES = re.compile(r"^local (?:function )?(\w+(?:, \w+)*)", re.MULTILINE)


def test_what_is_named_comes_along_with_what_that_names() -> None:
    shared = """
local A, B = 1, 2  -- C
local function first() return A end
-- second and third
local function second()
  return first()
end
local C = {
  3}
local function third() return C end
"""
    assert needed(shared, "return second()  -- third") == [
        "local A, B = 1, 2", "local function first() return A end", "local function second()\n  return first()\nend",
    ]  # fmt: skip
    assert needed(shared, "return third()") == ["local C = {\n  3}", "local function third() return C end"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_all_that_it_names_ahead_of_that(name: str) -> None:
    defined, there = _named_in(ALL), set[str]()
    for one in _definitions(text(name)):
        there |= _named_in(one)
        named = set(re.findall(r"(?<![.\w])\w+", re.sub(r"'[^']*'", "", one)))
        own = re.findall(r"(?:local |for |function \w*\()([\w, .]+?)(?: =| in |\)|$)", one, re.MULTILINE)
        assert named & defined <= there | {name for found in own for name in found.split(", ")}, one


def _named_in(lua: str) -> set[str]:
    return {name for found in NAMES.findall(lua) for name in found.split(", ")}


def test_definitions_are_told_apart_by_their_first_line() -> None:
    assert all(NAMES.match(one) for one in _definitions(ALL))
    assert sum(len(one.splitlines()) for one in _definitions(ALL)) <= len(ALL.splitlines())
