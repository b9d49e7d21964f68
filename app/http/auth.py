"""Who is asking, and what they may: bearer API keys, of which only SHA-256 hashes are kept.

Keys come from ALLOT_API_KEYS, from a file that is watched, and from Redis (`allot key create`); what is taken back
there is refused within a second. Tokens of an issuer are taken beside them (oidc.py). Without any of these everybody
is `local`, which is why the server then binds to loopback only, and why a browser page of another site is refused.
"""

import functools
import hmac
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import URL, Headers

from app.http.config import HttpSettings
from app.http.loopback import is_loopback
from app.http.oidc import LONGEST as LONGEST_TOKEN
from app.http.oidc import BadIssuer, Issuer, Tokens
from app.http.refusal import Refusal
from app.http.short import said
from workers.jobs.job import LOCAL
from workers.runtime.keyring import (
    OWNER,
    SCOPES,
    BadKey,
    Key,
    Keyring,
    check_owner,
    check_scopes,
    digest_of,
    new_secret,
)

ENTRY = re.compile(rf"(?P<owner>{OWNER.pattern})=sha256:(?P<digest>[0-9a-f]{{64}})(;(?P<scopes>[a-z,]+))?")
FRESH_S = 0.5
"""How long an answer of Redis or a look at the file counts: half of the second within which a revoked key is dead."""
MOST_REMEMBERED = 4096
LONGEST = 512
"""Characters of a secret; whatever is longer is no key of ours."""
ASKED = "This service asks for an API key: send Authorization: Bearer <key>."
PLAIN = frozenset({"read", "submit"})
LOG = logging.getLogger("allot.auth")


class BadKeys(ValueError):
    """The key file or ALLOT_API_KEYS cannot be read as `owner=sha256:<64 hex>` entries."""


@dataclass(frozen=True)
class Caller:
    """Whose a request is, and what it may do."""

    owner: str
    scopes: frozenset[str]


ALONE = Caller(LOCAL, frozenset(SCOPES))
"""Who asks where there are no keys."""


def new_key(owner: str) -> tuple[str, str]:
    """Make a key: (the secret for its holder, the entry for the key file)."""
    secret = new_secret()
    try:
        return secret, f"{check_owner(owner)}=sha256:{digest_of(secret)}"
    except BadKey as wrong:
        raise BadKeys(str(wrong)) from None


class Keys:
    """The known keys; `caller` answers whose a secret is.

    Args:
        entries: `owner=sha256:<64 hex>`, each with `;scope,scope` behind it or not (then: read and submit).
        file: more of them, one a line; read again when it changes. A file that cannot be read any more, or holds
            nonsense, changes nothing and is logged.
        ring: the keys in Redis.
        tokens: those of an issuer.

    Raises:
        BadKeys, OSError: at the start.
    """

    def __init__(
        self,
        entries: tuple[str, ...] = (),
        file: Path | None = None,
        ring: Keyring | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self._fixed, self._file, self._ring, self._tokens = _parse(_placed(entries)), file, ring, tokens
        self.longest = LONGEST if tokens is None else LONGEST_TOKEN
        self._seen, self._looked = None if file is None else _stamp(file), time.monotonic()
        self._filed = {} if file is None else _read_file(file)
        self._found: dict[str, tuple[float, Caller | None]] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._fixed or self._file or self._ring or self._tokens)

    def caller(self, secret: str) -> Caller | None:
        """Whose `secret` is, or None; takes the same time whichever entry matches. Raises Unavailable."""
        digest = digest_of(secret)
        self._look_at_the_file()
        found = self._at_hand(digest)
        if found is not None:
            return found
        if self._tokens is not None and secret.count(".") == 2:
            return self._asked(digest, lambda: self._of_token(secret))
        return None if self._ring is None else self._asked(digest, lambda: self._in_redis(digest))

    def _at_hand(self, digest: str) -> Caller | None:
        found = None
        for known, caller in [*self._fixed.items(), *self._filed.items()]:
            if hmac.compare_digest(known, digest):
                found = caller
        return found

    def remembered(self, secret: str) -> Caller | None:
        """Whose `secret` is if that is known without a look at the file or at Redis."""
        if self._file is not None and time.monotonic() - self._looked >= FRESH_S:
            return None
        digest = digest_of(secret)
        found = self._at_hand(digest)
        until, cached = self._found.get(digest, (0.0, None))
        return found or (cached if time.monotonic() < until else None)

    def owner_of(self, secret: str) -> str | None:
        """The owner of `secret`, or None."""
        found = self.caller(secret)
        return None if found is None else found.owner

    def _asked(self, digest: str, ask: Callable[[], Caller | None]) -> Caller | None:
        """What `ask` says, remembered for FRESH_S."""
        now = time.monotonic()
        until, caller = self._found.get(digest, (0.0, None))
        if now < until:
            return caller
        caller = ask()
        with self._lock:
            if len(self._found) >= MOST_REMEMBERED:
                self._found.clear()
            self._found[digest] = (now + FRESH_S, caller)
        return caller

    def _in_redis(self, digest: str) -> Caller | None:
        assert self._ring is not None
        key: Key | None = self._ring.find(digest)
        return None if key is None else Caller(key.owner, key.scopes)

    def _of_token(self, token: str) -> Caller | None:
        assert self._tokens is not None
        claims = self._tokens.claims(token)
        return None if claims is None else Caller(*claims)

    def _look_at_the_file(self) -> None:
        if self._file is None or time.monotonic() - self._looked < FRESH_S:
            return
        with self._lock:
            self._looked = time.monotonic()
            try:
                stamp = _stamp(self._file)
                if stamp != self._seen:
                    self._seen, self._filed = stamp, _read_file(self._file)
                    LOG.info("read %d keys from %s", len(self._filed), self._file)
            except (OSError, BadKeys) as wrong:
                LOG.error("the keys stay as they were: %s", wrong)


