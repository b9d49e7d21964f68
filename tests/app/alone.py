"""An API by itself, for tests of what it costs, and the heads of files that promise much."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

from workers.runtime.config import Settings

MIB = 1 << 20
GROWS = 100 * MIB
"""What the API may grow by for a body below 1 MiB."""


class Alone:
    """An API in a process of its own, so that its memory and its pauses can be measured."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
        environ |= settings.to_env() | {
            "ALLOT_MAX_UPLOAD_BYTES": str(4 << 30),
            "ALLOT_MAX_ELEMENTS": "2147483648",
        }
        command = [sys.executable, "-m", "app.cli.main", "serve", "--port", "0", "--workers", "0"]
        self.process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True, cwd=folder)
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None
        self.url = found[0]

    def forget_peak(self) -> int:
        """Bytes that are resident now; `peak` counts from here."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.memory("VmRSS")

    def memory(self, field: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
