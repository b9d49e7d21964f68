"""Compiled kernels on disk: what a cubin's name depends on, and that it is compiled once. NVRTC alone; no GPU."""

import ast
import re
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels import shelf
from kernels.shelf import Form
from kernels.sources import sources
from tests.conftest import need_gpu

cubins = pytest.importorskip("kernels.cubins", reason="cupy is not installed")

SMALL = Form("certificates/gpu/checksum.cu")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(shelf, "OF_USER", tmp_path / "user")
    monkeypatch.setattr(shelf, "compiled", [])
    monkeypatch.setattr(shelf, "used", set())
    before = shelf.cubin_folders()
    shelf.keep_cubins(tmp_path / "kept")
    yield tmp_path / "kept"
    shelf.keep_cubins(before[0], before[1:])


def test_a_form_is_compiled_once_and_kept(folder: Path) -> None:
    file = cubins.get(SMALL, "90")
    assert file.parent == folder
    assert file.read_bytes() == cubins.compiled(SMALL, "90")
    assert cubins.get(SMALL, "90") == file
    assert shelf.compiled == [SMALL]
    assert cubins.get(SMALL, "80") != file
    assert shelf.compiled == [SMALL, SMALL]
    assert sorted(folder.iterdir()) == sorted({file, cubins.get(SMALL, "80")})  # and nothing half-written


def test_what_came_with_an_image_is_read_and_not_written(folder: Path, tmp_path: Path) -> None:
    shelf.keep_cubins(tmp_path / "image")
    baked = cubins.get(SMALL, "90")
    shelf.keep_cubins(folder, [tmp_path / "image"])
    assert cubins.get(SMALL, "90") == baked
    assert len(shelf.compiled) == 1
    assert not folder.exists()


def test_what_is_no_cubin_is_replaced(folder: Path) -> None:
    file = cubins.get(SMALL, "90")
    whole = file.read_bytes()
    file.write_bytes(b"")
    assert cubins.get(SMALL, "90").read_bytes() == whole


def test_a_name_changes_with_all_that_a_cubin_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    form = Form("lap/auto/forest.cu", ("-DCOST=float", "-DVALUE=double"))
    names = {cubins.name_of(form, "90"), cubins.name_of(form, "100"), cubins.name_of(Form("lap/auto/bid.cu"), "90")}
    names.add(cubins.name_of(Form("lap/auto/forest.cu", ("-DCOST=double", "-DVALUE=double")), "90"))
    assert len(names) == 4
    assert cubins.name_of(form, "90") in names  # and with nothing else
    with monkeypatch.context() as patch:
        patch.setattr(cubins, "FLAGS", (*cubins.FLAGS, "-lineinfo"))
        names.add(cubins.name_of(form, "90"))
    with monkeypatch.context() as patch:
        patch.setattr(cubins.nvrtc, "getVersion", lambda: (12, 0))
        names.add(cubins.name_of(form, "90"))
    assert len(names) == 6


def test_a_name_changes_with_a_header_that_is_included(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels import sources

    monkeypatch.setattr(sources, "HERE", tmp_path)
    (tmp_path / "certificates").mkdir()
    (tmp_path / "certificates/one.cu").write_text('#include "certificates/two.cuh"\n')
    (tmp_path / "certificates/two.cuh").write_text("// before\n")
    before = cubins.name_of(Form("certificates/one.cu"), "90")
    (tmp_path / "certificates/two.cuh").write_text("// after\n")
    assert cubins.name_of(Form("certificates/one.cu"), "90") != before


def test_every_listed_form_names_a_source() -> None:
    from kernels.sources import sources

    listed = list(shelf.listed())
    assert len(listed) == len(set(listed)) > 100
    assert {form.path for form in listed} <= set(sources())


def test_every_source_that_a_launch_names_is_there() -> None:
    """Only a GPU would find out otherwise. A name put together from parts cannot be checked, so there is none."""
    root = Path(__file__).parents[2]
    named, built = set(), []
    for path in [*(root / "kernels").rglob("*.py"), *(root / "benchmarks").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named |= {node.value} if re.fullmatch(r"[\w/]+/\w+\.cu", node.value) else set()
            elif isinstance(node, ast.JoinedStr) and ast.unparse(node).endswith(".cu'"):
                built.append(ast.unparse(node))
    assert len(named) > 10
    assert named <= set(sources())
    assert built == ["f'papers/hungarian/{VERSIONS[opt]}.cu'"]


def test_forms_are_recorded_beside_those_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "forms.txt").write_text("# about\nlap/auto/bid.cu\t-DCOST=int\n")
    monkeypatch.setattr(shelf, "FORMS", tmp_path / "forms.txt")
    known, other = Form("lap/auto/bid.cu", ("-DCOST=int",)), Form("lap/auto/bid.cu", ("-DCOST=long long",))
    assert shelf.record([known, other]) == 1
    assert list(shelf.listed()) == [known, other]
    assert (tmp_path / "forms.txt").read_text().startswith("# about\n")


def test_the_command_compiles_what_is_listed_and_leaves_out_what_nvrtc_does_not_know(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from app.cli.warm import FOLDER, warm

    (tmp_path / "forms.txt").write_text(f"{SMALL}\n")
    monkeypatch.setattr(shelf, "FORMS", tmp_path / "forms.txt")
    monkeypatch.setenv(FOLDER, str(tmp_path / "baked"))
    assert warm(Namespace(cubins=True, architectures="90,35", record=False)) == 0
    assert "sm_35 is left out" in capsys.readouterr().out
    shelf.keep_cubins(folder, [tmp_path / "baked"])
    assert cubins.get(SMALL, "90").parent == tmp_path / "baked"
    assert shelf.compiled == []


@pytest.mark.gpu
def test_a_kernel_of_a_gpu_comes_from_its_cubin(folder: Path) -> None:
    from kernels import cuda

    need_gpu()

    for _ in range(2):  # the second time as another process would find it
        cuda._module.cache_clear()
        cuda._kernel.cache_clear()
        assert cuda.kernel(SMALL.path, "add_up_words", cooperative=False).attributes["max_threads_per_block"] > 0
        assert shelf.compiled == [SMALL]
        assert shelf.used == {SMALL}
    assert len(list(folder.iterdir())) == 1
