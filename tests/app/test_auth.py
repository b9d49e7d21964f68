from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.auth import BadKeys, Keys, is_loopback, load_keys, new_key
from app.cli import main
from app.config import HttpSettings
from app.main import create_app
from app.serve import CannotServe, check_address
from tests.app.conftest import LAP, Service, serve
from tests.app.test_bad_input import check, npy

ALICE, ALICE_ENTRY = new_key("alice")
BOB, BOB_ENTRY = new_key("bob")


@pytest.fixture(scope="module")
def address(service: Service) -> Iterator[str]:
    url, stop = serve(create_app(service.settings, HttpSettings(api_keys=(ALICE_ENTRY, BOB_ENTRY))))
    yield url
    stop()


def as_owner(address: str, secret: str) -> httpx.Client:
    return httpx.Client(base_url=address, headers={"Authorization": f"Bearer {secret}"}, timeout=40)


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer wrong", f"Basic {ALICE}", f"Bearer {ALICE}x", ALICE],
    ids=["none", "no key", "wrong key", "wrong scheme", "longer key", "no scheme"],  # keys differ from run to run
)
def test_without_a_key_nothing_is_answered(address: str, header: str) -> None:
    headers = {"Authorization": header} if header else {}
    for path in ("/v1/jobs", "/v1/solvers", "/metrics", "/v1/jobs/" + "0" * 32):
        answer = httpx.get(address + path, headers=headers)
        check(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert httpx.get(address + "/readyz").status_code == 200


def test_a_large_body_without_a_key_hears_why(address: str) -> None:
    for path in ("/v1/jobs", "/v1/blobs"):
        check(httpx.post(address + path, content=bytes(12 << 20)), 401)
        check(httpx.post(address + path, content=(bytes(1 << 20) for _ in range(12))), 401)


def test_owners_do_not_see_each_other(address: str) -> None:
    with as_owner(address, ALICE) as alice, as_owner(address, BOB) as bob:
        links = alice.post("/v1/jobs", json=LAP, headers={"Prefer": "wait=30"}).json()["links"]
        blob = alice.post("/v1/blobs", content=npy([[1.0]])).json()["digest"]
        assert alice.get(links["result"]).status_code == 200
        for path in links.values():
            verb = "POST" if path.endswith("cancel") else "GET"
            check(bob.request(verb, path), 404)
        check(bob.delete(links["self"]), 404)
        check(bob.get(f"/v1/blobs/{blob}"), 404)
        check(bob.delete(f"/v1/blobs/{blob}"), 404)
        check(bob.post("/v1/jobs", json={"solver": "lap", "inputs": {"cost": {"blob": blob}}}), 422, "cost")
        assert bob.get("/v1/jobs").json()["jobs"] == []


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# ours\n{ALICE_ENTRY}  # since May\n\n{BOB_ENTRY}\n")
    keys = load_keys(HttpSettings(api_keys_file=file))
    assert keys.owner_of(ALICE) == "alice"
    assert keys.owner_of(BOB) == "bob"
    assert keys.owner_of(BOB + "x") is None
    file.write_text("# none\n")
    with pytest.raises(BadKeys):
        load_keys(HttpSettings(api_keys_file=file))


@pytest.mark.parametrize(
    "entry",
    ["alice", "alice=plain", f"al ice={ALICE_ENTRY}", "=sha256:" + "0" * 64],
    ids=["no hash", "no digest", "space in the owner", "no owner"],
)
def test_entries_that_are_no_keys(entry: str) -> None:
    with pytest.raises(BadKeys):
        Keys((entry,))


def test_without_keys_only_loopback_is_served() -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        check_address(host, HttpSettings())
        assert is_loopback(host)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(CannotServe):
            check_address(host, HttpSettings())
        check_address(host, HttpSettings(insecure=True))
        check_address(host, HttpSettings(api_keys=(ALICE_ENTRY,)))


def test_serve_refuses_an_open_address(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALLOT_API_KEYS", raising=False)
    assert main(["serve", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "--insecure" in capsys.readouterr().err


def test_pages_of_other_sites_are_refused_without_keys(client: httpx.Client) -> None:
    check(client.post("/v1/jobs", json=LAP, headers={"Sec-Fetch-Site": "cross-site"}), 403)
    check(client.get("/v1/jobs", headers={"Host": "rebound.example.org"}), 403)
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "testserver", "allot.localhost"):
        assert client.get("/v1/jobs", headers={"Host": host}).status_code == 200
