"""What CUDA and Python share is declared once (kernels/layout.py): no launch and no source spells it out by hand."""

import re
from pathlib import Path

import numpy as np
import pytest

from kernels import layout
from kernels.lap.auto import layout as lap
from kernels.sources import source
from kernels.uot.iteration import layout as uot

KERNELS = Path(__file__).parent.parent.parent / "kernels"
ROOMS = {"lap": lap, "uot": uot}
MOST_BY_HAND = 7
BY_HAND = {
    "lap/batched/batched.cu": {"solve_each"},
    "lap/proof/certify.cu": {"weigh_rows", "weigh_problems"},
    "lap/points/distances.cu": {"distances"},
    "qap/exact/tree.cu": {"ascend"},
    "uot/dense/log.cu": {"row_reference"},
    "uot/points/points.cu": {"row_reference"},
}
"""Kernels whose many parameters a launch still repeats by position. A new one does not belong here."""
OWN_NUMBERS = {"lap/batched/gpu_batched.py"}
"""Files with words of another kernel that sound the same: the status of a problem in a batch."""


def parameters(path: Path) -> dict[str, list[str]]:
    """Of each kernel of a source its parameters, as written."""
    code = re.sub(r"//[^\n]*|__launch_bounds__\([^\n)]*\)", "", path.read_text())
    found = re.finditer(r"__global__[^;{(]*?(\w+)\s*\(([^;{]*)\)\s*\{", code)
    return {one[1]: list(filter(None, map(str.strip, one[2].split(",")))) for one in found}


def test_long_lists_of_parameters_come_from_a_layout() -> None:
    long: dict[str, set[str]] = {}
    for path in sorted(KERNELS.rglob("*.cu*")):
        if path.suffix in (".cu", ".cuh") and not path.is_relative_to(KERNELS / "certificates"):
            names = {name for name, parts in parameters(path).items() if len(parts) > MOST_BY_HAND}
            long |= {path.relative_to(KERNELS).as_posix(): names} if names else {}
    assert long == BY_HAND


@pytest.mark.parametrize("room", ROOMS)
def test_every_kernel_of_a_layout_takes_what_it_declares(room: str) -> None:
    written = {name: parts for path in (KERNELS / room).rglob("*.cu*") for name, parts in parameters(path).items()}
    for name, arguments in ROOMS[room].KERNELS.items():
        assert written[name] == [arguments.name]


@pytest.mark.parametrize("room", ROOMS)
def test_no_source_declares_again_what_a_layout_does(room: str) -> None:
    names = re.findall(r"^(?:struct|enum) (\w+)", ROOMS[room].CUDA, re.MULTILINE)
    assert names
    for path in (KERNELS / room).rglob("*.cu*"):
        assert not [name for name in names if re.search(rf"\b(struct|enum) {name}\b", path.read_text())], path.name


@pytest.mark.parametrize("room", ROOMS)
def test_no_python_numbers_again_what_a_layout_does(room: str) -> None:
    enumerators = set(re.findall(r"(\w+) = \d+", ROOMS[room].CUDA))
    assert enumerators
    for path in (KERNELS / room).rglob("*.py"):
        if path.name != "layout.py" and path.relative_to(KERNELS).as_posix() not in OWN_NUMBERS:
            assigned = re.findall(r"^([A-Z][A-Z_, ]*) = (?:\d|range)", path.read_text(), re.MULTILINE)
            again = enumerators & {name.strip() for line in assigned for name in line.split(",")}
            assert not again, path.name


def test_a_layout_stands_in_the_source_that_includes_it() -> None:
    assert lap.CUDA in source("lap/auto/forest.cu")
    assert source("lap/auto/forest.cu").count("struct State {") == 1


def test_fields_lie_where_cuda_has_them() -> None:
    mixed = layout.struct("Mixed", "int a\n double b  // [n]\n u32 c[3]\n const int* d")
    assert {name: place[1] for name, place in (mixed.dtype.fields or {}).items()} == {"a": 0, "b": 8, "c": 16, "d": 32}
    assert mixed.dtype.itemsize == 40
    assert "static_assert(sizeof(Mixed::c) == 12 && alignof(decltype(Mixed::c)) == 4);" in mixed.text
    assert "    double b;  // [n]" in mixed.text


def test_arguments_go_by_name_and_come_in_order_and_type() -> None:
    kernel = layout.arguments("ARGS", "const float* at  // [n]\n int n\n double share\n int* flag")
    assert kernel.text == "#define ARGS const float* at, int n, double share, int* flag"
    buffer = object()
    packed = kernel.packed(share=1, n=True, at=buffer, flag=2**40)
    assert packed == (buffer, 1, 1.0, 2**40)
    assert [np.asarray(one).dtype for one in packed[1:]] == [np.int32, np.float64, np.uint64]
    with pytest.raises(TypeError, match="share"):
        kernel.packed(n=1, at=buffer, flag=0)
    with pytest.raises(TypeError, match="sahre"):
        kernel.packed(n=1, at=buffer, flag=0, share=1, sahre=2)
