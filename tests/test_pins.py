"""Pinned versions: constraints.txt, and requirements.lock with the hashes of their files."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
LOCK = (ROOT / "requirements.lock").read_text()
CONSTRAINTS = (ROOT / "constraints.txt").read_text()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> set[tuple[str, str]]:
    return {(normal(name), version) for name, version in PIN.findall(text)}


def test_both_files_hold_the_same_versions() -> None:
    """The lock leaves out what benchmarks alone need."""
    assert pins(LOCK) <= pins(CONSTRAINTS)


def test_every_package_of_the_lock_has_hashes() -> None:
    entries = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) == len(PIN.findall(LOCK))
    assert all("--hash=sha256:" in entry for entry in entries)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["cuda"], *extras["s3"], *extras["dev"]]
    names = {normal(re.match(r"[\w.-]+", line)[0]) for line in needed}  # type: ignore[index]
    assert names <= {name for name, _ in pins(LOCK)}


def test_a_commit_is_checked_as_a_push_is() -> None:
    """pre-commit runs the same tools on the same folders as `make check`."""
    typed = re.search(r"^TYPED := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert typed
    assert f"entry: .venv/bin/mypy {typed[1]}\n" in hooks
    assert all(f"entry: .venv/bin/ruff {step}" in hooks for step in ("check", "format"))


def test_pins_name_no_index() -> None:
    for text in (LOCK, CONSTRAINTS):
        assert not re.search(r"index-url|find-links|trusted-host|://|file:|(^|\s)/", text)


def test_a_release_tells_of_what_each_image_is_made() -> None:
    """A bill of materials (CycloneDX) of the service and of both images, from the files that install them by hash."""
    asked = subprocess.run(
        ["make", "--dry-run", "release"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    made = re.findall(r"cyclonedx-py requirements (\S+)", asked)
    assert made == ["requirements.lock", "docker/$image.lock"]
    assert "for image in api worker" in asked
    for name in ("api", "worker"):
        assert "--hash=sha256:" in (ROOT / f"docker/{name}.lock").read_text()
