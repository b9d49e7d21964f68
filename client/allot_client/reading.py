"""Long answers, read from the connection straight into one piece of memory.

httpx hands an answer over in pieces of 64 KiB that were copied five times, and then joins them. What is read here is
copied once. Whatever is not a plain body of a known length on a plain connection is read by httpx.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any

import httpx

from allot_client.memory import filled

WORTH_BYTES = 1 << 20


def content_of(response: httpx.Response, timeout_s: float) -> bytes | memoryview:
    """The body of an answer that is being streamed.

    Raises:
        httpx.TransportError: it broke off.
    """
    length, line = _length(response), _line(response)
    if line is None or length < WORTH_BYTES or response.headers.get("content-encoding", "identity") != "identity":
        return response.read()
    pieces: Any = response.iter_raw()  # it closes the connection when it goes
    begun = next(pieces, b"")  # all that came with the headers: the rest is still in the connection
    try:
        line.settimeout(timeout_s)
        return filled(length, begun, line.recv_into)
    except TimeoutError as error:
        raise httpx.ReadTimeout(str(error), request=response.request) from error
    except OSError as error:
        raise httpx.ReadError(str(error), request=response.request) from error
    finally:
        pieces.close()
        response.close()  # and the connection with it: httpx has not seen the end


def _length(response: httpx.Response) -> int:
    told = response.headers.get("content-length", "")
    return int(told) if told.isascii() and told.isdigit() else 0


def _line(response: httpx.Response) -> socket.socket | None:
    """The connection, where nothing but the answer is in it and nothing else stands between."""
    stream = response.extensions.get("network_stream")
    if stream is None or response.http_version != "HTTP/1.1" or response.is_stream_consumed:
        return None
    found = stream.get_extra_info("socket")
    plain = type(found) is ssl.SSLSocket or (
        type(found) is socket.socket and stream.get_extra_info("ssl_object") is None
    )
    return found if plain else None
