"""What the client wants: Accept, Prefer, conditional requests and digests, each header parsed in one place."""

import base64
import binascii
import functools
import math
from collections.abc import Sequence

from fastapi import Request
from starlette.datastructures import Headers

from app.http.refusal import Invalid, NotAcceptable, Refusal, fault
from app.http.short import said
from workers.store.digests import DIGEST, PLAIN, WORDS

JSON = "application/json"
NPZ = "application/x-npz"
SAFETENSORS = "application/x-safetensors"
PACKED = {NPZ: "npz", SAFETENSORS: "safetensors", "application/vnd.safetensors": "safetensors"}
"""Files that hold all arrays of an answer, and their suffixes."""
PROBLEM = "application/problem+json"
OF_ANSWERS = (JSON, PROBLEM, *PACKED)
"""What there is for a client that waits for an answer."""
LONGEST_REMEMBERED = 200
"""Characters of a header whose meaning is remembered: callers send the same few again and again."""


def choose(accept: str, offered: Sequence[str]) -> str:
    """The first of `offered` with the highest quality in `accept` (RFC 9110 section 12.5.1).

    Raises:
        NotAcceptable: nothing offered is accepted.
    """
    if len(accept) <= LONGEST_REMEMBERED:
        return _chosen(accept, tuple(offered))
    return _choose(accept, offered)


def _choose(accept: str, offered: Sequence[str]) -> str:
    if not accept.strip():
        return offered[0]
    ranges = [_media_range(part) for part in accept.split(",") if part.strip()]
    best = max(offered, key=lambda media: (_quality(media, ranges), -offered.index(media)))
    if _quality(best, ranges) <= 0:
        raise NotAcceptable(accept[:200], tuple(offered))
    return best


_chosen = functools.lru_cache(256)(_choose)


def asks_for(accept: str, media: str, parameter: str) -> bool:
    """Whether `accept` names `media` with this parameter. A service that does not know the parameter leaves it out."""
    if parameter not in accept:
        return False
    parts = ([piece.strip().lower() for piece in part.split(";")] for part in accept.split(","))
    return any(name == media and parameter in parameters for name, *parameters in parts)


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in text.split(";"))
    quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 0.0


def _quality(media: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The quality of the most specific range that covers `media`, 0 when none does."""
    major = media.split("/")[0]
    for name in (media, f"{major}/*", "*/*"):
        found = [quality for given, quality in ranges if given == name]
        if found:
            return max(found)
    return 0.0


async def wants_json(request: Request) -> None:  # a plain function would be run in a thread
    """Dependency of every route that answers in JSON: 406 for a client that could not read the answer."""
    choose(request.headers.get("accept", ""), (JSON, PROBLEM))


async def wants_answer(request: Request) -> None:
    """Dependency of a route that answers in JSON, or with an answer's arrays where the client waits for the answer."""
    said(request, _require_answer)


def _require_answer(headers: Headers) -> None:
    waits = _wait_said(headers) is not None
    choose(headers.get("accept", ""), OF_ANSWERS if waits else (JSON, PROBLEM))


def media_of_answer(request: Request) -> str:
    """In what the answer of a job is wanted. Raises NotAcceptable."""
    return said(request, _media_of_answer)


def _media_of_answer(headers: Headers) -> str:
    return choose(headers.get("accept", ""), OF_ANSWERS)


def prefer_wait_s(request: Request, longest_s: float) -> float | None:
    """N of `Prefer: wait=N` (RFC 7240), at most `longest_s`; None when it is not asked. A preference never fails."""
    seconds = said(request, _wait_said)
    return None if seconds is None else min(seconds, longest_s)


def _wait_said(headers: Headers) -> float | None:
    return _wait_in(tuple(headers.getlist("prefer")))


@functools.lru_cache(256)
def _wait_in(headers: tuple[str, ...]) -> float | None:
    """N of the first wait=N in headers named Prefer; None when there is none, or none that counts."""
    for header in headers:
        for preference in header.split(","):
            name, _, value = preference.split(";")[0].partition("=")
            if name.strip().lower() == "wait":
                try:
                    seconds = float(value.strip().strip('"'))
                except ValueError:
                    return None
                return max(seconds, 0.0) if math.isfinite(seconds) else None
    return None


def matches_etag(request: Request, etag: str) -> bool:
    """True when If-None-Match already names `etag`."""
    header = request.headers.get("if-none-match", "")
    return header.strip() == "*" or etag in (tag.strip().removeprefix("W/") for tag in header.split(","))


def announced_digest(request: Request, query: str | None) -> str | None:
    """The digest that the client says its body has, by ?digest=, Content-Digest or Repr-Digest (RFC 9530).

    Raises:
        Invalid: ?digest= that is not of that form.
        Refusal: 400 for a header that cannot be read.
    """
    if query is not None:
        if not DIGEST.fullmatch(query):
            raise Invalid(fault("digest", f"is not {WORDS}", query))
        return query
    for name in ("content-digest", "repr-digest"):
        for member in request.headers.get(name, "").split(","):
            algorithm, _, value = member.strip().partition("=")
            if algorithm.lower() == "sha-256":
                return "sha256:" + _sha256_of(name, value.split(";")[0].strip())
    return None


def _sha256_of(name: str, value: str) -> str:
    try:
        digest = base64.b64decode(value.strip(":"), validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != 32 or not (value.startswith(":") and value.endswith(":")):
        raise Refusal(400, f"{name}: sha-256 takes 32 bytes in base64 between colons, as sha-256=:...=:")
    return digest.hex()


def repr_digest(digest: str) -> dict[str, str]:
    """The Repr-Digest header of bytes with that digest: of none but a plain one, since RFC 9530 knows no tree."""
    scheme, _, said = digest.partition(":")
    return {"Repr-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(said)).decode()}:"} if scheme == PLAIN else {}
