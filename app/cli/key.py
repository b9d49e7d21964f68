"""`allot key ...`: make, list, rotate and revoke API keys."""

import sys
from argparse import Namespace
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from app.http.auth import BadKeys, new_key
from workers.jobs.job import Unavailable
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.runtime.keyring import BadKey, Key, Keyring, check_owner
from workers.runtime.redis_server import running_url

DAY_S = 86400.0


def key(args: Namespace) -> int:
    """Run one of the verbs; 2 for wrong input or when Redis does not answer."""
    try:
        return _entry(args.owner) if args.verb == "entry" else _in_redis(args)
    except (BadKeys, BadKey, Unavailable, ValueError) as wrong:
        print(f"allot: {wrong}", file=sys.stderr)
        return 2


def _entry(owner: str) -> int:
    secret, entry = new_key(owner)
    print(f"key for its holder, shown only now:  {secret}\nline for ALLOT_API_KEYS_FILE:         {entry}")
    return 0


def _in_redis(args: Namespace) -> int:
    ring = Keyring(_redis_url(args.data_dir))
    if args.verb == "create":
        lifetime = None if args.days is None else args.days * DAY_S
        _made(*ring.create(args.owner, args.scopes.split(","), lifetime, args.label))
    elif args.verb == "rotate":
        _made(*ring.rotate(args.id, args.grace_hours * 3600.0))
    elif args.verb == "revoke":
        ring.revoke(args.id)
        print(f"{args.id} is revoked; every API process refuses it within a second")
    elif args.verb == "limit":
        _limit(args)
    else:
        print(
            "\n".join(
                [_line("id", "owner", "scopes", "created", "expires", "last used", "label"), *map(_row, ring.list())]
            )
        )
    return 0


def _limit(args: Namespace) -> None:
    """Set what was named, and show all limits of the owner and what they have."""
    jobs = Jobs(replace(Settings.from_env(), redis_url=_redis_url(args.data_dir)))
    given = dict(text.partition("=")[::2] for text in args.limits)
    if wrong := [text for text in args.limits if "=" not in text]:
        raise BadKey(f"{wrong[0]!r} is no limit; expected NAME=VALUE, as weight=3")
    owner = check_owner(args.owner)
    if given:
        jobs.quotas.set(owner, given)
    for name, value in asdict(jobs.quotas.of(owner)).items():
        print(f"{name:<16}{'the setting of the API' if value is None else f'{value:g}'}")
    print("has now: " + ", ".join(f"{name} {value:g}" for name, value in jobs.quotas.used(owner).items()))


def _redis_url(data_dir: Path | None) -> str:
    settings = Settings.from_env()
    found = settings.redis_url or running_url(data_dir or settings.data_dir)
    if found is None:
        raise Unavailable(
            "no Redis is named in ALLOT_REDIS_URL, and no service runs one in this data directory (--data-dir); "
            "`allot key entry OWNER` makes a line for ALLOT_API_KEYS_FILE without one"
        )
    return found


def _made(secret: str, made: Key) -> None:
    print(f"key for its holder, shown only now:  {secret}")
    print(f"id {made.id}, owner {made.owner}, may {', '.join(sorted(made.scopes))}, expires {_day(made.expires_at)}")
    print("the service must run with ALLOT_API_KEYS_IN_REDIS=1")


def _row(one: Key) -> str:
    scopes = ",".join(sorted(one.scopes))
    return _line(one.id, one.owner, scopes, *map(_day, (one.created_at, one.expires_at, one.used_at)), one.label)


def _line(*cells: str) -> str:
    widths = (12, 20, 26, 16, 16, 16, 0)
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _day(moment: float | None) -> str:
    return "never" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")
