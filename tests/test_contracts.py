"""What stands above each kernel and beside each barrier, and how many parameters a device's function takes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import ROOT
from tests.test_rooms import CUDA, MOST_PARAMETERS, OURS

CONTRACT = ("Grid", "Block", "Shared", "Reads", "Writes", "Requires", "Work")
BARRIER = re.compile(r"__sync(?:threads|warp)|\bgrid\.sync\(|\.sync\(\);")
SHARE_ONE = {"steps.cu"}
"""Sources of many small kernels, each of which does what a step of a round does: the first has the contract of all."""


def comment_above(lines: list[str], at: int) -> str:
    """The comment of the function that line `at` is in, or begins."""
    while at and not re.match(r"(?:extern|__device__|template|__global__)", lines[at]):
        at -= 1
    while at and lines[at - 1] and not lines[at - 1].startswith(("//", "}")):
        at -= 1
    first = at
    while first and lines[first - 1].startswith("//"):
        first -= 1
    return "\n".join(lines[first:at])


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT / "kernels")))
def test_every_kernel_has_a_contract(path: Path) -> None:
    told, missing = "", []
    for at, line in enumerate(lines := path.read_text().splitlines()):
        if "__global__" in line and not line.lstrip().startswith("//"):
            told = comment_above(lines, at) or (told if path.name in SHARE_ONE else "")
            missing += [f"{at + 1}: {word}" for word in CONTRACT if word not in told]
    assert missing == []


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT / "kernels")))
def test_every_barrier_says_what_it_orders(path: Path) -> None:
    """On its line, on the line above, or above its function, where one sentence serves all of them."""
    lines = path.read_text().splitlines()
    silent = []
    for at, line in enumerate(lines):
        if BARRIER.search(line.partition("//")[0]):
            said = "//" in line or lines[at - 1].lstrip().startswith("//") or "arrier" in comment_above(lines, at)
            silent += [] if said else [f"{at + 1}: {line.strip()}"]
    assert silent == []


MANY_PARAMETERS_ON_DEVICE = {"lap/auto/bid.cu": {"place_bids"}}
"""A piece of an inner loop, which the compiler puts in another order with any group (docs/notes/lap.md). A new one
needs that reason too; where the machine code stays the same, a group it is."""


def device_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and number of parameters of each `__device__` function."""
    code = re.sub(r"//[^\n]*", "", text)
    for found in re.finditer(r"__device__[^;{(]*?(\w+)\s*\(", code):
        at, depth, commas = found.end(), 1, 0
        while depth:
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(code[at], 0)
            commas += depth == 1 and code[at] == ","
            at += 1
        yield found.group(1), commas + bool(code[found.end() : at - 1].strip())


@pytest.mark.parametrize("path", CUDA, ids=lambda path: str(path.relative_to(ROOT / "kernels")))
def test_many_parameters_on_a_device_are_a_named_group(path: Path) -> None:
    if not path.is_relative_to(ROOT / "kernels/certificates"):
        many = {name for name, count in device_functions(path.read_text()) if count > MOST_PARAMETERS}
        assert many == MANY_PARAMETERS_ON_DEVICE.get(path.relative_to(ROOT / "kernels").as_posix(), set())
