import pytest

cuda = pytest.importorskip("kernels.cuda", reason="cupy is not installed")


@pytest.mark.parametrize("architecture", cuda.ARCHITECTURES)
@pytest.mark.parametrize("path", cuda.sources())
def test_every_source_compiles(path: str, architecture: str) -> None:
    assert cuda.compile_only(path, architecture, quickly=True)
