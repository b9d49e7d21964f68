"""Comments of the kernels are broken where a line is full or where something ends: re-wrapping leaves other lines.

Two kinds of line are odd. A line is *short* when the first word of the next one would have fitted with room to spare,
and nothing ended there. A last line is an *orphan* when one word stands on it alone.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WIDTH, SPARE = 120, 8
ENDS = (".", ":", ";", ",", "?", "|", ")")
"""After these a line may be short: what follows begins something of its own."""
FROZEN = ROOT / "kernels/certificates"
"""Certificates carry a hash of their text, so their comments stay as they are."""


def sources(*suffixes: str) -> list[Path]:
    paths = [path for path in (ROOT / "kernels").rglob("*.*") if path.suffix in suffixes]
    return sorted(path for path in paths if not path.is_relative_to(FROZEN))


def comments(path: Path) -> Iterator[list[str]]:
    """Runs of lines that hold a comment and nothing else, each with one indent."""
    run: list[str] = []
    for line in [*path.read_text().splitlines(), ""]:
        found = re.match(r"\s*// ?\S", line)
        if found and (not run or len(line) - len(line.lstrip()) == len(run[0]) - len(run[0].lstrip())):
            run.append(line)
            continue
        if run:
            yield run
        run = [line] if found else []


def docstrings(path: Path) -> Iterator[list[str]]:
    """Runs of lines of strings that stand alone, without those that only open or close them."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ):
            continue
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        for run in "\n".join(lines).replace('"""', "").split("\n\n"):
            yield [line for line in run.splitlines() if line.strip()]


def words(line: str) -> str:
    return re.sub(r"^\s*(//)? ?", "", line)


def is_laid_out(line: str) -> bool:
    """A table, a formula, or pseudocode: indented, or with a gap inside."""
    text = words(line)
    return text.startswith(" ") or "  " in text.strip() or text.lstrip().startswith(("|", "-", "*", ">>>"))


def odd(run: list[str]) -> Iterator[str]:
    prose = [not is_laid_out(line) for line in run]
    for k, (line, after) in enumerate(itertools.pairwise(run)):
        if not (prose[k] and prose[k + 1]) or line.rstrip().endswith(ENDS):
            continue
        if len(line) - len(line.lstrip()) != len(after) - len(after.lstrip()):
            continue  # an entry of an indented list
        if len(line) + 1 + len(words(after).split()[0]) + SPARE <= WIDTH:
            yield f"short: {line.strip()}"
    if len(run) > 1 and prose[-1] and prose[-2] and len(words(run[-1]).split()) == 1:
        yield f"orphan: {run[-1].strip()}"


@pytest.mark.parametrize("path", sources(".cu", ".cuh"), ids=lambda path: str(path.relative_to(ROOT)))
def test_comments_of_sources_are_wrapped_well(path: Path) -> None:
    assert not [found for run in comments(path) for found in odd(run)]


@pytest.mark.parametrize("path", sources(".py"), ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_are_wrapped_well(path: Path) -> None:
    assert not [found for run in docstrings(path) for found in odd(run)]


def test_odd_lines_are_found() -> None:
    whole = "// " + " ".join(["words"] * 19)
    assert not list(odd([whole, "// so that they wait."]))
    assert list(odd(["// keep the reads from delaying the", "// writes", "// they wait for"]))
    assert list(odd([whole, "// decides."])) == ["orphan: // decides."]
