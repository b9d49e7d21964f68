"""How far a job is, as one line of a terminal that overwrites itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

LINE = 100
"""Characters of the line."""
BLOCKS = 20


def wanted(asked: bool | None) -> bool:
    """Whether to show progress: on a terminal alone, whatever was asked, so that no log fills up with it."""
    return asked is not False and sys.stderr.isatty()


def show(progress: Mapping[str, Any]) -> None:
    """One line on standard error: the phase, how much of it is done, and what is known so far."""
    fraction, gap, objective = progress.get("fraction"), progress.get("gap"), progress.get("objective")
    phase = str(progress.get("phase") or "")
    done = "" if fraction is None else f" {fraction:.0%} [{'#' * round(BLOCKS * fraction):.<{BLOCKS}}]"
    known = "" if objective is None else f"  {objective}"
    known += "" if gap is None else f"  gap {gap:.3%}"
    line = (
        f"{progress.get('elapsed_s') or 0.0:7.1f} s  {phase}{done}  iteration {progress.get('iteration') or 0}{known}"
    )
    print(f"{line:{LINE}}"[:LINE], end="\r", file=sys.stderr, flush=True)


def clear() -> None:
    """Take the line away."""
    print(" " * LINE, end="\r", file=sys.stderr, flush=True)
