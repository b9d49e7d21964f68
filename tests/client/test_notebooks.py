"""Every notebook of examples/ runs from its first cell to its last, against the session's service."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.app.conftest import Service

NOTEBOOKS = sorted((Path(__file__).parent.parent.parent / "examples" / "notebooks").glob("*.ipynb"))
LONGEST_S = 120


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setenv("ALLOT_URL", service.url)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept in the repository"
    NotebookClient(notebook, timeout=LONGEST_S, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) or "text/html" in output.get("data", {}) for output in shown)


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 5
