"""Settings that only HTTP needs; what a job needs is in workers/runtime/config.py."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

MIB = 1 << 20
COUNTS = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable: where processes that answer on one port keep what each has counted."""
BACKLOG = 4096
"""Connections that the kernel holds until they are accepted, if net.core.somaxconn allows so many. Whoever comes when
there are more tries again after a second."""


@dataclass(frozen=True)
class HttpSettings:
    """How the API answers.

    Attributes:
        api_keys: "owner=sha256:<64 hex>" entries, from the environment (space or comma separated).
        api_keys_file: a file with one such entry a line; `#` starts a comment. It is read again when it changes.
        api_keys_in_redis: ask for a key, and know those that `allot key create` made.
        oidc_issuer: whose bearer tokens are taken too; empty for nobody's. The others are drawn in oidc.py.
        insecure: serve any address without keys.
        mcp: open /mcp for agents.
        max_json_bytes: largest JSON body, and largest `job` part of a multipart body.
        max_wait_s: longest long poll, `Prefer: wait` and pause between two reads of an event stream.
        api_workers: processes that answer HTTP on the one port; 0 for as many as suit the cores (app/cli/serve.py).
        metrics_host, metrics_port: where /metrics is besides, without a key; 0 for nowhere.
        lame_s: how long a service that is told to stop answers polls at least, while it takes nothing new.
        http_drain_s: how long requests may go on after that.
        idle_s: silence after which a connection between two requests is closed.
        header_timeout_s, body_timeout_s: for the headers of a request; between two pieces of its body.
        unread_timeout_s: how long a client may leave an answer unread.
        max_connections, max_connections_per_address: of one API process.
        max_idle_per_address: connections without a whole request; the oldest is closed for one more.
        requests_per_connection: after so many it is closed, so that load spreads anew.
        max_waiters: long polls, and event streams, of all owners that one API process holds.
        max_waiters_per_owner, max_streams_per_owner: the same of one owner.
        requests_per_s: of one owner at one API process, twice as many in one burst; 0 for any. Only where keys are.
        inline_elements: a result array above this is linked to, not printed, in JSON.
        clerks: processes that read what is neither small JSON nor plain numbers.
        clerk_bytes: memory that a clerk may take for one upload, beside four times what came and was inflated.
        clerk_s: processor time that it may take, beside a second for each 8 MiB of that.
        owner_bytes: that requests of one owner may have on their way at once, inflated ones among them; 429 above.
        all_bytes: the same of all owners; 503 above.
        share_days: how long a link to a job may be good at most; 0 for no links.
        keep_alive_s: seconds of silence after which an event stream sends a comment.
        url_prefixes: "owner=s3://bucket/prefix/" entries: objects that inputs may name. None: no input names one.
        file_dirs: "owner=/a/folder" entries: folders whose files inputs may name. "*" is every owner.
    """

    api_keys: tuple[str, ...] = ()
    api_keys_file: Path | None = None
    api_keys_in_redis: bool = False
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_jwks_url: str = ""
    oidc_algorithms: str = "RS256,ES256"
    oidc_owner_claim: str = "sub"
    oidc_scopes_claim: str = "scope"
    oidc_scopes: str = ""
    insecure: bool = False
    mcp: bool = False
    max_json_bytes: int = 256 * MIB
    max_wait_s: float = 60.0
    inline_elements: int = 100_000
    keep_alive_s: float = 15.0
    share_days: float = 30.0
    clerks: int = 2
    clerk_bytes: int = 1024 * MIB
    clerk_s: float = 10.0
    owner_bytes: int = 10240 * MIB
    all_bytes: int = 65536 * MIB
    api_workers: int = 0
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 0
    lame_s: float = 1.0
    http_drain_s: float = 10.0
    idle_s: float = 75.0
    header_timeout_s: float = 10.0
    body_timeout_s: float = 20.0
    unread_timeout_s: float = 60.0
    max_connections: int = 16_384
    max_connections_per_address: int = 12_288
    max_idle_per_address: int = 8192
    requests_per_connection: int = 10_000
    max_waiters: int = 12_288
    max_waiters_per_owner: int = 8192
    max_streams_per_owner: int = 8192
    requests_per_s: float = 2000.0
    url_prefixes: str = ""
    file_dirs: str = ""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "HttpSettings":
        """Read ALLOT_<FIELD IN CAPITALS>. Raises ValueError, which names the variable that does not parse."""
        keys_file = env.get("ALLOT_API_KEYS_FILE")
        numbers: dict[str, Any] = {}
        for spec in fields(cls):
            if spec.type in (int, float) and (text := env.get(f"ALLOT_{spec.name.upper()}")):
                try:
                    numbers[spec.name] = spec.type(text)
                except ValueError:
                    raise ValueError(f"ALLOT_{spec.name.upper()} is {text!r}; expected a number") from None
        texts: dict[str, Any] = {
            spec.name: text for spec in fields(cls) if spec.type is str and (text := env.get(_variable(spec.name)))
        }
        return cls(
            api_keys=tuple(env.get("ALLOT_API_KEYS", "").replace(",", " ").split()),
            api_keys_file=Path(keys_file) if keys_file else None,
            api_keys_in_redis=_is_true(env.get("ALLOT_API_KEYS_IN_REDIS", "")),
            insecure=_is_true(env.get("ALLOT_INSECURE", "")),
            mcp=_is_true(env.get("ALLOT_MCP", "")),
            **texts,
            **numbers,
        )

    @property
    def names_keys(self) -> bool:
        """Whether keys, or an issuer of tokens, must be read before it is known who may ask."""
        return bool(self.api_keys or self.api_keys_file or self.oidc_issuer)


def _variable(name: str) -> str:
    return f"ALLOT_{name.upper()}"


def _is_true(text: str) -> bool:
    return text.lower() in ("1", "true", "yes")
