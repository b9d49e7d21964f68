"""The worker: a persistent child, pinned to its GPUs or to a share of the cores, and who hands it jobs (pinned.py).

    python -m workers.runtime.worker --device cpu|gpu [--gpu UUID[,UUID]] [--threads N]

The child is started first. What this process imports itself takes as long as what the child does, beside it.
"""

import argparse
import logging
import os

from workers.runtime import devices, logs
from workers.runtime.config import Settings
from workers.runtime.link import ChildFailed, Link
from workers.runtime.process import cpus, die_with, with_threads

EXIT_NO_CHILD = 75
EXIT_REDIS_AWAY = 69
log = logging.getLogger("workers.runtime.worker")  # it is run as a program, and named __main__ then


def main() -> None:
    """Run one worker until it is told to stop, or whoever started it is gone."""
    parser = argparse.ArgumentParser(description="Run one Allot worker.")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--gpu", help="UUIDs of its GPUs, by commas; the first visible one when left out")
    parser.add_argument("--threads", type=int, default=cpus(), help="of a CPU worker")
    parser.add_argument("--parent", type=int, help="process id of the supervisor, with which this worker dies")
    arguments = parser.parse_args()
    if arguments.parent:
        die_with(arguments.parent)
    logs.configure(logging.WARNING)
    settings = Settings.from_env()
    uuids: list[str] = []
    if arguments.device == "gpu":
        uuids = arguments.gpu.split(",") if arguments.gpu else [gpu.uuid for gpu in devices.visible_gpus()[:1]]
        if not uuids:
            parser.error("there is no GPU here")
    link = begun(settings, arguments.device, arguments.threads, uuids)
    visible = {gpu.uuid: gpu for gpu in devices.visible_gpus()} if uuids else {}
    if missing := [name for name in uuids if name not in visible]:
        link.end()
        parser.error(f"there is no GPU {', '.join(missing)} here")
    import redis

    from workers.runtime.pinned import PinnedWorker

    try:
        PinnedWorker(settings, arguments.device, link, [visible[name] for name in uuids]).serve()
    except ChildFailed as error:
        log.error("%s", error)
        raise SystemExit(EXIT_NO_CHILD) from error
    except redis.RedisError as error:
        log.error("Redis does not answer: %s", error)
        raise SystemExit(EXIT_REDIS_AWAY) from error


def begun(settings: Settings, device: str, threads: int, gpus: list[str]) -> Link:
    """A child that starts, with its GPUs by their UUIDs, and the threads that it may use."""
    environ = with_threads(os.environ | settings.to_env(), threads)
    if gpus:
        environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    environ.setdefault("CUPY_CACHE_DIR", str(settings.data_dir / "cupy"))
    link = Link(device, environ)
    link.begin()
    return link


if __name__ == "__main__":
    main()
