"""Pages are plain: sentences are short, and three numbers are a table. `python -m tests.test_prose` measures them."""

import re
import statistics
from pathlib import Path

import pytest

from tests.test_comments import comments, is_laid_out, sources, words

ROOT = Path(__file__).parent.parent
MOST_WORDS, MOST_NUMBERS = 19.0, 2.0
"""Of a page's mean sentence."""
MEDIAN, NINE_OF_TEN = (14, 0), (25, 2)
"""Words and numbers of the sentences of all pages together: at most, in the middle one and in nine of ten."""
OF_COMMENTS = (10, 18, 30)
"""Words between two stops of CUDA sources: at most, in the middle one, in nine of ten, and in the longest."""
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


def counted(path: Path) -> list[tuple[int, int]]:
    """Words and numbers of each sentence of a page."""
    found = sentences(path.read_text())
    return [(len(words), sum(bool(re.match(r"[^A-Za-z`]*\d", word)) for word in words)) for words in found]


def measured(path: Path) -> tuple[float, float]:
    """Mean words and mean numbers of a page's sentences."""
    found = counted(path) or [(0, 0)]
    return statistics.mean(words for words, _ in found), statistics.mean(numbers for _, numbers in found)


def spread_of(paths: list[Path]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Words and numbers of the sentences of pages: the medians, and what nine of ten have at most."""
    columns = list(zip(*(one for path in paths for one in counted(path)), strict=True))
    median, nine_of_ten = ([statistics.quantiles(column, n=10)[k] for column in columns] for k in (4, 8))
    return (median[0], median[1]), (nine_of_ten[0], nine_of_ten[1])


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
    words, numbers = measured(page)
    assert words <= MOST_WORDS
    assert numbers <= MOST_NUMBERS


def test_all_pages_together_are_plain() -> None:
    median, nine_of_ten = spread_of(PAGES)
    assert median[0] <= MEDIAN[0]
    assert median[1] <= MEDIAN[1]
    assert nine_of_ten[0] <= NINE_OF_TEN[0]
    assert nine_of_ten[1] <= NINE_OF_TEN[1]


def test_comments_of_sources_are_plain() -> None:
    """All of them together. A colon or a semicolon is a stop too, since contracts have many."""
    lengths = []
    for path in sources(".cu", ".cuh"):
        for run in comments(path):
            text = " ".join(words(line) for line in run if not is_laid_out(line))
            parts = re.split(r"(?<=[.:;?])\s", text)
            lengths += [len(found) for part in parts if len(found := re.findall(r"\S*\w\S*", part)) > 2]
    measures = statistics.median(lengths), statistics.quantiles(lengths, n=10)[8], max(lengths)
    assert all(one <= most for one, most in zip(measures, OF_COMMENTS, strict=True)), measures


if __name__ == "__main__":
    for path in sorted(PAGES):
        mean_words, mean_numbers = measured(path)
        count = len(sentences(path.read_text()))
        print(f"{mean_words:5.1f} words {mean_numbers:4.1f} numbers  {count:4d}  {path.relative_to(ROOT)}")
    for name, (said, told) in zip(("median", "nine of ten"), spread_of(PAGES), strict=True):
        print(f"{said:5.1f} words {told:4.1f} numbers        {name} of all sentences")
