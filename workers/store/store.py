"""Arrays by content digest, each kept while an upload's time runs or a job holds it.

The store keeps the bytes that came, named by their sha256 and their owner, and nothing else: how they are to be read
stands in the references to them (reference.py). Who may see a blob and who holds it is in Redis (keep.lua and
condemn.lua of jobs), the bytes are in a folder or a bucket. Each owner's bytes are kept for themselves, so that no
answer and no time that one is given depends on what others have.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from kernels import Array, Csr
from workers.jobs.job import InputRef, UnknownBlob
from workers.jobs.quotas import Quota, too_much_kept
from workers.jobs.records import Records
from workers.runtime.config import Settings
from workers.runtime.connection import connect, guarded
from workers.runtime.kept import nothing
from workers.store import disk, layouts
from workers.store.arena import is_slab, leased
from workers.store.bucket import Bucket
from workers.store.codec import AS_FOUND, Form, InvalidUpload, Limits, Reading, read, several, sparse, write_npy
from workers.store.digests import TREE
from workers.store.disk import require_space, room
from workers.store.expected import UNKNOWN, Expected
from workers.store.folder import Folder
from workers.store.former import former_form
from workers.store.in_hand import InHand
from workers.store.inline import unpack
from workers.store.names import hexadecimal, is_name, name_of
from workers.store.opening import arena_for, root_of
from workers.store.reference import CSR_PARTS, form_of, frozen, written
from workers.store.shorts import Sheaf, Short, read_short
from workers.store.sight import Sight
from workers.store.swift import read_swift
from workers.store.upload import BlobInfo, Writer

BRIEF_BYTES, SWEEP_BATCH = 1 << 20, 200
LEFT_S = 60.0
"""Who lays bytes settles them at once: what lies for longer was left behind."""
BRIEF_S = 600.0  # from the writing of a job's arrays until the job holds them


class Store:
    """Blobs, their owners and their holders."""

    def __init__(self, folder: Folder | Bucket, redis: Any, settings: Settings) -> None:
        self.folder = folder
        self.is_local = isinstance(folder, Folder)  # its bytes are not fetched from elsewhere
        self.limits = Limits(settings.max_upload_bytes, settings.max_elements)
        self._records, self._redis, self._settings = Records(redis), redis, settings
        self.owed: list[str] = []
        """Results that lie in memory alone; whoever wrote them settles them after their answer."""
        self.slabs = InHand(folder.arena) if isinstance(folder, Folder) and folder.arena else None
        """For uploads; a process that takes them closes it."""
        self.quota_of: Callable[[str], Quota] | None = None
        """Limits of an owner, for a process that takes uploads; what a job leaves is kept without."""

    @property
    def brief_s(self) -> float:
        """How long an array stays that a job will hold at once."""
        return min(BRIEF_S, self._settings.blob_ttl_s)

    def writer(self, scheme: str = TREE, sums: bool = False, size: Expected = UNKNOWN) -> Writer:
        """Begin an upload; for the arguments see `Writer`. Raises StoreFull when the disk nearly is."""
        if size.most or not size.held:
            require_space(self.folder.temporary)
            size = replace(size, arena=self.slabs)
        return Writer(self, self.limits.max_bytes, self.folder.temporary, scheme, sums, True, size)

    def write(self, chunks: Iterable[bytes]) -> Writer:
        """An upload of all `chunks`, still to be committed."""
        writer = self.writer()
        try:
            writer.writelines(chunks)
        except BaseException:
            writer.__exit__(None, None, None)
            raise
        return writer

    @guarded
    def adopt(self, writer: Writer, owner: str, brief: bool = False, brought: bool = False) -> None:
        """Keep a finished upload that has been read, as `Writer.commit` does. What a job has `brought` goes with it."""
        writer.flush()
        keep_s = self.brief_s if brief else self._settings.blob_ttl_s
        name = name_of(writer.digest, owner)
        self._keep([(name, writer.size)], owner, keep_s, brought, nothing)
        with room():
            self.folder.publish(name, writer.path, durable=not brief)
            self._remark(name, writer)
        if brief and is_slab(writer.path):
            self.owed.append(name)

    @guarded
    def lay(self, writer: Writer, owner: str, counted: bool = False, patient: bool = True) -> str:
        """As `adopt` what a job brings, without waiting for the disk; returns what to settle before anybody is told of
        it. `Entry.keep` may have `counted` it. Raises as `adopt` and, where it is not `patient`, as `Arena.lay`."""
        writer.flush()
        name = name_of(writer.digest, owner)
        if not counted:
            self._keep([(name, writer.size)], owner, self._settings.blob_ttl_s, True, nothing)
        if coming := is_slab(writer.path):  # a worker may wait for the name already, and reads then what was seen
            self._remark(name, writer, coming)
        with room():
            if not self.folder.lay(name, writer.path, patient):
                self.folder.publish(name, writer.path)
            if not coming or self.folder.swift(name) is None:
                self._remark(name, writer)
        return name

    def settle(self, names: Iterable[str]) -> None:
        """Make what was laid durable. Raises StoreFull, Unavailable."""
        with room():
            for name in names:
                self.folder.settle(name)

    @guarded
    def settle_left(self) -> int:
        """Settle what a process laid that has died since, unless nobody knows it any more; says how many."""
        left = list(self.folder.left(LEFT_S))
        known = [name for name in left if self._redis.exists(f"allot:blob:{name}", f"allot:refs:{name}")]
        self.settle(known)
        for name in set(left) - set(known):
            self.folder.delete(name)
        return len(known)

    def _remark(self, name: str, writer: Writer, coming: bool = False) -> None:
        if (sight := writer.sight) is not None:
            self.folder.remark(name, sight.text(), coming)

    def _keep(self, told: Sequence[tuple[str, int]], owner: str, seconds: float, brought: bool, meanwhile: Any) -> None:
        quota, until = Quota() if self.quota_of is None else self.quota_of(owner), self._redis.now() + seconds
        most = quota.bytes, *quota.share_of(self.folder.free, disk.SPARE_BYTES)
        if over := self._records.keep(told, owner, until, most, brought, meanwhile):
            raise too_much_kept(over, quota)

    @guarded
    def put_shorts(self, files: Sequence[Short], owner: str) -> None:
        """Keep files that jobs will hold at once, one for each: no wait for the disk, and one trip to Redis for all."""
        told = [(name_of(one.digest, owner), one) for one in files]
        with room(), contextlib.closing(Sheaf(dict(told), self.folder)) as sheaf:
            self._keep([(name, one.size) for name, one in told], owner, self.brief_s, True, sheaf.write)
            sheaf.publish()

    def put_array(self, array: Array, owner: str, brief: bool = False, brought: bool = False) -> InputRef:
        """Keep one array as .npy; returns its reference. `brief`: a job holds it at once; no wait for the disk."""
        most = max(self.limits.max_bytes, array.nbytes + BRIEF_BYTES)  # its header comes on top
        size = Expected(layouts.npy_length(array), True, self.slabs if brief else None)  # else it waits for the disk
        with Writer(self, most, self.folder.temporary, size=size) as writer:
            write_npy(writer, array)
            self.adopt(writer, owner, brief, brought)
            return frozen(writer.digest, Reading("npy", None, array))

    def put(self, value: Array | Csr, owner: str, brought: bool = False) -> InputRef:
        """Keep an array or a sparse matrix for the job that is about to hold it; returns how the job refers to it.
        Small ones are not forced to disk: three waits of 3 ms would be most of a small job's time."""

        def keep(array: Array) -> InputRef:
            return self.put_array(array, owner, array.nbytes < BRIEF_BYTES, brought)

        if isinstance(value, Csr):
            return {"csr": {**{name: keep(getattr(value, name)) for name in CSR_PARTS}, "shape": list(value.shape)}}
        return keep(value)

    def read(self, digest: str, owner: str, form: Form = AS_FOUND, field: str = "") -> Reading:
        """What the owner's blob holds, read as `form` says; arrays are mapped, not read.

        Raises:
            UnknownBlob: it is not the owner's, or not there.
            InvalidUpload: it cannot be read so.
        """
        return read(self.find(digest, owner), form, field or digest, self.limits)

    def find(self, digest: str, owner: str) -> Path:
        """A local file with the owner's bytes, which are durable. Raises UnknownBlob, StoreFull."""
        if not self._is_known(digest, owner):
            raise UnknownBlob(f"there is no blob {digest}")
        self.settle([name_of(digest, owner)])
        return self.path(digest, owner)

    def recall(self, digest: str, owner: str, value: Any) -> None:
        """Note for the checks of a problem what was seen of an array, mapped from the owner's blob, as it came."""
        sight = Sight.read(self.folder.remarked(name_of(digest, owner)))
        if sight is not None:
            sight.tell(value)

    def open_array(self, entry: Mapping[str, Any], owner: str) -> Array:
        """An array of a result, mapped. Raises UnknownBlob, InvalidUpload."""
        value = self._load(written(entry), owner)
        if not isinstance(value, np.ndarray):
            raise InvalidUpload(str(written(entry)["blob"]), "is sparse; expected one dense array")
        return value

    def resolve(self, reference: InputRef, owner: str) -> Array | Csr:
        """What an input of the owner's job refers to. Raises UnknownBlob, InvalidUpload."""
        reference = self.complete(reference, owner)
        if "csr" not in reference:
            return self._load(reference, owner)
        parts = {name: self._load(reference["csr"][name], owner) for name in CSR_PARTS}
        return sparse(parts, reference["csr"]["shape"])

    def complete(self, reference: InputRef, owner: str) -> InputRef:
        """The reference itself. One of a record that is older than references gets the form that its bytes had then."""
        path_of = partial(self.path, owner=owner)
        return former_form(reference, self.folder.note, path_of, self.limits) if "kind" in reference else reference

    def _read_where_it_lies(self, digest: str, owner: str, form: Form) -> Array | Csr | dict[str, Array]:
        """The value. Bytes that were laid get another place when they are durable, which may be just now.
        What is laid after a look for it in memory is not there yet: nobody waits for the disk. Raises UnknownBlob."""
        if (slab := self.folder.swift(name_of(digest, owner))) is not None:
            with contextlib.suppress(InvalidUpload, FileNotFoundError), leased(slab):
                return read(slab, form, digest, self.limits).value
        path = self.path(digest, owner, settled=slab is not None)
        try:
            return read(path, form, digest, self.limits).value
        except (InvalidUpload, FileNotFoundError):  # an archive says so in its own words
            if path.exists():
                raise
            return read(self.path(digest, owner), form, digest, self.limits).value

    def _load(self, reference: InputRef, owner: str) -> Array | Csr:
        if "data" in reference:
            return unpack(reference)
        if (short := read_short(self.folder, reference, owner)) is not None:
            return short
        digest = reference["blob"]
        value: Array | Csr | dict[str, Array] | None = read_swift(self.folder, reference, owner, self.limits)
        value = self._read_where_it_lies(digest, owner, form_of(digest, reference)) if value is None else value
        self.recall(digest, owner, value)
        if isinstance(value, dict):
            raise InvalidUpload(f"{digest}.member", several(value))
        return value

    def path(self, digest: str, owner: str, settled: bool = True) -> Path:
        """A local file with the bytes, of one who is known to have them; as `Folder.path`. Raises UnknownBlob."""
        try:
            return self.folder.path(name_of(digest, owner), settled)
        except UnknownBlob:
            return self.folder.path(digest)  # of the days when all owners shared their blobs

    @guarded
    def stat(self, digest: str, owner: str) -> BlobInfo | None:
        """What can be told of the owner's blob; None when it is not there or not his."""
        if not self._is_known(digest, owner):
            return None
        names = (name_of(digest, owner), digest)
        found = next((there for name in names if (there := self.folder.start(name, layouts.NPY_START))), None)
        if found is None:
            return None
        start, size = found
        told = layouts.npy_start(start, size)
        return BlobInfo(digest, size) if told is None else BlobInfo(digest, size, str(told[0]), list(told[1]))

    @guarded
    def _is_known(self, digest: str, owner: str) -> bool:
        hexadecimal(digest)
        with self._redis.pipeline(transaction=False) as pipeline:
            for name in (name_of(digest, owner), digest):
                pipeline.hexists(f"allot:blob:{name}", owner)
            return any(pipeline.execute())

    @guarded
    def delete(self, digest: str, owner: str) -> None:
        """The owner gives the blob up; its bytes stay while a job holds them. Raises UnknownBlob."""
        hexadecimal(digest)
        given_up = [one for one in (name_of(digest, owner), digest) if self._redis.hdel(f"allot:blob:{one}", owner)]
        if not given_up:
            raise UnknownBlob(f"there is no blob {digest}")
        self._redis.zadd("allot:blobs", dict.fromkeys(given_up, self._redis.now()))

    def check(self) -> None:
        """Raise StoreFull, Unavailable or OSError when the store cannot be written."""
        with room():
            self.folder.check()
        require_space(self.folder.temporary)

    @guarded
    def sweep(self) -> int:
        """Look at a batch of the blobs whose time has come, and delete those that nobody holds; says how many went."""
        due = self._redis.zrangebyscore("allot:blobs", "-inf", self._redis.now(), start=0, num=SWEEP_BATCH)
        return self._bury(due)

    @guarded
    def scrub(self) -> int:
        """Delete files that Redis has never heard of (it lost its memory, or a sweep was cut short)."""
        gone = 0
        for name in list(self.folder.older_than(max(self._settings.blob_ttl_s, 3600.0))):
            if not self._redis.exists(f"allot:blob:{name}", f"allot:refs:{name}"):
                gone += self._bury([name])
        return gone

    def _bury(self, names: Sequence[str]) -> int:
        sound = [name for name in names if is_name(name)]
        for name in set(names).difference(sound):
            self._records.drop_blob(name)
        condemned = self._records.condemn(*sound) if sound else []
        for name in condemned:
            self.folder.delete(name)
        if condemned:
            self._records.buried(*condemned)
        return len(condemned)


def open_store(settings: Settings, redis: Any = None, client: Any = None) -> Store:
    """The store that the settings name. `client` stands in for boto3's.

    Raises:
        ValueError: the URL is of no known kind.
    """
    redis = connect(settings.redis_url) if redis is None else redis
    url = urlsplit(settings.store_url or "file:")
    if url.scheme == "file":
        return Store(Folder(root_of(settings), settings.laid_bytes, arena_for(settings)), redis, settings)
    if url.scheme == "s3":
        if client is None:
            import boto3  # extra `s3`
            from botocore.config import Config

            patience = Config(connect_timeout=3, read_timeout=15, retries={"max_attempts": 2}, max_pool_connections=50)
            client = boto3.client("s3", endpoint_url=settings.s3_endpoint_url or None, config=patience)
        bucket = Bucket(client, url.netloc, url.path, Folder(settings.data_dir / "cache", settings.laid_bytes))
        return Store(bucket, redis, settings)
    raise ValueError(f"the store is {settings.store_url!r}; expected file:, file:///a/folder or s3://bucket/prefix")
