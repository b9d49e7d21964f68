"""Log lines that machines read, and the audit of what changed."""

import asyncio
import io
import json
import logging
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.app.conftest import LAP
from tests.workers.service import allowed
from workers.runtime import logs
from workers.runtime.keyring import Keyring

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Lines(list[dict[str, Any]]):
    """Every line that was written, read as JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = io.StringIO()

    def read(self) -> "Lines":
        self[:] = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return self

    def of(self, logger: str, **fields: Any) -> list[dict[str, Any]]:
        wanted = {"logger": logger, **fields}
        return [line for line in self.read() if wanted.items() <= line.items()]

    def soon(self, count: int, logger: str, **fields: Any) -> list[dict[str, Any]]:
        """As `of`, once there are so many: lines are written at the end of the loop's turn that sent the answer."""
        late = time.monotonic() + allowed(5)
        while len(found := self.of(logger, **fields)) < count and time.monotonic() < late:
            time.sleep(0.005)
        return found


@pytest.fixture
def lines() -> Iterator[Lines]:
    found = Lines()
    handler = logging.StreamHandler(found.stream)
    handler.setFormatter(logs.JsonLines())
    loggers = [logging.getLogger(name) for name in ("allot.access", "allot.audit", "test")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    yield found
    for logger in loggers:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def test_a_request_is_one_line_that_says_whose_it_was(client: httpx.Client, lines: Lines) -> None:
    headers = {"X-Request-Id": "mine-1", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    answer = client.post("/v1/jobs", json=LAP, headers=headers)
    assert answer.headers["X-Request-Id"] == "mine-1"
    (line,) = lines.soon(1, "allot.access", request_id="mine-1")
    assert (line["method"], line["route"], line["status"], line["owner"]) == ("POST", "/v1/jobs", 202, "local")
    assert line["job_id"] == answer.json()["id"]
    assert TRACE in line["traceparent"]
    assert line["ms"] > 0
    client.delete(f"/v1/jobs/{line['job_id']}")
    actions = [one["action"] for one in lines.soon(2, "allot.audit", job_id=line["job_id"], owner="local")]
    assert actions == ["job.submit", "job.delete"]


def test_an_id_that_is_no_id_is_replaced(client: httpx.Client, lines: Lines) -> None:
    answer = client.get("/v1/jobs", headers={"X-Request-Id": 'x" evil'})
    assert answer.headers["X-Request-Id"] != 'x" evil'
    assert client.get("/livez").status_code == 200
    assert not lines.of("allot.access", route="/livez")


def test_keys_are_audited_without_their_secrets(service: Any, lines: Lines) -> None:
    ring = Keyring(service.settings.redis_url)
    secret, key = ring.create("bob")
    ring.revoke(key.id)
    assert [one["action"] for one in lines.of("allot.audit", key_id=key.id)] == ["key.create", "key.revoke"]
    assert secret not in lines.stream.getvalue()


def test_a_record_carries_its_request(client: httpx.Client, service: Any) -> None:
    job = client.post("/v1/jobs", json=LAP, headers={"X-Request-Id": "mine-2"}).json()["id"]
    record = service.app.state.jobs._records.read(job)
    assert record["request_id"] == "mine-2"
    assert logs.TRACEPARENT.fullmatch(record["traceparent"])
    assert "request_id" not in client.get(f"/v1/jobs/{job}").json()


def test_json_lines_keep_tracebacks_and_context(lines: Lines) -> None:
    logger = logging.getLogger("test")
    with logs.about(job_id="one", owner=None):
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logger.exception("failed")
    (line,) = lines.of("test")
    assert (line["job_id"], line["level"], "owner" in line) == ("one", "error", False)
    assert "ValueError: two" in line["traceback"]


def test_text_is_for_people_and_one_line_each() -> None:
    record = logging.LogRecord("allot", logging.INFO, "", 0, "job %s", ("one",), None)
    record.fields = {"owner": "ann\nevil"}
    with logs.about(request_id="r1"):
        text = logs.Text(logs.TEXT).format(record)
    assert text.endswith("allot job one request_id=r1 owner=ann evil")


class Counted(io.StringIO):
    """Counts its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


@pytest.fixture
def stream() -> Iterator[Counted]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield Counted()
    logging.basicConfig(level=level, handlers=before, force=True)


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_of_one_turn_of_the_loop_are_written_at_once_and_in_their_order(stream: Counted, form: str) -> None:
    logs.configure(form=form, stream=stream)
    logger = logging.getLogger("allot.access")

    async def work() -> None:
        for k in range(3):
            logs.record(logger, f"GET /{k} 200", {"method": "GET"}, {"request_id": f"r{k}"})
        assert not stream.getvalue()
        logging.getLogger("other").warning("in between")
        logs.record(logger, "GET /3 200", {"method": "GET"}, {})
        await asyncio.sleep(0)
        assert stream.getvalue().count("\n") == 5

    asyncio.run(work())
    said = stream.getvalue().splitlines()
    words = [word[0] for line in said if (word := re.search("GET /[0-9] 200|in between", line))]
    assert words == [
        "GET /0 200",
        "GET /1 200",
        "GET /2 200",
        "in between",
        "GET /3 200",
    ]
    assert stream.writes <= 4
    logs.record(logger, "without a loop", {}, {})
    assert "without a loop" in stream.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_short_way_says_what_the_long_one_says(stream: Counted, form: str) -> None:
    logs.configure(form=form, stream=stream)
    logger, fields = logging.getLogger("allot.audit"), {"action": "job.submit", "status": 200, "evil": "a\nb"}
    with logs.about(request_id="r1", owner="ann"):
        logs.record(logger, "job.submit", fields, logs.told())
        logger.info("%s", "job.submit", extra={"fields": fields})
    short, long = (re.sub(r"[0-9-]{10}[T ][0-9:,.]{12}", "", line) for line in stream.getvalue().splitlines())
    assert short == long
    assert "r1" in short


def test_a_path_cannot_begin_a_line(stream: Counted) -> None:
    logs.configure(form="text", stream=stream)
    logs.record(logging.getLogger("allot.access"), "GET /a\nallot.audit key.create 200", {}, {})
    assert stream.getvalue().count("\n") == 1


def test_whoever_listens_besides_hears_it(stream: Counted, caplog: pytest.LogCaptureFixture) -> None:
    logs.configure(form="text", stream=stream)
    logging.getLogger().addHandler(caplog.handler)
    logs.record(logging.getLogger("allot.access"), "GET / 200", {}, {"owner": "ann"})
    assert "GET / 200" in caplog.messages
    assert "GET / 200" in stream.getvalue()


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of text, json"):
        logs.configure(form="xml")
