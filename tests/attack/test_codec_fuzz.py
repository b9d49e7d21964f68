"""Bytes near those of the corpus, and of none, into every decoder: an array, or a sentence, and nothing else."""

import contextlib
import random
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.intake import errands
from kernels import Csr
from tests.attack.seeds import CORPUS, SEEDS, graph
from workers.store.codec import FORMATS, Form, InvalidUpload, Limits, Reading, describe, read
from workers.store.handles import reading_of, told_of
from workers.store.outline import outline
from workers.store.unpack import Scratch

LIMITS = Limits(max_bytes=1 << 24, max_elements=1 << 20)
FILES = sorted(CORPUS.iterdir())
SOME = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
WORDS = tuple(b"( ) , 1e999 -1 0 99999999999999999999 ' nan True [] %".split())
WORDS += (b"\x00", b"\xff", b"PK\x05\x06", b"\xed\xa0\x80", b"\n")


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """No upload of a few kilobytes may take a gigabyte."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    lines = Path("/proc/self/status").read_text().splitlines()
    held = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmSize:"))
    resource.setrlimit(resource.RLIMIT_AS, (held + (1 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file of the corpus with some bytes changed, taken out, doubled, or exchanged for words that mean something."""
    name = draw(st.sampled_from([path.name for path in FILES]))
    data = bytearray((CORPUS / name).read_bytes())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.integers(0, 12))
        kind = draw(st.sampled_from(["set", "cut", "word", "twice", "end"]))
        if kind == "set":
            data[at : at + length] = draw(st.binary(min_size=length, max_size=length))
        elif kind == "cut":
            del data[at : at + length]
        elif kind == "word":
            data[at : at + length] = draw(st.sampled_from(WORDS))
        elif kind == "twice":
            data[at:at] = data[at : at + 40]
        else:
            del data[at:]
    return name, bytes(data)


def forms() -> st.SearchStrategy[Form]:
    formats = st.none() | st.sampled_from([*FORMATS, "csr", "sln", "xml", ""])
    members = st.none() | st.sampled_from(["x", "cost", "one", "flow", "", "\ud800", "data"])
    dtypes = st.none() | st.sampled_from(["float64", "float16", "uint8", "O", "U4", "f3", ">f8", "", "M8[s]"])
    shapes = st.none() | st.lists(st.integers(0, 10**30), max_size=9).map(tuple) | st.just((2, 3))
    names = st.sampled_from(["", "x.npy", "x.dat", "x.mtx", "x.bin.gz", "\ud800.npz", "x" * 300])
    return st.builds(Form, formats, members, dtypes, shapes, names, st.sampled_from(["", "application/x-npz", "a/b"]))


def check(data: bytes, form: Form) -> Reading | None:
    """Read the bytes; whatever they are, there is an array to use or a sentence to send."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "upload"
        path.write_bytes(data)
        outline(path, form, LIMITS.max_elements)
        wrong = None
        try:
            found = read(path, form, "body", LIMITS, Scratch(".aside-", kept=True))
        except InvalidUpload as error:
            wrong = error
        if wrong is not None:
            assert wrong.field.startswith("body")
            assert len(wrong.message) > 5
            return None
        handed = reading_of(told_of(found, Path(name), Scratch(".aside-", kept=True)), LIMITS.max_elements)
        assert describe(handed.value) == describe(found.value)
        for value in found.value.values() if isinstance(found.value, dict) else [found.value]:
            arrays = [value.indptr, value.indices, value.values] if isinstance(value, Csr) else [value]
            assert all(array.size <= LIMITS.max_elements for array in arrays)
            for array in arrays:
                np.asarray(array).ravel()[:10].tolist()
        return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_of_the_corpus(path: Path) -> None:
    data = path.read_bytes()
    for format in (None, *FORMATS):
        check(data, Form(format, filename=path.name))


def test_the_corpus_holds_every_seed() -> None:
    assert {path.name: path.read_bytes() for path in FILES if path.name in SEEDS}.keys() == SEEDS.keys()


@SOME
@given(damaged())
def test_damaged_files(made: tuple[str, bytes]) -> None:
    name, data = made
    check(data, Form(filename=name))


@SOME
@given(damaged(), forms())
def test_damaged_files_in_odd_forms(made: tuple[str, bytes], form: Form) -> None:
    check(made[1], form)


@SOME
@given(st.binary(max_size=400), forms())
def test_bytes_of_nothing(data: bytes, form: Form) -> None:
    check(data, form)


NAMES = "x.npz x.npy x.sln x.csv x.xlsx x.mtx x.dat x.safetensors x.npy.gz \ud800.h5ad"
PREVIEWED = ["", *NAMES.split()]


def previewed(data: bytes, filename: str) -> None:
    """Show the bytes as a clerk does: sheets, or a sentence."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "upload"
        path.write_bytes(data)
        errand: dict[str, Any] = {
            "do": "preview",
            "path": str(path),
            "filename": filename,
            "missing": "zero",
            "mark": "m",
        }
        errand |= {"max_bytes": 1 << 24, "max_elements": 1 << 20, "scratch": f"{name}/aside-"}
        with contextlib.suppress(InvalidUpload):
            assert errands.run(errand, lambda count: None)["shown"]


@SOME
@given(damaged(), st.sampled_from(PREVIEWED))
def test_previews_of_damaged_files(made: tuple[str, bytes], filename: str) -> None:
    previewed(made[1], filename)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_preview_of_every_file_of_the_corpus(path: Path) -> None:
    for filename in PREVIEWED:
        previewed(path.read_bytes(), filename)


@pytest.mark.parametrize(
    "parts",
    [
        {"indptr": np.array([0, 2, 1, 3])}, {"indptr": np.array([0, 1])}, {"indices": np.array([0, 1, 7])},
        {"indices": np.array([0, -1, 2])}, {"shape": np.array([2**62, 2**62])}, {"indptr": np.array([1, 1, 2, 3])},
    ],
)  # fmt: skip
def test_a_preview_of_a_graph_that_contradicts_itself(parts: dict[str, np.ndarray]) -> None:
    previewed(graph(**parts), "x.npz")


def test_a_preview_of_an_order_of_very_many_places_takes_no_memory() -> None:
    previewed(b"999999999999999999 1 1 2 3", "x.sln")


def many(count: int, seed: int) -> int:
    """So many damaged files, faster than Hypothesis makes them; returns how many could be read."""
    rng, read_ones = random.Random(seed), 0
    files = [(path.name, path.read_bytes()) for path in FILES if path.stat().st_size < 4096]
    for _ in range(count):
        name, whole = rng.choice(files)
        data = bytearray(whole)
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randrange(8)] = rng.choice([*WORDS, rng.randbytes(rng.randrange(9))])
        read_ones += check(bytes(data), Form(filename=name if rng.random() < 0.7 else "")) is not None
    return read_ones


def test_many_damaged_files() -> None:
    count = 1500
    assert 0 < many(count, seed=1) < count
