"""The built pages are those that the sources give, and they are small."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from app.web.pages import assets

ROOT = Path(__file__).parent.parent.parent
KIB = 1024
FIRST_JS = 60 * KIB
ALL = 160 * KIB


def test_a_build_gives_what_is_committed(tmp_path: Path) -> None:
    vite = ROOT / "web/node_modules/.bin/vite"
    if not (shutil.which("node") and vite.exists()):
        pytest.skip("the workbench's tools are not installed here: npm ci --prefix web")
    command = [str(vite), "build", "--outDir", str(tmp_path), "--emptyOutDir", "--logLevel", "error"]
    subprocess.run(command, cwd=ROOT / "web", check=True, timeout=120)
    built = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    there = {path.name: path.read_bytes() for path in (ROOT / "app/web/assets").iterdir()}
    assert built.keys() == there.keys(), "run make web"
    assert built == there, "run make web"


def test_the_lock_names_no_registry() -> None:
    assert "resolved" not in (ROOT / "web/package-lock.json").read_text()


def test_budget() -> None:
    sizes = {name: len(gzip.compress(asset.plain, 9)) for name, asset in assets().items()}
    page = assets()["index.html"].plain.decode()
    first = sum(size for name, size in sizes.items() if name.endswith(".js") and name in page)
    solve = sum(size for name, size in sizes.items() if name.startswith(("Solve-", "words-", "HeatMap-")))
    assert sizes["index.html"] <= 2 * KIB
    assert sum(size for name, size in sizes.items() if name.endswith(".css")) <= 10 * KIB
    assert first + solve <= FIRST_JS
    assert sum(size for name, size in sizes.items() if name.endswith((".js", ".css", ".html"))) <= ALL


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name, asset in assets().items():
        text = asset.plain.decode()
        for known in ("http://www.w3.org/", "http://schemas.openxmlformats.org/"):  # names, never fetched
            text = text.replace(known, "")
        assert "https://" not in text, name
        assert "http://" not in text, name
