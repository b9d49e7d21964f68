import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from app.cli.main import main
from app.cli.serve import CannotServe, check_address
from app.http.auth import FRESH_S, BadKeys, Caller, Keys, load_keys, new_key
from app.http.config import HttpSettings
from app.http.loopback import is_loopback
from app.http.main import create_app
from tests.app.conftest import LAP, Service, serve
from tests.app.test_bad_input import check, npy
from workers.runtime.keyring import BadKey, Keyring, digest_of

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
        came = header.startswith("Bearer ")
        assert ("not known here" if came else "asks for an API key") in answer.json()["detail"]
    assert httpx.get(address + "/readyz").status_code != 401


def test_a_large_body_without_a_key_hears_why(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.intake.drain.DRAIN_S", 60.0)  # a busy machine may take longer to send 12 MiB
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
        assert links["self"] not in {job["links"]["self"] for job in bob.get("/v1/jobs?limit=100").json()["jobs"]}


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
    file.write_text(f"# ours\n{ALICE_ENTRY}\n\nsecret\n")
    with pytest.raises(BadKeys, match=r"^line 4 of .*keys is not owner=sha256:") as told:
        load_keys(HttpSettings(api_keys_file=file))
    assert "secret" not in str(told.value)


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
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "allot.localhost"):
        assert client.get("/v1/jobs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://example.org", "http://127.0.0.1:1", "null", "http://localhost.example.org", "http://[::1"]
)
def test_a_foreign_origin_is_refused_without_keys(client: httpx.Client, origin: str) -> None:
    check(client.post("/v1/jobs", json=LAP, headers={"Origin": origin}), 403)
    check(client.get("/v1/jobs", headers={"Origin": origin}), 403)


def test_our_own_pages_may_ask(client: httpx.Client) -> None:
    port = client.base_url.port
    for name in ("127.0.0.1", "localhost"):
        assert client.get("/v1/jobs", headers={"Origin": f"http://{name}:{port}"}).status_code == 200


@pytest.mark.parametrize("host", ["intranet", "testserver", "192.168.1.5", "10.0.0.1:80", "router.local"])
def test_other_names_of_this_machine_are_refused_without_keys(client: httpx.Client, host: str) -> None:
    check(client.get("/v1/jobs", headers={"Host": host}), 403)


def test_a_file_of_keys_is_watched(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{ALICE_ENTRY}\n")
    keys = load_keys(HttpSettings(api_keys_file=file))
    assert keys.owner_of(ALICE) == "alice"
    file.write_text(f"{BOB_ENTRY};metrics\n")
    eventually(lambda: keys.owner_of(ALICE) is None)
    assert keys.caller(BOB) == Caller("bob", frozenset({"metrics"}))
    file.write_text("nonsense\n")
    time.sleep(2 * FRESH_S)
    assert keys.owner_of(BOB) == "bob"
    file.unlink()
    time.sleep(2 * FRESH_S)
    assert keys.owner_of(BOB) == "bob"


@pytest.fixture(scope="module")
def ring(service: Service) -> Keyring:
    return Keyring(service.settings.redis_url)


@pytest.fixture(scope="module")
def guarded(service: Service) -> Iterator[str]:
    url, stop = serve(create_app(service.settings, HttpSettings(api_keys_in_redis=True)))
    yield url
    stop()


def eventually(true: Callable[[], bool], within_s: float = 1.0) -> None:
    """`true()` is true once it begins later than that: however long one look takes on a busy machine."""
    give_up = time.monotonic() + within_s
    begun = time.monotonic()
    while not true():
        assert begun < give_up
        time.sleep(0.02)
        begun = time.monotonic()


def test_keys_in_redis_are_made_and_dead_within_a_second_of_being_revoked(guarded: str, ring: Keyring) -> None:
    check(httpx.get(f"{guarded}/v1/jobs"), 401)
    secret, key = ring.create("carol", label="laptop")
    with as_owner(guarded, secret) as carol:
        assert carol.get("/v1/jobs").status_code == 200
        assert [found.label for found in ring.list() if found.id == key.id] == ["laptop"]
        assert next(found.used_at for found in ring.list() if found.id == key.id) is not None
        ring.revoke(key.id)
        eventually(lambda: carol.get("/v1/jobs").status_code == 401)
    assert key.id not in {found.id for found in ring.list()}
    with pytest.raises(BadKey, match="no key"):
        ring.revoke(key.id)


def test_scopes(guarded: str, ring: Keyring) -> None:
    allowed = {
        "read": {"/v1/jobs": 200, "/metrics": 403},
        "metrics": {"/v1/jobs": 403, "/metrics": 200},
        "submit": {"/v1/jobs": 403, "/metrics": 403},
    }
    for scope, paths in allowed.items():
        secret, _ = ring.create("dave", [scope])
        with as_owner(guarded, secret) as dave:
            for path, status in paths.items():
                assert dave.get(path).status_code == status, (scope, path)
            assert dave.post("/v1/jobs", json=LAP).status_code == (202 if scope == "submit" else 403)


def test_keys_rotate_and_expire(guarded: str, ring: Keyring) -> None:
    old, key = ring.create("erin", lifetime_s=3600)
    new, made = ring.rotate(key.id, grace_s=600)
    assert made.expires_at is not None
    assert made.owner == "erin"
    with as_owner(guarded, old) as before, as_owner(guarded, new) as after:
        assert before.get("/v1/jobs").status_code == after.get("/v1/jobs").status_code == 200
        grace_ms = ring._redis.pttl(f"allot:key:{digest_of(old)}")
        assert 500_000 < grace_ms <= 600_000
        ring._redis.pexpire(f"allot:key:{digest_of(old)}", 1)  # as if these ten minutes were over
        eventually(lambda: before.get("/v1/jobs").status_code == 401)
        assert after.get("/v1/jobs").status_code == 200
    ring.rotate(made.id)
    with as_owner(guarded, new) as after:
        eventually(lambda: after.get("/v1/jobs").status_code == 401)
    assert "erin" in {found.owner for found in ring.list()}


def test_a_key_whose_record_is_junk_opens_nothing(guarded: str, ring: Keyring) -> None:
    secret, key = ring.create("frank")
    ring._redis.hset(f"allot:key:{digest_of(secret)}", "created_at", "yesterday")
    check(httpx.get(f"{guarded}/v1/jobs", headers={"Authorization": f"Bearer {secret}"}), 401)
    assert key.id not in {found.id for found in ring.list()}


def test_the_command(service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOT_REDIS_URL", service.settings.redis_url)
    assert main(["key", "create", "grace", "--days", "1", "--scopes", "read,metrics", "--label", "night"]) == 0
    made = capsys.readouterr().out
    key_id = made.split("id ")[1].split(",")[0]
    assert "allot_" in made
    assert main(["key", "list"]) == 0
    listed = capsys.readouterr().out
    assert key_id in listed
    assert "metrics,read" in listed
    assert "allot_" not in listed
    assert main(["key", "rotate", key_id]) == 0
    assert main(["key", "revoke", key_id]) == 2
    assert main(["key", "create", "no/owner"]) == 2
    assert main(["key", "create", "hal", "--scopes", "everything"]) == 2
    assert main(["key", "entry", "ivy"]) == main(["key", "ivy"]) == 0
    monkeypatch.delenv("ALLOT_REDIS_URL")
    assert main(["key", "list", "--data-dir", str(service.settings.data_dir)]) == 0
    assert main(["key", "list", "--data-dir", str(service.settings.data_dir / "nowhere")]) == 2
