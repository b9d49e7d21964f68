"""What only a machine with a GPU can show of the workers."""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from kernels import SOLVERS, Csr
from tests.conftest import need_gpu
from tests.workers.laid import laid
from tests.workers.service import OWNER, Service, child_of, eventually, kill, running_service
from tests.workers.test_codec import npy
from workers.jobs.job import State, Submission
from workers.runtime import gpu_memory
from workers.store.arena import MARK, Arena
from workers.store.inline import carried
from workers.store.layouts import npy as read_npy
from workers.store.reference import of_array

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _gpu() -> None:
    need_gpu()


def test_staged_inputs_are_page_locked_and_equal(tmp_path: Path) -> None:
    import cupy

    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((1000, 300)))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    graph = Csr(np.arange(3), np.array([0, 1], np.int32), np.ones(2), (2, 2))
    staging = gpu_memory.Staging(1 << 30)
    for _ in range(2):
        staged = staging.stage({"a": mapped, "g": graph, "f": np.asfortranarray(mapped)})
        for name in ("a", "f"):
            array = staged[name]
            assert isinstance(array, np.ndarray)
            np.testing.assert_array_equal(array, mapped)
            kind = cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type
            assert kind == 1  # cudaMemoryTypeHost: page-locked
        assert isinstance(staged["g"], Csr)
        np.testing.assert_array_equal(staged["g"].indptr, graph.indptr)


def test_what_is_sent_as_it_is_read_is_there_once_and_for_its_own_job(tmp_path: Path) -> None:
    import cupy

    from kernels import gpu_locked
    from kernels.ahead import sent_ahead

    first, second = np.random.default_rng(0).random((2, 700, 500))
    mapped = {}
    for name, array in (("first", first), ("second", second)):
        np.save(tmp_path / f"{name}.npy", array)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    staging = gpu_memory.Staging(1 << 30)
    staged = staging.stage({"cost": mapped["first"]}, {"cost": "f"})["cost"]
    assert isinstance(staged, np.ndarray)
    there = gpu_locked.uploaded(staged)
    assert sent_ahead(staged) is None
    cupy.testing.assert_array_equal(there, first)
    other = gpu_locked.uploaded(staged)
    assert other.data.ptr != there.data.ptr
    cupy.testing.assert_array_equal(other, first)
    staging.stage({"cost": mapped["first"]}, {"cost": "f"})
    again = staging.stage({"cost": mapped["second"]})["cost"]  # in the same place, and not sent ahead
    assert isinstance(again, np.ndarray)
    cupy.testing.assert_array_equal(gpu_locked.uploaded(again), second)
    again = staging.stage({"cost": mapped["second"]}, {"cost": "f"})["cost"]
    assert isinstance(again, np.ndarray)
    half = gpu_locked.uploaded(again[:350])  # another array, though it begins in the same place
    assert half.shape == (350, 500)
    cupy.testing.assert_array_equal(gpu_locked.uploaded(again.reshape(500, 700)), second.reshape(500, 700))


def test_an_upload_in_the_arena_is_sent_from_where_it_lies() -> None:
    import cupy

    from kernels import gpu_locked
    from kernels.ahead import sent_ahead

    staging, costs = gpu_memory.Staging(1 << 30), np.random.default_rng(0).random((5, 700, 500))
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, ThreadPoolExecutor(2) as own:
        arena = Arena(Path(folder) / f"{MARK}test", 1 << 26)
        for k, cost in enumerate([*costs, *costs[:, :600]]):  # slabs are used again, and others cut
            mapped = read_npy(laid(arena, own, f"blob{k}", npy(cost)), 1 << 30)
            staged = staging.stage({"cost": mapped}, {"cost": "f"})["cost"]
            assert staged is mapped
            there = gpu_locked.uploaded(mapped)
            assert sent_ahead(mapped) is None
            cupy.testing.assert_array_equal(there, cost)
            del staged, mapped
            arena.settled(f"blob{k}")
            if k % 2:
                arena.drop(f"blob{k}")


