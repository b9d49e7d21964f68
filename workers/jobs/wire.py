"""One connection to Redis that all coroutines of an event loop share: commands go out as they come, replies come back
in their order. A server that is silent for longer than `timeout_s` while somebody waits is given up, and all hear so.
"""

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import hiredis
import redis

from workers.jobs.job import StoreFull, Unavailable
from workers.jobs.scripts import Script
from workers.runtime.connection import ACKNOWLEDGE_S, address_of, refusal
from workers.runtime.primary import Address, primary_of, replicas_of

CONNECT_S = 1.0
LATE_S = 0.1
"""By as much the loop may come late to the clock. One that is later was busy: the silence may have been its own."""
PATIENCE = 5
"""How often CONNECT_S may pass while the loop was too busy to see that it is connected."""
NOTHING_YET = object()
OUT_OF_MEMORY = "Redis is out of memory and evicts nothing; wait for results to expire"
Argument = str | bytes | int | float
Command = tuple[Argument, ...]


class Cut(Unavailable):
    """There is no connection, or it broke: what was asked may have been done. Whatever may be asked twice, may be."""


@dataclass(slots=True)
class _Batch:
    """Commands that were sent together, and what has been answered of them."""

    count: int
    sent_at: float
    done: "asyncio.Future[list[Any]]"
    replies: list[Any] = field(default_factory=list)


