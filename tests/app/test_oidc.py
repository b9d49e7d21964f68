"""Tokens of an issuer: a small one on this machine signs them, right and wrong."""

import base64
import hashlib
import hmac
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from app.http import oidc
from app.http.auth import BadKeys, load_keys
from app.http.config import HttpSettings
from app.http.main import create_app
from app.http.oidc import BadIssuer, Issuer, KeySet, Tokens
from tests.app.conftest import Service, serve
from tests.app.test_bad_input import check
from tests.workers.service import allowed
from workers.jobs.job import Unavailable

AUDIENCE = "allot"
RSA, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
EC = ec.generate_private_key(ec.SECP256R1())
SIGNERS: dict[str, tuple[str, Any]] = {"r1": ("RS256", RSA), "e1": ("ES256", EC)}


def public(key: Any, kid: str, algorithm: str) -> dict[str, Any]:
    kind = jwt.algorithms.RSAAlgorithm if algorithm == "RS256" else jwt.algorithms.ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}


class Issuing:
    """An issuer on a free port: what it serves can be changed, and what it was asked is counted."""

    def __init__(self) -> None:
        issuing = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuing.asked.append(self.path)
                status, body = issuing.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.asked: list[str] = []
        self.keys = [public(key, kid, algorithm) for kid, (algorithm, key) in SIGNERS.items()]
        self.broken: tuple[int, bytes] | None = None
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> tuple[int, bytes]:
        if self.broken is not None:
            return self.broken
        if path.endswith("openid-configuration"):
            return 200, json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
        return 200, json.dumps({"keys": self.keys}).encode()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self, kid: str = "r1", signer: tuple[str, Any] | None = None, **claims: Any) -> str:
        algorithm, key = signer or SIGNERS[kid]
        now = time.time()
        told = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "exp": now + 60, "scope": "read allot:submit mail"}
        told = {name: value for name, value in {**told, **claims}.items() if value is not None}
        return jwt.encode(told, key, algorithm, headers={"kid": kid})

    def tokens(self, **settings: Any) -> Tokens:
        return Tokens(Issuer(self.url, AUDIENCE, **settings))


@pytest.fixture
def issuing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuing]:
    monkeypatch.setattr(oidc, "FETCH_S", 60.0)  # it runs in this process, which may be busy
    made = Issuing()
    yield made
    made.stop()


def encoded(part: Any) -> str:
    return (
        base64.urlsafe_b64encode(part if isinstance(part, bytes) else json.dumps(part).encode()).rstrip(b"=").decode()
    )


def test_a_good_token_names_its_owner_and_scopes(issuing: Issuing) -> None:
    tokens = issuing.tokens()
    for kid in SIGNERS:
        assert tokens.claims(issuing.token(kid)) == ("ann", frozenset({"read", "submit"}))
    assert issuing.asked == ["/.well-known/openid-configuration", "/keys"]  # once for all


NOW = time.time()
WRONG: dict[str, Callable[[Issuing], str]] = {
    "expired": lambda issuing: issuing.token(exp=time.time() - 60),
    "without an end": lambda issuing: issuing.token(exp=None),
    "not yet": lambda issuing: issuing.token(nbf=time.time() + 60),
    "of another issuer": lambda issuing: issuing.token(iss="https://elsewhere.example"),
    "for another service": lambda issuing: issuing.token(aud="another"),
    "for nobody": lambda issuing: issuing.token(aud=None),
    "of no owner": lambda issuing: issuing.token(sub=None),
    "of an empty owner": lambda issuing: issuing.token(sub=""),
    "signed by another": lambda issuing: issuing.token(signer=("RS256", OTHER)),
    "of another algorithm of the key": lambda issuing: issuing.token(signer=("RS512", RSA)),
    "of a key that is not there": lambda issuing: issuing.token("r9", signer=("RS256", OTHER)),
    "end that is no number": lambda issuing: issuing.token(exp=None) and signed(issuing, {"exp": "tomorrow"}),
    "end beyond all years": lambda issuing: signed(issuing, {"exp": 1e300, "nbf": 1e300}),
    "two parts": lambda issuing: issuing.token().rpartition(".")[0] + ".",
    "no JSON": lambda issuing: "a.b.c",
    "too long": lambda issuing: issuing.token(more="x" * 10_000),
    "header with where keys are": lambda issuing: jwt.encode(
        {"iss": issuing.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 60}, OTHER, "RS256",
        headers={"kid": "mine", "jku": f"{issuing.url}/mine", "jwk": public(OTHER, "mine", "RS256")}),
}  # fmt: skip