def test_copies_from_staged_memory_are_fast(tmp_path: Path) -> None:
    import cupy

    data = np.zeros(1 << 28, np.uint8)
    staging = gpu_memory.Staging(1 << 30)
    (fast,) = staging.stage({"x": data}).values()
    target = cupy.empty(data.shape, data.dtype)

    def seconds(source: object) -> float:
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        target.set(source)
        cupy.cuda.Device().synchronize()
        return time.perf_counter() - start

    assert min(seconds(fast) for _ in range(3)) < 0.5 * min(seconds(data) for _ in range(3))


def test_a_process_takes_its_share_of_a_device() -> None:
    import cupy

    from kernels.gpu_room import bytes_free

    gpu_memory.free_pool()
    whole, pool = gpu_memory.memory()[1], cupy.get_default_memory_pool()
    try:
        gpu_memory.share(4)
        free, mine = gpu_memory.memory()
        assert 0 < free <= mine < whole / 4
        assert bytes_free() <= mine
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
            cupy.empty(mine + 1, np.uint8)
        gpu_memory.share(1)
        assert gpu_memory.memory()[1] == mine
    finally:
        pool.set_limit(size=0)
    assert gpu_memory.memory()[1] == whole


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    need_gpu()
    yield from running_service(tmp_path_factory.mktemp("allot"), cpu_workers=0, gpu=True)


def test_a_gpu_worker_solves_and_says_on_what(service: Service) -> None:
    done = service.ended(service.long_qap(time_limit_s=1.0))
    assert done.state is State.SUCCEEDED
    result = service.jobs.result(done.id, OWNER)
    (worker,) = service.jobs.workers()
    assert worker.broken == {}
    assert worker.gpu is not None
    assert (result["device"], result["device_name"]) == ("gpu", worker.gpu["name"])
    assert 0 < worker.gpu["bytes_free"] < worker.gpu["bytes_total"]


def test_jobs_that_a_gpu_solves_together_are_answered_each_for_itself(service: Service) -> None:
    card, costs = SOLVERS["lap"], list(np.random.default_rng(1).integers(0, 10_000, (40, 32, 32)))
    options, jobs = card.options(), []
    (worker,) = service.supervisor.alive()
    os.kill(worker, signal.SIGSTOP)
    for cost in costs:
        place = service.jobs.assess(card, card.build({"cost": cost}, options), options, "gpu")
        inputs = {"cost": carried(of_array(cost), cost)}
        asked = Submission(OWNER, "lap", inputs, {}, queue="gpu", form=place.form, seconds=place.seconds)
        jobs.append(service.jobs.submit(asked)[0])
    os.kill(worker, signal.SIGCONT)
    results = [service.jobs.result(service.ended(job).id, OWNER) for job in jobs]
    assert max(result["facts"].get("solved_together", 1) for result in results) > 1
    for cost, result in zip(costs, results, strict=True):
        assert result["objective"] == int(cost[linear_sum_assignment(cost)].sum())


def test_cancel_on_a_gpu_keeps_the_best(service: Service) -> None:
    job = service.long_qap()
    service.running(job)
    eventually(lambda: service.jobs.get(job.id, OWNER).progress is not None)
    start = time.monotonic()
    service.jobs.cancel(job.id, OWNER)
    assert service.ended(job).termination == "stopped"
    assert time.monotonic() - start < 1


def test_a_gpu_child_killed_in_a_kernel_is_replaced(service: Service) -> None:
    job = service.long_qap(time_limit_s=1.0)
    service.running(job)
    kill(child_of(service.worker_of(job)))
    done = service.ended(job, 60)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 2)


def test_memory_and_name() -> None:
    free, total = gpu_memory.memory()
    assert 0 < free <= total
    assert gpu_memory.device_name()
    gpu_memory.free_pool()
    gpu_memory.synchronize()
