"""Threads that work together: each call's work is done once nobody is at it, whatever goes wrong in whom."""

import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernels.crew import Crew


def of(todo: list[int], done: list[int], seen: set[int]) -> Callable[[], None]:
    def some() -> None:
        seen.add(threading.get_ident())
        while todo:
            try:
                piece = todo.pop()
            except IndexError:
                return
            time.sleep(0.0005)
            done.append(piece)

    return some


@pytest.mark.parametrize("others", [0, 1, 3, 9])
def test_all_is_done_once_by_no_more_threads_than_there_may_be(others: int) -> None:
    crew, seen = Crew("test", 3), set[int]()
    for _ in range(10):
        done: list[int] = []
        crew.together(of(list(range(40)), done, seen), others)
        assert sorted(done) == list(range(40))
    assert len(seen) <= 1 + min(others, 3)
    assert (len(seen) > 1) == (others > 0)


def test_who_has_not_begun_is_not_waited_for_and_does_not_begin() -> None:
    crew = Crew("test", 2)
    begun: list[int] = []
    for _ in range(300):
        calls: list[int] = []
        crew.together(lambda calls=calls: calls.append(1), 2)  # type: ignore[misc]
        begun.append(len(calls))
        time.sleep(0.0001)
        assert len(calls) == begun[-1]
    assert all(1 <= count <= 3 for count in begun)


def test_what_goes_wrong_is_raised_and_the_threads_are_still_there() -> None:
    crew, here = Crew("test", 3), threading.get_ident()

    def elsewhere() -> None:
        if threading.get_ident() != here:
            raise KeyError("elsewhere")
        time.sleep(0.05)

    def everywhere() -> None:
        time.sleep(0.01)
        raise KeyError("here" if threading.get_ident() == here else "elsewhere")

    for _ in range(3):
        with pytest.raises(KeyError, match="elsewhere"):
            crew.together(elsewhere, 3)
        with pytest.raises(KeyError, match="here"):
            crew.together(everywhere, 3)
    done: list[int] = []
    crew.together(of(list(range(9)), done, set()), 3)
    assert sorted(done) == list(range(9))


def test_several_ask_at_once_and_one_from_within() -> None:
    crew = Crew("test", 2)

    def one(_: int) -> list[int]:
        done: list[int] = []
        inner: list[int] = []
        crew.together(of(list(range(20)), done, set()), 2)
        crew.together(lambda: crew.together(of([1], inner, set()), 1), 1)
        assert inner
        return sorted(done)

    with ThreadPoolExecutor(6) as pool:
        assert all(found == list(range(20)) for found in pool.map(one, range(60)))


def test_it_holds_nothing_of_what_it_was_given() -> None:
    crew = Crew("test", 2)

    class Large:
        def __call__(self) -> None:
            time.sleep(0.002)

    large = Large()
    crew.together(large, 2)
    gone = weakref.ref(large)
    del large
    until = time.monotonic() + 10
    while gone() is not None:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_without_threads_it_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    done: list[int] = []
    Crew("test", 2).together(of(list(range(5)), done, set()), 2)
    assert sorted(done) == list(range(5))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    crew, seen = Crew("test", 2), set[int]()
    crew.together(of(list(range(20)), [], seen), 2)
    child = os.fork()
    if child == 0:
        done: list[int] = []
        crew.together(of(list(range(20)), done, set()), 2)
        os._exit(0 if sorted(done) == list(range(20)) else 1)
    assert os.waitpid(child, 0)[1] == 0
