"""`allot warm`: compile everything once, after an install, so that no first job waits for a compiler.

numba keeps what it compiles beside the source and CuPy in its cache folder; each worker then starts in seconds.
Solvers are compiled side by side, each in a process of its own, for the CPU and, where there is one, for the GPU.
"""

import time
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from kernels import SOLVERS, Device, solve_each_form
from workers.runtime import devices


def warm(args: Namespace) -> int:
    """Compile everything; 0 when every solver could be on the CPU. What a GPU cannot is told, and no more than that."""
    begun = time.perf_counter()
    there: list[Device] = ["cpu", "gpu"] if devices.visible_gpus() else ["cpu"]
    pairs = [(name, device) for device in there for name, card in SOLVERS.items() if device in card.modules]
    print(f"Compiling the solvers for {' and '.join(there)} (once; a minute or so) ...", flush=True)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        told = list(zip(pairs, pool.map(warm_one, *zip(*pairs, strict=True)), strict=True))
    for (name, device), wrong in told:
        if wrong:
            print(f"{name} on {device}: {wrong}")
    print(f"{time.perf_counter() - begun:.0f} s.")
    return int(any(wrong and device == "cpu" for (_, device), wrong in told))


def warm_one(name: str, device: Device) -> str:
    """Compile one solver for one device; "" or what went wrong."""
    try:
        SOLVERS[name].warm_up(device)
        solve_each_form(SOLVERS[name], device)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
