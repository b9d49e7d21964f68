"""A picture as SVG text: dots, lines, cells and words. Numbers are rounded, so that files stay small."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

INK, SOFT, FOUND, LINE = "#1c1f26", "#7a7f8a", "#2458d3", "#d9d9d4"
RAMP = ("#f3f0dc", "#cfe0a6", "#93c98a", "#4fa79a", "#2f7fa9", "#3a55a4", "#3d2b80")


class Picture:
    """Draws in pixels from the upper left corner."""

    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)
        self._marks: list[str] = []

    def dots(self, points: Any, radius: float = 4, fill: str | Sequence[str] = INK) -> None:
        """A dot for each point; `fill` is one colour, or one for each."""
        fills = [fill] * len(points) if isinstance(fill, str) else fill
        groups: dict[str, list[str]] = {}
        for (x, y), colour in zip(points, fills, strict=True):
            groups.setdefault(colour, []).append(f"M{x:.0f} {y:.0f}h0")
        for colour, group in groups.items():  # a line of no length with round ends is a dot, and takes few bytes
            way = "".join(group)
            self._marks.append(
                f'<path d="{way}" stroke="{colour}" stroke-width="{2 * radius}" stroke-linecap="round"/>'
            )

    def lines(self, begin: Any, end: Any, stroke: str = FOUND, width: float | Iterable[float] = 1.5) -> None:
        """A line from each point of `begin` to that of `end`; `width` is one for all, or one for each."""
        if isinstance(width, int | float):
            way = "".join(f"M{a:.0f} {b:.0f}L{c:.0f} {d:.0f}" for (a, b), (c, d) in zip(begin, end, strict=True))
            self._marks.append(f'<path d="{way}" stroke="{stroke}" stroke-width="{width}" opacity=".75"/>')
            return
        self._marks += [
            f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" stroke="{stroke}" stroke-width="{wide:.2f}" opacity=".75"/>'
            for (a, b), (c, d), wide in zip(begin, end, width, strict=True)
        ]

    def box(self, x: float, y: float, w: float, h: float, fill: str = "none", stroke: str = LINE) -> None:
        """A rectangle."""
        self._marks.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{fill}" stroke="{stroke}"/>'
        )

    def heat(self, matrix: Any, x: float, y: float, cell: float) -> None:
        """A square for each entry; more is darker."""
        values = np.asarray(matrix, dtype=float)
        steps = np.minimum(len(RAMP) * values / (values.max() or 1.0), len(RAMP) - 1).astype(int)
        self.box(x, y, values.shape[1] * cell, values.shape[0] * cell, RAMP[0])
        for step in range(1, len(RAMP)):
            corners = zip(*np.nonzero(steps == step), strict=True)
            way = "".join(f"M{x + j * cell:g} {y + i * cell:g}h{cell:g}v{cell:g}h{-cell:g}" for i, j in corners)
            self._marks.append(f'<path d="{way}" fill="{RAMP[step]}" stroke="none"/>')

    def label(self, x: float, y: float, text: object, size: int = 13, fill: str = INK, anchor: str = "start") -> None:
        """Words that begin, end or have their middle at a point."""
        self._marks.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">'
            f"{escape(str(text))}</text>"
        )

    def save(self, path: Path) -> None:
        """Write it as an .svg."""
        width, height = self._size
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        head += (
            f'height="{height}" font-family="system-ui, sans-serif">\n<rect width="100%" height="100%" fill="#fff"/>\n'
        )
        path.write_text(head + "\n".join(self._marks) + "\n</svg>\n")
