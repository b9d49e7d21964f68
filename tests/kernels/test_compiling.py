"""What is kept of compiled loops is right, whoever writes at once, dies between two writes, or fills the disk."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from kernels import reached
from kernels.compiling import Shared, njit

INT, FLOAT = (numba.int64,), (numba.float64,)


class Slow(IndexDataCacheFile):  # type: ignore[misc]
    """numba's files; between reading the index and writing there, it waits for others to do the same."""

    def __init__(self, folder: Path, source: str, pause: Callable[[], Any] = lambda: None) -> None:
        super().__init__(str(folder), "f", source)
        self.pause = pause

    def _save_index(self, overloads: Any) -> None:
        self.pause()
        super()._save_index(overloads)


def plain() -> None:
    """A function that is kept."""


def kept_of(files: Slow) -> Shared:
    return Shared(files, plain)


def written_at_once(folder: Path, kept: Callable[[Slow], Any], patience_s: float) -> dict[str, Any]:
    """Two write at once, each under a key of its own; what is read then."""
    both = threading.Barrier(2)

    def pause() -> None:
        try:
            both.wait(patience_s)  # the other comes here only if nothing holds it back
        except threading.BrokenBarrierError:
            time.sleep(0.1)

    def write(key: str) -> None:
        kept(Slow(folder, "today", pause)).save(key, f"code of {key}")

    threads = [threading.Thread(target=write, args=(key,)) for key in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {key: kept(Slow(folder, "today")).load(key) for key in "ab"}


def test_two_that_write_at_once_keep_both(tmp_path: Path) -> None:
    assert written_at_once(tmp_path, kept_of, 0.3) == {"a": "code of a", "b": "code of b"}


def test_without_a_lock_code_goes_under_the_types_of_other_code(tmp_path: Path) -> None:
    found = written_at_once(tmp_path, lambda files: files, 20)
    assert found != {"a": "code of a", "b": "code of b"}  # the test above can fail


def test_who_dies_between_two_writes_leaves_nothing_of_an_earlier_source(tmp_path: Path) -> None:
    kept_of(Slow(tmp_path, "yesterday")).save("a", "code of yesterday's a")

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept_of(Slow(tmp_path, "today", die)).save("b", "code of b")
    again = kept_of(Slow(tmp_path, "today"))
    assert (again.load("a"), again.load("b")) == (None, None)
    again.save("b", "code of b")
    assert again.load("b") == "code of b"


@pytest.mark.parametrize("file", ["f.nbi", "f.1.nbc"])
@pytest.mark.parametrize("rest", [b"", b"\x80\x04\x8c\x00", b"cgone\nGone\n."], ids=len)
def test_a_file_that_cannot_be_read_is_compiled_anew(tmp_path: Path, file: str, rest: bytes) -> None:
    kept = kept_of(Slow(tmp_path, "today"))
    kept.save("a", "code of a")
    (tmp_path / file).write_bytes(rest)
    assert kept.load("a") is None
    kept.save("a", "code of a")
    assert kept.load("a") == "code of a"


def test_a_full_disk_is_told_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    kept = kept_of(Slow(tmp_path, "today"))
    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    with caplog.at_level(logging.WARNING):
        kept.save("a", "code of a")
    assert "No space left on device" in caplog.text
    assert kept.load("a") is None


PROGRAM = """
import sys
from kernels import reached
from kernels.compiling import njit

@njit(cache=True)
def twice(x):
    return x + x

print(twice(float(sys.argv[1]) if "." in sys.argv[1] else int(sys.argv[1])), len(twice.stats.cache_hits))
"""


def test_processes_share_what_they_compile(tmp_path: Path) -> None:
    """Through numba itself, whose private names this relies on."""
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*numbers: str) -> list[str]:
        started = [
            subprocess.Popen([sys.executable, tmp_path / "program.py", n], stdout=subprocess.PIPE, text=True)
            for n in numbers
        ]
        return [process.communicate(timeout=100)[0].split()[0] for process in started]

    assert run("3", "2.5") == ["6", "5.0"]
    assert run("4", "1.5") == ["8", "3.0"]
    assert len(list(tmp_path.glob("__pycache__/*.nbc"))) == 2


HELPER = """
from numba.extending import register_jitable
from kernels import reached
from kernels.compiling import njit

LANES = {lanes}
TABLE = ({table}, 5)

@register_jitable
def inner(x):
    return x * {factor}

@njit(inline="always")
def inlined(x):
    return inner(x) + {term}
"""
CALLER = """
from kernels import reached
from kernels.compiling import njit
import helper
from helper import LANES, inlined

{decorator}
def called(x):
    return inlined(x) * 1000 + LANES + helper.TABLE[0]

print(called(1), len(called.stats.cache_hits))
"""


def test_a_method_of_a_class_that_puts_code_together_is_part_of_it() -> None:
    def digest_of(factor: int) -> str:
        names: dict[str, Any] = {"__name__": "ours"}
        exec(MAKER.format(factor=factor), names)
        return reached.digest(names["use"])

    assert digest_of(2) == digest_of(2)
    assert digest_of(2) != digest_of(3)


MAKER = """
class Code:
    def term(self):
        return {factor}

class More(Code):
    pass

def define(context, x):
    return More().term()

def use(x):
    return define(None, x)
"""


@pytest.mark.parametrize("decorator", ["@njit(cache=True)", "import numba\n@numba.njit(cache=True)"])
def test_what_is_compiled_in_from_other_files_is_seen_to_change(tmp_path: Path, decorator: str) -> None:
    (tmp_path / "caller.py").write_text(CALLER.format(decorator=decorator))

    def run(**numbers: int) -> str:
        told = {"lanes": 20, "table": 3, "factor": 7, "term": 1} | numbers
        (tmp_path / "helper.py").write_text(HELPER.format(**told))
        command = [sys.executable, "-B", str(tmp_path / "caller.py")]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout.strip()

    changed = {
        "8023": {},
        "8033": {"lanes": 30},
        "8024": {"table": 4},
        "9023": {"factor": 8},
        "9024": {"term": 2, "table": 4},
    }
    if "numba" in decorator:  # so the test can fail
        assert [run(**changed[now]).split()[0] for now in ("8023", "9024")] == ["8023"] * 2
    else:
        assert [run(**numbers).split()[0] for numbers in changed.values()] == list(changed)
        assert run() == "8023 1"  # and what was kept is still there


def test_types_may_be_named() -> None:
    @njit(numba.int64(numba.int64))
    def twice(x: int) -> int:
        return x + x

    assert twice(3) == 6
    with pytest.raises(TypeError):
        twice("a")  # type: ignore[arg-type]
