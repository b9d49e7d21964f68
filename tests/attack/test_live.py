"""A share of `make attack`: every answer of a live service is as documented, whatever is asked."""

import os
from pathlib import Path

import pytest

from tests.attack.__main__ import attack, service

SECONDS = int(os.environ.get("SECONDS", "45"))
"""`make test` and its fuzzer of the decoders together attack for a minute."""


@pytest.mark.timeout(600)
def test_requests_of_every_kind_are_answered_as_documented(tmp_path: Path) -> None:
    with service(tmp_path) as url:
        assert attack(url, SECONDS, tmp_path) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
