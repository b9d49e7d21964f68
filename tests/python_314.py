"""CPython 3.14 for `make wheel`, out of Debian's packages: `make nextpython`.

    python -m tests.python_314 FOLDER

A released Debian is years behind Python. The packages of its next release are fetched from the mirror that this machine
uses, and unpacked into the folder, with the C library that they were built for. Nothing is installed, and the machine's
own lists of packages stay as they are. A script starts the interpreter under that C library, so that virtual
environments work and wheels from a package index run.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = "forky"
"""The first release of Debian with Python 3.14."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PACKAGES = (
    "python3.14-minimal", "libpython3.14-minimal", "libpython3.14-stdlib", "python3.14-venv", "python3.14",
    "python3-pip-whl", "libc6", "libssl3t64", "libexpat1", "libffi8", "libbz2-1.0", "liblzma5", "libzstd1",
    "libuuid1", "zlib1g",
)  # fmt: skip
START = """#!/bin/sh
exec {root}/usr/lib64/ld-linux-x86-64.so.2 --argv0 "$0" --library-path {root}/usr/lib/x86_64-linux-gnu \\
	{real} "$@"
"""
WHEELS = "/usr/share/python-wheels"


def mirror() -> str:
    """The address of Debian's packages that this machine's own lists come from. Raises OSError."""
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], check=True, capture_output=True, text=True
    ).stdout
    found = sorted({line for line in told.split() if line.rstrip("/").endswith("/debian")})
    if not found:
        raise OSError("apt knows no mirror of Debian here")
    return found[0]


def fetch(address: str, work: Path) -> list[Path]:
    """The packages, checked by apt against the keys of Debian."""
    for name in ("sources", "state/lists/partial", "cache/archives/partial", "debs"):
        (work / name).mkdir(parents=True)
    (work / "sources/next.list").write_text(f"deb [signed-by={KEYRING}] {address} {SUITE} main\n")
    places = {
        "Dir::Etc::sourcelist": os.devnull, "Dir::Etc::sourceparts": work / "sources", "Dir::State": work / "state",
        "Dir::State::status": os.devnull, "Dir::Cache": work / "cache", "APT::Sandbox::User": "root",
    }  # fmt: skip
    apt = ["apt-get", "-qq", *(word for name, value in places.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *PACKAGES], check=True, cwd=work / "debs")
    return sorted((work / "debs").glob("*.deb"))


def lay(packages: list[Path], root: Path) -> Path:
    """The interpreter, unpacked so that it works where it lies."""
    root.mkdir(parents=True)
    for package in packages:
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    python = root / "usr/bin/python3.14"
    real = python.rename(root / "usr/bin/python3.14.real")
    python.write_text(START.format(root=root, real=real))
    python.chmod(0o755)
    for told in (root / "usr/lib/python3.14").glob("_sysconfigdata_*.py"):  # where venv finds pip
        told.write_text(told.read_text().replace(f"'{WHEELS}", f"'{root}{WHEELS}"))
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    root: Path = parser.parse_args().folder.resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="allot-python-") as work:
            python = lay(fetch(mirror(), Path(work)), root)
        told = subprocess.run([python, "-VV"], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as wrong:
        print(f"Python 3.14 is not to be had here: {wrong}", file=sys.stderr)
        return 1
    print(told.strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
