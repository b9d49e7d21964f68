"""`allot warm`: compile everything once, after an install, so that no first job waits for a compiler.

numba keeps what it compiles beside the source, and CUDA kernels are kept as cubins; each worker then starts in seconds.
Solvers are compiled side by side in processes, the longest in several, for the CPU and, where there is one, a GPU.
CUDA kernels of all sizes are compiled for each kind of GPU that is here. `--cubins` compiles them alone, for GPUs that
need not be here: an image is made where there are none.
"""

import gc
import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kernels import SOLVERS, Device, keep_cubins, shelf, solve_each_form
from workers.runtime import devices, warmed

FOLDER = "ALLOT_CUBINS_DIR"
RARELY = 50_000, 20, 100
"""When to look for garbage while compiling. A compiler makes millions of objects that stay: looking at Python's own
pace takes a fifth of the time (226 s of one core for `lap`, 179 s so), and saves a few hundred MiB of a process that
ends."""
Pair = tuple[str, Device]
Warmed = tuple[str, list[shelf.Form]]


def warm(args: Namespace) -> int:
    """Compile everything; 0 when every solver could be on the CPU. What a GPU cannot is told, and no more than that."""
    if args.cubins:
        return compile_ahead(args.architectures.split(",") if args.architectures else list(shelf.ARCHITECTURES))
    begun = time.perf_counter()
    there: list[Device] = ["cpu", "gpu"] if devices.visible_gpus() else ["cpu"]
    here = architectures_here() if "gpu" in there else []
    if here:
        compile_ahead(here)
    pairs = [(name, device) for device in there for name, card in SOLVERS.items() if device in card.modules]
    print(f"Compiling the solvers for {' and '.join(there)} (once; some minutes of two cores) ...", flush=True)
    told = []
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=gc.set_threshold, initargs=RARELY) as pool:
        for pair, found in warmed_in(pool, pairs):
            told.append((pair, found))
            name, device = pair
            print(f"  {len(told)} of {len(pairs)}: {name} on {device}", flush=True)
    for (name, device), (wrong, _) in told:
        if wrong:
            print(f"{name} on {device}: {wrong}")
    if args.record:
        forms_asked = {form for _, (_, forms) in told for form in forms}
        print(f"{shelf.record(forms_asked)} forms of {len(forms_asked)} are new in {shelf.FORMS}")
    print(f"{time.perf_counter() - begun:.0f} s.")
    return int(any(wrong and device == "cpu" for (_, device), (wrong, _) in told))


def warmed_in(pool: Executor, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, Warmed]]:
    """Warm each solver up in the processes of a pool; on a CPU its steps side by side first, and then what is left."""
    left: dict[Pair, int] = {}
    asked: dict[Future[Any], Pair] = {}
    for name, device in pairs:
        steps = steps_of(name) if device == "cpu" else []
        left[name, device] = len(steps)
        asked |= {pool.submit(step): (name, device) for step in steps}
    last = {pool.submit(warm_one, *pair): pair for pair, steps in left.items() if not steps}
    while waiting := asked.keys() | last.keys():
        for done in wait(waiting, return_when=FIRST_COMPLETED).done:
            if done in last:
                yield last.pop(done), done.result()
                continue
            pair = asked.pop(done)  # what went wrong is said by `warm_one`, which comes to it again
            left[pair] -= 1
            if not left[pair]:
                last[pool.submit(warm_one, *pair)] = pair


def steps_of(name: str) -> list[Callable[[], None]]:
    """The steps of a solver's warm-up on a CPU; none where they cannot be had, of which `warm_one` tells."""
    try:
        return SOLVERS[name].steps("cpu")
    except Exception:  # whatever an import raises
        return []


def warm_one(name: str, device: Device) -> Warmed:
    """Compile one solver for one device; "" or what went wrong, and the CUDA kernels that it asked for."""
    choose_folder()
    try:
        SOLVERS[name].warm_up(device)
        solve_each_form(SOLVERS[name], device)
        warmed.all_is_run(name, device)
    except Exception as error:
        return f"{type(error).__name__}: {error}", sorted(shelf.used)
    return "", sorted(shelf.used)


def compile_ahead(architectures: list[str]) -> int:
    """Put every form on the shelf, for each architecture that this NVRTC knows; 0 when all are there."""
    try:
        from kernels import cubins
    except ImportError as missing:
        print(f"allot: CUDA kernels need CuPy: {missing}")
        return 1
    begun = time.perf_counter()
    choose_folder()
    known = [one for one in architectures if cubins.can_compile_for(one)]
    for one in sorted(set(architectures) - set(known)):
        print(f"sm_{one} is left out: this NVRTC does not know it.")
    wanted = [(form, one) for one in known for form in shelf.forms(one)]
    folder, failed = shelf.cubin_folders()[0], 0
    print(f"Compiling {len(wanted)} CUDA kernels for sm_{', sm_'.join(known)} into {folder} ...", flush=True)
    for count, (form, one, wrong) in enumerate(cubins.compile_all(wanted), 1):
        failed += bool(wrong)
        if wrong:
            print(f"{form.path} for sm_{one}: {wrong}")
        if count % 50 == 0:
            print(f"{count} of {len(wanted)}", flush=True)
    print(f"{time.perf_counter() - begun:.0f} s.")
    return int(failed > 0)


def architectures_here() -> list[str]:
    """Of the GPUs that are visible; none where CuPy finds none, of which the solvers tell."""
    try:
        from kernels import cubins

        return cubins.architectures_here()
    except Exception:  # whatever a driver says that does not work
        return []


def choose_folder() -> None:
    """Keep cubins where the environment says, or in the user's cache."""
    keep_cubins(Path(os.environ.get(FOLDER) or shelf.OF_USER).expanduser())
