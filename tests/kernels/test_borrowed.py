"""That arrays without a counter are held by somebody: compiled code that borrowed a local one read freed memory."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "kernels"
FILES = [path for path in sorted(KERNELS.rglob("*.py")) if re.search(r"\bborrowed\(", path.read_text())]


def lendings(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """What a function borrows, and the place of that statement in its body, -1 where it is not at the top of it."""
    tops = {id(node): k for k, statement in enumerate(function.body) for node in ast.walk(statement)}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "borrowed":
            yield ast.unparse(node.args[0]), tops.get(id(node), -1)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(KERNELS)))
def test_arrays_are_borrowed_at_the_top_of_a_function_from_its_arguments(path: Path) -> None:
    found = 0
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef) and function.name != "borrowed":
            begin = int(ast.get_docstring(function) is not None)
            for name, place in lendings(function):
                assert name in {argument.arg for argument in function.args.args}, (function.name, name)
                assert place == begin, (function.name, name)
                found += 1
    assert found or path.name == "borrowed.py"
