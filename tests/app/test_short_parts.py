"""File parts of a short body stay in memory until the job has them: what is said of them is what a file would say."""

import asyncio
import gzip
import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from app.answers.packed import Slices
from app.http.refusal import Refusal
from app.intake.body import SHORT_BYTES, read_short
from app.intake.multipart import MAX_PARTS, Reader, plain_parts
from app.intake.room import FRESH_BYTES, Room
from tests.app.conftest import Service
from tests.app.test_bad_input import FILES, check, npy, npz
from tests.app.test_every_door import answered, graph, market, scipys
from tests.bombs import made
from workers.jobs.job import StoreFull
from workers.store.digests import digest_of

RNG = np.random.default_rng(0)
COST = RNG.random((150, 150))
HOLED = COST.copy()
HOLED[3, 7] = np.nan
Part = tuple[str, bytes]


def body(job: Mapping[str, Any], files: Mapping[str, Part]) -> tuple[bytes, str]:
    """A multipart body and its type."""
    request = httpx.Request("POST", "http://x/", data={"job": json.dumps(job)}, files=files)
    return request.read(), request.headers["content-type"]


def sent(client: httpx.Client, whole: bytes, kind: str, announced: bool, **headers: str) -> httpx.Response:
    """With its length, so that it stays in memory, or without, so that it goes to files as ever."""
    content: Any = whole if announced else iter([whole[:1000], whole[1000:]])
    return client.post("/v1/jobs", content=content, headers={"Content-Type": kind, **headers})


def told(answer: httpx.Response) -> Any:
    """What an answer says, but for what no two have in common."""
    document = answer.json()
    for name in ("id", "created_at", "started_at", "ended_at", "links", "timings_ms", "queue_position", "state"):
        document.pop(name, None)
    return answer.status_code, document


def both(client: httpx.Client, job: Mapping[str, Any], files: Mapping[str, Part], **headers: str) -> httpx.Response:
    """The answer to a body in memory, which is the same as that to one in files."""
    whole, kind = body(job, files)
    assert len(whole) <= SHORT_BYTES
    of_files, of_memory = (sent(client, whole, kind, announced, **headers) for announced in (False, True))
    assert told(of_memory) == told(of_files)
    return of_memory


@pytest.fixture
def left(service: Service) -> Callable[[], set[str]]:
    """What lies in the folder of uploads under way that was not there before."""
    folder: Path = service.app.state.store.folder.temporary
    before = {path.name for path in folder.iterdir()}
    return lambda: {path.name for path in folder.iterdir()} - before


