"""The client of `client/` against the session's service."""

from collections.abc import Iterator

import pytest
from allot_client import Client
from allot_client.scipy import default_client

from tests.app.conftest import Service, owners

__all__ = ["owners"]


@pytest.fixture(scope="session")
def allot(service: Service) -> Iterator[Client]:
    with Client(service.url) as client:
        yield client


@pytest.fixture
def default_service(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The drop-in functions find the service by ALLOT_URL."""
    monkeypatch.setenv("ALLOT_URL", service.url)
    default_client.cache_clear()
    yield
    default_client.cache_clear()
