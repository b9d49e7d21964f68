"""Every source compiles for every GPU.

What compiles for a GPU compiles for all later ones, unless the text itself names one: PTX for a target without a
letter is PTX for its successors. So of the GPUs between two that a text names, it is compiled for the oldest alone.
"""

import re

import pytest

cuda = pytest.importorskip("kernels.cuda", reason="cupy is not installed")

KNOWN = re.compile(r"defined\(__CUDA_ARCH__\)|__CUDA_ARCH__ >= (\d+)0\b")
"""How a text may name GPUs: any other way would need to be understood here."""


def oldest(text: str) -> list[str]:
    """Of the GPUs for which a text says the same, the first."""
    named = [0, *(int(found[1]) for found in KNOWN.finditer(text) if found[1])]
    later = ([each for each in cuda.ARCHITECTURES if int(each) >= least] for least in named)
    return sorted({gpus[0] for gpus in later if gpus}, key=int)


FORMS = [(path, architecture) for path in cuda.sources() for architecture in oldest(cuda.source(path))]


@pytest.mark.parametrize(("path", "architecture"), FORMS)
def test_every_source_compiles(path: str, architecture: str) -> None:
    assert cuda.compile_only(path, architecture, quickly=True)


@pytest.mark.parametrize("architecture", cuda.ARCHITECTURES)
def test_every_architecture_is_one(architecture: str) -> None:
    assert cuda.compile_only("uot/iteration/clusters.cu", architecture, ("-DCS=8",), quickly=True)


@pytest.mark.parametrize("path", cuda.sources())
def test_a_gpu_is_named_in_a_way_that_is_understood(path: str) -> None:
    assert not re.search(r"__CUDA_(?:ARCH|MINIMUM)|__CUDACC_VER", KNOWN.sub("", cuda.source(path)))
