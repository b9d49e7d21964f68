"""What the pages under docs show of measurements: Markdown tables on standard output, plots as files."""

import io
import re
from typing import Any

from benchmarks.rows import RESULTS

IMAGES = RESULTS.parent.parent / "docs" / "images"


def table(head: list[str], lines: list[list[Any]]) -> None:
    """A table of numbers to three digits, words as they are, and "-" for what was not measured."""
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(map(cell, line)) + " |")
    print()


def cell(value: Any) -> str:
    """One entry of a table."""
    if not isinstance(value, (int, float)):
        return "-" if value is None else str(value)
    whole = isinstance(value, int) or abs(value) < 1e7
    return f"{value:,.0f}" if abs(value) >= 100 and whole else f"{value:.3g}"


def save(figure: Any, name: str) -> None:
    """Write docs/images/<name>.svg, the same bytes for the same rows; places to a hundredth of a point."""
    import matplotlib

    IMAGES.mkdir(parents=True, exist_ok=True)
    drawn = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "allot", "svg.fonttype": "none"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    rounded = re.sub(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])", lambda found: f"{float(found[0]):.2f}", drawn.getvalue())
    (IMAGES / f"{name}.svg").write_text(rounded)
