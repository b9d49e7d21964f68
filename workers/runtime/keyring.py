"""API keys in Redis: made, listed, rotated and revoked while the service runs, on every host at once.

Only the SHA-256 of a key is kept. Redis holds

    allot:key:<sha256>   hash: id, owner, scopes, label, created_at, expires_at, used_at   (gone once it expires)
    allot:keys           hash: id -> sha256
"""

import contextlib
import hashlib
import math
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import redis

from workers.runtime.connection import connect, guarded
from workers.runtime.logs import audit

OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
SCOPES = ("read", "submit", "metrics", "admin")
USED_EVERY_S = 60.0
"""How exactly `used_at` is kept: a write a request would cost more than it tells."""


class BadKey(ValueError):
    """An owner, a scope or an id that cannot be taken; the message says what was expected."""


@dataclass(frozen=True)
class Key:
    """What is known of a key. Times are seconds since 1970 by Redis's clock; None: never."""

    id: str
    owner: str
    scopes: frozenset[str]
    label: str
    created_at: float
    expires_at: float | None
    used_at: float | None


def digest_of(secret: str) -> str:
    """The name under which a secret is known. It is 32 random bytes, so one fast hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret() -> str:
    """A key for its holder."""
    return "allot_" + secrets.token_urlsafe(32)


def check_owner(owner: str) -> str:
    """Return `owner`, or raise BadKey."""
    if not OWNER.fullmatch(owner):
        raise BadKey(f"{owner!r} cannot name an owner; use at most 64 letters, digits, '_', '.' or '-'")
    return owner


def check_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """Return the scopes as a set, or raise BadKey for one that does not exist, or for none."""
    found = frozenset(scopes)
    if not found or not found <= set(SCOPES):
        named = ", ".join(sorted(found)) or "nothing"
        raise BadKey(f"{named} is no list of scopes; expected some of {', '.join(SCOPES)}")
    return found


class Keyring:
    """The keys in one Redis."""

    def __init__(self, redis_url: str) -> None:
        self._redis: Any = connect(redis_url)

    @guarded
    def create(
        self, owner: str, scopes: Iterable[str] = ("read", "submit"), lifetime_s: float | None = None, label: str = ""
    ) -> tuple[str, Key]:
        """Make a key: (the secret, which is not kept, and what is).

        Raises:
            BadKey: the owner or a scope cannot be taken.
            Unavailable: Redis does not answer.
        """
        now, secret = self._now(), new_secret()
        expires = None if lifetime_s is None else now + lifetime_s
        key = Key(secrets.token_hex(6), check_owner(owner), check_scopes(scopes), label[:200], now, expires, None)
        self._write(digest_of(secret), key)
        audit("key.create", key_id=key.id, owner=owner, scopes=sorted(key.scopes))
        return secret, key

    @guarded
    def rotate(self, key_id: str, grace_s: float = 0.0) -> tuple[str, Key]:
        """Make a key like `key_id`; the old one goes after `grace_s`. Raises BadKey, Unavailable."""
        digest, old = self._named(key_id)
        lifetime = None if old.expires_at is None else old.expires_at - old.created_at
        secret, key = self.create(old.owner, old.scopes, lifetime, old.label)
        if grace_s > 0:
            until = min(self._now() + grace_s, old.expires_at or math.inf)
            self._redis.hset(f"allot:key:{digest}", "expires_at", repr(until))
            self._redis.pexpireat(f"allot:key:{digest}", int(1e3 * until))
        else:
            self.revoke(key_id)
        return secret, key

    @guarded
    def revoke(self, key_id: str) -> None:
        """Take a key back; every API process refuses it within a second. Raises BadKey, Unavailable."""
        digest, _ = self._named(key_id)
        with self._redis.pipeline() as pipe:
            pipe.delete(f"allot:key:{digest}").hdel("allot:keys", key_id).execute()
        audit("key.revoke", key_id=key_id)

    @guarded
    def list(self) -> list[Key]:
        """Every key, oldest first."""
        names = self._redis.hgetall("allot:keys")
        found = [(key_id, _read(self._redis.hgetall(f"allot:key:{digest}"))) for key_id, digest in names.items()]
        for key_id, key in found:
            if key is None:  # expired
                self._redis.hdel("allot:keys", key_id)
        return sorted((key for _, key in found if key is not None), key=lambda key: (key.created_at, key.id))

    @guarded
    def find(self, digest: str) -> Key | None:
        """The key of that digest, None where there is none (any more). Its use is noted once a minute."""
        key = _read(self._redis.hgetall(f"allot:key:{digest}"))
        now = time.time()  # of this machine: how exactly a use is dated matters little, and it costs no trip
        if key is not None and (key.used_at is None or now - key.used_at > USED_EVERY_S):
            # only where it still is: a key that was revoked just now must not come back as a hash of one field
            with contextlib.suppress(redis.RedisError):  # a Redis that takes no writes is no reason to refuse a key
                self._redis.eval(NOTE_USE, 1, f"allot:key:{digest}", repr(now))
        return key

    def _now(self) -> float:
        seconds, micros = self._redis.time()
        return float(seconds) + 1e-6 * float(micros)

    def _write(self, digest: str, key: Key) -> None:
        fields = {
            "id": key.id, "owner": key.owner, "scopes": " ".join(sorted(key.scopes)), "label": key.label,
            "created_at": repr(key.created_at),
        }  # fmt: skip
        name = f"allot:key:{digest}"
        with self._redis.pipeline() as pipe:
            if key.expires_at is not None:
                fields["expires_at"] = repr(key.expires_at)
            pipe.hset(name, mapping=fields)
            if key.expires_at is not None:
                pipe.pexpireat(name, int(1e3 * key.expires_at))
            pipe.hset("allot:keys", key.id, digest).execute()

    def _named(self, key_id: str) -> tuple[str, Key]:
        digest = self._redis.hget("allot:keys", key_id)
        key = _read(self._redis.hgetall(f"allot:key:{digest}")) if digest else None
        if key is None:
            raise BadKey(f"there is no key {key_id[:40]!r}; `allot key list` shows the ids")
        return digest, key


NOTE_USE = "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'used_at', ARGV[1]) end"


def _read(fields: dict[str, str]) -> Key | None:
    """A key from its hash; None for one that is not there or not ours."""
    try:
        created, expires, used = (
            float(fields[name]) if name in fields else None for name in ("created_at", "expires_at", "used_at")
        )
        scopes = frozenset(fields["scopes"].split()) & set(SCOPES)
        return Key(fields["id"], fields["owner"], scopes, fields.get("label", ""), created or 0.0, expires, used)
    except (KeyError, ValueError):
        return None
