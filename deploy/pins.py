"""The images that the Compose files name by tag, named by digest: part of `make release`.

    python deploy/pins.py dist/compose.pinned.yml

A tag can be moved to other bytes, a digest cannot. Docker asks the registries for the digests of today; what is written
goes behind the other Compose files (docker compose -f docker-compose.yml -f compose.pinned.yml up).
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMAGE = re.compile(r"^ {2}(?P<service>[\w-]+):$|^ {4}image: (?P<image>[\w./-]+:[\w.-]+)$", re.MULTILINE)
BASE = re.compile(r"^ARG PYTHON=(\S+)$", re.MULTILINE)
BUILT = {"api": "docker/api.Dockerfile", "worker": "docker/worker.Dockerfile", "worker-cpu": "docker/worker.Dockerfile"}
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def digest_of(image: str) -> str:
    """What the registry says that the tag names now: the digest of the list for all platforms, where there is one."""
    command = ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{json .Manifest.Digest}}"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if not DIGEST.fullmatch(told):
        raise ValueError(f"{image}: {told[:80]!r} is no digest")
    return str(told)


def images(compose: str) -> dict[str, str]:
    """Service -> image by tag, of the services that are not built here."""
    found, service = {}, ""
    for match in IMAGE.finditer(compose):
        service = match["service"] or service
        if match["image"]:
            found[service] = match["image"]
    return found


def pinned(asked: Callable[[str], str] = digest_of) -> str:
    """The Compose file."""
    lines = ["# Made by `make release`: the images of docker-compose.yml as they were that day.", "services:"]
    for service, image in images((ROOT / "docker-compose.yml").read_text()).items():
        lines += [f"  {service}:", f"    image: {image.rpartition(':')[0]}@{asked(image)}"]
    for service, file in BUILT.items():
        base = BASE.search((ROOT / file).read_text())
        assert base is not None, file
        image = base[1]
        lines += [f"  {service}:", "    build:", "      args:"]
        lines += [f"        PYTHON: {image.rpartition(':')[0]}@{asked(image)}"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the file; 1 where there is no Docker, or it cannot ask."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("into", type=Path)
    into: Path = parser.parse_args().into
    try:
        text = pinned()
    except (OSError, subprocess.CalledProcessError, ValueError) as wrong:
        print(f"{into.name} was not made: {getattr(wrong, 'stderr', None) or wrong}", file=sys.stderr)
        return 1
    into.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