LAYOUTS: dict[str, Part] = {
    "npy": ("c.npy", npy(COST)),
    "by columns": ("c.npy", npy(np.asfortranarray(COST))),
    "small integers": ("c.npy", npy((COST * 100).astype(np.uint8))),
    "npz": ("c.npz", npz(cost=COST)),
    "gzip": ("c.npy.gz", gzip.compress(npy(COST))),
    "a header of another length": ("c.npy", npy(COST).replace(b" }", b"}", 1)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_answer_is_that_of_a_file(client: httpx.Client, name: str, left: Callable[[], set[str]]) -> None:
    answer = both(client, {"solver": "lap"}, {"cost": LAYOUTS[name]}, Prefer="wait=30")
    if name == "a header of another length":  # its numbers begin one byte too early for its shape
        check(answer, 422, "cost")
    else:
        assert answer.status_code == 200
        assert answer.json()["input_digests"]["cost"]["digest"] == digest_of(LAYOUTS[name][1])
    assert left() == set()


SPARSE: dict[str, Callable[[Any], bytes]] = {
    "npz": scipys,
    "npz as it is": lambda matrix: scipys(matrix, compressed=False),
    "mtx.gz": lambda matrix: gzip.compress(market(matrix)),
}


@pytest.mark.parametrize("n", [5, 60, 150])  # as three arrays all would travel if awaited, and the first otherwise
@pytest.mark.parametrize("kind", SPARSE)
def test_a_sparse_matrix_in_one_file_stays_a_file(
    client: httpx.Client, kind: str, n: int, left: Callable[[], set[str]]
) -> None:
    matrix, best = graph(n)
    file = f"g.{kind}", SPARSE[kind](matrix)
    waited = both(client, {"solver": "auction"}, {"benefit": file}, Prefer="wait=30")
    later = both(client, {"solver": "auction"}, {"benefit": file})
    for answer in (waited, later):
        assert answered(client, answer)["objective"] == best
    assert waited.json()["input_digests"]["benefit"]["blob"] == digest_of(file[1])
    assert left() == set()


CLAIMS = [
    {"dtype": "float64"},
    {"dtype": "float32"},
    {"shape": [150, 150]},
    {"shape": [9, 9]},
    {"member": "cost"},
    {"format": "npy"},
    {"format": "npz"},
    {"format": "raw", "dtype": "uint8", "shape": [len(npy(COST)), 1]},
    {"format": "raw", "dtype": "uint8"},
    {"scale": 2.0},
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_what_a_reference_claims_is_checked_as_of_a_file(client: httpx.Client, claim: dict[str, Any]) -> None:
    job = {"solver": "lap", "inputs": {"cost": {"part": "cost", **claim}}}
    both(client, job, {"cost": LAYOUTS["npy"]}, Prefer="wait=30")


@pytest.mark.parametrize("name", FILES)
def test_errors_are_those_of_files(client: httpx.Client, name: str, left: Callable[[], set[str]]) -> None:
    solver, part, data = FILES[name]
    check(both(client, {"solver": solver}, {part: ("x.dat" if part == "qaplib" else "x.npy", made(data))}), 422, part)
    assert left() == set()


WRONG = {
    "a NaN": (npy(HOLED), "[3, 7]"),
    "bytes behind it": (npy(COST) + b"\0" * 8, "bytes came behind the header"),
    "a zip that is none": (b"PK\x03\x04" + bytes(1000), ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_as_in_a_file(client: httpx.Client, name: str) -> None:
    data, message = WRONG[name]
    answer = both(client, {"solver": "lap"}, {"cost": ("c.npy", data)}, Prefer="wait=30")
    check(answer, 422, "cost")
    assert message in answer.text


def test_two_parts_of_one_name_and_an_end_that_does_not_come(client: httpx.Client) -> None:
    whole, kind = body({"solver": "lap"}, {"cost": LAYOUTS["npy"]})
    mark = whole[: whole.index(b"\r\n")]
    for wrong in (whole[: -len(mark)], whole.replace(mark + b"--", whole[:-4]), whole.replace(b'"cost"', b'"job"')):
        answers = [told(sent(client, wrong, kind, announced)) for announced in (False, True)]
        assert answers[0] == answers[1]
        assert answers[0][0] == 400


def test_a_waiting_call_makes_no_file(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> Any:
        raise AssertionError("a file")

    monkeypatch.setattr("workers.store.spool.tempfile.mkstemp", refuse)
    whole, kind = body({"solver": "lap"}, {"cost": LAYOUTS["npy"]})
    assert sent(client, whole, kind, True, Prefer="wait=30").status_code == 200


@pytest.mark.parametrize("extra", [{"keep_inputs": True}, {}], ids=["to be kept", "with nobody who waits"])
def test_what_does_not_travel_is_a_blob(client: httpx.Client, extra: Any, left: Callable[[], set[str]]) -> None:
    data = npy(RNG.random((150, 150)))
    whole, kind = body({"solver": "lap", **extra}, {"cost": ("c.npy", data)})
    answer = sent(client, whole, kind, True, **({"Prefer": "wait=30"} if extra else {}))
    assert answer.status_code == (200 if extra else 202), answer.text
    assert client.get(f"/v1/blobs/{digest_of(data)}").content == data
    assert left() == set()


def test_a_full_disk_refuses_it(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, kind = body({"solver": "lap"}, {"cost": LAYOUTS["npy"]})
    monkeypatch.setattr("workers.store.disk.SPARE_BYTES", 1 << 60)
    assert both(client, {"solver": "lap"}, {"cost": LAYOUTS["npy"]}).status_code == 507
    assert sent(client, whole, kind, True, Prefer="wait=30").status_code == 507


class Request:
    """Of a body in these pieces."""

    def __init__(self, *pieces: bytes, gone: bool = False) -> None:
        self._messages: list[dict[str, Any]] = [{"type": "http.request", "body": p, "more_body": True} for p in pieces]
        self._messages.append({"type": "http.disconnect"} if gone else {"type": "http.request", "more_body": False})

    async def receive(self) -> dict[str, Any]:
        return self._messages.pop(0)


class Kept:
    """A sink."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes | memoryview) -> None:
        self.data += data


def parsed(whole: bytes) -> list[Any] | None:
    """What a reader makes of a body with the boundary "mark"; None where it refuses."""
    reader = Reader(b"mark", lambda name: Kept())
    try:
        reader.feed([whole])
        return [(part.name, part.filename, part.content_type, part.sink.data) for part in reader.finish().values()]
    except Refusal:
        return None


DISPOSITION = b'Content-Disposition: form-data; name="%b"'
PIECES = [
    *[DISPOSITION % name for name in (b"x", b"y", b"", b'x"; filename="c.npy')],
    *[b"\r\n", b"\r\n\r\n", b"--mark", b"\r\n--mark", b"--mark--", b"\r\n--mark--\r\n", b"--", b" ", b"\r", b"\n"],
    *[b"Content-Type: Application/Octet-Stream; a=b", b"data", b"\0\xff", b"a:b", b": ", b"q" * 600],
]


def test_parts_that_are_cut_are_those_of_the_parser() -> None:
    """Of bodies made of what bodies are made of, in any order: each is cut as the parser does it, or left to it."""
    rng, usual, cut = np.random.default_rng(1), 0, 0
    for _ in range(20_000):
        made = b""
        for name in (b"x", b"y", b"job")[: rng.integers(1, 4)]:
            made += b"--mark\r\n" + DISPOSITION % name + b"\r\n\r\ndata of " + name + b"\r\n"
        made += b"--mark--\r\n"
        for _ in range(rng.integers(0, 4)):
            at, end = sorted(rng.integers(0, len(made) + 1, 2).tolist())
            end = at if rng.random() < 0.7 else min(end, at + 9)
            made = made[:at] + PIECES[rng.integers(len(PIECES))] + made[end:]
        found = plain_parts(made, b"mark")
        cut += found is not None
        if found is not None:
            shown = [(head.name, head.filename, head.content_type, bytes(data)) for head, data in found]
            assert shown == parsed(made), made
        elif made.count(b"--mark") == 2:
            usual += parsed(made) is not None
    assert cut > 5_000
    assert usual < 1_000  # such bodies are seldom left to the parser


def test_more_parts_than_there_may_be_are_left_to_the_parser() -> None:
    one = b"--mark\r\n" + DISPOSITION + b"\r\n\r\n\r\n"
    bodies = [
        b"".join(one % str(k).encode() for k in range(count)) + b"--mark--" for count in (MAX_PARTS, MAX_PARTS + 1)
    ]
    assert [plain_parts(made, b"mark") is None for made in bodies] == [False, True]


def test_a_client_that_goes_away_is_an_error() -> None:
    request: Any = Request(b"a", gone=True)
    with pytest.raises(Refusal) as refused:
        asyncio.run(read_short(request, lambda piece: None, lambda count: None))
    assert refused.value.status == 400


def test_the_disk_is_looked_at_once_for_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, usage = [], shutil.disk_usage

    def looked(folder: Path) -> Any:
        looks.append(folder)
        return usage(folder)

    monkeypatch.setattr("app.intake.room.shutil.disk_usage", looked)
    monkeypatch.setattr("app.intake.room.FRESH_S", 1e6)
    room = Room(tmp_path, most=1 << 30, each=1 << 30)
    room._looked = -2e6
    with room.held("ann") as held:
        for _ in range(8):
            held.take(FRESH_BYTES // 8)
        assert len(looks) == 1
        held.take(1)
        assert len(looks) == 2  # so many bytes may have filled it
        held.take(2 * FRESH_BYTES)
        assert len(looks) == 3


def test_bytes_that_are_taken_count_until_the_disk_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room(tmp_path, most=1 << 30, each=1 << 30)
    with room.held("ann") as held:
        held.take(1000)
        monkeypatch.setattr("workers.store.disk.SPARE_BYTES", room._free - 1500)
        monkeypatch.setattr("app.intake.room.FRESH_S", 1e6)
        monkeypatch.setattr("workers.store.disk.shutil.disk_usage", lambda folder: Usage(room._free - 1000))
        held.take(500)
        with pytest.raises(StoreFull):
            held.take(501)


class Usage:
    def __init__(self, free: int) -> None:
        self.free = free


@pytest.mark.parametrize("kind", [Slices, StreamingResponse])
def test_slices_are_sent_as_starlette_sends_them(kind: Callable[..., Response]) -> None:
    pieces = [b"head", memoryview(b"body")]
    messages: list[Any] = []
    ended: list[bool] = []

    async def run() -> None:
        answer = kind(iter(pieces), 200, headers={"Content-Length": "8"}, media_type="application/x-safetensors")
        answer.background = BackgroundTask(ended.append, True)

        async def send(message: Any) -> None:
            messages.append(message)

        async def receive() -> Any:
            return await asyncio.Event().wait()

        await answer({"type": "http"}, receive, send)

    asyncio.run(run())
    bodies = [{"type": "http.response.body", "body": piece, "more_body": True} for piece in pieces]
    assert messages[0]["headers"] == [(b"content-length", b"8"), (b"content-type", b"application/x-safetensors")]
    assert messages[1:] == [*bodies, {"type": "http.response.body", "body": b"", "more_body": False}]
    assert ended == [True]


FRESH = """
import asyncio, sys
import numpy as np
from app.http.config import HttpSettings
from app.http.main import create_app
from app.intake.weighing import Question, weigh
from kernels import SOLVERS
from pathlib import Path
from workers.runtime.config import Settings

async def run():
    app = create_app(Settings(redis_url=sys.argv[1], data_dir=Path(sys.argv[2])), HttpSettings(clerks=1))
    async with app.router.lifespan_context(app):
        there = set(sys.modules)
        cost, points = np.arange(40_000.0).reshape(200, 200) % 97, np.arange(60.0).reshape(30, 2)
        for solver, given in ("lap", {"cost": cost}), ("uot", {"cost": cost}), ("uot", {"x": points, "y": points}):
            card = SOLVERS[solver]
            options = card.options(reg=0.1) if solver == "uot" else card.options()
            weigh(Question(card, given, options, {}, "auto", []))
        print(sorted(name for name in set(sys.modules) - there))

asyncio.run(run())
"""


def test_a_first_problem_loads_no_module(service: Service, tmp_path: Path) -> None:
    told = [sys.executable, "-c", FRESH, service.settings.redis_url, str(tmp_path / uuid.uuid4().hex)]
    done = subprocess.run(told, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.strip() == "[]"
