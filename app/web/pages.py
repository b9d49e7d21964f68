"""The built pages: one document for every page of the workbench, and its assets, all from memory.

Nothing is loaded from elsewhere, and nothing in a page runs that is not a file of ours.
"""

import gzip
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fastapi import Request, Response

from app.http.refusal import Refusal

ASSETS = Path(__file__).with_name("assets")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""blob: is for a picture that the page has made itself and saves as a PNG."""
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Vary": "Accept-Encoding"}


@dataclass(frozen=True)
class Asset:
    """A file as it is sent."""

    media_type: str
    plain: bytes
    packed: bytes


@lru_cache(maxsize=1)
def assets() -> dict[str, Asset]:
    """Every built file by its name."""
    found = {}
    for path in sorted(ASSETS.iterdir()):
        if path.suffix in TYPES:
            plain = path.read_bytes()
            found[path.name] = Asset(TYPES[path.suffix], plain, gzip.compress(plain, 9, mtime=0))
    return found


def _answer(request: Request, asset: Asset, cache: str, **more: str) -> Response:
    headers = {**HEADERS, "Cache-Control": cache, **more}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.media_type)
    return Response(asset.plain, headers=headers, media_type=asset.media_type)


async def page(request: Request) -> Response:
    """Give the workbench; which of its pages is shown follows from the address."""
    found = assets().get("index.html")
    if found is None:
        raise Refusal(404, "The workbench was not built into this installation; see /docs/api.")
    return _answer(request, found, "no-cache", **{"Content-Security-Policy": CONTENT_POLICY})


async def asset(request: Request, name: str) -> Response:
    """Give a file of the workbench. Its name holds a hash of what it holds, so it never changes."""
    found = assets().get(name)
    if found is None or name == "index.html":
        raise Refusal(404, f"There is no asset {name[:80]!r}.")
    return _answer(request, found, "public, max-age=31536000, immutable")


async def icon(request: Request) -> Response:
    """Give the mark that a browser shows beside the title."""
    found = assets().get("favicon.svg")
    if found is None:
        raise Refusal(404, "There is no icon.")
    return _answer(request, found, "public, max-age=86400")
