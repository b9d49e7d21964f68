"""Draw everything into docs/images/gallery, with the service at ALLOT_URL or one of its own."""

import os
import sys
from importlib import import_module
from pathlib import Path

from allot_client import Client

NAMES = ("taxis", "shifts", "tracks", "nearest", "reviewers", "stipple", "plan", "unbalanced", "colours", "morph",
         "office", "keyboard", "proof")  # fmt: skip
PICTURES = Path(__file__).parent.parent.parent / "docs/images/gallery"


def main() -> None:
    wanted = sys.argv[1:] or NAMES
    with Client() if os.environ.get("ALLOT_URL") else Client.local() as client:
        for name in wanted:
            import_module(f"examples.gallery.{name}").draw(client).save(PICTURES / f"{name}.svg")


if __name__ == "__main__":
    main()
