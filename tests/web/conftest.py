"""The workbench against one service: embedded Redis, one CPU worker, the API on a free port."""

from tests.app.conftest import Service, client, service

__all__ = ["Service", "client", "service"]
