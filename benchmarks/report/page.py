"""Tables and plots, and the places in Markdown pages where they go."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.rows import RESULTS

DOCS = RESULTS.parent.parent / "docs"
IMAGES = DOCS / "images"
MARK = re.compile(r"(<!-- rows: (?P<name>.+?) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Table:
    """A head and its lines; numbers are shown to three digits, and None, which nobody measured, as "-"."""

    head: Sequence[str]
    lines: Sequence[Sequence[Any]]

    def markdown(self) -> str:
        """The table, and its last newline. Raises: ValueError where a line is longer or shorter than the head."""
        rows = [list(self.head), ["---"] * len(self.head), *([cell(value) for value in line] for line in self.lines)]
        if any(len(row) != len(self.head) for row in rows):
            raise ValueError(f"a line of another length below {' | '.join(self.head)}")
        return "".join("| " + " | ".join(row) + " |\n" for row in rows)


Tables = Mapping[str, Callable[[], Table]]
Plots = Mapping[str, Callable[[Any], Any]]
"""By name, what draws a figure with the module matplotlib.pyplot."""


def cell(value: Any) -> str:
    """One entry of a table."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "-" if value is None else str(value)
    if value and abs(value) < 1e-3:
        return f"{value:.1e}"
    whole = isinstance(value, int) or abs(value) < 1e7
    return f"{value:,.0f}" if abs(value) >= 100 and whole else f"{value:.3g}"


def filled(text: str, tables: Tables) -> str:
    """A page with its tables as the rows have them now. Raises: KeyError for a mark that no table belongs to."""
    return MARK.sub(lambda found: found[1] + tables[found["name"]]().markdown() + found[4], text)


def save(figure: Any, name: str) -> None:
    """Write docs/images/<name>.svg, the same bytes for the same rows; places to a hundredth of a point."""
    import matplotlib

    IMAGES.mkdir(parents=True, exist_ok=True)
    drawn = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "allot", "svg.fonttype": "none"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    rounded = re.sub(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])", lambda found: f"{float(found[0]):.2f}", drawn.getvalue())
    (IMAGES / f"{name}.svg").write_text(rounded)
