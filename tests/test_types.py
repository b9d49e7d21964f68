"""What annotations of arrays say: of which type they are, wherever a loop is compiled for it or a kernel reads it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import ROOT, files
from tests.test_rooms import is_compiled

PLAIN = re.compile(r"\bArray\b|\bNDArray\[Any\]|\bndarray\b(?!\[)")
OURS = [path for path in files("kernels") if not path.is_relative_to(ROOT / "kernels/certificates")]
"""The text of the certificates is counted against, and stays."""
MOST_PLAIN = 124
"""Annotations of arrays whose type no code depends on, or that come from a caller unlooked at: checks of inputs,
answers by name. It may only fall."""


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))


def annotations(node: ast.FunctionDef) -> list[str]:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    said = [one.annotation for one in given] + [node.returns]
    return [ast.unparse(one) for one in said if one is not None]


def takes_launch(node: ast.FunctionDef) -> bool:
    """Whether it fills the arguments of a kernel, from arrays of the device or of the host."""
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    made = [one for one in calls if isinstance(one, ast.Attribute) and one.attr in ("packed", "filled")]
    return any(isinstance(one.value, ast.Name) and one.value.id.isupper() for one in made)


def test_loops_and_launches_say_of_which_type_their_arrays_are() -> None:
    plain = {
        f"{path.relative_to(ROOT)}: {node.name}": said
        for path in OURS
        for node in functions(path)
        if is_compiled(node) or takes_launch(node)
        for said in annotations(node)
        if PLAIN.search(said)
    }
    assert plain == {}


def test_states_of_loops_say_of_which_type_their_arrays_are() -> None:
    """A loop takes a named tuple apart into its arrays."""
    tree = [node for path in OURS for node in ast.walk(ast.parse(path.read_text()))]
    states = [one for one in tree if isinstance(one, ast.ClassDef) and "NamedTuple" in map(ast.unparse, one.bases)]
    fields = [one for state in states for one in state.body if isinstance(one, ast.AnnAssign)]
    assert [ast.unparse(one) for one in fields if PLAIN.search(ast.unparse(one.annotation))] == []


def test_few_arrays_are_of_any_type() -> None:
    nodes = [node for path in OURS for node in ast.walk(ast.parse(path.read_text()))]
    taken = [node.annotation for node in nodes if isinstance(node, ast.arg | ast.AnnAssign)]
    given = [node.returns for node in nodes if isinstance(node, ast.FunctionDef)]
    said = [ast.unparse(one) for one in taken + given if one is not None]
    assert sum(len(PLAIN.findall(one)) for one in said) <= MOST_PLAIN


WRONG = """
import numpy as np
from kernels.auction.cpu.paths import push
from kernels.auction.cpu.rows import Lists

codes = np.zeros(3, np.float32)
push(np.zeros(3), codes, 0, 1.0, 0)
Lists(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1, np.int32), np.zeros(1))
"""


def test_a_loop_is_not_given_another_type(tmp_path: Path) -> None:
    """Through the decorators of numba, which say nothing of types by themselves."""
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "kept"), "--follow-imports", "silent"]
    done = subprocess.run([*command, str(tmp_path / "wrong.py")], cwd=ROOT, capture_output=True, text=True, timeout=840)
    wrong = [line for line in done.stdout.splitlines() if "incompatible type" in line]
    assert [re.search(r'Argument \d to "\w+"', line)[0] for line in wrong] == [  # type: ignore[index]
        'Argument 2 to "push"',
        'Argument 1 to "Lists"',
    ], done.stdout