class Wire(asyncio.Protocol):
    """A connection.

    Args:
        url: redis://, rediss:// or unix://, as redis-py reads them.
        timeout_s: the longest silence while a reply is due.
        on_message: is given every reply that nobody asked for; a connection that subscribes needs it.
    """

    def __init__(self, url: str, timeout_s: float = 1.0, on_message: Callable[[list[Any]], None] | None = None) -> None:
        self._url, self._replicas = url, replicas_of(url)
        self._timeout_s, self._on_message = timeout_s, on_message
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._batches: deque[_Batch] = deque()
        self._clock: asyncio.TimerHandle | None = None
        self._due_at = 0.0
        self._out: list[bytes] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._at: Address | None = None
        self.closed = asyncio.Event()

    async def ask(self, *commands: Command) -> list[Any]:
        """The replies to `commands`. The connection is opened, or opened again, if need be.

        Raises:
            Unavailable: Redis cannot be reached, is too slow, or does not take a command.
            StoreFull: it is out of memory.
        """
        while self._transport is None or self._opening is not None:
            await self.open()
        replies = await self._sent(commands)
        for reply in replies:
            if isinstance(reply, hiredis.ReplyError):
                raise self._meant(reply)
        return replies

    async def run(self, script: Script, *arguments: Argument) -> Any:
        """What a script answers, once as many replicas have its changes as the connection is asked for.

        Raises:
            Unavailable, StoreFull: as `ask`.
        """
        return (await self.run_all((script, arguments)))[0]

    async def run_all(self, *calls: tuple[Script, Sequence[Argument]]) -> list[Any]:
        """What scripts answer that go out together, and run one after the other whatever the first one answers.

        Raises as `run`; then each of them may have run.
        """
        while self._transport is None or self._opening is not None:
            await self.open()
        by_digest: list[Command] = [("EVALSHA", one.digest, 0, *given) for one, given in calls]
        answers = await (self._acknowledged(by_digest) if self._replicas else self._sent(by_digest))
        wrong = [answer for answer in answers if isinstance(answer, hiredis.ReplyError)]
        if wrong and any(str(answer).startswith("NOSCRIPT") for answer in wrong):
            by_text: list[Command] = [("EVAL", one.text, 0, *given) for one, given in calls]
            answers = await (self._acknowledged(by_text) if self._replicas else self._sent(by_text))
            wrong = [answer for answer in answers if isinstance(answer, hiredis.ReplyError)]
        if wrong:
            raise self._meant(wrong[0])
        return answers

    async def _acknowledged(self, commands: Sequence[Command]) -> list[Any]:
        *answers, reached = await self._sent((*commands, ("WAIT", self._replicas, int(1000 * ACKNOWLEDGE_S))))
        wrong = any(isinstance(answer, hiredis.ReplyError) for answer in answers)
        if isinstance(reached, int) and reached < self._replicas and not wrong:
            raise Unavailable(f"Redis takes no writes now: {reached} of {self._replicas} replicas have it; "
                              "it may yet count")  # fmt: skip
        return answers

    def _meant(self, reply: Exception) -> Exception:
        """What an error of Redis means. One that is no primary any more is left, so that the next is looked for."""
        text = str(reply)
        if text.startswith("OOM") or "OOM command not allowed" in text:
            return StoreFull(OUT_OF_MEMORY)
        if not (why := refusal(text)):
            return Unavailable(f"Redis does not take a command: {text}")
        if "READONLY" in text:
            asyncio.get_running_loop().call_soon(self._drop, "it is no primary any more")
        return Unavailable(f"Redis takes no writes now: {why}")

    async def open(self) -> None:
        """Connect; callers that come meanwhile share the attempt. Raises Unavailable."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_once())
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may wait for it
        await asyncio.shield(self._opening)

    async def _open_once(self) -> None:
        try:
            await self._open()
        finally:
            self._opening = None  # not in a callback: whoever is woken by the end of this must find it so

    async def _open(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        try:
            address = await loop.run_in_executor(None, address_of, self._url)  # sentinels may have to be asked
        except redis.RedisError as wrong:
            raise Cut("Redis does not answer: no sentinel knows where it is") from wrong
        await self._connect(address)
        if self._url.startswith("sentinel://"):
            primary_of(self._url).follow(self)
        greeting: list[Command] = []
        if address.get("password"):
            greeting.append(("AUTH", *filter(None, (address.get("username"), address["password"]))))
        if address.get("db"):
            greeting.append(("SELECT", address["db"]))
        for reply in await self._sent(greeting) if greeting else ():
            if isinstance(reply, hiredis.ReplyError):
                self.close()
                raise Unavailable(f"Redis does not let us in: {reply}")

    async def _connect(self, address: dict[str, Any]) -> None:
        connecting = asyncio.create_task(self._connect_to(address))
        loop = asyncio.get_running_loop()
        for _ in range(PATIENCE):
            begun = loop.time()
            await asyncio.wait({connecting}, timeout=CONNECT_S)
            if connecting.done() or loop.time() - begun < CONNECT_S + LATE_S:
                break
        try:
            if not connecting.done():
                connecting.cancel()
                raise TimeoutError
            await connecting
        except OSError as wrong:  # TimeoutError is one
            raise Cut("Redis does not answer: no connection") from wrong  # nobody need know where it was

    async def _connect_to(self, address: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        if "path" in address:
            await loop.create_unix_connection(lambda: self, address["path"])
        else:
            self._at = address.get("host", "localhost"), address.get("port", 6379)
            await loop.create_connection(lambda: self, *self._at, ssl=_tls(address))

    def send(self, *command: str) -> None:
        """Send a command whose reply goes to `on_message`, as SUBSCRIBE's and those after it do."""
        if self._transport is None:
            raise Unavailable("Redis does not answer: the connection is closed")
        self._transport.write(_packed(command))

    def _sent(self, commands: Sequence[Command]) -> "asyncio.Future[list[Any]]":
        """The replies to come. Raises Cut."""
        if self._transport is None:
            raise Cut("Redis does not answer: the connection is closed")
        loop = asyncio.get_running_loop()
        batch = _Batch(len(commands), loop.time(), loop.create_future())
        self._batches.append(batch)
        if not self._out:  # what else is asked before the loop comes round goes out in the same write
            loop.call_soon(self._flush)
        self._out.extend(map(_packed, commands))
        if self._clock is None:
            self._look_in(self._timeout_s)
        return batch.done

    def _flush(self) -> None:
        out, self._out = self._out, []
        if out and self._transport is not None:
            self._transport.write(b"".join(out))

    def _look_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._due_at = loop.time() + seconds
        self._clock = loop.call_later(seconds, self._look_at_the_clock)

    def _look_at_the_clock(self) -> None:
        self._clock = None
        if not self._batches:
            return
        now = asyncio.get_running_loop().time()
        if now - self._due_at > LATE_S:  # nothing was written or read meanwhile
            self._heard_at = now
        left_s = max(self._batches[0].sent_at, self._heard_at) + self._timeout_s - now
        if left_s <= 0:
            self._drop(f"no reply within {self._timeout_s:g} s", Unavailable)
        else:
            self._look_in(left_s)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._reader = hiredis.Reader(notEnoughData=NOTHING_YET)
        self._heard_at = asyncio.get_running_loop().time()
        self.closed.clear()

    def data_received(self, data: bytes) -> None:
        """Called by the loop: hand every whole reply to who waits for it."""
        self._heard_at = asyncio.get_running_loop().time()
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not NOTHING_YET:
                if not self._batches:
                    if self._on_message is not None and isinstance(reply, list):
                        self._on_message(reply)
                    continue
                batch = self._batches[0]
                batch.replies.append(reply)
                if len(batch.replies) == batch.count:
                    self._batches.popleft()
                    if not batch.done.done():
                        batch.done.set_result(batch.replies)
        except hiredis.ProtocolError as wrong:
            self._drop(str(wrong))

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._drop("the connection was cut")

    def moved(self, address: Address) -> None:
        """Leave a server that is not the primary any more; called in a thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the connection with it
                self._loop.call_soon_threadsafe(self._leave, address)

    def _leave(self, address: Address) -> None:
        if self._transport is not None and self._at != address:
            self._drop("it is no primary any more")

    def close(self) -> None:
        """Hang up."""
        self._drop("the connection is closed")

    def _drop(self, why: str, kind: type[Unavailable] = Cut) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.set_protocol(asyncio.Protocol())  # what it still has to say is not of the next connection
            transport.abort()
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        self._out = []
        batches, self._batches = self._batches, deque()
        for batch in batches:
            if not batch.done.done():
                batch.done.set_exception(kind(f"Redis does not answer: {why}"))
        self.closed.set()


def _packed(command: Command) -> bytes:
    return bytes(hiredis.pack_command(command))  # type: ignore[arg-type]  # its stub knows commands of one word


def _tls(address: dict[str, Any]) -> ssl.SSLContext | None:
    if not getattr(address.get("connection_class"), "__name__", "").startswith("SSL"):
        return None
    context = ssl.create_default_context(cafile=address.get("ssl_ca_certs"))
    if address.get("ssl_certfile"):
        context.load_cert_chain(address["ssl_certfile"], address.get("ssl_keyfile"))
    if str(address.get("ssl_cert_reqs", "required")) == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
