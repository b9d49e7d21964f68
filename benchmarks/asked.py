"""What of a call of our client passes before its request goes out, and after its answer begins to come."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from allot_client import Client, quick


class Call(NamedTuple):
    """An answer, and milliseconds: until it was there, before its request, and after the answer's first byte."""

    answer: Any
    ms: float
    preparing_ms: float
    reading_ms: float

    @property
    def from_post_ms(self) -> float:
        """From the request's first byte until the answer was there."""
        return self.ms - self.preparing_ms


class Asked:
    """A client as anybody has it, of whose last request is known when it went out and when its answer came."""

    def __init__(self, client: Client) -> None:
        self.client, self._begun, self._sent = client, 0.0, 0.0
        line = client._quick
        assert line is not None
        ask, content = line.ask, quick._content

        def goes(call: Any) -> Any:
            self._sent = time.perf_counter()
            return ask(call)

        def came(response: Any) -> Any:
            self._begun = time.perf_counter()
            return content(response)

        line.ask = goes  # type: ignore[method-assign]
        quick._content = came

    def __call__(self, solve: Callable[[], Any]) -> Call:
        """Of one call that makes one request."""
        started = time.perf_counter()
        answer = solve()
        ended = time.perf_counter()
        return Call(answer, *(1e3 * one for one in (ended - started, self._sent - started, ended - self._begun)))
