"""Where the primary of a Redis under Sentinel is, and nobody left behind at one that it was.

A primary that was frozen or cut off still takes itself for one when it is back, until a sentinel tells it otherwise.
Whoever has kept a connection to it would read what was true before: a job that was made since would be unknown. So one
thread of a process asks all sentinels twice a second, and ends every connection to any other server.
"""

import contextlib
import functools
import socket
import threading
import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, SentinelManagedConnection

from workers.runtime.pool import PrimaryPool

LOOK_EVERY_S = 0.5
ASK_S = 1.0
"""A sentinel that has not answered by then is passed over."""
FORGET_S = 15.0
"""A sentinel hears of news from the others every 2 s. If all go on with an earlier epoch, they were set up anew."""
QUOTED = "-READONLY "
"""In what Redis 6.2 says of a script that a replica refused. Redis 7 begins with it, as of other commands."""
Address = tuple[str, int]


class Follower(Protocol):
    """Who has a connection to the primary."""

    def moved(self, address: Address) -> None:
        """The primary is there now: leave any other. Called in a thread of its own."""


@dataclass(frozen=True, order=True)
class _Told:
    """What one sentinel says; of two that differ the later epoch is right."""

    epoch: int
    address: Address
    down: bool


class Primary:
    """The primary of one name.

    Args:
        name: under which the sentinels watch it.
        sentinels: clients of theirs.
    """

    def __init__(self, name: str, sentinels: Iterable[Any]) -> None:
        self.name, self._sentinels = name, list(sentinels)
        self._known: _Told | None = None
        self._followers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._sure_at = 0.0
        self._watching = False

    def find(self) -> Address:
        """Where it is, as the first sentinel says that answers, unless another one knew later news.

        Raises:
            redis.ConnectionError: none knows.
        """
        for sentinel in list(self._sentinels):
            told = self._asked(sentinel)
            if told is not None and not told.down:
                others = [one for one in self._sentinels if one is not sentinel]
                self._sentinels = [sentinel, *others]  # who answers is asked first the next time
                return self._believe(told)
        raise MasterNotFoundError(f"no sentinel knows where {self.name!r} is")

    def discover_master(self, name: str) -> Address:
        """`find`, by the name under which redis-py's pools ask."""
        return self.find()

    def follow(self, follower: Follower) -> None:
        """Tell `follower`, who has just connected, when the primary is another, for as long as it lives."""
        with self._lock:
            self._followers.add(follower)
            known = self._known
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="primary", daemon=True).start()
        if known is not None:  # it may have moved while the connection was made
            follower.moved(known.address)

    def _asked(self, sentinel: Any) -> _Told | None:
        try:
            state = sentinel.sentinel_masters().get(self.name)
            address = sentinel.sentinel_get_master_addr_by_name(self.name)
        except (redis.RedisError, OSError, LookupError, ValueError):  # or it says what is no state of a primary
            return None
        if state is None or not state["is_master"] or not address:
            return None
        # who leads a failover counts it before it has written the new address into the state of the old primary
        down = address == (state["ip"], state["port"]) and (state["is_sdown"] or state["is_odown"])
        return _Told(state["config-epoch"], address, down)

    def _believe(self, told: _Told) -> Address:
        with self._lock:
            known, now = self._known, time.monotonic()
            if known is not None and told.epoch < known.epoch and now - self._sure_at < FORGET_S:
                return known.address
            self._known, self._sure_at = told, now
            behind = list(self._followers) if known is not None and known.address != told.address else []
        for follower in behind:
            follower.moved(told.address)
        return told.address

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            with self._lock:
                if not self._followers:
                    self._watching = False
                    return
            told = [found for found in map(self._asked, list(self._sentinels)) if found is not None]
            if told:
                self._believe(max(told))


class PrimaryConnection(SentinelManagedConnection):
    """A connection of redis-py's to the primary, which ends when the primary is another.

    What redis-py makes for Sentinel stays open after a reply that did not come in time. That reply would be read as the
    answer to the next command, which may be about the job of somebody else. A command whose connection was cut it sends
    again to the same server, which may be a replica by now. A replica that refuses a script it believes to be the
    primary: Redis 6.2 quotes READONLY in an error of the script's.
    """

    def connect_to(self, address: Address) -> None:
        """Connect, and follow the primary from then on."""
        super().connect_to(address)  # type: ignore[no-untyped-call]
        self.connection_pool.sentinel_manager.follow(self)

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send a command. Where the primary is, is asked anew once the connection was cut."""
        if self._sock is None:
            self.connect_to(self.connection_pool.get_master_address())
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]

    def read_response(self, *args: Any, disconnect_on_error: bool | None = True, **options: Any) -> Any:
        """One reply; a connection without it is closed, and so is one to a replica that had to write.

        Raises:
            redis.ConnectionError: besides what redis-py raises, for a script that a replica refused.
        """
        try:
            return super().read_response(*args, disconnect_on_error=disconnect_on_error, **options)
        except redis.ResponseError as error:
            if QUOTED not in str(error):
                raise
            self.disconnect()  # type: ignore[no-untyped-call]
            raise redis.ConnectionError("it is no primary any more") from error

    def moved(self, address: Address) -> None:
        """End the connection to any other; who is reading from it hears that it was cut."""
        held: Any = self._sock
        if held is not None and (self.host, self.port) != address:
            with contextlib.suppress(OSError):  # it is closed already
                held.shutdown(socket.SHUT_RDWR)


@functools.lru_cache(64)
def primary_of(url: str) -> Primary:
    """The one `Primary` of this process for a sentinel:// URL."""
    parts = urlsplit(url)
    password = parse_qs(parts.query).get("sentinel_password", [None])[0]
    sentinels = [
        redis.Redis(
            *_address(host),
            password=password,
            socket_timeout=ASK_S,
            socket_connect_timeout=ASK_S,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )
        for host in parts.netloc.rpartition("@")[2].split(",")
    ]
    return Primary(parts.path.strip("/") or "allot", sentinels)


def login_of(url: str) -> dict[str, Any]:
    """User, password and number of the database, of a sentinel:// URL."""
    parts = urlsplit(url)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    number = int(parse_qs(parts.query).get("db", ["0"])[0])
    return {"username": user or None, "password": password or None, "db": number}


def replicas_of(url: str) -> int:
    """How many replicas a sentinel:// URL asks for, 0 for other URLs."""
    parts = urlsplit(url)
    return int(parse_qs(parts.query).get("min_replicas", ["0"])[0]) if parts.scheme == "sentinel" else 0


def pool_of(url: str, options: dict[str, Any]) -> Any:
    """A pool of connections to the primary of a sentinel:// URL."""
    primary, login = primary_of(url), {**login_of(url), **options}
    return PrimaryPool(primary.name, primary, connection_class=PrimaryConnection, **login)


def _address(host: str) -> Address:
    name, _, port = host.rpartition(":")
    return (name.strip("[]"), int(port)) if name and port.isdecimal() else (host, 26379)
