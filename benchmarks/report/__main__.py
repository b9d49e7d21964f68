"""Write every table and plot that the pages mark: python -m benchmarks.report [--check].

With --check nothing is written; the answer is 1 where a page is not what its rows say.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.report import auction, lap, qap, uot
from benchmarks.report.page import DOCS, MARK, Plots, Tables, filled, save

TABLES: Tables = {**lap.TABLES, **auction.TABLES, **uot.TABLES, **qap.TABLES}
PLOTS: Plots = {**lap.PLOTS, **auction.PLOTS, **uot.PLOTS, **qap.PLOTS}


def pages() -> list[Path]:
    """Every page with a mark."""
    return [path for path in sorted(DOCS.rglob("*.md")) if MARK.search(path.read_text())]


def stale() -> list[Path]:
    """Pages whose tables are not what the rows say."""
    return [path for path in pages() if filled(path.read_text(), TABLES) != path.read_text()]


def draw() -> None:
    """Every plot."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with pyplot.rc_context({"font.size": 9}):
        for name, plot in PLOTS.items():
            figure = plot(pyplot)
            save(figure, name)
            pyplot.close(figure)


def main() -> int:
    """Write them all, or say which pages would change."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where a page would change")
    if parser.parse_args().check:
        for path in stale():
            print(f"{path.relative_to(DOCS.parent)} is not what its rows say")
        return int(bool(stale()))
    for path in stale():
        path.write_text(filled(path.read_text(), TABLES))
    draw()
    return 0


if __name__ == "__main__":
    sys.exit(main())
