"""Settings of everything that is not HTTP, read from the environment once."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from workers.runtime.process import host_bytes

MIB = 1 << 20
LEAST_ROOM, MOST_ROOM = 2048 * MIB, 16384 * MIB
"""Of memory for large arrays, where nothing is set."""
ARENA_SHARE, PINNED_SHARE = 16, 32
"""Of the machine's memory, or the container's: what of it that room may be."""
SHOWN = "shown"
"""The forms that `allot demo` shows, of `warm_forms`."""


def ready_share() -> int:
    """Bytes that GPU workers have ready on this machine before a job needs them."""
    return min(MOST_ROOM, host_bytes() // PINNED_SHARE)


def room_for_arrays(share: int) -> int:
    """Bytes for large arrays on this machine: a share of its memory, within limits."""
    return max(LEAST_ROOM, min(MOST_ROOM, host_bytes() // share))


@dataclass(frozen=True)
class Settings:
    """Each field is read from ALLOT_<FIELD IN CAPITALS>; units are in the names.

    Attributes:
        redis_url: where Redis listens; empty means that an embedded one is to be started. Its password may stand in the
            file that ALLOT_REDIS_PASSWORD_FILE names. sentinel://host:port,host:port/primary asks Redis Sentinel.
        fsync: of the embedded Redis: "everysec", or "always" for those who would wait for the disk with every write.
        data_dir: everything that is kept on this machine: the local store and the embedded Redis.
        store_url: "file:" (under data_dir), "file:///somewhere" or "s3://bucket/prefix".
        s3_endpoint_url: for stores that speak S3 but are not Amazon's; empty for Amazon's.
        result_ttl_s: how long a job and its result are kept after it ended, unless the job asks otherwise.
        fetched_ttl_s: how long it is kept after its answer was first fetched; 0 as long as any other.
        tombstone_ttl_s: how long an expired job is still answered with "gone" and not "unknown".
        blob_ttl_s: how long an uploaded blob lives that no job holds.
        max_upload_bytes: of one body or file, before and after decompression.
        max_elements: of one array.
        laid_bytes: of uploads that jobs may be solved from before the disk has them; above it, the disk comes first.
        arena_dir: on a tmpfs that the API and all workers share: long uploads and results lie there first, in memory
            that is used again (workers/store/arena.py). Empty for none, or for /dev/shm where `allot serve` starts
            workers and Redis itself.
        arena_bytes: of it; a sixteenth of the memory, 2 to 16 GiB, unless it is set.
        max_redis_connections: of one process; requests that wait need none.
        max_queued: jobs waiting in one queue before new ones are turned away.
        default_time_limit_s, max_time_limit_s: of a solve.
        hard_margin_s: how much later than it should a child may answer before it is killed (see patience.py).
        cancel_grace_s: between the cancel flag and the kill.
        attempts: how often a job that takes its process down is tried.
        heartbeat_s: between two heartbeats of a worker; also how often it looks for deadlines.
        lost_after_s: without a heartbeat for so long, a worker's job runs elsewhere.
        janitor_s: between two rounds of cleaning.
        warm_up_s: how long a new child may take to be ready.
        warm_solvers: those whose kernels are compiled before a worker takes jobs, as "lap,qap"; empty for all.
        warm_forms: which forms of them are: "" for those that jobs usually need, "shown" for what `allot demo` shows.
        drain_s: how long running jobs may go on when the supervisor stops.
        slow_s: a job that took longer from its submission to its answer has a line in its worker's log.
        pinned_bytes: page-locked memory of a GPU child for staging inputs, as far as jobs need it; a thirty-second of
            the memory, 2 to 16 GiB, unless it is set. What is larger is copied at a tenth of the speed.
        ready_bytes: page-locked memory that the GPU workers of a machine take in the pauses between jobs, all together,
            before a job needs it: half of it for inputs, half for plans; and as many bytes of the arena, up to half of
            that. A thirty-second of the memory, at most 16 GiB, unless it is set; 0 for none.
        gpus_per_worker: GPUs that one worker owns; solvers that can spread a problem over several take them all.
        workers_per_gpu: workers that share one GPU, or one group of them, and divide its memory. Small jobs leave most
            of it idle: a second worker reads, builds and stores while the first one's kernels run.
        cubins_dir: of compiled CUDA kernels that came with an image, which are read; what is compiled here is kept
            under data_dir. Empty when there are none.
        quota_queued, quota_workers, quota_longest_s, quota_bytes, quota_gpu_s, quota_cpu_s, quota_share: of each owner
            for whom `allot key limit` sets nothing else; see workers/jobs/quotas.py.
        audit_share: of the answers of GPU workers, how many the CPU certifies again after they were answered.
    """

    redis_url: str = ""
    fsync: str = "everysec"
    data_dir: Path = field(default_factory=lambda: Path("data").absolute())
    store_url: str = "file:"
    s3_endpoint_url: str = ""
    result_ttl_s: float = 24 * 3600.0
    fetched_ttl_s: float = 0.0
    tombstone_ttl_s: float = 7 * 24 * 3600.0
    blob_ttl_s: float = 24 * 3600.0
    max_upload_bytes: int = 4096 * MIB
    max_elements: int = 1 << 31
    laid_bytes: int = 4096 * MIB
    arena_dir: str = ""
    arena_bytes: int = field(default_factory=partial(room_for_arrays, ARENA_SHARE))
    max_redis_connections: int = 100
    max_queued: int = 10_000
    default_time_limit_s: float = 60.0
    max_time_limit_s: float = 3600.0
    hard_margin_s: float = 60.0
    cancel_grace_s: float = 5.0
    attempts: int = 3
    heartbeat_s: float = 1.0
    lost_after_s: float = 6.0
    janitor_s: float = 1.0
    warm_up_s: float = 600.0
    warm_solvers: str = ""
    warm_forms: str = ""
    drain_s: float = 10.0
    slow_s: float = 10.0
    pinned_bytes: int = field(default_factory=partial(room_for_arrays, PINNED_SHARE))
    ready_bytes: int = field(default_factory=ready_share)
    gpus_per_worker: int = 1
    workers_per_gpu: int = 1
    cubins_dir: str = ""
    quota_queued: int = 0
    quota_workers: int = 0
    quota_longest_s: float = 0.0
    quota_bytes: int = 0
    quota_gpu_s: float = 0.0
    quota_cpu_s: float = 0.0
    quota_share: float = 0.5
    audit_share: float = 0.01

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Read the environment.

        Raises:
            ValueError: names the variable that does not parse.
        """
        environ = os.environ if environ is None else environ
        found: dict[str, object] = {}
        for spec in fields(cls):
            variable = f"ALLOT_{spec.name.upper()}"
            text = environ.get(variable)
            if not text:
                continue
            try:
                found[spec.name] = _parse(spec.name, text)
            except ValueError as error:
                raise ValueError(f"{variable} is {text!r}; expected a number") from error
        if found.get("redis_url") and (file := environ.get("ALLOT_REDIS_PASSWORD_FILE")):
            found["redis_url"] = with_password(str(found["redis_url"]), Path(file))
        return cls(**found)  # type: ignore[arg-type]

    def with_redis(self, url: str) -> "Settings":
        """The same settings with another Redis (the embedded one, once it is up)."""
        return replace(self, redis_url=url)

    def to_env(self) -> dict[str, str]:
        """The variables from which `from_env` makes these settings again, for a process to be started."""
        return {f"ALLOT_{spec.name.upper()}": str(getattr(self, spec.name)) for spec in fields(self)}


WHOLE = ("attempts", "gpus_per_worker", "workers_per_gpu", "quota_queued", "quota_workers")


def _parse(name: str, text: str) -> object:
    if name == "data_dir":
        return Path(text).expanduser().absolute()
    if name.endswith(("_s", "_share")):
        return float(text)
    if name.startswith("max_") or name.endswith("_bytes") or name in WHOLE:
        return int(text)
    return text


def with_password(url: str, file: Path) -> str:
    """`url` with the password that stands in `file`, unless it has one.

    Raises:
        ValueError: the file cannot be read.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc or not parts.netloc:
        return url
    try:
        password = file.read_text().strip()
    except OSError as error:
        raise ValueError(f"ALLOT_REDIS_PASSWORD_FILE is {str(file)!r}: {error.strerror}") from error
    return urlunsplit(parts._replace(netloc=f":{quote(password, safe='')}@{parts.netloc}"))


def private_folder(path: Path) -> Path:
    """Make `path` (and its parents) if need be, readable by this user alone."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def short_private_folder() -> Path:
    """A new private folder with a path short enough for a unix socket (107 bytes)."""
    return Path(tempfile.mkdtemp(prefix="allot-", dir="/tmp" if Path("/tmp").is_dir() else None))
