"""Server-sent events (the HTML standard, 9.2.6), line by line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """Something that happened to a job: `kind` is "state", "progress" or "incumbent"."""

    kind: str
    data: Mapping[str, Any]
    id: str | None = None


class Lines:
    """Feed lines, get events."""

    def __init__(self) -> None:
        self._kind, self._data = "message", list[str]()
        self.last_id: str | None = None

    def headers(self) -> dict[str, str]:
        """Of a request that goes on behind the last event that came."""
        return {"Accept": "text/event-stream", **({"Last-Event-ID": self.last_id} if self.last_id else {})}

    def feed(self, line: str) -> Event | None:
        """Take one line without its end; an empty one completes an event."""
        if not line:
            event = None
            if self._data:
                event = Event(self._kind, json.loads("\n".join(self._data)), self.last_id)
            self._kind, self._data = "message", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self.last_id = value
        return None
