"""Copies a service with its own Redis while it runs, and puts such a copy back.

    python deploy/backup.py DATA_DIR TARGET              TARGET must not be there
    python deploy/backup.py --restore TARGET DATA_DIR    DATA_DIR must be empty or not there, and no service on it

Arrays first, then Redis's append-only file, then the arrays that came meanwhile: every job in the copy then has its
arrays. What expired in between may be missing, and is then expired in the copy too. A job that was running runs again.
A Redis of its own host and a bucket have tools of their own; docs/operations/backup.md has the commands.
"""

import argparse
import shutil
import time
from pathlib import Path

import redis

REWRITE_S = 600.0


def backup(data_dir: Path, target: Path) -> None:
    """Copy `data_dir`, of a service that may run, to `target`."""
    target.mkdir(parents=True, mode=0o700)
    _blobs(data_dir, target)
    told = data_dir / "redis/url"
    try:
        with redis.Redis.from_url(told.read_text(), decode_responses=True) as client:
            before = client.config_get("auto-aof-rewrite-percentage")["auto-aof-rewrite-percentage"]
            client.config_set("auto-aof-rewrite-percentage", 0)  # its files must not be exchanged while they are copied
            try:
                _wait_for_rewrite(client)
                _append_only(data_dir / "redis", target / "redis")
            finally:
                client.config_set("auto-aof-rewrite-percentage", before)
    except (redis.ConnectionError, FileNotFoundError):  # it does not run: nothing changes its files
        _append_only(data_dir / "redis", target / "redis")
    _blobs(data_dir, target)


def restore(target: Path, data_dir: Path) -> None:
    """Put the copy in `target` back as `data_dir`."""
    if data_dir.exists() and any(data_dir.iterdir()):
        raise SystemExit(f"{data_dir} is not empty")
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    for part in ("blobs", "redis"):
        if (target / part).exists():
            shutil.copytree(target / part, data_dir / part, dirs_exist_ok=True)


def _blobs(data_dir: Path, target: Path) -> None:
    """Copy the arrays that are not in the copy yet. One that is there is whole, and never changes."""
    for path in (data_dir / "blobs").glob("??/*"):
        copy = target / "blobs" / path.parent.name / path.name
        if copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            shutil.copy2(path, copy.with_suffix(".part"))
        except FileNotFoundError:  # it expired just now
            continue
        copy.with_suffix(".part").rename(copy)


def _append_only(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True, mode=0o700)
    for path in source.glob("appendonly*"):
        (shutil.copytree if path.is_dir() else shutil.copy2)(path, target / path.name)


def _wait_for_rewrite(client: "redis.Redis") -> None:
    give_up = time.monotonic() + REWRITE_S
    while client.info("persistence")["aof_rewrite_in_progress"]:
        if time.monotonic() > give_up:
            raise SystemExit("Redis has been rewriting its file for ten minutes")
        time.sleep(0.1)


def main() -> None:
    """Copy, or put back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restore", action="store_true")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    (restore if given.restore else backup)(given.source, given.target)


if __name__ == "__main__":
    main()
