"""How large files and functions may be, what they take, and names that nobody shares."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels import SOLVERS
from tests.test_architecture import ALL, ROOT, files

SOFT_LINES = 300


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_are_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 1.1 * SOFT_LINES
    assert path.stem not in ("utils", "helpers", "base", "manager")


MOST_PARAMETERS = 7
MANY_PARAMETERS = {
    "app/http/blobs.py": {"post"},
    "app/http/uploads.py": {"put"},
    "app/web/pictures.py": {"picture"},
}
"""Calls of HTTP, whose parameters are headers and fields. A new one does not belong here."""


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(given) - (given[:1] in (["self"], ["cls"]))


def is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """By numba: loops take arrays one by one, and a group of them would be unpacked in each call."""
    said = " ".join(map(ast.unparse, node.decorator_list))
    return any(word in said for word in ("jit", "inner", "inlined"))


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_many_parameters_are_a_named_group(path: Path) -> None:
    if path.is_relative_to(ROOT / "kernels/certificates"):
        return  # their text is counted against
    tree = ast.walk(ast.parse(path.read_text()))
    functions = [node for node in tree if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    many = {node.name for node in functions if parameters(node) > MOST_PARAMETERS and not is_compiled(node)}
    assert many == MANY_PARAMETERS.get(path.relative_to(ROOT).as_posix(), set())


def test_no_card_takes_anything_for_its_problem() -> None:
    """Each function of a card says which problem and which options it is for."""
    tree = ast.parse((ROOT / "kernels/card.py").read_text())
    (card,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Solver")
    fields = {
        ast.unparse(one.target): ast.unparse(one.annotation) for one in card.body if isinstance(one, ast.AnnAssign)
    }
    called = {name: said for name, said in fields.items() if "Callable" in said}
    assert len(called) > 5
    assert not [name for name, type_ in called.items() if "Any" in type_]


ON_DEVICES = {module for card in SOLVERS.values() for module in card.modules.values()}


@pytest.mark.parametrize("module", sorted(ON_DEVICES))
def test_solve_says_which_options_it_reads(module: str) -> None:
    """So mypy follows an option from its card to where it is read, and a misspelt one is an error."""
    tree = ast.parse((ROOT / module.replace(".", "/")).with_suffix(".py").read_text())
    (solve,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "solve")
    named = {one.arg: ast.unparse(one.annotation) for one in solve.args.args if one.annotation is not None}
    assert named["options"].strip("'").endswith("Options")


CUDA_LINES, KERNEL_LINES = 380, 60
LONG_KERNELS = {
    "uot/batch/batch.cu": {"solve_batch"},
    "certificates/gpu/assignment.cu": {"weigh"},
    "certificates/gpu/transport.cu": {"settle"},
}
"""Kernels that are longer than they should be. A new one does not belong here."""
CUDA = [path for path in sorted((ROOT / "kernels").rglob("*.*")) if path.suffix in (".cu", ".cuh")]
OURS = [path for path in CUDA if not path.is_relative_to(ROOT / "kernels/certificates")]
"""The text of the certificates is counted against: it stays."""


def kernel_bodies(text: str) -> Iterator[tuple[str, int]]:
    """Name and lines of each `__global__` function's body."""
    code = re.sub(r"//[^\n]*|__launch_bounds__\([^\n)]*\)", "", text)
    for found in re.finditer(r"__global__[^;{(]*?(\w+)\s*\([^;{]*\)\s*\{", code):
        depth, at = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        yield found.group(1), code[found.end() : at].count("\n")


@pytest.mark.parametrize("path", CUDA, ids=lambda path: str(path.relative_to(ROOT / "kernels")))
def test_sources_and_kernels_are_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= CUDA_LINES
    long = {name for name, lines in kernel_bodies(text) if lines > KERNEL_LINES}
    assert long == LONG_KERNELS.get(path.relative_to(ROOT / "kernels").as_posix(), set())


def test_every_kernel_is_measured() -> None:
    """As many bodies as there are `__global__`s: the pattern above misses none."""
    for path in CUDA:
        code = re.sub(r"//[^\n]*", "", path.read_text())
        assert len(list(kernel_bodies(code))) == code.count("__global__"), path.name


INDICES = set("ijk")
SYMBOL = re.compile(r"(?<![\w.'])(?<!->)([A-Za-z])(?![\w'])")


def letters_of_room(room: str) -> set[str]:
    """Those that the tables under "Words" in the README of a solver's room explain."""
    readme = ROOT / "kernels" / room / "README.md"
    _, _, words = (readme.read_text() if readme.exists() else "").partition("\n## Words\n")
    rows = [line for line in words.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return set(re.findall(r"`([A-Za-z])`", " ".join(line.split("|")[1] for line in rows)))


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT / "kernels")))
def test_names_on_a_device_are_words_or_explained_letters(path: Path) -> None:
    """Loop indices and types of a template need no explanation; members after a dot were declared elsewhere."""
    code = re.sub(r'//[^\n]*|"(?:\\.|[^"\\])*"', "", path.read_text())
    types = set(re.findall(r"typename ([A-Z])\b", code))
    room = path.relative_to(ROOT / "kernels").parts[0]
    assert set(SYMBOL.findall(code)) - INDICES - types <= letters_of_room(room)


def test_every_explained_letter_is_used() -> None:
    for room in sorted({path.relative_to(ROOT / "kernels").parts[0] for path in OURS}):
        code = "".join(path.read_text() for path in OURS if path.is_relative_to(ROOT / "kernels" / room))
        assert letters_of_room(room) <= set(SYMBOL.findall(re.sub(r"//[^\n]*", "", code))), room


def test_every_source_is_in_the_wheel() -> None:
    """Kernels are compiled from their text: a source that package-data leaves out is missing once installed."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["kernels"]
    packed = {path for pattern in patterns for path in (ROOT / "kernels").glob(pattern)}
    assert set(CUDA) <= packed


def test_no_two_classes_of_solvers_share_a_name() -> None:
    """A name means one thing. Certificates are a house of their own: each stands alone, and may say `Answer`."""
    found: dict[str, list[str]] = {}
    for path in files("kernels"):
        if path.is_relative_to(ROOT / "kernels/certificates"):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_no_two_sources_share_a_name() -> None:
    """Nor two structs that Python and CUDA share."""
    names = [path.name for path in CUDA]
    assert sorted(names) == sorted(set(names))
    layouts = [path.read_text() for path in sorted((ROOT / "kernels").rglob("*layout.py"))]
    structs = [name for text in layouts for name in re.findall(r'(?:struct|parameter)\(\n\s+"(\w+)"', text)]
    assert len(structs) > 20
    assert sorted(structs) == sorted(set(structs))
