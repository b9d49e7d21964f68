"""Bearer tokens of an issuer of one's own (OpenID Connect), as an option: who signed them, for whom, and until when.

The issuer's public keys (JWKS) are fetched now and then, never for a request: at the first token, every REFRESH_S, and
when a token names a key that is not known, at most every AGAIN_S. What a token's own header says of where keys are is
not looked at. Only signatures by a public key are taken, so that no key can be used as a shared secret.
"""

import hashlib
import json
import logging
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from app.http.config import HttpSettings
from app.http.loopback import is_loopback
from workers.jobs.job import LOCAL, Unavailable
from workers.runtime.keyring import OWNER, SCOPES

LOG = logging.getLogger("allot.auth")
LONGEST = 8192
"""Characters of a token."""
LEEWAY_S = 30.0
"""Between the clocks of the issuer and of this machine."""
REFRESH_S = 300.0
"""A key that the issuer has taken back is refused so much later at most."""
AGAIN_S = 10.0
STALE_S = 3600.0
"""An issuer that does not answer is done without for so long."""
FETCH_S = 3.0
MOST_BYTES, MOST_KEYS, LEAST_RSA_BITS = 256 << 10, 64, 2048
KEY_TYPES = {"RS256": ("RSA", None), "ES256": ("EC", "P-256")}
"""What is taken: algorithm -> type and curve of its keys."""


DERIVED = "oidc-"
"""How names of owners begin whose claim is none: an address, say."""


class BadIssuer(ValueError):
    """The settings of the issuer cannot be used."""


@dataclass(frozen=True)
class Issuer:
    """Whose tokens are taken.

    Attributes:
        issuer, audience: that `iss` and `aud` must name.
        jwks_url: where its keys are; empty for where its configuration (.well-known/openid-configuration) says.
        algorithms: some of KEY_TYPES.
        owner_claim: whose value the owner is.
        scopes_claim: text or a list of scopes; `allot:read` counts as `read`, and what is no scope of ours as nothing.
        scopes: of a token without that claim.
    """

    issuer: str
    audience: str
    jwks_url: str = ""
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    owner_claim: str = "sub"
    scopes_claim: str = "scope"
    scopes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, http: HttpSettings) -> "Issuer":
        """The one that the settings name. Raises BadIssuer."""
        words = {name: getattr(http, f"oidc_{name}").replace(",", " ").split() for name in ("algorithms", "scopes")}
        return cls(
            issuer=http.oidc_issuer,
            audience=http.oidc_audience,
            jwks_url=http.oidc_jwks_url,
            algorithms=tuple(words["algorithms"]),
            owner_claim=http.oidc_owner_claim,
            scopes_claim=http.oidc_scopes_claim,
            scopes=frozenset(words["scopes"]),
        )

    def __post_init__(self) -> None:
        """Raise BadIssuer."""
        if not self.audience:
            raise BadIssuer("ALLOT_OIDC_AUDIENCE is needed: without it a token for another service would be taken")
        for url in filter(None, (self.issuer, self.jwks_url)):
            _check_url(url)
        if not self.algorithms or set(self.algorithms) - KEY_TYPES.keys():
            raise BadIssuer(f"ALLOT_OIDC_ALGORITHMS: expected some of {', '.join(KEY_TYPES)}")
        if not self.scopes <= set(SCOPES):
            raise BadIssuer(f"ALLOT_OIDC_SCOPES: expected some of {', '.join(SCOPES)}")


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise BadIssuer(f"{url[:200]!r} is not fetched: keys come over https, or from this machine")