def signed(issuing: Issuing, claims: dict[str, Any]) -> str:
    """Well signed, whatever it claims."""
    told = {"iss": issuing.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 60, **claims}
    return jwt.api_jws.PyJWS().encode(json.dumps(told).encode(), RSA, "RS256", headers={"kid": "r1"})


@pytest.mark.parametrize("kind", WRONG)
def test_a_token_that_is_not_good_opens_nothing(issuing: Issuing, kind: str) -> None:
    tokens = issuing.tokens()
    assert tokens.claims(issuing.token()) is not None
    assert tokens.claims(WRONG[kind](issuing)) is None


def test_no_algorithm_but_those_of_public_keys(issuing: Issuing) -> None:
    """Neither none, nor a secret that everybody knows: the public key as HMAC's."""
    tokens = issuing.tokens()
    claims = {"iss": issuing.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 60, "scope": "admin"}
    for none in ("none", "None", "NONE", "nOnE", "", None):
        assert tokens.claims(f"{encoded({'alg': none, 'kid': 'r1'})}.{encoded(claims)}.") is None
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), json.dumps(issuing.keys[0]).encode()):
        text = f"{encoded({'alg': 'HS256', 'kid': 'r1'})}.{encoded(claims)}"
        assert tokens.claims(f"{text}.{encoded(hmac.new(secret, text.encode(), hashlib.sha256).digest())}") is None


def test_only_the_algorithms_that_are_allowed(issuing: Issuing) -> None:
    tokens = issuing.tokens(algorithms=("ES256",))
    assert tokens.claims(issuing.token("e1")) is not None
    assert tokens.claims(issuing.token("r1")) is None


def test_owners_that_cannot_be_names_get_one_that_nobody_else_has(issuing: Issuing) -> None:
    tokens, owners = issuing.tokens(owner_claim="email"), []
    for value in ("ann@example.com", "bob@example.com", "local", "oidc-" + "0" * 40, "../ann", "a" * 200, "\ud800"):
        found = tokens.claims(issuing.token(email=value)) if value.isprintable() else None
        owners += [found[0]] if found else []
    assert len(set(owners)) == len(owners) == 6
    assert all(owner.startswith("oidc-") and len(owner) == 45 for owner in owners)
    assert tokens.claims(issuing.token(email=["ann"])) is None


def test_scopes_are_ours_alone(issuing: Issuing) -> None:
    tokens = issuing.tokens(scopes_claim="roles", scopes=frozenset({"read"}))
    for given, found in (
        ("read", {"read"}),
        (["submit", 3, "root"], {"submit"}),
        (None, {"read"}),
        ("", set()),
        ([], set()),
    ):
        assert tokens.claims(issuing.token(roles=given)) == ("ann", frozenset(found))
    assert tokens.claims(issuing.token(roles=5)) is None


