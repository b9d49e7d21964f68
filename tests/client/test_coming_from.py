"""docs/coming-from.md, run: both columns of a table on the same data."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allot_client import Client

PAGE = (Path(__file__).parent.parent.parent / "docs" / "coming-from.md").read_text()
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
NOT_RUN = ("cuOpt",)
"""Needs a GPU and a server of its own."""
CLOSE: dict[str, Any] = {"rtol": 5e-3, "atol": 1e-5}
"""A relative gap of 1e-6 leaves entries of a plan so far apart; objectives are much closer."""


def code_of(text: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))


def lines() -> Iterator[Any]:
    for section in SECTIONS[1:]:
        title = section.partition("\n")[0]
        rows = re.findall(r"^\| `(.+)` \| `(.+)`(?: \((.+)\))? \|$", section, flags=re.MULTILINE)
        assert rows, title
        if title not in NOT_RUN:
            for k, (theirs, ours, how) in enumerate(rows):
                yield pytest.param(code_of(section), theirs, ours, how, id=f"{title}-{k}")


@pytest.mark.usefixtures("default_service")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("begin", "theirs", "ours", "how"), list(lines()))
def test_both_say_the_same(allot: Client, begin: str, theirs: str, ours: str, how: str) -> None:
    names: dict[str, Any] = {}
    exec(code_of(SECTIONS[0]), names)
    try:
        exec(begin, names)
    except ImportError as missing:
        pytest.skip(f"{missing.name} is not installed")
    expected, found = eval(theirs, names), eval(ours, names)
    if how == "no worse":
        assert found <= expected + 1e-9 * abs(expected)  # an objective is rounded away from its bound
        return
    several = isinstance(expected, (list, tuple))
    pairs = zip(expected, found, strict=True) if several else [(expected, found)]
    for left, right in pairs:
        np.testing.assert_allclose(np.asarray(right, float), np.asarray(left, float), **CLOSE)
