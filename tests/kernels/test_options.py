"""Every option of every card is read by its solver and told to those who call it; see docs/development.md."""

import re
from pathlib import Path

import pytest

from kernels.registry import SOLVERS

ROOT = Path(__file__).parent.parent.parent
RECORDED = {("auction", "seed")}
"""Options that stand in the answer and change nothing."""
OPTIONS = [(name, option) for name, card in SOLVERS.items() for option in card.options.model_fields]


@pytest.mark.parametrize(("solver", "option"), OPTIONS)
def test_an_option_is_read_by_its_solver(solver: str, option: str) -> None:
    """Once declared, an option is accepted: one that nobody reads would be accepted and change nothing."""
    if (solver, option) in RECORDED:
        return
    texts = [path.read_text() for path in (ROOT / "kernels" / solver).rglob("*.py")]
    assert re.search(rf"\b(?:options|self|given|chosen)\.{option}\b", "\n".join(texts))


@pytest.mark.parametrize(("solver", "option"), OPTIONS)
def test_an_option_stands_on_the_page_of_its_solver(solver: str, option: str) -> None:
    """In the first column of the table under "Options"."""
    page = (ROOT / f"docs/solvers/{solver}.md").read_text()
    listed = re.split(r"^## ", page.split("\n## Options\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    first = [line.split("|")[1] for line in listed.splitlines() if line.startswith("|")]
    assert f"`{option}`" in "".join(first)
