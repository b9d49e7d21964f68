"""The workbench against one service: embedded Redis, one CPU worker, the API on a free port; and a browser."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.conftest import Service, client, service
from tests.web.browser import chromium

__all__ = ["Service", "client", "service"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    with chromium() as found:
        yield found
