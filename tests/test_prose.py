"""Pages are plain: sentences are short, and three numbers are a table. `python -m tests.test_prose` measures each page."""

import re
import statistics
from pathlib import Path


ROOT = Path(__file__).parent.parent
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
    page = "# Title\n\nOne word more. Two `f.x` words, of 3 e.g. numbers 4.\n\n| a | b |\n\n- an item here\n- and one more\n"
    assert [len(words) for words in sentences(page)] == [3, 8, 3, 3]


if __name__ == "__main__":
    for page in sorted(PAGES):
        words, numbers = measured(page)
        print(f"{words:5.1f} words {numbers:4.1f} numbers  {len(sentences(page.read_text())):4d}  {page.relative_to(ROOT)}")