def _stamp(file: Path) -> tuple[int, int, int]:
    there = file.stat()
    return there.st_ino, there.st_mtime_ns, there.st_size


def _read_file(file: Path) -> dict[str, Caller]:
    numbered = enumerate(file.read_text().splitlines(), 1)
    lines = {f"line {k} of {file}": entry for k, line in numbered if (entry := line.split("#")[0].strip())}
    if not lines:
        raise BadKeys(f"{file} holds no key; make one with `allot key entry OWNER`")
    return _parse(lines)


def _placed(entries: Sequence[str]) -> dict[str, str]:
    return {f"entry {k} of ALLOT_API_KEYS": entry for k, entry in enumerate(entries, 1)}


def _parse(entries: Mapping[str, str]) -> dict[str, Caller]:
    """The callers of entries by the place where each stands. An error does not show one: it may be a secret."""
    found = {}
    for place, entry in entries.items():
        match = ENTRY.fullmatch(entry)
        if match is None:
            raise BadKeys(f"{place} is not owner=sha256:<64 hex digits>; make one with `allot key entry OWNER`")
        try:
            scopes = check_scopes(match["scopes"].split(",")) if match["scopes"] else PLAIN
        except BadKey as wrong:
            raise BadKeys(f"{place}: {wrong}") from None
        found[match["digest"]] = Caller(match["owner"], scopes)
    return found


def load_keys(http: HttpSettings, redis_url: str = "") -> Keys:
    """The keys that the settings name. Raises BadKeys, OSError."""
    ring = Keyring(redis_url) if http.api_keys_in_redis and redis_url else None
    try:
        tokens = Tokens(Issuer.of(http)) if http.oidc_issuer else None
    except BadIssuer as wrong:
        raise BadKeys(str(wrong)) from None
    return Keys(http.api_keys, http.api_keys_file, ring, tokens)


async def caller(request: Request) -> Caller:
    """Dependency: who asks; raises 401, or 403 for a foreign page in a browser."""
    keys: Keys = request.app.state.keys
    if not keys:
        _refuse_foreign_pages(request)
        _note(request, LOCAL)
        return ALONE
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    found = None
    if scheme.lower() == "bearer" and len(secret) < keys.longest:
        found = keys.remembered(secret.strip())
        if found is None:  # Redis or a file has to be asked
            found = await run_in_threadpool(keys.caller, secret.strip())
    if found is None:
        headers = {"WWW-Authenticate": 'Bearer realm="allot"'}
        came = scheme.lower() == "bearer" and secret.strip()
        words = "The API key that came is not known here, or no longer good." if came else ASKED
        raise Refusal(401, words, headers=headers)
    _note(request, found.owner)
    return found


def _note(request: Request, owner: str) -> None:
    """Whose the request is, for the log."""
    request.scope.setdefault("state", {})["owner"] = owner


async def owner(found: Annotated[Caller, Depends(caller)]) -> str:
    """Dependency: the owner of the request's key."""
    return found.owner


def may(scope: str) -> Callable[..., Awaitable[None]]:
    """Dependency: 403 unless the request's key has `scope`."""
    assert scope in SCOPES

    async def guard(found: Annotated[Caller, Depends(caller)]) -> None:
        if scope not in found.scopes:
            has = ", ".join(sorted(found.scopes))
            raise Refusal(403, f"This key may {has}; this needs the scope {scope}.", scope=scope)

    return guard


def _refuse_foreign_pages(request: Request) -> None:
    """Without keys a web page could post jobs to a developer's own machine.

    Browsers name the page's origin, and a page that had its name point at this machine names that as the host.
    """
    if said(request, _are_of_this_machine):
        return
    http: Any = request.app.state.http
    headers = request.headers
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refusal(403, "A page of another site may not use a service without API keys.")
    if http.insecure:
        return
    host = _asked(request)
    if not is_loopback(host):
        raise Refusal(403, f"Without API keys only localhost is answered, not {host[:100]!r}.")
    origin = headers.get("origin")
    if origin is not None and not _is_ours(origin, request):
        raise Refusal(403, f"A page of {origin[:100]!r} may not use a service without API keys.")


def _are_of_this_machine(headers: Headers) -> bool:
    """Whether headers alone tell that no page asks, and this machine is asked by a name of its own."""
    host = headers.get("host")
    foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin") or "origin" in headers
    return bool(host) and not foreign and is_loopback(_host_in(host))


def _asked(request: Request) -> str:
    """The host that the request is for."""
    said = request.headers.get("host")
    return (_host_in(said) if said else "") or request.url.hostname or ""


@functools.lru_cache(64)
def _host_in(said: str) -> str:
    """The host of a Host header, as a URL with it has it."""
    return URL(scope={"type": "http", "path": "/", "headers": [(b"host", said.encode("latin-1"))]}).hostname or ""


def _is_ours(origin: str, request: Request) -> bool:
    """True for a page that this very service gave out, under whichever name of this machine."""
    try:
        page = urlsplit(origin)
        return is_loopback(page.hostname or "") and page.port == request.url.port and page.scheme == request.url.scheme
    except ValueError:
        return False
