"""What the pages under docs show of measurements: Markdown tables on standard output, plots as files."""

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
    """Write docs/images/<name>.svg, the same bytes for the same rows."""
    import matplotlib

    IMAGES.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "allot"}):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
