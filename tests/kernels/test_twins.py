"""Structs and enums that CUDA and Python both spell out: the same names in the same order, and sizes that agree."""

import re
from pathlib import Path

import pytest

pytest.importorskip("cupy", reason="cupy is not installed")
from kernels.auction import gpu_buffers
from kernels.uot.iteration import gpu_geometry

KERNELS = Path(__file__).parent.parent.parent / "kernels"
TYPED = re.compile(r"(?:const |struct )*((?:unsigned )?\w+(?: long\b)*)\s*(.*)", re.DOTALL)
BYTES = {"int": 4, "u32": 4, "u64": 8, "Int": 8, "double": 8}


def text_of(path: str) -> str:
    return re.sub(r"//[^\n]*", "", (KERNELS / path).read_text())


def fields(path: str, struct: str) -> list[tuple[str, str, int]]:
    """(type, name, count) of each field, a pointer as its type with a star."""
    found = re.search(rf"struct {struct} \{{(.*?)\n\}};", text_of(path), re.DOTALL)
    assert found, f"{path} has no struct {struct}"
    out = []
    for declaration in filter(None, map(str.strip, found[1].split(";"))):
        typed = TYPED.match(declaration)
        assert typed, declaration
        for one in typed[2].split(","):
            named = re.match(r"\s*(\*?)\s*(\w+)(?:\[(\d+)\])?", one)
            assert named, declaration
            out.append((typed[1] + named[1], named[2], int(named[3] or 1)))
    return out


def names(path: str, struct: str) -> list[str]:
    return [name if count == 1 else f"{name}[{count}]" for _, name, count in fields(path, struct)]


def enumerators(path: str, first: str) -> list[str]:
    """The enumerators of the enum that begins with `first`."""
    found = re.search(rf"enum\s*\w*\s*\{{\s*({first}\b[^}}]*)\}}", text_of(path))
    assert found, f"{path} has no enum that begins with {first}"
    return [one.split("=")[0].strip() for one in found[1].split(",")]


def constant(path: str, name: str) -> int:
    found = re.search(rf"(?:#define {name}|\b{name} =) (\d+)", text_of(path))
    assert found, f"{path} has no {name}"
    return int(found[1])


def test_the_auction() -> None:
    own = [name for name in names("auction/rows.cuh", "Auction") if name != "pieces"]
    pieces = [f"piece_{name}" for name in names("auction/rows.cuh", "Pieces")]
    assert (*own, *pieces) == tuple(
        "piece_n_rows" if name == "piece_count" else name for name in gpu_buffers.AUCTION.names or ()
    )
    assert names("auction/rows.cuh", "State") == gpu_buffers.STATE
    assert constant("auction/rows.cuh", "LIST") == gpu_buffers.LIST
    assert constant("auction/rows.cuh", "BLOCK") == gpu_buffers.BLOCK
    assert constant("auction/auction.cu", "LONG") == gpu_buffers.LONG


def test_the_auctions_forest() -> None:
    assert tuple(names("auction/paths.cu", "Forest")) == gpu_buffers.FOREST.names
    growth = names("auction/paths.cu", "Growth")
    assert growth[0] == "n_active[3]"
    assert ["active_0", "active_1", "active_2", *growth[1:]] == gpu_buffers.GROWTH


def test_the_memory_of_mixing() -> None:
    assert constant("uot/iteration/marginals.cuh", "MEMORY") == gpu_geometry.MEMORY
    assert (
        len(enumerators("uot/iteration/marginals.cuh", "MASS")) - 1 + 2 + 2 * gpu_geometry.MEMORY
        == gpu_geometry.ALL_SUMS
    )
