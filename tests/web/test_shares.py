"""Names are kept with a job, and a link shows one finished job and nothing else."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import LAP, Service, ann, bob, long_job, owners, serve
from tests.workers.service import eventually
from workers.runtime.keyring import digest_of

__all__ = ["Service", "ann", "bob", "owners"]
NOTE = {"title": "Monday", "rows": ["Ann", "<b>Ben</b>", "=cmd"], "columns": ["A", "B", "C"]}


def solved(client: httpx.Client, **more: Any) -> str:
    answer = client.post("/v1/jobs", json=LAP | more, headers={"Prefer": "wait=30"})
    job_id: str = answer.json()["id"]
    return job_id


def share(client: httpx.Client, job: str, **asked: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/jobs/{job}/shares", json=asked)
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


def shown(url: str, secret: str) -> httpx.Response:
    """As a stranger asks: without a key."""
    return httpx.get(f"{url}/v1/shared", headers={"Allot-Share": secret})


def test_names_stay_with_their_job(ann: httpx.Client, bob: httpx.Client) -> None:
    job = solved(ann)
    before = ann.get(f"/v1/jobs/{job}")
    assert before.json()["noted"] is False
    assert ann.get(f"/v1/jobs/{job}/note").status_code == 404
    for note in (NOTE, NOTE, NOTE | {"title": "Tuesday"}):
        assert ann.put(f"/v1/jobs/{job}/note", json=note).status_code == 204
        assert ann.get(f"/v1/jobs/{job}/note").json() == note
    after = ann.get(f"/v1/jobs/{job}", headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert after.json()["noted"] is True
    assert bob.get(f"/v1/jobs/{job}/note").status_code == 404
    assert bob.put(f"/v1/jobs/{job}/note", json=NOTE).status_code == 404
    assert ann.delete(f"/v1/jobs/{job}").status_code == 204
    assert ann.get(f"/v1/jobs/{job}/note").status_code == 404


def test_names_outlive_the_run_of_their_job(ann: httpx.Client) -> None:
    job = ann.post("/v1/jobs", json=long_job(3)).json()["id"]
    assert ann.put(f"/v1/jobs/{job}/note", json=NOTE).status_code == 204
    assert ann.get(f"/v1/jobs/{job}", params={"wait": 30}).json()["state"] == "succeeded"
    assert ann.get(f"/v1/jobs/{job}/note").json() == NOTE


@pytest.mark.parametrize(("body", "status"), [(b"[1]", 422), (b"{", 400), (b'"' + b"x" * (1 << 20) + b'"', 413)])
def test_what_is_no_note(ann: httpx.Client, body: bytes, status: int) -> None:
    assert ann.put(f"/v1/jobs/{solved(ann)}/note", content=body).status_code == status


def test_a_link_shows_its_job_and_nothing_else(owners: tuple[str, str, str], ann: httpx.Client) -> None:
    job, other = solved(ann, options={"maximize": False}), solved(ann)
    ann.put(f"/v1/jobs/{job}/note", json=NOTE)
    made = share(ann, job)
    assert made["page"] == f"/shared#{made['secret']}"
    assert len(made["secret"]) >= 43
    told = shown(owners[0], made["secret"])
    assert told.status_code == 200
    assert told.headers["cache-control"] == "no-store"
    seen = told.json()
    assert (seen["result"]["objective"], seen["note"], seen["inputs"]) == (5, NOTE, None)
    assert other not in told.text
    for word in ('"ann"', "owner", "/v1/", "sha256", "input_digests"):
        assert word not in told.text, word
    for path in (f"/v1/jobs/{job}", f"/v1/jobs/{job}/result", "/v1/jobs", f"/v1/jobs/{job}/note"):
        for headers in ({"Allot-Share": made["secret"]}, {"Authorization": f"Bearer {made['secret']}"}):
            assert httpx.get(owners[0] + path, headers=headers).status_code == 401
    listed = ann.get(f"/v1/jobs/{job}/shares")
    assert [one["id"] for one in listed.json()["shares"]] == [made["id"]]
    assert made["secret"] not in listed.text


def test_inputs_are_shown_only_if_ticked(owners: tuple[str, str, str], ann: httpx.Client) -> None:
    seen = shown(owners[0], share(ann, solved(ann, keep_inputs=True), inputs=True)["secret"]).json()
    assert seen["inputs"] == LAP["inputs"]


def test_a_link_ends_when_it_is_revoked_or_its_job_goes(
    owners: tuple[str, str, str], ann: httpx.Client, bob: httpx.Client
) -> None:
    job = solved(ann)
    first, second = share(ann, job), share(ann, job)
    assert bob.post(f"/v1/jobs/{job}/shares", json={}).status_code == 404
    assert bob.delete(f"/v1/jobs/{job}/shares/{first['id']}").status_code == 404
    assert shown(owners[0], first["secret"]).status_code == 200
    assert ann.delete(f"/v1/jobs/{job}/shares/{first['id']}").status_code == 204
    assert shown(owners[0], first["secret"]).status_code == 404
    assert ann.delete(f"/v1/jobs/{job}/shares/{first['id']}").status_code == 404
    assert ann.delete(f"/v1/jobs/{job}").status_code == 204
    assert shown(owners[0], second["secret"]).status_code == 404
    assert shown(owners[0], "guessed").status_code == 404


def test_a_link_expires(owners: tuple[str, str, str], ann: httpx.Client, service: Service) -> None:
    jobs = service.app.state.shares
    job = solved(ann)
    secret, _ = jobs.create(job, "ann", 60.0, False)
    assert shown(owners[0], secret).status_code == 200
    key = f"allot:share:{digest_of(secret)}"
    assert 30_000 < jobs._redis.pttl(key) <= 60_000
    jobs._redis.pexpire(key, 1)  # as if this minute were over
    eventually(lambda: not jobs._redis.exists(key))
    assert shown(owners[0], secret).status_code == 404
    assert ann.get(f"/v1/jobs/{job}/shares").json()["shares"] == []


def test_a_link_needs_an_answer_and_there_are_not_many(ann: httpx.Client) -> None:
    running = ann.post("/v1/jobs", json=long_job(60)).json()["id"]
    assert ann.post(f"/v1/jobs/{running}/shares", json={}).status_code == 409
    assert ann.delete(f"/v1/jobs/{running}").status_code == 204
    job = solved(ann)
    statuses = [ann.post(f"/v1/jobs/{job}/shares", json={}).status_code for _ in range(21)]
    assert statuses == [201] * 20 + [409]
    assert ann.post(f"/v1/jobs/{job}/shares", json={"expires_in_s": 1}).status_code == 422


def test_an_operator_may_allow_no_links(service: Service) -> None:
    secret, entry = new_key("ann")
    url, stop = serve(create_app(replace(service.settings), HttpSettings(api_keys=(entry,), share_days=0)))
    try:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=40) as client:
            job = solved(client)
            assert client.post(f"/v1/jobs/{job}/shares", json={}).status_code == 403
            made, _ = service.app.state.shares.create(job, "ann", 60.0, False)
        assert shown(url, made).status_code == 403
    finally:
        stop()
