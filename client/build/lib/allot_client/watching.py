"""Progress bars, by tqdm or rich where one of them is installed; without them nothing is shown."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

Bar = tuple[Callable[[], Any], Callable[[], Any]]
"""(one more is done, all is over)."""


def open_bar(shown: bool, total: int | None) -> Bar:
    """A bar for `total` things (None: not known)."""
    if shown and find_spec("tqdm") is not None:
        from tqdm.auto import tqdm

        bar = tqdm(total=total, unit="job")
        return bar.update, bar.close
    if shown and find_spec("rich") is not None:
        from rich.progress import Progress

        progress = Progress()
        progress.start()
        task = progress.add_task("jobs", total=total)
        return lambda: progress.advance(task), progress.stop
    return (lambda: None), (lambda: None)
