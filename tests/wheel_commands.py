"""The commands of both wheels, installed as `pipx install` and `uv tool install` do it: part of `make wheel`.

Each of these puts a wheel into an environment of its own and links its scripts into a folder that is on the PATH. The
client's wheel is tried on every Python from 3.10 to 3.14 that this machine has, without the service's packages.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MINORS = range(10, 15)
UNPACKED = ROOT / ".venv-tools/python3.14/usr/bin/python3.14"
"""What `make nextpython` leaves."""
COSTS = "who,day,late,night\nAnna,4,1,3\nBob,2,,5\nCleo,3,2,2\n"
PAIRS = [["row", "column", "value"], ["Anna", "day", "4"], ["Bob", "night", "5"], ["Cleo", "late", "2"]]
BEST = 11


def try_allot(folder: Path, python: Path, environ: dict[str, str]) -> None:
    """`allot` on the PATH: its version, a table in and out, and a file that is not there."""
    environ = environ | {"PATH": str(_linked(folder / "bin", python.parent / "allot"))}
    told = _run(["allot", "--version"], folder, environ).stdout
    _require(told.startswith("allot "), f"`allot --version` says {told!r}")
    (folder / "costs.csv").write_text(COSTS)
    _run(["allot", "solve", "costs.csv", "--solver", "auction", "--out", "pairs.csv"], folder, environ)
    with (folder / "pairs.csv").open(newline="") as file:
        _require(list(csv.reader(file)) == PAIRS, "`allot solve` writes other pairs")
    missing = subprocess.run(["allot", "solve", "nothing.csv"], cwd=folder, env=environ, capture_output=True, text=True)
    _require(missing.stderr == "allot: there is no file nothing.csv\n", missing.stderr)


def client_wheel(folder: Path, environ: dict[str, str]) -> Path:
    """The wheel of `allot-client`, made from a copy."""
    build = folder / "client-wheel"
    shutil.copytree(ROOT / "client", folder / "client", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    _pip(Path(sys.executable), environ, "wheel", "--no-deps", "--wheel-dir", str(build), str(folder / "client"))
    (wheel,) = build.glob("*.whl")
    return wheel


def try_client(folder: Path, wheel: Path, url: str, environ: dict[str, str]) -> list[str]:
    """`allot-client` in a bare environment of each Python: the same commands, without the solvers."""
    tried = []
    for version, python in pythons().items():
        home = folder / f"client-{version}"
        _run([str(python), "-m", "venv", str(home)], folder, environ)
        _pip(home / "bin/python", environ, "install", f"{wheel}[tables]")
        there = environ | {"PATH": str(_linked(home / "path", home / "bin/allot-client"))}
        (home / "costs.csv").write_text(COSTS)
        out = _run(["allot-client", "solve", "costs.csv", "--solver", "auction", "--json", "--url", url,
                    "--out", "pairs.xlsx"], home, there).stdout  # fmt: skip
        _require(json.loads(out)["objective"] == BEST, f"`allot-client solve` on Python {version} says {out}")
        shutil.copy(ROOT / "tests/client/alone.py", home)
        _run([str(home / "bin/python"), "-W", "error", "alone.py", url], home, there)
        tried.append(version)
    return tried


def try_tools(folder: Path, wheels: dict[str, Path], environ: dict[str, str]) -> None:
    """`uv tool install` of each wheel, by the name of its script, which is then on the PATH and says its version."""
    home = folder / "uv"
    _run([sys.executable, "-m", "venv", str(home)], folder, environ)
    _pip(home / "bin/python", environ, "install", "uv")
    tools = environ | {"UV_TOOL_DIR": str(home / "tools"), "UV_TOOL_BIN_DIR": str(home / "linked")}
    for script, wheel in wheels.items():
        _run([str(home / "bin/uv"), "tool", "install", "--python", sys.executable, str(wheel)], folder, tools)
        there = environ | {"PATH": str(home / "linked")}
        told = _run([script, "--version"], folder, there).stdout
        _require(told.startswith(f"{script} "), f"`{script} --version` says {told!r} after `uv tool install`")


def pythons() -> dict[str, Path]:
    """By version, each Python of this machine that the client is made for."""
    found: dict[str, Path] = {}
    for minor in MINORS:
        on_path = shutil.which(f"python3.{minor}")
        beside = Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")
        fetched = [UNPACKED] if minor == 14 and UNPACKED.exists() else []
        for place in [*([Path(on_path)] if on_path else []), *beside, *fetched]:
            code = f"import ensurepip, sys; sys.exit(sys.version_info[:2] != (3, {minor}))"
            if subprocess.run([place, "-c", code], capture_output=True).returncode == 0:
                found[f"3.{minor}"] = place
                break
    return found


def _linked(folder: Path, script: Path) -> Path:
    folder.mkdir()
    (folder / script.name).symlink_to(script)
    return folder


def _run(command: list[str], folder: Path, environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    found = shutil.which(command[0], path=environ["PATH"]) or command[0]
    done = subprocess.run([found, *command[1:]], cwd=folder, env=environ, capture_output=True, text=True, timeout=300)
    _require(done.returncode == 0, f"{' '.join(command)} ends with {done.returncode}: {done.stderr[-2000:]}")
    return done


def _pip(python: Path, environ: dict[str, str], *arguments: str) -> None:
    command = [str(python), "-m", "pip", arguments[0], "-qq", "--disable-pip-version-check", *arguments[1:]]
    subprocess.run(command, check=True, env=environ, cwd=os.sep)


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise OSError(words)
