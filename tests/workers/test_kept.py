"""The connection that a client holds on to for scripts: what breaks it costs no answer."""

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.workers.service import eventually
from tests.workers.test_connection import GROW, client, server  # noqa: F401
from workers.jobs.scripts import Script
from workers.runtime.connection import NoRoom, connect

COUNT = "return redis.call('INCR', 'n')"
WRONG = "return redis.call('INCR', 'a string')"


def run(client: Any, text: str, *arguments: Any) -> Any:  # noqa: F811
    script = Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
    return client.run(script.digest, script.text, arguments)


def answered(client: Any, word: str) -> str:  # noqa: F811
    """The word, or "nothing" where the answer did not come in time."""
    try:
        told = str(run(client, "return ARGV[1]", word))
    except redis.TimeoutError:
        return "nothing"
    assert told == word
    return told


def kept(client: Any) -> Any:  # noqa: F811
    return client._scripts._connection


def test_scripts_share_one_connection_that_is_held(client: Any) -> None:  # noqa: F811
    assert run(client, COUNT) == 1  # not known to Redis yet
    held = kept(client)
    assert held is not None
    assert [run(client, COUNT) for _ in range(3)] == [2, 3, 4]
    assert kept(client) is held


def test_a_connection_that_was_cut_costs_no_answer(client: Any) -> None:  # noqa: F811
    run(client, COUNT)
    client.client_kill_filter(_type="normal", skipme=True)
    assert run(client, COUNT) == 2
    assert run(client, COUNT) == 3


def test_what_redis_refuses_is_told_as_ever_and_leaves_the_connection_in_order(client: Any) -> None:  # noqa: F811
    run(client, COUNT)
    client.set("a string", "x")
    held = kept(client)
    for _ in range(2):
        with pytest.raises(redis.ResponseError, match="not an integer"):
            run(client, WRONG)
    assert run(client, COUNT) == 2
    assert kept(client) is held
    client.config_set("maxmemory", 1)
    with pytest.raises(NoRoom):
        run(client, GROW, "a", "b")


def test_an_answer_that_came_too_late_is_nobody_elses(server: Any, tmp_path: Path) -> None:  # noqa: F811
    url = (tmp_path / "redis" / "url").read_text()
    hasty, other = connect(url, limit_s=0.2), connect(url)
    assert run(hasty, COUNT) == 1
    threading.Thread(target=lambda: other.execute_command("DEBUG", "SLEEP", 0.6)).start()
    eventually(lambda: answered(hasty, "late") == "nothing")
    eventually(lambda: answered(hasty, "mine") == "mine")
    hasty.close()
    other.close()


def test_two_threads_do_not_read_each_others_answers(client: Any) -> None:  # noqa: F811
    wrong = []

    def ask(name: str) -> None:
        for k in range(300):
            told = run(client, "return ARGV[1]", f"{name}{k}")
            if told != f"{name}{k}":
                wrong.append((told, f"{name}{k}"))

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_done_meanwhile_is_done_before_the_answer_is_read(client: Any) -> None:  # noqa: F811
    script, seen = Script(COUNT, hashlib.sha1(COUNT.encode(), usedforsecurity=False).hexdigest()), list[int]()
    run(client, COUNT)
    client._scripts._lock.acquire()  # in use: the ordinary client sends it
    try:
        assert client.run(script.digest, script.text, (), lambda: seen.append(0)) == 2
    finally:
        client._scripts._lock.release()
    assert not seen

    def wait_for_it() -> None:
        eventually(lambda: int(client.get("n")) == 3)  # Redis has done it already
        seen.append(3)

    assert client.run(script.digest, script.text, (), wait_for_it) == 3
    assert seen == [3]


def test_what_fails_meanwhile_leaves_the_connection_in_order(client: Any) -> None:  # noqa: F811
    def full() -> None:
        raise OSError(28, "No space left on device")

    script = Script(COUNT, hashlib.sha1(COUNT.encode(), usedforsecurity=False).hexdigest())
    run(client, COUNT)
    with pytest.raises(OSError, match="No space"):
        client.run(script.digest, script.text, (), full)
    assert [answered(client, word) for word in "ab"] == ["a", "b"]
    assert run(client, COUNT) == 3
