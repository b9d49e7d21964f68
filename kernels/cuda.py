"""From a `.cu` text to a loaded module, once per device, and to a bare cubin where there is no GPU.

`common.cuh` is pasted in front of every source, because CuPy's compile cache hashes the source text and not
what it includes. CuPy itself caches the cubins on disk (CUPY_CACHE_DIR).
"""

import functools
from pathlib import Path
from typing import Any

import cupy

HERE = Path(__file__).parent
ARCHITECTURES = ("80", "90", "100")
FLAGS = ("--std=c++17", "--extra-device-vectorization")


def source(path: str) -> str:
    """The text of `path` (relative to kernels/, as "lap/forest.cu") behind the common header.

    A line `#include "uot/barriers.cuh"` (relative to kernels/ too) is replaced by that file's text, once. Certificates
    stand alone, without the common header: they share no line with a solver.
    """
    common = "" if path.startswith("certificates/") else (HERE / "common.cuh").read_text()
    return f"{common}\n{_expand(path, set())}"


def _expand(path: str, seen: set[str]) -> str:
    seen.add(path)
    lines = (HERE / path).read_text().splitlines()
    for k, line in enumerate(lines):
        if line.startswith('#include "'):
            header = line.split('"')[1]
            lines[k] = "" if header in seen else f'{_expand(header, seen)}\n#line {k + 2} "{path}"'
    return "\n".join([f'#line 1 "{path}"', *lines, ""])


def sources() -> list[str]:
    """Every `.cu` file under kernels/, as `source` takes them."""
    return sorted(str(p.relative_to(HERE)) for p in HERE.rglob("*.cu"))


@functools.cache
def _module(device: int, path: str, defines: tuple[str, ...], cooperative: bool) -> Any:
    with cupy.cuda.Device(device):
        return cupy.RawModule(code=source(path), options=(*FLAGS, *defines), enable_cooperative_groups=cooperative)


@functools.cache
def _kernel(device: int, path: str, name: str, defines: tuple[str, ...], cooperative: bool) -> Any:
    return _module(device, path, defines, cooperative).get_function(name)


def kernel(path: str, name: str, defines: tuple[str, ...] = (), *, cooperative: bool = True) -> Any:
    """The kernel `name` (extern "C") of `path`, compiled with `-D` options `defines`, on the current device.

    A cooperative launch is cut down (by CuPy, with a warning) to the blocks that fit on the device at once:
    a kernel whose blocks do not wait for each other passes cooperative=False.
    """
    return _kernel(cupy.cuda.Device().id, path, name, defines, cooperative)


@functools.cache
def _attributes(device: int) -> dict[str, int]:
    return dict(cupy.cuda.Device(device).attributes)


def attribute(name: str) -> int:
    """An attribute of the current device, as "MultiProcessorCount"; asking the driver each time takes 40 us."""
    return _attributes(cupy.cuda.Device().id)[name]


def compile_only(path: str, architecture: str, defines: tuple[str, ...] = ()) -> bytes:
    """Compile `path` for sm_`architecture` with NVRTC alone and return the cubin; needs no driver and no GPU.

    Raises:
        RuntimeError: with NVRTC's log.
    """
    # CuPy's own compile path asks the driver for its version; this binding does not.
    from cupy_backends.cuda.libs import nvrtc

    options = (*FLAGS, *defines, *(f"-I{folder}" for folder in _include_folders()), f"-arch=sm_{architecture}")
    program = nvrtc.createProgram(source(path), path, (), ())
    try:
        nvrtc.compileProgram(program, options)
        cubin: bytes = nvrtc.getCUBIN(program)
        return cubin
    except nvrtc.NVRTCError as error:
        raise RuntimeError(f"{path} for sm_{architecture}:\n{nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)


def _include_folders() -> list[str]:
    import nvidia  # a namespace package: where the CUDA wheels keep their headers

    cccl = Path(cupy.__file__).parent / "_core" / "include" / "cupy" / "_cccl"
    folders = [cccl / part for part in ("cub", "thrust", "libcudacxx")]
    return [str(found) for base in nvidia.__path__ for found in Path(base).glob("*/include")] + [
        str(f) for f in folders
    ]
