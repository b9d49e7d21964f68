"""What `allot_client` adds to a raw request: python -m benchmarks.client [--calls 300] [--mebibytes 64].

A service of its own with one worker. The same small job is posted by the client, and by httpx with the same body and
headers, in turn. Then the same array goes up as a blob by `client.upload`, and by httpx with bytes that are laid out
already. Bytes differ each time, since a blob that is there is not sent again.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
from allot_client import Client
from allot_client import body as bodies

from benchmarks.rows import Rows


def milliseconds(run: Callable[[], Any]) -> float:
    """Of one call."""
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def calls(rows: Rows, client: Client, raw: httpx.Client, count: int) -> None:
    """A small job by both, in turn."""
    cost = np.random.default_rng(0).random((8, 8))
    text = json.dumps({"solver": "lap", "inputs": {"cost": cost.tolist()}}).encode()
    headers = {"Content-Type": "application/json", "Prefer": "wait=20"}

    def by_hand() -> None:
        answer = raw.post("/v1/jobs", content=text, headers=headers)
        assert answer.status_code == 200
        assert answer.json()["termination"] == "optimal"

    ours, theirs = [], []
    for number in range(count + 20):
        one, other = milliseconds(lambda: client.lap(cost)), milliseconds(by_hand)
        if number >= 20:
            ours.append(one)
            theirs.append(other)
    more = statistics.median(one - other for one, other in zip(ours, theirs, strict=True))
    rows.add(what="call", client_ms=statistics.median(ours), raw_ms=statistics.median(theirs), more_ms=more)


def uploads(rows: Rows, client: Client, raw: httpx.Client, mebibytes: int, count: int) -> None:
    """An array by both, in turn."""
    array = np.random.default_rng(1).random((mebibytes, 1 << 17))
    ours, theirs = [], []
    for number in range(count):
        array[0, 0] = 2 * number
        ours.append(milliseconds(lambda: client.upload(array)))
        array[0, 0] = 2 * number + 1
        body = bodies.Body(bodies.npy_pieces(array), "application/octet-stream")
        known = {"Content-Type": body.media_type, "Content-Length": str(body.length)}

        def by_hand(body: bodies.Body = body, known: dict[str, str] = known) -> None:
            assert raw.post("/v1/blobs", content=body.content(), headers=known).status_code == 201

        theirs.append(milliseconds(by_hand))
    one, other = statistics.median(ours[1:]), statistics.median(theirs[1:])
    rows.add(what="upload", mebibytes=mebibytes, client_ms=one, raw_ms=other, share=other / one)


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--uploads", type=int, default=9)
    arguments = parser.parse_args()
    rows = Rows("client")
    with Client.local(workers=1) as client, httpx.Client(base_url=client.url, timeout=600) as raw:
        calls(rows, client, raw, arguments.calls)
        uploads(rows, client, raw, arguments.mebibytes, arguments.uploads)


if __name__ == "__main__":
    main()
