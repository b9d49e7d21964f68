"""A live service under attack: `make attack`, or python -m tests.attack [--seconds N] [--url http://...].

Schemathesis makes requests from the OpenAPI document, right ones and wrong ones, in sequences too, and holds every
answer against it: no fault of the server, no status, media type or shape that is not documented.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

READY_S = 300.0
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,allow_header_conformance,use_after_free"
)
LIMITS = {
    "ALLOT_DEFAULT_TIME_LIMIT_S": "0.5",
    "ALLOT_MAX_TIME_LIMIT_S": "1",
    "ALLOT_WARM_SOLVERS": "lap",
    "ALLOT_MAX_JSON_BYTES": str(4 << 20),
    "ALLOT_MAX_UPLOAD_BYTES": str(16 << 20),
}
"""Jobs end soon, so that sequences of requests come to their results."""


@contextlib.contextmanager
def service(folder: Path) -> Iterator[str]:
    """`allot serve` with its data in `folder` on a free port, ready: its address."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")} | LIMITS
    command = [sys.executable, "-m", "app.cli.main", "serve", "--port", "0", "--workers", "1"]
    command += ["--data-dir", str(folder)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environ, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, (folder / "log").read_text()
        give_up = time.monotonic() + READY_S
        while httpx.get(f"{found[0]}/readyz").status_code != 200:
            assert time.monotonic() < give_up, "the service did not get ready"
            time.sleep(0.2)
        yield found[0]
    finally:
        process.terminate()
        process.wait(60)


def attack(url: str, seconds: int, folder: Path) -> int:
    """Run schemathesis for so long; 0 when every answer was as documented."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--url", url]
    command += ["--checks", CHECKS, "--max-time", str(seconds), "--phases", "examples,coverage,fuzzing,stateful"]
    command += ["--continue-on-failure", "--request-timeout", "30", "--suppress-health-check", "all"]
    command += ["--warnings", "off", "--no-shrink", "--generation-database", "none"]
    return subprocess.run(command, cwd=folder).returncode


def main() -> int:
    """Attack a service of our own, or the one that --url names."""
    parser = argparse.ArgumentParser(description="Requests of every kind, for some time.")
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--url", help="of a service that runs already, which must hold nothing of value")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="allot-attack-") as name:
        folder = Path(name)
        if arguments.url:
            return attack(arguments.url, arguments.seconds, folder)
        with service(folder) as url:
            failed = attack(url, arguments.seconds, folder)
            tracebacks = (folder / "log").read_text().count("Traceback")
            print(f"{tracebacks} tracebacks in the log")
            return failed or tracebacks > 0


if __name__ == "__main__":
    sys.exit(main())
