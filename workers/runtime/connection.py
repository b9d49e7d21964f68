"""One way to reach Redis, and one exception when it cannot be reached."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from workers.jobs.job import StoreFull, Unavailable

P = ParamSpec("P")
T = TypeVar("T")

SOCKET_TIMEOUT_S = 30.0
"""Longer than any blocking read that Allot asks for, so that only a dead server runs into it."""


def connect(url: str, *, text: bool = True, most: int = 100) -> Any:
    """A client for `url` with at most `most` connections; `text` decodes replies to str (RQ needs bytes).

    A dropped connection is tried again twice within half a second: enough for a server that restarts under a
    supervisor to be missed by few, short enough that callers hear of a dead one.
    """
    return redis.Redis.from_url(
        url,
        decode_responses=text,
        max_connections=most,
        socket_timeout=SOCKET_TIMEOUT_S,
        socket_connect_timeout=2.0,
        retry=Retry(ExponentialWithJitterBackoff(base=0.02, cap=0.25), 2),
        health_check_interval=30,
    )


def _kind(error: Exception) -> str:
    """What went wrong in words that name no address, since anybody may read them."""
    if isinstance(error, redis.TimeoutError):
        return "no reply in time"
    return "it takes no writes" if isinstance(error, redis.exceptions.ReadOnlyError) else "no connection"


def guarded(call: Callable[P, T]) -> Callable[P, T]:
    """Turn what redis-py raises into `Unavailable` (cannot be reached) and `StoreFull` (out of memory)."""

    @functools.wraps(call)
    def guard(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ReadOnlyError) as error:
            raise Unavailable(f"Redis does not answer: {_kind(error)}") from error
        except redis.exceptions.OutOfMemoryError as error:
            raise StoreFull("Redis is out of memory and evicts nothing; wait for results to expire") from error

    return guard
