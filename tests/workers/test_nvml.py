"""Figures of GPUs, by a stand-in for NVIDIA's library that is compiled here."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from app.http.metrics import Metrics
from workers.jobs.queue import Jobs
from workers.runtime import nvml
from workers.runtime.nvml import LastHour, Nvml

SOURCE = """
#include <string.h>
typedef struct { unsigned gpu, memory; } utilisation;
typedef struct { unsigned long long total, free, used; } memory;
static char one, lost;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
  if (!strcmp(uuid, "GPU-1")) { *handle = &one; return 0; }
  if (!strcmp(uuid, "GPU-lost")) { *handle = &lost; return 0; }
  return 6;
}
int nvmlDeviceGetUtilizationRates(void *handle, utilisation *told) {
  if (handle != &one) return 15;
  told->gpu = 37; told->memory = 5; return 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory *told) {
  if (handle != &one) return 15;
  told->total = 90ull << 30; told->free = 60ull << 30; told->used = 30ull << 30; return 0;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *told) {
  if (handle != &one || sensor != 0) return 15;
  *told = 61; return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    folder: Path = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.c").write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "nvml.so", folder / "nvml.c"], check=True)
    return str(folder / "nvml.so")


def test_what_is_known_of_each_gpu_is_told(library: str) -> None:
    found = Nvml(["GPU-1", "GPU-lost", "GPU-nobody-knows"], library).readings()
    assert found == [
        {"uuid": "GPU-1", "utilisation": 0.37, "bytes_used": 30 << 30, "celsius": 61},
        {"uuid": "GPU-lost"},
    ]


def test_without_the_library_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert Nvml(["GPU-1"], "libthere-is-none.so").readings() == []
    assert "no figures of GPUs" in caplog.text
    assert Nvml([], "libthere-is-none.so").readings() == []


def test_metrics_of_gpus(library: str, jobs: Jobs) -> None:
    gpu = {"uuid": "GPU-1", "name": "H100", "bytes_total": 80, "bytes_free": 7, "count": 2}
    told = {"device": "gpu", "queue": "gpu", "state": "busy", "heartbeat": jobs._redis.now() + 60, "host_bytes": 1}
    told |= {"gpu": gpu | {"readings": Nvml(["GPU-1", "GPU-lost"], library).readings()}, "of a later release": 1}
    jobs._redis.hset("allot:workers", "gpu-1-1", json.dumps(told))
    text = Metrics().render(jobs).decode()
    assert 'allot_gpu_utilization_ratio{gpu="GPU-1",worker="gpu-1-1"} 0.37' in text
    (used,) = re.findall(r'^allot_gpu_used_bytes{gpu="GPU-1",worker="gpu-1-1"} (.*)$', text, re.MULTILINE)
    assert float(used) == 30 << 30
    assert 'allot_gpu_temperature_celsius{gpu="GPU-1",worker="gpu-1-1"} 61.0' in text
    assert "GPU-lost" not in text


def test_the_last_hour_is_told_by_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    hour = LastHour()
    assert hour.of([]) == {}
    assert hour.of([{"utilisation": 0.5, "bytes_used": 7}, {"utilisation": 1.0}]) == {
        "bytes_used": 7,
        "utilisation": 50,
        "use_per_minute": [],
    }
    monkeypatch.setattr(nvml, "MINUTE_S", 0.0)
    assert hour.of([{"utilisation": 0.7}])["use_per_minute"] == [60]  # the mean of the two readings
    for _ in range(100):
        told = hour.of([{"utilisation": 0.2}])
    assert len(told["use_per_minute"]) == 60
