"""Whether a change of CUDA sources changed machine code; needs no GPU.

    python -m tests.kernels.machine_code before.json          # ahead of the change
    python -m tests.kernels.machine_code after.json --against before.json

A name that became a word, or parameters that became a struct, should leave every kernel as it was, to the byte. Of each
source so many forms are compiled as `--forms` says, spread over its list.
"""

import argparse
import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from kernels import cubins, shelf
from kernels.shelf import Form

Digests = dict[str, str]
"""Of each function's machine code, by its section of the cubin."""


def sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each section of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, table + k * size) for k in range(count)]
    names = cubin[heads[names_at][4] :]
    for name, kind, _, _, offset, length in heads:
        has_bytes = kind != 8  # SHT_NOBITS
        yield names[name : names.index(b"\0", name)].decode(), cubin[offset : offset + length] if has_bytes else b""


def digests(form: Form, architecture: str) -> Digests:
    """Compile, and tell each function's code apart from any other."""
    cubin = cubins.compiled(form, architecture)
    return {name: hashlib.sha256(code).hexdigest()[:16] for name, code in sections(cubin) if name.startswith(".text.")}


def spread(forms: Iterable[Form], most: int) -> list[Form]:
    """At most so many of each source, evenly from its list."""
    by_source: dict[str, list[Form]] = {}
    for form in sorted(forms, key=str):
        by_source.setdefault(form.path, []).append(form)
    few = (of_one if len(of_one) <= most else of_one[:: -(-len(of_one) // most)] for of_one in by_source.values())
    return [form for of_one in few for form in of_one]


def differences(before: dict[str, Digests], after: dict[str, Digests]) -> list[str]:
    """Form and function of all code that both have, but not alike, and of what only one has of a common form."""
    common = sorted(before.keys() & after.keys())
    return [f"{form} {name}" for form in common for name in sorted(before[form].keys() | after[form].keys())
            if before[form].get(name) != after[form].get(name)]  # fmt: skip


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("file", type=Path)
    asked.add_argument("--against", type=Path)
    asked.add_argument("--forms", type=int, default=3)
    asked.add_argument("--architecture", default="90")
    options = asked.parse_args()
    forms = spread(shelf.listed(), options.forms)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        codes = list(pool.map(partial(digests, architecture=options.architecture), forms))
    found = dict(zip(map(str, forms), codes, strict=True))
    options.file.write_text(json.dumps(found, indent=1))
    print(f"{len(found)} forms, {sum(map(len, codes))} functions")
    if options.against:
        changed = differences(json.loads(options.against.read_text()), found)
        print(*changed, f"{len(changed)} functions differ", sep="\n")


if __name__ == "__main__":
    main()
