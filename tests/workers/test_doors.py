"""Doors to files and objects: what an owner may read comes whole, and nothing else can be named by any trick."""

import io
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workers.jobs.job import Unavailable, UploadTooLarge
from workers.runtime.config import Settings
from workers.store import doors
from workers.store.doors import Doors, NotOpen, entries
from workers.store.upload import Writer

MOST = 1 << 16


class Nobody:
    """Takes no upload: bytes are looked at before anybody keeps them."""

    limits: Any = None

    def adopt(self, writer: Writer, owner: str, brief: bool = False) -> None:
        raise AssertionError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that ann may read, a secret beside it, and links of every kind."""
    root = tmp_path / "ann"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "c.npy").write_bytes(b"inside")
    (root / "..c").write_bytes(b"dots")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "annex").mkdir()
    (tmp_path / "annex" / "secret").write_bytes(b"secret")
    (root / "link").symlink_to(root / "deep" / "c.npy")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "outside").symlink_to(tmp_path)
    (root / "round").symlink_to(root / "round")
    os.mkfifo(root / "pipe")
    return root


def read(opened: Doors, kind: str, name: str, owner: str = "ann") -> bytes:
    taken: list[int] = []
    folder = Path(next(iter(opened.folders.values()))[0]).parent if opened.folders else Path("/tmp")
    with Writer(Nobody(), MOST, folder) as writer:
        opened.copy(kind, name, owner, writer, MOST, taken.append)
        assert sum(taken) == writer.size
        return writer.flush().read_bytes()


@pytest.mark.parametrize(("name", "found"), [("deep/c.npy", b"inside"), ("link", b"inside"), ("..c", b"dots")])
def test_what_lies_in_a_folder_is_read(folder: Path, name: str, found: bytes) -> None:
    for owner in ("ann", doors.EVERYBODY):
        assert read(Doors({owner: (str(folder),)}), "file", name) == found


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../secret", "deep/../../secret", "/etc/passwd", "{root}/deep/c.npy", "../annex/secret",
        "out", "outside/secret", "outside", "round", "pipe", "deep", "deep/", "./deep/c.npy", "deep//c.npy", "none",
        "deep/c.npy\0", "\0", "deep/c.npy/x", "x" * 5000, "a/" * 500, "..%2fsecret", "deep\\..\\..\\secret",
        "file:///etc/passwd", "~/x", "\ud800",
    ],
)  # fmt: skip
def test_nothing_else_can_be_named(folder: Path, name: str) -> None:
    with pytest.raises(NotOpen, match="no file that you may read"):
        read(Doors({"ann": (str(folder),)}), "file", name.replace("{root}", str(folder)))


def test_a_socket_is_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        with pytest.raises(NotOpen):
            read(Doors({"ann": (str(folder),)}), "file", "s")


def test_a_folder_is_its_owners(folder: Path) -> None:
    for opened in (Doors(), Doors({"bob": (str(folder),)})):
        with pytest.raises(NotOpen):
            read(opened, "file", "link")


def test_a_link_that_is_put_there_after_the_look_opens_nothing(folder: Path) -> None:
    with pytest.raises(OSError, match=r"directory|symbolic|levels"):
        doors.walked(folder, ("outside", "secret"))
    with pytest.raises(OSError, match=r"directory|symbolic|levels"):
        doors.walked(folder, ("out",))


def test_a_file_that_is_too_large_is_not_begun(folder: Path) -> None:
    (folder / "large").write_bytes(b"x" * (MOST + 1))
    with pytest.raises(UploadTooLarge, match="at most"):
        read(Doors({"ann": (str(folder),)}), "file", "large")


class Objects:
    """A bucket or two, and how often they were asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.cut = 0
        self.code = ""

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # boto3's names
        self.asked.append((Bucket, Key))
        if self.code:
            error: Any = RuntimeError("no")
            error.response = {"Error": {"Code": self.code}}
            raise error
        data = f"{Bucket}/{Key}".encode()
        return {"Body": io.BytesIO(data[: len(data) - self.cut]), "ContentLength": len(data)}


@pytest.fixture
def objects() -> tuple[Objects, Doors]:
    found = Objects()
    return found, Doors({}, {"ann": ("s3://data/ann/", "s3://store/")}, "store", lambda: found)


def test_an_object_below_a_prefix_is_read(objects: tuple[Objects, Doors]) -> None:
    assert read(objects[1], "url", "s3://data/ann/deep/c.npy") == b"data/ann/deep/c.npy"


@pytest.mark.parametrize(
    "url",
    [
        "s3://data/ann/../bob/x", "s3://data/ann/./x", "s3://data/ann//x", "s3://data/ann/", "s3://data/bob/x",
        "s3://data/annex/x", "s3://other/ann/x", "s3://store/x", "S3://data/ann/x", "s3://DATA/ann/x", "s3:/data/ann/x",
        "http://169.254.169.254/latest", "https://data/ann/x", "file:///etc/passwd", "gopher://data/ann/x", "",
        "s3://user:pw@data/ann/x", "s3://data:80/ann/x", "s3://data/ann/x\n", "s3://data/ann/x\0", " s3://data/ann/x",
        "s3://data\\ann/x", "s3://data/ann/" + "x" * 2000, "s3://arn:aws:s3:::data/ann/x", "s3://../data/ann/x",
    ],
)  # fmt: skip
def test_no_other_object_is_even_asked_for(objects: tuple[Objects, Doors], url: str) -> None:
    with pytest.raises(NotOpen, match="no object that you may read"):
        read(objects[1], "url", url)
    assert objects[0].asked == []


def test_prefixes_are_their_owners(objects: tuple[Objects, Doors]) -> None:
    with pytest.raises(NotOpen):
        read(objects[1], "url", "s3://data/ann/x", owner="bob")
    with pytest.raises(NotOpen):
        read(replace(objects[1], client=None), "url", "s3://data/ann/x")


@pytest.mark.parametrize("code", ["NoSuchKey", "AccessDenied", "PermanentRedirect", "301", "404"])
def test_what_is_not_given_is_told_as_what_may_not_be_read(objects: tuple[Objects, Doors], code: str) -> None:
    objects[0].code = code
    with pytest.raises(NotOpen, match="no object that you may read"):
        read(objects[1], "url", "s3://data/ann/x")


def test_a_service_that_fails_or_stops_is_unavailable(objects: tuple[Objects, Doors]) -> None:
    objects[0].code = "SlowDown"
    with pytest.raises(Unavailable):
        read(objects[1], "url", "s3://data/ann/x")
    objects[0].code, objects[0].cut = "", 3
    with pytest.raises(Unavailable, match="bytes of"):
        read(objects[1], "url", "s3://data/ann/x")


def test_entries_are_read_by_owner_and_wrong_ones_refused(tmp_path: Path) -> None:
    assert entries("ann=/a *=/b,ann=/c", "X") == {"ann": ("/a", "/c"), "*": ("/b",)}
    for wrong in ("/a", "=/a", "ann="):
        with pytest.raises(ValueError, match="expected owner=value"):
            entries(wrong, "X")
    for folders in ("ann=relative", f"ann={tmp_path}/none"):
        with pytest.raises(ValueError, match="ALLOT_FILE_DIRS"):
            doors.doors_of(Settings(), folders, "")
    for prefix in ("ann=s3://data/ann", "ann=http://x/", "ann=s3://"):
        with pytest.raises(ValueError, match="ALLOT_URL_PREFIXES"):
            doors.doors_of(Settings(), "", prefix)
    assert doors.doors_of(Settings(store_url="s3://own/x"), "", "").own_bucket == "own"
