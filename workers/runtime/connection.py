"""One way to reach Redis, one meaning for each way in which it refuses, and no wait without an end.

A client that `connect` makes has three pools, for three patiences: reads, which answer at once or not at all; writes,
which may meet a disk that is slow; and commands that are meant to block.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.client import Pipeline
from redis.connection import parse_url
from redis.retry import Retry

from workers.jobs.job import StoreFull, Unavailable
from workers.runtime.clock import Clock
from workers.runtime.kept import Kept, nothing
from workers.runtime.pool import Pool
from workers.runtime.primary import login_of, pool_of, primary_of, replicas_of

P = ParamSpec("P")
T = TypeVar("T")

READ_S = 1.0
"""A read that takes longer asks a Redis that is frozen, or as good as that."""
WRITE_S = 3.0
"""Redis itself waits for up to 2 s for a disk that is slow with its append-only file."""
BLOCK_S = 30.0
"""Longer than any blocking read that Allot asks for, so that only a dead server runs into it."""
CONNECT_S = 1.0
ACKNOWLEDGE_S = 1.0
"""How long a write waits for its replicas."""
MOST_CONNECTIONS = 1024
"""Of one pool; the callers' own limits are below it."""
READS = {
    "PING", "TIME", "INFO", "GET", "MGET", "HGET", "HMGET", "HGETALL", "HEXISTS", "EXISTS", "LLEN", "LPOS", "LRANGE",
    "ZCARD", "ZCOUNT", "ZSCORE", "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "SMEMBERS", "SCARD", "XRANGE",
    "XREVRANGE", "XREAD",
}  # fmt: skip
BLOCKING = {"BLMOVE", "BLPOP", "BRPOP", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP", "XREADGROUP"}
REFUSED = re.compile(r"(?:^|[ -])(MISCONF|NOREPLICAS|MASTERDOWN|READONLY|BUSY|UNBLOCKED) ")
"""How these errors begin, or how a script quotes them in its own."""


class CannotWrite(redis.ConnectionError):
    """Redis answers and takes no writes now: its disk fails, its replicas are gone, or it is no primary any more."""


class NoRoom(redis.ConnectionError):
    """Redis is at its maxmemory. Like one that is away it comes back, so whoever waits for that waits for this."""


class Client(redis.Redis):
    """A client whose errors say what is meant, and whose commands wait as long as their kind may.

    Args:
        pool: connections for writes.
        reading, blocking: clients for the two other kinds.
        replicas: how many must have a script's changes before its answer counts.
    """

    def __init__(self, pool: Any, reading: Any, blocking: Any, replicas: int = 0) -> None:
        super().__init__(connection_pool=pool)
        self._reading, self._blocking, self._replicas = reading, blocking, replicas
        self._scripts, self._looks = Kept(pool), Kept(reading.connection_pool)
        self.clock = Clock(reading.time)

    @property
    def blocking_pool(self) -> Any:
        """Connections for who waits on one for long."""
        return self._blocking.connection_pool

    def now(self) -> float:
        """Redis's time, in seconds since 1970."""
        return self.clock.now()

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send one command.

        Raises:
            NoRoom, CannotWrite: besides what redis-py raises.
        """
        with meant():
            if args[0] in BLOCKING or b"BLOCK" in args:
                return self._blocking.execute_command(*args, **options)
            if args[0] in READS:
                return self._reading.execute_command(*args, **options)
            if self._replicas and args[0] in ("EVAL", "EVALSHA"):
                return self._acknowledged(*args)
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def run(self, digest: str, text: str, arguments: Sequence[Any], meanwhile: Callable[[], object] = nothing) -> Any:
        """What a script answers; `meanwhile` as of `Kept`. Raises NoRoom, CannotWrite besides what redis-py raises."""
        if self._replicas:
            return self.register_script(text)(args=arguments)
        try:
            return self._scripts.ask(super().execute_command, "EVALSHA", digest, 0, *arguments, meanwhile=meanwhile)
        except redis.exceptions.NoScriptError:
            return self.execute_command("EVAL", text, 0, *arguments)
        except redis.ResponseError:
            with meant():
                raise

    def look(self, digest: str, text: str, arguments: Sequence[Any]) -> Any:
        """What a script answers that changes nothing, with the patience of a read and whatever replicas have."""
        with meant():
            try:
                return self._looks.ask(self._reading.execute_command, "EVALSHA", digest, 0, *arguments)
            except redis.exceptions.NoScriptError:
                return self._reading.execute_command("EVAL", text, 0, *arguments)

    def _acknowledged(self, *args: Any) -> Any:
        """The answer of a script, once replicas have its changes. WAIT is for what its own connection wrote."""
        with self.pipeline(transaction=False) as pipeline:
            pipeline.execute_command(*args)  # type: ignore[no-untyped-call]
            pipeline.execute_command("WAIT", self._replicas, int(1000 * ACKNOWLEDGE_S))  # type: ignore[no-untyped-call]
            answer, reached = pipeline.execute()
        if reached < self._replicas:
            raise CannotWrite(f"{reached} of {self._replicas} replicas have it; it may yet count")
        return answer

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> "MeantPipeline":
        """Several commands at once, waited for as writes are."""
        return MeantPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)

    def pubsub(self, **options: Any) -> Any:
        """A subscription, which waits as long as a blocking read."""
        return self._blocking.pubsub(**options)

    def close(self) -> None:
        """Close what is open."""
        for kept in (getattr(self, "_scripts", None), getattr(self, "_looks", None)):
            if kept is not None:
                kept.close()
        super().close()
        for other in (getattr(self, "_reading", None), getattr(self, "_blocking", None)):
            if other is not None:
                other.close()


class MeantPipeline(Pipeline):
    """A pipeline whose errors say what is meant."""

    def execute(self, raise_on_error: bool = True) -> Any:
        """Send what was gathered. Raises NoRoom, CannotWrite besides what redis-py raises."""
        with meant():
            return super().execute(raise_on_error)


def connect(url: str, *, text: bool = True, most: int = MOST_CONNECTIONS, limit_s: float | None = None) -> Any:
    """A client for `url`; `text` decodes replies to str (RQ needs bytes).

    A dropped connection is tried again twice within half a second: enough for a server that restarts under a
    supervisor to be missed by few, short enough that callers hear of a dead one. One that does not answer in time is
    not tried again.

    Args:
        url: redis://, rediss://, unix:// or sentinel://[:password@]host:port[,host:port...]/primary, the last with
            ?db=, ?sentinel_password= and ?min_replicas= (see docs/operations/sentinel.md).
        text: decode.
        most: connections of each of the three pools.
        limit_s: for every command, in place of the usual patiences.
    """
    options = {
        "decode_responses": text,
        "encoding_errors": "replace",
        "socket_connect_timeout": CONNECT_S,
        "max_connections": most,
    }
    pools = [
        _pool(url, options | {"socket_timeout": limit_s or timeout_s, "retry": _retry(0 if limit_s else 2)})
        for timeout_s in (WRITE_S, READ_S, BLOCK_S)
    ]
    reading, blocking = (redis.Redis.from_pool(pool) for pool in pools[1:])
    client = Client(pools[0], reading, blocking, replicas_of(url))
    client.auto_close_connection_pool = True
    return client


def address_of(url: str) -> dict[str, Any]:
    """Where Redis is, as redis-py's `parse_url` tells it; of a sentinel:// URL, where the primary is now.

    Raises:
        redis.ConnectionError: no sentinel knows.
    """
    if not url.startswith("sentinel://"):
        return dict(parse_url(url))  # type: ignore[no-untyped-call]
    host, port = primary_of(url).find()
    return {name: value for name, value in login_of(url).items() if value} | {"host": host, "port": port}


def _retry(times: int) -> Retry:
    return Retry(ExponentialWithJitterBackoff(base=0.02, cap=0.25), times, (redis.ConnectionError,))


def _pool(url: str, options: dict[str, Any]) -> Any:
    if url.startswith("sentinel://"):
        return pool_of(url, options)
    return Pool.from_url(url, health_check_interval=30, **options)


@contextlib.contextmanager
def meant() -> Iterator[None]:
    """Raise what an error of Redis means; a script words the errors of its commands in its own way."""
    try:
        yield
    except (CannotWrite, NoRoom):
        raise
    except redis.exceptions.ReadOnlyError as error:
        raise CannotWrite(f"READONLY {error}") from error
    except redis.ResponseError as error:
        text = str(error)
        if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM command not allowed" in text:
            raise NoRoom(text) from error
        if why := refusal(text):
            raise CannotWrite(why) from error
        raise


def refusal(text: str) -> str:
    """Why Redis takes no writes, in its own words and without the command; "" for any other error."""
    said = text.rpartition("of pipeline caused error: ")[2]
    found = REFUSED.search(said)
    return said[found.start(1) :] if found else ""


def _kind(error: Exception) -> str:
    """What went wrong in words that name no address, since anybody may read them."""
    return "no reply in time" if isinstance(error, redis.TimeoutError) else "no connection"


def guarded(call: Callable[P, T]) -> Callable[P, T]:
    """Turn what redis-py raises into `Unavailable` (cannot be reached) and `StoreFull` (out of memory)."""

    @functools.wraps(call)
    def guard(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except NoRoom as error:
            raise StoreFull("Redis is out of memory and evicts nothing; wait for results to expire") from error
        except CannotWrite as error:
            raise Unavailable(f"Redis takes no writes now: {error}") from error
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise Unavailable(f"Redis does not answer: {_kind(error)}") from error

    return guard