class KeySet:
    """The issuer's keys: key id -> (algorithm, key)."""

    def __init__(self, issuer: Issuer, client: httpx.Client | None = None) -> None:
        self._issuer = issuer
        self._client = client or httpx.Client(timeout=FETCH_S, follow_redirects=False, trust_env=False)
        self._keys: dict[str, tuple[str, Any]] = {}
        self._fetched = self._tried = -math.inf
        self._lock = threading.Lock()

    def find(self, key_id: str) -> tuple[str, Any] | None:
        """The key of that id, None when the issuer has none. Raises Unavailable while no keys can be had."""
        if key_id not in self._keys:
            self._refresh()
        elif time.monotonic() - self._fetched > REFRESH_S and self._may_try():
            threading.Thread(target=self._refresh, daemon=True).start()  # the keys that there are will do until then
        if not self._keys or time.monotonic() - self._fetched > STALE_S:
            raise Unavailable("the issuer of tokens does not answer")
        return self._keys.get(key_id)

    def _may_try(self) -> bool:
        return time.monotonic() - self._tried >= AGAIN_S

    def _refresh(self) -> None:
        """Fetch anew, unless that was tried just now. Who finds another at it goes on with the keys that there are."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not self._may_try():
                return
            self._tried = time.monotonic()
            self._keys = self._parsed(self._get(self._where()))
            self._fetched = time.monotonic()
        except (httpx.HTTPError, ValueError, TypeError, KeyError, RecursionError) as wrong:
            LOG.error(
                "the keys of %s stay as they were: %s", self._issuer.issuer, f"{type(wrong).__name__}: {wrong}"[:300]
            )
        finally:
            self._lock.release()

    def _where(self) -> str:
        if self._issuer.jwks_url:
            return self._issuer.jwks_url
        told = self._get(f"{self._issuer.issuer.rstrip('/')}/.well-known/openid-configuration")
        if told["issuer"] != self._issuer.issuer:
            raise ValueError(f"its configuration is that of {str(told['issuer'])[:100]!r}")
        url = str(told["jwks_uri"])
        _check_url(url)
        return url

    def _get(self, url: str) -> Any:
        """A JSON object; no more of it is read than MOST_BYTES, and for no longer than twice FETCH_S."""
        until, body = time.monotonic() + 2 * FETCH_S, b""
        with self._client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
            answer.raise_for_status()
            for piece in answer.iter_raw():
                body += piece
                if len(body) > MOST_BYTES or time.monotonic() > until:
                    raise ValueError(f"{url} sends more than {MOST_BYTES} bytes, or too slowly")
        found = json.loads(body)
        if not isinstance(found, dict):
            raise ValueError(f"{url} sends no JSON object")
        return found

    def _parsed(self, told: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
        """The keys that can be used. Raises ValueError where there are none."""
        from jwt import PyJWK
        from jwt.exceptions import PyJWTError

        found: dict[str, tuple[str, Any]] = {}
        for one in told["keys"][:MOST_KEYS]:
            algorithm = self._algorithm_of(one) if isinstance(one, dict) else None
            if algorithm is None:
                continue
            try:
                key = PyJWK(one, algorithm).key
            except (PyJWTError, ValueError, TypeError):
                continue
            if getattr(key, "key_size", 0) >= LEAST_RSA_BITS or algorithm != "RS256":
                found[str(one.get("kid", ""))] = algorithm, key
        if not found:
            raise ValueError("there is no key that could be used")
        return found

    def _algorithm_of(self, key: Mapping[str, Any]) -> str | None:
        """The one that the key is for, of those that are taken. Private and secret keys are none of ours."""
        if key.get("use", "sig") != "sig" or {"d", "k"} & key.keys():
            return None
        fits = (name for name, form in KEY_TYPES.items() if form == (key.get("kty"), key.get("crv")))
        name = next(fits, None)
        return name if name in self._issuer.algorithms and key.get("alg", name) == name else None


class Tokens:
    """Checks tokens. Raises BadIssuer where the extra `oidc` is not installed."""

    def __init__(self, issuer: Issuer, keys: KeySet | None = None) -> None:
        try:
            import jwt
        except ImportError:
            raise BadIssuer("tokens of an issuer need the extra: pip install 'allot[oidc]'") from None
        self._jwt: Any = jwt
        self._issuer, self._keys = issuer, keys or KeySet(issuer)

    def claims(self, token: str) -> tuple[str, frozenset[str]] | None:
        """Owner and scopes of a token; None for one that is not good. Raises Unavailable."""
        if len(token) > LONGEST:
            return None
        try:
            header = self._jwt.get_unverified_header(token)
            known = self._keys.find(header.get("kid", ""))
            if known is None or header.get("alg") != known[0]:
                return None
            told = self._jwt.decode(
                token,
                known[1],
                algorithms=[known[0]],
                audience=self._issuer.audience,
                issuer=self._issuer.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", self._issuer.owner_claim]},
            )
            return self._owner(told), self._scopes(told)
        except (self._jwt.PyJWTError, ValueError, TypeError, KeyError, RecursionError, OverflowError):
            return None

    def _owner(self, told: Mapping[str, Any]) -> str:
        """The claim itself where it can name an owner, else a name that nobody else has."""
        value = told[self._issuer.owner_claim]
        if not isinstance(value, str) or not value:
            raise ValueError("the claim is no text")
        if OWNER.fullmatch(value) and value != LOCAL and not value.startswith(DERIVED):
            return value
        return DERIVED + hashlib.sha256(f"{self._issuer.issuer}\n{value}".encode()).hexdigest()[:40]

    def _scopes(self, told: Mapping[str, Any]) -> frozenset[str]:
        given = told.get(self._issuer.scopes_claim)
        if given is None:
            return self._issuer.scopes
        words = given.split() if isinstance(given, str) else [one for one in given if isinstance(one, str)]
        return frozenset(word.removeprefix("allot:") for word in words) & set(SCOPES)
