"""Signals that come at any moment end a process that waits for them."""

import os
import signal
import subprocess
import sys

import pytest

from workers.runtime.signals import Flag, signals

INTERRUPTED = """
import signal, sys
from {module} import {flag}

def wait(number):
    '''With a signal before step `number` of the wait; whether there was such a step.'''
    flag, left = {flag}(), number
    signal.signal(signal.SIGTERM, lambda *_: flag.is_set() or flag.set())
    def step(frame, event, argument):
        nonlocal left
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if left == 0:
            signal.raise_signal(signal.SIGTERM)
        return step
    sys.settrace(step)
    flag.wait(0.01)
    sys.settrace(None)
    assert flag.is_set() == flag.wait(0.01) == (left <= 0)
    return left <= 0

number = 1
while wait(number):
    number += 1
print(number)
"""


def interrupted(module: str, flag: str) -> str:
    """How many steps a wait has, each of which was interrupted. Raises TimeoutExpired where one never ended."""
    command = [sys.executable, "-c", INTERRUPTED.format(module=module, flag=flag)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_wait_ends_whenever_the_signal_comes() -> None:
    assert int(interrupted("workers.runtime.signals", "Flag")) > 5


def test_an_event_that_a_handler_sets_can_wait_for_ever() -> None:
    """The test above would find it."""
    command = [sys.executable, "-c", INTERRUPTED.format(module="threading", flag="Event")]
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, timeout=5)


def test_the_first_signal_asks_and_the_next_hurries() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with signals(signal.SIGHUP) as (asked, in_a_hurry):
        os.kill(os.getpid(), signal.SIGHUP)
        assert not asked.wait(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked.wait()
        assert not in_a_hurry.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        assert in_a_hurry.wait(5)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_flag_gives_its_descriptor_back() -> None:
    there = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        Flag().set()
    assert len(os.listdir("/proc/self/fd")) <= there
