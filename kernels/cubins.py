"""From a form of a source to a cubin on disk: compiled with NVRTC alone, which needs no driver and no GPU, and kept.

A cubin is named by all that it depends on: the text of its source with everything of ours that it includes, the
options, the GPU's architecture, and the versions of NVRTC and of CuPy, which brings the headers of CUDA's libraries.
Whatever changes has another name, so what is found is never stale, and what is not wanted any more may be deleted.
"""

import hashlib
import logging
import os
import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import cupy
from cupy_backends.cuda.libs import nvrtc

from kernels import shelf
from kernels.shelf import Form
from kernels.sources import source

OWN_FLAGS = ("--std=c++17", "--extra-device-vectorization")
FLAGS = (*OWN_FLAGS, "-ftz=true", "--device-as-default-execution-space")
"""The last two are what CuPy adds to all that it compiles."""
QUICK = ("--Ofast-compile=max",)
"""For code that is not run: a quarter of the time. NVRTC of CUDA 13 and later knows it."""
ELF = b"\x7fELF"
log = logging.getLogger("allot.cubins")


def get(form: Form, architecture: str) -> Path:
    """The file of a form, which is compiled now if it is nowhere.

    Raises:
        RuntimeError: with NVRTC's log.
    """
    shelf.used.add(form)
    name, folders = name_of(form, architecture), shelf.cubin_folders()
    for folder in folders:
        if _is_cubin(folder / name):
            return folder / name
    begun = time.perf_counter()
    shelf.compiled.append(form)
    cubin = compiled(form, architecture)
    log.warning("compiled %s for sm_%s in %.1f s", form.path, architecture, time.perf_counter() - begun)
    return _keep(folders[0] / name, cubin)


def name_of(form: Form, architecture: str) -> str:
    """The name of a cubin's file, as lap-auto-forest-sm_90-<32 hex digits>.cubin."""
    said = [source(form.path), *FLAGS, *form.defines, architecture, str(nvrtc.getVersion()), cupy.__version__]
    digest = hashlib.sha256("\0".join(said).encode()).hexdigest()[:32]
    return f"{form.path.removesuffix('.cu').replace('/', '-')}-sm_{architecture}-{digest}.cubin"


def compiled(form: Form, architecture: str, *, quickly: bool = False) -> bytes:
    """Compile, and keep nothing. Raises RuntimeError with NVRTC's log."""
    more = QUICK if quickly and nvrtc.getVersion() >= (13, 0) else ()
    includes = (f"-I{folder}" for folder in _include_folders())
    program = nvrtc.createProgram(source(form.path), form.path, (), ())
    try:
        nvrtc.compileProgram(program, (*FLAGS, *more, *form.defines, *includes, f"-arch=sm_{architecture}"))
        cubin: bytes = nvrtc.getCUBIN(program)
        return cubin
    except nvrtc.NVRTCError as error:
        raise RuntimeError(f"{form} for sm_{architecture}:\n{nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)


def can_compile_for(architecture: str) -> bool:
    """Whether this NVRTC knows the architecture."""
    return architecture in {str(one) for one in nvrtc.getSupportedArchs()}


def architectures_here() -> list[str]:
    """Of the GPUs that CUDA shows, each once. Raises what CUDA raises."""
    count = cupy.cuda.runtime.getDeviceCount()
    return sorted({str(cupy.cuda.Device(k).compute_capability) for k in range(count)})


def compile_all(wanted: Iterable[tuple[Form, str]], processes: int | None = None) -> Iterable[tuple[Form, str, str]]:
    """Put forms on the shelf, side by side.

    Yields:
        each form and architecture once it is there, and "" or what went wrong with it.
    """
    folders = shelf.cubin_folders()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        tasks = {pool.submit(_get_one, folders, *one): one for one in wanted}
        for task in as_completed(tasks):
            form, architecture = tasks[task]
            yield form, architecture, task.result()


def _get_one(folders: list[Path], form: Form, architecture: str) -> str:
    shelf.keep_cubins(folders[0], folders[1:])
    logging.disable()  # whoever asked is told by the answer
    try:
        get(form, architecture)
    except (RuntimeError, OSError) as wrong:
        return str(wrong)
    return ""


def _is_cubin(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(ELF)) == ELF
    except OSError:
        return False


def _keep(file: Path, cubin: bytes) -> Path:
    """Write whole or not at all: others may look for it meanwhile."""
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_name(f".{uuid.uuid4().hex}")
    try:
        with half.open("wb") as stream:
            stream.write(cubin)
            stream.flush()
            os.fsync(stream.fileno())
        return half.replace(file)
    finally:
        half.unlink(missing_ok=True)


def _include_folders() -> list[str]:
    core = Path(cupy.__file__).parent / "_core" / "include"
    folders = [core / "cupy" / "_cccl" / part for part in ("cub", "thrust", "libcudacxx")]
    return [str(folder) for folder in (*folders, core, *_toolkit())]


def _toolkit() -> list[Path]:
    """Where CUDA's own headers are: in its wheels, or in an installed toolkit."""
    try:
        import nvidia  # a namespace package
    except ImportError:
        installed = cupy.cuda.get_cuda_path()
        return [] if installed is None else [Path(installed) / "include"]
    return [found for base in nvidia.__path__ for found in sorted(Path(base).glob("*/include"))]
