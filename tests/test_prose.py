"""Pages are plain: sentences are short, and three numbers are a table. `python -m tests.test_prose` measures them."""

import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_WORDS, MOST_NUMBERS = 19.0, 2.0
"""Of a page's mean sentence. All pages together stay below 18 words and 1.2 numbers."""
LONGER = {"docs/architecture.md": (21.0, 1.0), "docs/benchmarks/auction.md": (23.0, 2.1)}
LONGER |= {"docs/benchmarks/lap_systems.md": (22.0, 2.1), "docs/notes/lap.md": (18.0, 2.5)}
"""Pages that were longer when this was first measured: words and numbers. They may only get shorter."""
PAGES = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("kernels/*/README.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
ENDS = re.compile(r"(?<=[.!?])\)?\s+(?=[A-Z`*\[(\"])|\n\s*\n")


def prose(text: str) -> str:
    """What is read as sentences: no code, tables, headings or formulas; links by their words."""
    text = re.sub(r"```.*?```|<!--.*?-->", "\n\n", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not re.match(r"\s*[|#>]|    |!\[", line)]
    text = "\n".join(re.sub(r"^\s*(?:[-*]|\d+\.) +", "\n\n", line) for line in lines)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(text: str) -> list[list[str]]:
    """The words of each sentence; what holds fewer than three is a label."""
    found = [re.findall(r"[^\s]*\w[^\s]*", sentence) for sentence in ENDS.split(prose(text))]
    return [words for words in found if len(words) > 2]


def measured(path: Path) -> tuple[float, float]:
    """Mean words and mean numbers of a page's sentences."""
    found = sentences(path.read_text())
    if not found:
        return 0.0, 0.0
    numbers = [sum(bool(re.match(r"[^A-Za-z`]*\d", word)) for word in words) for words in found]
    return statistics.mean(map(len, found)), statistics.mean(numbers)


def test_sentences_are_told_apart() -> None:
    lines = [
        "# Title",
        "One word more. Two `f.x` words, of 3 e.g. numbers 4.",
        "| a | b |",
        "- an item here\n- one more now",
    ]
    page = "\n\n".join(lines)
    assert [len(words) for words in sentences(page)] == [3, 8, 3, 3]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_plain(page: Path) -> None:
    most_words, most_numbers = LONGER.get(str(page.relative_to(ROOT)), (MOST_WORDS, MOST_NUMBERS))
    words, numbers = measured(page)
    assert words <= most_words
    assert numbers <= most_numbers


def test_all_pages_together_are_plain() -> None:
    found = [measured(page) for page in PAGES]
    assert statistics.mean(words for words, _ in found) <= 18
    assert statistics.mean(numbers for _, numbers in found) <= 1.2


if __name__ == "__main__":
    for path in sorted(PAGES):
        mean_words, mean_numbers = measured(path)
        count = len(sentences(path.read_text()))
        print(f"{mean_words:5.1f} words {mean_numbers:4.1f} numbers  {count:4d}  {path.relative_to(ROOT)}")
