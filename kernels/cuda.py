"""From a `.cu` text to a loaded module, once per device, and to a bare cubin where there is no GPU.

A module is loaded from its cubin (cubins.py), which was compiled ahead or is compiled now and kept.
"""

import functools
from typing import Any

import cupy

from kernels import cubins
from kernels.shelf import ARCHITECTURES as ARCHITECTURES
from kernels.shelf import Form
from kernels.sources import source as source
from kernels.sources import sources as sources


@functools.cache
def _module(device: int, path: str, defines: tuple[str, ...], cooperative: bool) -> Any:
    with cupy.cuda.Device(device):
        architecture = cupy.cuda.Device().compute_capability
        if cubins.can_compile_for(architecture):
            file = cubins.get(Form(path, defines), architecture)
            return cupy.RawModule(path=str(file), enable_cooperative_groups=cooperative)
        # A GPU that is newer than this NVRTC: CuPy compiles for the newest that both know.
        options = (*cubins.OWN_FLAGS, *defines)
        return cupy.RawModule(code=source(path), options=options, enable_cooperative_groups=cooperative)


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


def compile_only(path: str, architecture: str, defines: tuple[str, ...] = (), *, quickly: bool = False) -> bytes:
    """Compile `path` for sm_`architecture` with NVRTC alone and return the cubin; needs no driver and no GPU.

    Args:
        path, architecture, defines: what is compiled, and for which GPUs.
        quickly: leave out what makes code fast and compiling slow.

    Raises:
        RuntimeError: with NVRTC's log.
    """
    return cubins.compiled(Form(path, defines), architecture, quickly=quickly)
