"""Who is asking: bearer API keys, kept only as SHA-256 hashes.

A key is 32 random bytes, so one fast hash is enough: there is nothing to guess. Without keys everybody is
`local`, which is why the server then binds to loopback only, and why a browser page of another site is refused.
"""

import hashlib
import hmac
import ipaddress
import re
import secrets

from fastapi import Request

from app.config import HttpSettings
from app.errors import Refusal

LOCAL = "local"
ENTRY = re.compile(r"(?P<owner>[A-Za-z0-9][A-Za-z0-9_.-]{0,63})=sha256:(?P<digest>[0-9a-f]{64})")


class BadKeys(ValueError):
    """The key file or ALLOT_API_KEYS cannot be read as `owner=sha256:<64 hex>` entries."""


def new_key(owner: str) -> tuple[str, str]:
    """Make a key: (the secret for its holder, the entry for the key file)."""
    secret = "allot_" + secrets.token_urlsafe(32)
    entry = f"{owner}=sha256:{hashlib.sha256(secret.encode()).hexdigest()}"
    if not ENTRY.fullmatch(entry):
        raise BadKeys(f"{owner!r} cannot name an owner; use at most 64 letters, digits, '_', '.' or '-'")
    return secret, entry


class Keys:
    """The known keys; `owner_of` answers whose a secret is."""

    def __init__(self, entries: tuple[str, ...]) -> None:
        self._owners: dict[str, str] = {}
        for entry in entries:
            match = ENTRY.fullmatch(entry)
            if match is None:
                raise BadKeys("an API key entry is not owner=sha256:<64 hex digits>; make one with `allot key OWNER`")
            self._owners[match["digest"]] = match["owner"]

    def __bool__(self) -> bool:
        return bool(self._owners)

    def owner_of(self, secret: str) -> str | None:
        """The owner of `secret`, or None; takes the same time whichever entry matches."""
        digest = hashlib.sha256(secret.encode()).hexdigest()
        found = None
        for known, owner in self._owners.items():
            if hmac.compare_digest(known, digest):
                found = owner
        return found


def load_keys(settings: HttpSettings) -> Keys:
    """Read the keys that `settings` name. Raises BadKeys, OSError."""
    entries = list(settings.api_keys)
    if settings.api_keys_file is not None:
        lines = settings.api_keys_file.read_text().splitlines()
        entries += [entry for line in lines if (entry := line.split("#")[0].strip())]
        if not entries:
            raise BadKeys(f"{settings.api_keys_file} holds no key; make one with `allot key OWNER`")
    return Keys(tuple(entries))


def is_loopback(host: str) -> bool:
    """True for localhost and for addresses that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def owner(request: Request) -> str:
    """Dependency: the owner of the request's key; raises 401, or 403 for a foreign page in a browser."""
    keys: Keys = request.app.state.keys
    if not keys:
        _refuse_foreign_pages(request)
        return LOCAL
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    found = keys.owner_of(secret.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        headers = {"WWW-Authenticate": 'Bearer realm="allot"'}
        raise Refusal(401, "This service asks for an API key: send Authorization: Bearer <key>.", headers=headers)
    return found


def _refuse_foreign_pages(request: Request) -> None:
    """Without keys a web page could post jobs to a developer's own machine; browsers say when that happens."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refusal(403, "A page of another site may not use a service without API keys.")
    name = request.url.hostname or ""
    if not request.app.state.http.insecure and _is_public_name(name):
        raise Refusal(403, f"Without API keys only localhost is answered, not {name!r}.")


def _is_public_name(host: str) -> bool:
    """True for a name that a foreign page could have pointed at this machine: one with a dot, and no bare address."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return "." in host.rstrip(".") and not host.endswith(".localhost")
    return False
