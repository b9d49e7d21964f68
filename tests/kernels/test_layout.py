"""What CUDA and Python share is declared once (kernels/layout.py): no launch and no source spells it out by hand."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernels import layout
from kernels.lap.auto import layout as lap
from kernels.sources import layout_of, source

KERNELS = Path(__file__).parent.parent.parent / "kernels"
LAYOUTS = sorted(path for path in KERNELS.rglob("layout.py") if path.parent != KERNELS)
TAKEN = re.compile(r"const __grid_constant__ (\w+)&? \w+|const (\w+) ?\* ?\w+|(?:int|long long) ?\* ?out")
"""How a kernel takes its one parameter: a struct by value or where it lies, or where to write the size of its own."""


def name_of(path: Path) -> str:
    return path.relative_to(KERNELS).as_posix()


def declared(path: Path) -> Any:
    return layout_of(name_of(path))


def sources_beside(path: Path) -> list[Path]:
    """Those of a layout's room: every source below the folder of its solver or system."""
    room = KERNELS.joinpath(*path.relative_to(KERNELS).parts[:1])
    return [one for one in room.rglob("*.cu*") if one.suffix in (".cu", ".cuh")]


def parameters(path: Path) -> dict[str, list[str]]:
    """Of each kernel of a source its parameters, as written."""
    code = re.sub(r"//[^\n]*|__launch_bounds__\([^\n)]*\)", "", path.read_text())
    found = re.finditer(r"__global__[^;{(]*?(\w+)\s*\(([^;{]*)\)\s*\{", code)
    return {one[1]: list(filter(None, map(str.strip, one[2].split(",")))) for one in found}


def test_a_kernel_takes_one_struct_that_a_layout_declares() -> None:
    """Parameters go by position, and CuPy checks neither their number nor their type: a launch must not repeat them."""
    structs = {name for path in LAYOUTS for name in re.findall(r"^struct (\w+)", declared(path).CUDA, re.MULTILINE)}
    by_hand, kernels = set(), 0
    for path in sorted(KERNELS.rglob("*.cu*")):
        if path.suffix in (".cu", ".cuh") and not path.is_relative_to(KERNELS / "certificates"):
            for name, parts in parameters(path).items():
                found = TAKEN.fullmatch(", ".join(parts)) if parts else None
                kernels += 1
                if parts and not (found and {*found.groups(), None} <= {*structs, None}):
                    by_hand.add(f"{name_of(path)}: {name}")
    assert kernels > 40
    assert by_hand == set()


@pytest.mark.parametrize("path", LAYOUTS, ids=name_of)
def test_a_kernel_takes_the_arguments_that_a_layout_declares(path: Path) -> None:
    module = declared(path)
    lists = [one for one in vars(module).values() if isinstance(one, layout.Parameter)]
    taken = [parts for one in sources_beside(path) for parts in parameters(one).values()]
    for one in lists:
        assert one.text in module.CUDA
        assert [one.declared] in taken, one.name


@pytest.mark.parametrize("path", LAYOUTS, ids=name_of)
def test_no_source_declares_again_what_a_layout_does(path: Path) -> None:
    names = re.findall(r"^(?:struct|enum) (\w+)", declared(path).CUDA, re.MULTILINE)
    for one in sources_beside(path):
        if f'#include "{name_of(path)}"' in source_of(one):
            assert not [name for name in names if re.search(rf"\b(struct|enum) {name}\s*\{{", one.read_text())], one


def source_of(path: Path) -> str:
    """A source with all that it includes, as includes: those of its room."""
    texts = [path.read_text()]
    for text in texts:
        for header in re.findall(r'#include "(.+\.cuh)"', text):
            texts.append((KERNELS / header).read_text())
    return "\n".join(texts)


@pytest.mark.parametrize("path", LAYOUTS, ids=name_of)
def test_no_python_numbers_again_what_a_layout_does(path: Path) -> None:
    enumerators = set(re.findall(r"(\w+) = \d+", declared(path).CUDA))
    for one in KERNELS.joinpath(*path.relative_to(KERNELS).parts[:1]).rglob("*.py"):
        if one.name != "layout.py" and one.parent.name != "cpu":
            assigned = re.findall(r"^([A-Z][A-Z_, ]*) = (?:\d|range)", one.read_text(), re.MULTILINE)
            again = enumerators & {name.strip() for line in assigned for name in line.split(",")}
            assert not again, one.name


