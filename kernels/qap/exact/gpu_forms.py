"""Which kernel of branch.cu makes the children of a size, and what it holds in shared memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import cupy

from kernels import cuda
from kernels.qap.exact.layout import PROMISES

SOURCE = "qap/exact/branch.cu"
FORMS = {"ascend_narrow": 16, "ascend_middle": 17, "ascend_wide": 20, "ascend_widest": 21}
"""Kernels with exclusions, and up to how many facilities left: two blocks of the first two fit one sm_90."""
PAIRED = ("ascend_narrow", "ascend_middle")
EXCLUDED, FEWEST = 5, 4
"""From so many facilities left there are exclusions; so many locations at once are worth a second block."""
RESERVED = 1024
"""Bytes that CUDA keeps of each block's shared memory."""


@dataclass(frozen=True)
class TreeForm:
    """How children of a size are made: the kernel, its shared bytes, the locations that an exclusion asks at once."""

    name: str
    shared: int
    group: int = 0


def form(m: int, structs: tuple[int, int], most: int, two_blocks: int) -> TreeForm:
    """With exclusions where their numbers fit a block; as exclusion.cuh lays them out.

    Args:
        m: facilities that a child has left. structs: bytes of the structs Shared and Exclusion.
        most, two_blocks: bytes of shared memory that a block may have, and where two are to fit a multiprocessor.
    """
    half = (m + 1) // 2
    line = half | 1
    block = m * line + max(0, 4 - m * line % 32)
    fixed = sum(structs) + 4 * (m * (m - 1) // 2 * block)
    each = 16 * ((m - 1) * ((half + 1) // 2) | 1) + -(-m * half // 4) * 4
    name = next((name for name, widest in FORMS.items() if m <= widest), "ascend")
    if name in PAIRED and fixed + FEWEST * each <= two_blocks:
        most = two_blocks
    group, sweep = min(m, (most - fixed) // each), structs[0] + 4 * (PROMISES + (m - 1) * m * (m | 1))
    if m < EXCLUDED or name == "ascend" or group < 1:
        return TreeForm("ascend", sweep)
    return TreeForm(name, max(sweep, fixed + group * each), group)


def compiled() -> dict[str, Any]:
    """The kernels that make children, by their names."""
    return {name: cuda.kernel(SOURCE, name, cooperative=False) for name in ("ascend", *FORMS)}


def by_size(sizes: Iterable[int]) -> dict[int, tuple[Any, TreeForm]]:
    """By facilities left: the kernel, which may have as much shared memory as any size takes, and its form."""
    out = cupy.zeros(2, cupy.int32)
    cuda.kernel(SOURCE, "layout", cooperative=False)((1,), (1,), (out,))
    ours, excluding = out.get().tolist()
    most, kernels = cuda.attribute("MaxSharedMemoryPerBlockOptin"), compiled()
    half = cuda.attribute("MaxSharedMemoryPerMultiprocessor") // 2 - RESERVED
    forms = {m: form(m, (ours, excluding), most, half) for m in sizes}
    for one in forms.values():  # other trees may have asked for more
        kernel = kernels[one.name]
        kernel.max_dynamic_shared_size_bytes = max(one.shared, kernel.max_dynamic_shared_size_bytes)
    return {m: (kernels[one.name], one) for m, one in forms.items()}
