"""A short answer's JSON: what the worker wrote goes on as it came, and says the same as the document read whole."""

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.answers.answer import is_at_hand, worded, worded_at_once
from workers.jobs.job import Damaged, Job, State
from workers.jobs.shown import Seen
from workers.runtime.document import as_json
from workers.store.inline import pack

ENDED = {"owner": "ann", "state": "succeeded", "ended_at": "1700000000.25"}
JOB = Job(
    "a" * 32, "ann", "lap", State.QUEUED, 0, "auto", None, None, None, {}, None, None, None, "", None, None, None,
    {}, {}, 60.0, 1,
)  # fmt: skip
HOSTILE = 'x","timings_ms":{"solve":9},"arrays":{}}'


def document(**more: Any) -> dict[str, Any]:
    return {
        "id": JOB.id, "solver": "lap", "objective": 0.1 + 0.2, "facts": {"note": HOSTILE, HOSTILE: math.nan}, **more,
        "timings_ms": {"solve": 0.25, "total": 1.5},
        "arrays": {"assignment": pack(np.arange(5)), "u": pack(np.array([0.1, -math.inf])), "v": pack(np.eye(2))},
    }  # fmt: skip


def without_times(body: bytes) -> dict[str, Any]:
    told = json.loads(body)
    assert told["timings_ms"].keys() == {"solve", "respond", "total"}
    assert told["timings_ms"].pop("respond") + 1.5 == pytest.approx(told["timings_ms"].pop("total"), abs=0.002)
    return dict(told)


def both(told: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    seen = Seen(JOB.id, ENDED, as_json(told).encode())
    at_once, whole = worded_at_once(JOB, seen), worded(None, JOB, seen, 10_000)  # type: ignore[arg-type]
    assert at_once is None or at_once[1].partition(", ")[0] == whole[1].partition(", ")[0] == "solve;dur=0.2"
    return at_once and without_times(at_once[0]), without_times(whole[0])


def test_it_is_the_same() -> None:
    at_once, whole = both(document())
    assert at_once == whole
    assert whole["facts"] == {"note": HOSTILE, HOSTILE: None}
    assert whole["duals"] == {"u": [0.1, None], "v": [[1.0, 0.0], [0.0, 1.0]]}
    assert list(whole)[-1] == "links"


@pytest.mark.parametrize(
    "more",
    [
        {"inner": {"a": 1, "timings_ms": {"solve": 3}, "arrays": {}}},
        {"list": [{"a": 1, "timings_ms": {}}], "text": '\\",\\"timings_ms\\":{'},
    ],
)
def test_what_looks_like_times_is_not_taken_for_them(more: dict[str, Any]) -> None:
    at_once, whole = both(document(**more))
    assert at_once == whole
    assert all(whole[name] == said for name, said in more.items())


def test_documents_of_other_shapes_are_read_whole() -> None:
    """As workers wrote them before times stood at the end, with an array elsewhere, and with a decoy behind."""
    told = document()
    for other in (
        {"timings_ms": told.pop("timings_ms"), **told},
        {**document(), "attempt": 1},
        {**document(), "arrays": {}, "z": {"a": 1, "timings_ms": {"solve": 3}, "arrays": {}}},
    ):
        at_once, whole = both(other)
        assert at_once is None
        assert whole["objective"] == 0.1 + 0.2
    kept = {**document(), "arrays": {"u": {"blob": "sha256:0", "format": "npy", "dtype": "<f8", "shape": [3]}}}
    assert worded_at_once(JOB, Seen(JOB.id, ENDED, as_json(kept).encode())) is None


@pytest.mark.parametrize("result", [b"", b"{", b"[]", b"null", as_json(document()).encode()[:-1]])
def test_what_cannot_be_read_is_damaged(result: bytes) -> None:
    seen = Seen(JOB.id, ENDED, result)
    assert worded_at_once(JOB, seen) is None
    with pytest.raises(Damaged):
        worded(None, JOB, seen, 10_000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "local", "expected"),
    [(1000, True, True), (43_690, True, True), (43_691, True, False), (1000, False, False), (0, False, True)],
)
def test_short_arrays_of_a_local_store_are_read_without_a_thread(rows: int, local: bool, expected: bool) -> None:
    """Up to 1 MiB of all of them; bytes of a bucket would be waited for."""
    entry = {"blob": "sha256:" + 64 * "0", "dtype": "float64", "shape": [rows]}
    arrays = {"u": entry, "v": entry, "assignment": {**entry, "dtype": "<i8"}} if rows else {"u": pack(np.arange(4))}
    store: Any = SimpleNamespace(is_local=local)
    assert is_at_hand(store, {"arrays": arrays}) == expected
