"""Edges and entries are numbered in 64 bits on the device: there may be more than 2^32 of them.

The compiler's own intermediate code (PTX) tells. What is widened from 32 bits to 64, as an address must be, is followed
back through all that it was made of. A product of two numbers from memory among that would be cut off.
"""

import functools
import re
from collections.abc import Iterator

import pytest

pytest.importorskip("cupy", reason="cupy is not installed")
from cupy_backends.cuda.libs import nvrtc

from kernels import cubins
from kernels.sources import source

AUCTION, PATHS, PROOF = "auction/auction.cu", "auction/paths.cu", "certificates/gpu/assignment.cu"
WORKED_OUT = re.compile(r"\s+(?:@!?%p\d+ )?([a-z][\w.]*)\s+(%rd?\d+)(?:\|%p\d+)?,\s*(.*);")
WIDENED = re.compile(r"\s+(?:@!?%p\d+ )?(?:cvt\.[su]64\.[su]32|mul\.wide\.[su]32)\s+%rd\d+,\s*(%rd?\d+)")
PRODUCTS = ("mul.lo.", "mad.lo.", "shl.")
PASSED_ON = ("add", "sub", "mul", "mad", "shl", "mov", "selp", "min", "max", "neg")
LARGEST_FACTOR = 1 << 16
"""A larger constant is a hash's."""
Worked = dict[str, list[tuple[str, str]]]
"""Of each register, what it is made by: instructions and their operands."""


@functools.cache
def intermediate(text: str, path: str, *defines: str) -> str:
    program = nvrtc.createProgram(text, path, (), ())
    try:
        includes = (f"-I{folder}" for folder in cubins._include_folders())
        nvrtc.compileProgram(program, (*cubins.FLAGS, *defines, *includes, "-arch=compute_90"))
        found = nvrtc.getPTX(program)
    finally:
        nvrtc.destroyProgram(program)
    return found.decode() if isinstance(found, bytes) else str(found)


def cut_off(text: str) -> list[str]:
    """Kernels, and those of their products that may be cut off to 32 bits."""
    found = []
    for function in re.split(r"\n(?=\.visible \.entry)", text)[1:]:
        name = re.search(r"\.entry\s+(\w+)", function)
        assert name
        worked: Worked = {}
        for line in function.splitlines():
            if made := WORKED_OUT.match(line):
                worked.setdefault(made[2], []).append((made[1], made[3]))
        widened = {line[1] for line in map(WIDENED.match, function.splitlines()) if line}
        products = {step for register in widened for step in behind(register, worked) if is_product(*step)}
        found += [f"{name[1]}: {what} {of}" for what, of in sorted(products) if of_data(of, worked)]
    return found


def behind(register: str, worked: Worked) -> Iterator[tuple[str, str]]:
    """Every instruction that a register is made by, back to what is read, named, or of another width."""
    seen, waiting = set(), [register]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        for what, of in worked.get(one, []):
            yield what, of
            if what.split(".")[0] in PASSED_ON:
                waiting += re.findall(r"%rd?\d+", of)


def is_product(what: str, of: str) -> bool:
    factors = [abs(int(number)) for number in re.findall(r"(?<![\w%])-?\d+", of)]
    return what.startswith(PRODUCTS) and not any(factor > LARGEST_FACTOR for factor in factors)


def of_data(operands: str, worked: Worked) -> bool:
    """Whether both factors, or the one that is no constant, come from memory or from another width, and not from a
    place in the grid or the count of a loop."""
    factors = re.findall(r"%rd?\d+", operands)[:2]
    return bool(factors) and all(
        any(what.startswith(("ld.", "cvt.")) for what, _ in behind(one, worked)) for one in factors
    )


@pytest.mark.parametrize("defines", [(), ("-DVALUE=float", "-DFIXED_POINT=1"), ("-DVALUE=double", "-DMETRIC=1")])
@pytest.mark.parametrize("path", [AUCTION, PATHS])
def test_no_number_of_an_edge_is_cut_off(path: str, defines: tuple[str, ...]) -> None:
    assert cut_off(intermediate(source(path), path, *defines)) == []


@pytest.mark.parametrize(
    ("path", "wide", "narrow"),
    [
        (AUCTION, "{i * auction.n_cols, auction.n_cols", "{(int)i * (int)auction.n_cols, auction.n_cols"),
        (PATHS, "{i * auction.n_cols, auction.n_cols", "{(int)i * (int)auction.n_cols, auction.n_cols"),
        (AUCTION, "auction.list_columns + i * LIST, auction", "auction.list_columns + (int)i * LIST, auction"),
        (PROOF, "((long long)k * shape.max_rows + row) * shape.max_cols;\n            const long long first",
         "(k * shape.max_rows + row) * shape.max_cols;\n            const long long first"),
    ],
)  # fmt: skip
def test_a_product_of_32_bits_is_found(path: str, wide: str, narrow: str) -> None:
    text = source(path)
    assert wide in text
    assert len(cut_off(intermediate(text.replace(wide, narrow), path))) > len(cut_off(intermediate(text, path)))
