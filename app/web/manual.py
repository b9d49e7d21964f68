"""The documentation at /docs: built from docs/*.md and packed, served from memory under the same strict policy."""

import gzip
import hashlib
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fastapi import Request, Response

from app.http.refusal import Refusal
from app.web.pages import CONTENT_POLICY, HEADERS

SITE = Path(__file__).with_name("site.zip")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".jpg": "image/jpeg",
    ".png": "image/png",
}
PACKED = {".html", ".js", ".css", ".json", ".txt", ".svg"}


@dataclass(frozen=True)
class Leaf:
    """A file as it is sent: plain, and under gzip where that saves anything."""

    media_type: str
    plain: bytes
    packed: bytes | None
    tag: str


@lru_cache(maxsize=1)
def leaves() -> dict[str, Leaf]:
    """Every file of the site by its address below /docs; a page's has no suffix."""
    found: dict[str, Leaf] = {}
    if not SITE.exists():
        return found
    with zipfile.ZipFile(SITE) as archive:
        for name in archive.namelist():
            plain, suffix = archive.read(name), Path(name).suffix
            packed = gzip.compress(plain, 6, mtime=0) if suffix in PACKED else None
            tag = f'"{hashlib.sha256(plain).hexdigest()[:16]}"'
            found[name.removesuffix(".html")] = Leaf(TYPES[suffix], plain, packed, tag)
    return found


def _answer(request: Request, leaf: Leaf) -> Response:
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": leaf.tag, "Content-Security-Policy": CONTENT_POLICY}
    if request.headers.get("if-none-match") == leaf.tag:
        return Response(status_code=304, headers=headers)
    if leaf.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(leaf.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=leaf.media_type)
    return Response(leaf.plain, headers=headers, media_type=leaf.media_type)


async def page(request: Request, path: str = "") -> Response:
    """Give a page of the documentation, or what it shows."""
    leaf = leaves().get(path.removesuffix("/") or "index")
    if leaf is None:
        raise Refusal(404, f"There is no page {path[:80]!r}; the documentation begins at /docs.")
    return _answer(request, leaf)


async def for_models(request: Request) -> Response:
    """Give llms.txt: what this is and where everything is, in plain text."""
    leaf = leaves().get("llms.txt")
    if leaf is None:
        raise Refusal(404, "The documentation was not built into this installation.")
    return _answer(request, leaf)
