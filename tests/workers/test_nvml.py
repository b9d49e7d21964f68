"""The driver's library is asked with the right layouts: a library of its form, compiled here, stands in for it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from workers.runtime import nvml
from workers.runtime.nvml import Meter

DRIVER = """
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int gpu, memory; } use_t;
static int device, begun, asked;
int nvmlInit_v2(void) { begun = 1; return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
  if (!begun || strncmp(uuid, "GPU-", 4)) return 2;
  *handle = &device;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *told) {
  if (handle != &device) return 2;
  told->total = 80ULL << 30; told->free = 60ULL << 30; told->used = 20ULL << 30;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, use_t *told) {
  if (handle != &device) return 2;
  told->gpu = asked++ % 2 ? 80 : 40; told->memory = 7;
  return 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    folder: Path = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.c").write_text(DRIVER)
    library = folder / "libnvml.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(folder / "nvml.c")], check=True)
    return str(library)


def test_a_gpu_tells_its_memory_and_its_use(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Meter("GPU-1", driver)
    told = meter.read()
    assert told["bytes_used"] == 20 << 30
    assert told["utilisation"] in (40, 80)
    assert told["use_per_minute"] == []
    monkeypatch.setattr(nvml, "MINUTE_S", 0.0)
    assert meter.read()["use_per_minute"] == [60]  # the mean of the two readings
    for _ in range(100):
        told = meter.read()
    assert len(told["use_per_minute"]) == 60


def test_where_nothing_is_known_nothing_is_told(driver: str) -> None:
    assert Meter("MIG-unknown", driver).read() == {}
    assert Meter("GPU-1", "libnothing-of-this-name.so").read() == {}
    assert Meter("GPU-1", "libc.so.6").read() == {}
