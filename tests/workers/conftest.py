import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.workers.laid import SIZE
from tests.workers.service import settings_for
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis
from workers.store.arena import MARK, Arena


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings with a real Redis of this module's own, and no workers."""
    folder: Path = tmp_path_factory.mktemp("allot")
    with EmbeddedRedis(folder, fsync="no") as url:
        yield settings_for(folder).with_redis(url)


@pytest.fixture
def jobs(settings: Settings) -> Iterator[Jobs]:
    """A caller on an empty Redis."""
    made = Jobs(settings)
    made._redis.flushall()
    yield made
    made._redis.close()


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    """An empty one, of a folder of its own."""
    return Arena(tmp_path / f"{MARK}test", 4 * SIZE)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Two."""
    with ThreadPoolExecutor(2) as made:
        yield made


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let so many seconds pass at once, by this process's monotonic clock."""
    real, gone = time.monotonic, list[float]()

    def pass_by(seconds: float) -> None:
        gone.append(seconds)
        monkeypatch.setattr(time, "monotonic", lambda: real() + sum(gone))

    return pass_by
