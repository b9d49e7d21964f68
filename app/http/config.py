"""Settings that only HTTP needs; what a job needs is in workers/runtime/config.py."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True)
class HttpSettings:
    """How the API answers.

    Attributes:
        api_keys: "owner=sha256:<64 hex>" entries, from the environment (space or comma separated).
        api_keys_file: a file with one such entry a line; `#` starts a comment. It is read again when it changes.
        api_keys_in_redis: ask for a key, and know those that `allot key create` made.
        insecure: serve any address without keys.
        max_json_bytes: largest JSON body, and largest `job` part of a multipart body.
        max_wait_s: longest long poll, `Prefer: wait` and pause between two reads of an event stream.
        inline_elements: a result array above this is linked to, not printed, in JSON.
        keep_alive_s: seconds of silence after which an event stream sends a comment.
    """

    api_keys: tuple[str, ...] = ()
    api_keys_file: Path | None = None
    api_keys_in_redis: bool = False
    insecure: bool = False
    max_json_bytes: int = 256 * MIB
    max_wait_s: float = 60.0
    inline_elements: int = 100_000
    keep_alive_s: float = 15.0
    drain_s: float = field(default=10.0)

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "HttpSettings":
        """Read ALLOT_API_KEYS, ALLOT_API_KEYS_FILE, ALLOT_API_KEYS_IN_REDIS, ALLOT_INSECURE and the limits."""
        keys_file = env.get("ALLOT_API_KEYS_FILE")
        return cls(
            api_keys=tuple(env.get("ALLOT_API_KEYS", "").replace(",", " ").split()),
            api_keys_file=Path(keys_file) if keys_file else None,
            api_keys_in_redis=_is_true(env.get("ALLOT_API_KEYS_IN_REDIS", "")),
            insecure=_is_true(env.get("ALLOT_INSECURE", "")),
            max_json_bytes=int(env.get("ALLOT_MAX_JSON_BYTES", cls.max_json_bytes)),
            inline_elements=int(env.get("ALLOT_INLINE_ELEMENTS", cls.inline_elements)),
        )


def _is_true(text: str) -> bool:
    return text.lower() in ("1", "true", "yes")
