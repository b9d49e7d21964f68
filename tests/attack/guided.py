"""The decoders under a fuzzer that looks which lines it reaches: python -m tests.attack.guided [--seconds 600].

Atheris (`make guided` installs it where it has a wheel) begins with the corpus and keeps in build/corpus what reached
lines that nothing reached before. Without it Hypothesis draws bytes near the corpus for as long. What breaks a decoder
ends the run, and its bytes lie in the current folder: put them into tests/attack/corpus.
"""

import argparse
import contextlib
import importlib
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

LONGEST = 1 << 16
KEPT = Path("build/corpus")
RAW = (("float64", (2, 3)), ("uint8", (7,)), ("bfloat16", (4,)), (">f8", (1,)))
"""Types and shapes of bytes that say nothing of themselves."""


def forms() -> list[Any]:
    """Ways to read an upload, chosen by its first byte."""
    codec = importlib.import_module("workers.store.codec")
    named = [codec.Form(filename=name) for name in ("", "x.dat", "x.sln", "x.mtx", "x.npy.gz", "x.npz", "x.zst")]
    raw = [codec.Form("raw", dtype=dtype, shape=shape) for dtype, shape in RAW]
    return [*named, *(codec.Form(format) for format in codec.FORMATS), codec.Form("npz", "cost"), *raw]


def one_of(known: list[Any], check: Any) -> Any:
    """What reads one drawn text. Raises whatever is neither an array nor a sentence."""

    def one(data: bytes) -> None:
        if data:
            check(data[1:], known[data[0] % len(known)])

    return one


def by_atheris(atheris: Any, seconds: float) -> None:
    """Ends this process."""
    with atheris.instrument_imports(include=["workers.store", "kernels.qap.qaplib", "kernels.problems"]):
        known = forms()
        attack = importlib.import_module("tests.attack.test_codec_fuzz")
    KEPT.mkdir(parents=True, exist_ok=True)
    begin = Path(tempfile.mkdtemp(prefix="allot-corpus-"))
    for k, path in enumerate(attack.FILES):
        (begin / path.name).write_bytes(bytes([k % len(known)]) + path.read_bytes())
        for form in range(len(known)):
            if path.stat().st_size < 512:
                (begin / f"{path.name}-{form}").write_bytes(bytes([form]) + path.read_bytes())
    options = [f"-max_total_time={int(seconds)}", f"-max_len={LONGEST}", "-rss_limit_mb=3000", "-timeout=20"]
    atheris.Setup([sys.argv[0], *options, str(KEPT), str(begin)], one_of(known, attack.check))
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(begin, ignore_errors=True)


def by_hypothesis(seconds: float) -> int:
    """How many texts were read."""
    attack = importlib.import_module("tests.attack.test_codec_fuzz")
    one, until, count = one_of(forms(), attack.check), time.monotonic() + seconds, 0
    while time.monotonic() < until:

        @settings(
            max_examples=500,
            deadline=None,
            phases=[Phase.generate],
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(0, 255), attack.damaged())
        def some(form: int, made: tuple[str, bytes]) -> None:
            nonlocal count
            count += 1
            one(bytes([form]) + made[1])

        random.seed(count)
        some()
    return count


def main() -> None:
    """Fuzz, and say how much."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.guided", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    seconds = parser.parse_args().seconds
    with contextlib.suppress(ModuleNotFoundError):
        by_atheris(importlib.import_module("atheris"), seconds)
    print(f"{by_hypothesis(seconds)} texts were read, none broke a decoder")


if __name__ == "__main__":
    main()