def test_a_new_key_is_found_and_an_old_one_is_forgotten(issuing: Issuing, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = issuing.tokens()
    before = issuing.token()
    assert tokens.claims(before)
    issuing.keys = [public(OTHER, "r2", "RS256")]
    after = issuing.token("r2", signer=("RS256", OTHER))
    assert tokens.claims(after) is None  # it was asked just now
    monkeypatch.setattr(oidc, "AGAIN_S", 0.0)
    assert tokens.claims(after)
    assert tokens.claims(before) is None


def test_keys_are_fetched_anew_behind_the_requests(issuing: Issuing, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = issuing.tokens()
    assert tokens.claims(issuing.token())
    issuing.keys = [public(EC, "e1", "ES256")]
    monkeypatch.setattr(oidc, "REFRESH_S", 0.0)
    monkeypatch.setattr(oidc, "AGAIN_S", 0.0)
    give_up = time.monotonic() + allowed(5)
    while tokens.claims(issuing.token()):
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_unknown_keys_do_not_make_it_ask_again_and_again(issuing: Issuing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "AGAIN_S", 3600.0)
    tokens = issuing.tokens()
    for number in range(200):
        assert tokens.claims(issuing.token(f"made up {number}", signer=("ES256", EC))) is None
    assert len(issuing.asked) == 2


BROKEN = {
    "an error": (500, b""),
    "a redirection": (302, b""),
    "no JSON": (200, b"<html>"),
    "a list": (200, b"[]"),
    "a deep one": (200, b'{"keys":' + b"[" * 100_000),
    "too much": (200, b'{"keys": ["' + b"x" * (1 << 20) + b'"]}'),
    "no keys": (200, b'{"keys": []}'),
    "keys of nothing": (
        200,
        b'{"keys": [1, null, {}, {"kty": "RSA"}, {"kty": "RSA", "n": "AQ", "e": 3}, {"kty": []}]}',
    ),
    "a secret": (200, b'{"keys": [{"kty": "oct", "k": "AAAA", "kid": "r1", "alg": "HS256"}]}'),
    "another's configuration": (
        200,
        b'{"issuer": "https://elsewhere.example", "jwks_uri": "https://elsewhere.example"}',
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_an_issuer_that_is_broken_opens_nothing_and_takes_nothing_away(
    issuing: Issuing, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = Tokens(Issuer(issuing.url, AUDIENCE, f"{issuing.url}/keys" if kind != "another's configuration" else ""))
    issuing.broken = BROKEN[kind]
    with pytest.raises(Unavailable):
        tokens.claims(issuing.token())
    issuing.broken = None
    monkeypatch.setattr(oidc, "AGAIN_S", 0.0)
    assert tokens.claims(issuing.token())
    issuing.broken = BROKEN[kind]
    assert tokens.claims(issuing.token("r9", signer=("RS256", OTHER))) is None
    assert tokens.claims(issuing.token())
    monkeypatch.setattr(oidc, "STALE_S", 0.0)
    with pytest.raises(Unavailable):
        tokens.claims(issuing.token())


def test_small_keys_and_private_ones_are_not_taken(issuing: Issuing) -> None:
    small = rsa.generate_private_key(65537, 1024)
    private = jwt.algorithms.RSAAlgorithm.to_jwk(RSA, as_dict=True) | {"kid": "private"}
    issuing.keys = [public(small, "small", "RS256"), private, public(EC, "e1", "ES256")]
    keys = KeySet(Issuer(issuing.url, AUDIENCE))
    assert keys.find("small") is keys.find("private") is None
    assert keys.find("e1") is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"oidc_audience": ""},
        {"oidc_issuer": "http://elsewhere.example"},
        {"oidc_jwks_url": "http://elsewhere.example/keys"},
        {"oidc_jwks_url": "file:///etc/passwd"},
        {"oidc_algorithms": "RS256,none"},
        {"oidc_algorithms": "HS256"},
        {"oidc_algorithms": ""},
        {"oidc_scopes": "everything"},
    ],
    ids=str,
)
def test_settings_that_are_not_safe_are_refused(settings: dict[str, str]) -> None:
    right = {"oidc_issuer": "https://issuer.example", "oidc_audience": "allot"}
    assert load_keys(HttpSettings(**right))  # type: ignore[arg-type]
    with pytest.raises(BadKeys):
        load_keys(HttpSettings(**(right | settings)))  # type: ignore[arg-type]
    assert issubclass(BadIssuer, ValueError)


def test_settings_are_read_from_the_environment(tmp_path: Path) -> None:
    http = HttpSettings.from_env({"ALLOT_OIDC_ISSUER": "https://a.example", "ALLOT_OIDC_AUDIENCE": "b"})
    assert (http.oidc_issuer, http.oidc_audience, http.metrics_host) == ("https://a.example", "b", "127.0.0.1")


def test_over_http(service: Service, issuing: Issuing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "AGAIN_S", 3600.0)  # however long a busy machine takes for the requests below
    settings = HttpSettings(oidc_issuer=issuing.url, oidc_audience=AUDIENCE)
    url, stop = serve(create_app(service.settings, settings))
    try:
        check(httpx.get(f"{url}/v1/jobs"), 401)

        def ask(token: str, path: str = "/v1/jobs") -> httpx.Response:
            return httpx.get(f"{url}{path}", headers={"Authorization": f"Bearer {token}"})

        assert ask(issuing.token()).status_code == 200
        check(ask(issuing.token(), "/metrics"), 403)
        check(ask(issuing.token(scope=None)), 403)
        check(ask(issuing.token(exp=time.time() - 60)), 401)
        check(ask("x" * 9000), 401)
        for _ in range(50):
            ask(issuing.token("made up", signer=("RS256", OTHER)))
        assert len(issuing.asked) == 2
    finally:
        stop()
