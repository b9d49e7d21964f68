"""One owner attacks: hostile requests on many connections, half-open ones, held streams, and workers kept busy.

    python -m tests.attack.flood URL KEY --requests 34000 --seconds 300

It ends when so many were answered or the time is over, and prints one line of JSON: how many requests were sent, and
the statuses of their answers. `python -m tests.attack.neighbour` starts it.
"""

import argparse
import asyncio
import contextlib
import json
import os
import time
from collections import Counter
from urllib.parse import urlsplit

from tests.attack.hostile import Hostile, Shot

CONNECTIONS, HALF_OPEN, STREAMS, BUSY = 96, 400, 300, 8
HOLD_S = 1.0
"""Time limit of the jobs that keep the workers busy."""
PATIENCE_S = 60.0
HALVES = (
    b"",
    b"GET /v1/jobs HT",
    b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{",
    b"\x16\x03\x01\x00",
)
GENTLER = 5
"""The attack's own work runs on the machine of the service; it must not take its cores."""


class Attack:
    """Everything at once, until `enough`."""

    def __init__(self, url: str, key: str, requests: int, seconds: float, seed: int) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._key, self._requests, self._until = key, requests, time.monotonic() + seconds
        self._hostile = Hostile(seed)
        self.sent, self.statuses, self.faults = 0, Counter[int](), list[str]()
        self._last = ""

    def enough(self) -> bool:
        """Whether the attack is over."""
        return self.sent >= self._requests or time.monotonic() > self._until

    async def run(self) -> None:
        """Attack."""
        first = await self._hold_workers()
        beside = [self._keep_busy(), self._half_open(), *(self._stream(first) for _ in range(STREAMS))]
        tasks = [asyncio.create_task(one) for one in beside]
        await asyncio.gather(*(self._shoot() for _ in range(CONNECTIONS)))
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.wait_for(asyncio.open_connection(self._host, self._port), PATIENCE_S)

    async def _shoot(self) -> None:
        pair = None
        while not self.enough():
            shot = self._hostile.shot()
            self.sent += 1
            try:
                pair = pair or await self._open()
                status, answer, kept = await asyncio.wait_for(self._ask(*pair, shot), PATIENCE_S)
            except (OSError, EOFError, TimeoutError, ValueError) as error:
                self.statuses[0 if not isinstance(error, TimeoutError) else -1] += 1
                kept, answer, status = False, b"", 0
            if status == 500 or status >= 504:
                self.faults.append(
                    f"{status} {shot.verb} {shot.path[:120]} {shot.headers} {shot.body[:160]!r} {answer[:200]!r}"
                )
            if status:
                self.statuses[status] += 1
            if shot.verb == "POST":
                self._hostile.targets.seen(answer)
            if not kept and pair is not None:
                pair[1].close()
                pair = None

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, shot: Shot
    ) -> tuple[int, bytes, bool]:
        """Status and body of the answer, and whether the connection goes on."""
        headers = {"Host": "localhost", "Authorization": f"Bearer {self._key}", **dict(shot.headers)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{shot.verb} {shot.path} HTTP/1.1\r\n{lines}Content-Length: {len(shot.body)}\r\n\r\n"
        writer.write(head.encode("latin-1") + shot.body)
        return await answered(reader, shot.verb)

    async def _hold_workers(self) -> str:
        reader, writer = await self._open()
        _, told, _ = await self._ask(reader, writer, holder(0))
        writer.close()
        return str(json.loads(told)["id"])

    async def _keep_busy(self) -> None:
        """Have jobs waiting that take all their time."""
        reader, writer = await self._open()
        for number in range(1, 1 << 30):
            status, told, kept = await self._ask(reader, writer, holder(number))
            if not kept:
                reader, writer = await self._open()
            if status == 202 and json.loads(told)["queue_position"] < BUSY:
                continue
            await asyncio.sleep(HOLD_S)

    async def _half_open(self) -> None:
        """Connections in which there is no whole request, opened again as they are closed."""
        held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        while True:
            held = [pair for pair in held if not pair[0].at_eof()]
            while len(held) < HALF_OPEN:
                with contextlib.suppress(OSError):
                    held.append(await self._open())
                    held[-1][1].write(HALVES[len(held) % len(HALVES)])
                await asyncio.sleep(0.002)
            await asyncio.sleep(0.5)

    async def _stream(self, job: str) -> None:
        """An event stream, opened again whenever it ends."""
        while True:
            with contextlib.suppress(OSError, EOFError):
                reader, writer = await self._open()
                head = f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {self._key}\r\n\r\n"
                writer.write(head.encode())
                await reader.read()
                writer.close()
            await asyncio.sleep(2)


def holder(number: int) -> Shot:
    """A job that takes all of HOLD_S."""
    matrix = [[(i * 7 + j * 13 + number) % 31 if i != j else 0 for j in range(40)] for i in range(40)]
    job = {"solver": "qap", "inputs": {"flow": matrix, "distance": matrix}, "time_limit_s": HOLD_S}
    return Shot("POST", "/v1/jobs", json.dumps(job).encode(), (("Content-Type", "application/json"),))


async def answered(reader: asyncio.StreamReader, verb: str) -> tuple[int, bytes, bool]:
    """Status and body of one answer, and whether another may follow. Raises EOFError, ValueError."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status = int(head[9:12])
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    kept = fields.get("connection") != "close"
    if verb == "HEAD" or status in (204, 304):
        return status, b"", kept
    if fields.get("transfer-encoding") == "chunked":
        whole = bytearray()
        while size := int(await reader.readline(), 16):
            whole += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return status, bytes(whole), kept
    return status, await reader.readexactly(int(fields.get("content-length", "0"))), kept


def main() -> None:
    """Attack, and say what was answered."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("url")
    parser.add_argument("key")
    parser.add_argument("--requests", type=int, default=34_000)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with contextlib.suppress(OSError):
        os.nice(GENTLER)
    attack = Attack(arguments.url, arguments.key, arguments.requests, arguments.seconds, arguments.seed)
    asyncio.run(attack.run())
    statuses = {str(status): count for status, count in sorted(attack.statuses.items())}
    print(json.dumps({"sent": attack.sent, "statuses": statuses, "faults": attack.faults[:20]}))


if __name__ == "__main__":
    main()
