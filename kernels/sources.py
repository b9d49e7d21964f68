"""The texts of CUDA kernels, each whole: with everything of ours that it includes."""

import importlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def source(path: str) -> str:
    """The text of `path` (relative to kernels/, as "lap/auto/forest.cu") behind the common header.

    A line `#include "uot/iteration/block.cuh"` (relative to kernels/ too) is replaced by that file's text, once.
    A layout.py stands for its `CUDA`. Certificates have no common header: they share no line with a solver.
    """
    common = "" if path.startswith("certificates/") else (HERE / "common.cuh").read_text()
    return f"{common}\n{_expand(path, set())}"


def _expand(path: str, seen: set[str]) -> str:
    seen.add(path)
    if path.endswith("/layout.py"):
        return f'#line 1 "{path}"\n{layout_of(path).CUDA}\n'
    lines = (HERE / path).read_text().splitlines()
    for k, line in enumerate(lines):
        if line.startswith('#include "'):
            header = line.split('"')[1]
            lines[k] = "" if header in seen else f'{_expand(header, seen)}\n#line {k + 2} "{path}"'
    return "\n".join([f'#line 1 "{path}"', *lines, ""])


def layout_of(path: str) -> Any:
    """The module of a folder's structs, from its path relative to kernels/."""
    return importlib.import_module("kernels." + path.removesuffix(".py").replace("/", "."))


def sources() -> list[str]:
    """Every `.cu` file under kernels/, as `source` takes them."""
    return sorted(str(p.relative_to(HERE)) for p in HERE.rglob("*.cu"))
