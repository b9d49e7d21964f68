"""Code from the disk is called without its bitcode, which is read once a caller is compiled."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOOPS = """
from kernels.compiling import njit

@njit(cache=True)
def called(numbers, most):
    total = 0.0
    for one in numbers:
        total += min(one, most)
    return total

@njit(cache=True)
def itself(k):
    return 1 if k < 2 else k * itself(k - 1)
"""
PROGRAM = """
import numba, numpy as np
from loops import called, itself
from kernels.loading import Library

def library_of(function):
    (found,) = function.overloads.values()
    return found.library

numbers = np.array([1.0, 3.0, 7.0])
assert (called(numbers, 4.0), itself(5)) == (8, 120)
hits = sum(called.stats.cache_hits.values()) + sum(itself.stats.cache_hits.values())
unread = [library_of(one)._unread is not None and library_of(one)._shared_module is None for one in (called, itself)]
assert isinstance(library_of(called), Library)
assert library_of(called).get_pointer_to_function("nobody") == 0

@numba.njit
def caller(numbers):
    return called(numbers, 2.0) + called(numbers, 5.0)

assert caller(numbers) == 5 + 9
assert library_of(called)._unread is None and library_of(called)._shared_module is not None
print(hits, *unread)
"""


def run(folder: Path) -> str:
    environment = {"PYTHONPATH": f"{folder}:{ROOT}", "PATH": "", "HOME": str(folder)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_comes_from_the_disk_is_called_without_its_bitcode_and_inlined_with_it(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    assert run(tmp_path) == "0 False False"  # compiled here
    assert run(tmp_path) == "2 True True"