def defined(path: Path) -> set[str]:
    """Constants that a source gives a value, but for options: those have one only where the compiler is given none."""
    code = re.sub(r"^#if.*?^#endif", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    listed = re.findall(r"^constexpr [\w ]+? (\w+ = .*?);", code, re.MULTILINE)
    names = [name for line in listed for name in re.findall(r"(\w+) = ", line)]
    return {*names, *re.findall(r"^#define (\w+) ", code, re.MULTILINE)}


def test_no_python_says_again_what_a_source_beside_it_says() -> None:
    """A constant that both sides need stands in a layout."""
    again, sources = set(), 0
    for path in KERNELS.rglob("*.cu*"):
        if path.suffix not in (".cu", ".cuh") or path.is_relative_to(KERNELS / "certificates"):
            continue
        names, sources = defined(path), sources + 1
        for one in path.parent.glob("*.py"):
            if not one.name.startswith("cpu"):
                lines = re.findall(r"^([A-Z][A-Z_0-9, ]*) = ", one.read_text(), re.MULTILINE)
                again |= {f"{one.name}: {name}" for line in lines for name in line.split(", ") if name in names}
    assert sources > 40
    assert again == set()


def test_a_layout_stands_in_the_source_that_includes_it() -> None:
    assert lap.CUDA in source("lap/auto/forest.cu")
    assert source("lap/auto/forest.cu").count("struct ChainState {") == 1


def test_fields_lie_where_cuda_has_them() -> None:
    mixed = layout.struct("Mixed", "int a\n double b  // [n]\n u32 c[3]\n const int* d")
    assert {name: place[1] for name, place in (mixed.dtype.fields or {}).items()} == {"a": 0, "b": 8, "c": 16, "d": 32}
    assert mixed.dtype.itemsize == 40
    assert "static_assert(sizeof(Mixed::c) == 12 && alignof(decltype(Mixed::c)) == 4);" in mixed.text
    assert "    double b;  // [n]" in mixed.text


def test_a_struct_is_filled_by_name_down_to_inner_structs() -> None:
    inner = layout.struct("Inner", "const int* at\n int n")
    outer = layout.struct("Outer", "double gram[2][3]\n Inner inner\n T64 best\n int n", inner)
    assert outer.dtype.fields is not None
    assert [outer.dtype.fields[name][1] for name in outer.names] == [0, 48, 64, 72]
    assert outer.dtype_where({"T64": "f8"})["best"] == np.float64
    found = outer.filled({"gram": None, "inner": {"at": 2**40, "n": 7}, "best": -1, "n": 3})
    assert (found["inner"]["at"], found["inner"]["n"], found["best"], found["n"]) == (2**40, 7, -1, 3)
    assert "    double gram[2][3];" in outer.text
    with pytest.raises(KeyError, match="best"):
        outer.filled({"gram": None, "inner": {"at": 1, "n": 7}, "n": 3})


def test_one_parameter_holds_what_goes_by_name() -> None:
    inner = layout.struct("Inner", "const float* at  // [n]\n int n")
    kernel = layout.parameter("GrowArgs", "Inner inner\n double share\n const int* first\n int* flag\n int n", inner)
    assert kernel.declared == "const __grid_constant__ GrowArgs args"
    assert "static_assert(sizeof(GrowArgs::inner) == 16" in kernel.text
    array = SimpleNamespace(data=SimpleNamespace(ptr=2**41))
    filled = inner.filled({"at": array, "n": 5})
    (passed,) = kernel.packed(share=1, n=True, inner=filled, flag=np.uint64(2**40), first=None)
    assert passed.shape == ()
    assert passed.dtype.fields is None
    assert passed.view(kernel.dtype).item() == ((2**41, 5), 1.0, 0, 2**40, 1)
    given = {"n": 1, "inner": filled, "flag": 0, "first": array}
    with pytest.raises(TypeError, match="share"):
        kernel.packed(**given)
    with pytest.raises(TypeError, match="sahre"):
        kernel.packed(**given, share=1, sahre=2)
