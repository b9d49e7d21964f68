"""What an upload costs its threads: python -m benchmarks.arrivals [--mib 8] [--repeats 25] [--threads 8].

A process sends an .npy file through a socket of this machine, again and again. This one receives it into a slab of an
arena, as the service does, and its threads look at it and hash it meanwhile; HTTP and multipart are left out. A
row has the median milliseconds until the last byte was there, until all was looked at and hashed, the processor
time of this process, and how many tasks an upload is to its threads. The first one, whose memory is new, stands by
itself.
"""

import argparse
import io
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from app.http.fetching import AT_ONCE, EACH, LAST
from app.http.server import SWITCH_S
from benchmarks.rows import Rows
from workers.store import pool
from workers.store.arena import MARK, Arena
from workers.store.expected import Expected
from workers.store.upload import Writer

STALL_S = 5.0


def send(port: int, mib: int) -> None:
    """The other end: a file for each byte that comes."""
    numbers = np.random.default_rng(0).random(mib << 17)
    head = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": numbers.shape}
    np.lib.format.write_array_header_1_0(head, described)
    with socket.create_connection(("127.0.0.1", port)) as line:
        while line.recv(1):
            line.sendall(head.getvalue())
            line.sendall(numbers.view(np.uint8).data)


def receive(line: socket.socket, writer: Writer, size: int) -> list[float]:
    """Milliseconds until the last byte was there, and all was looked at and hashed; and of the processor."""
    line.sendall(b"x")
    start, processor = time.perf_counter(), time.process_time()
    first = line.recv(128)
    writer.write(first)
    count, woken = len(first), 0
    while count < size:
        room = writer.place()
        assert room is not None
        room, got = room[: min(EACH if size - count <= LAST else size, size - count)], 0
        while got < len(room):
            if (wanted := min(AT_ONCE, len(room) - got)) != woken:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
                woken = wanted
            got += line.recv_into(room[got:])
        writer.came(got)
        count += got
    ends = [time.perf_counter()]
    for step in (writer.look, lambda: writer.digest):
        step()
        ends.append(time.perf_counter())
    assert writer.sight is not None
    return [*(1e3 * (end - start) for end in ends), 1e3 * (time.process_time() - processor)]


def counted(executor: ThreadPoolExecutor, tasks: list[str]) -> None:
    """Have `tasks` grow with each task of an executor."""
    submit = executor.submit

    def told(work: Any, *given: Any) -> Any:
        tasks.append(work.__name__)
        return submit(work, *given)

    executor.submit = told  # type: ignore[method-assign, assignment]


def tick() -> None:
    """Something of an event loop's work, which wants the interpreter now and then."""
    while True:
        time.sleep(0.001)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--threads", type=int, default=pool.THREADS)
    parser.add_argument("--send", type=int, default=0, help="the port of the other end")
    arguments = parser.parse_args()
    if arguments.send:
        send(arguments.send, arguments.mib)
        return
    pool._Pool.size = arguments.threads
    sys.setswitchinterval(SWITCH_S)
    threading.Thread(target=tick, daemon=True).start()
    tasks: list[str] = []
    counted(pool.pool().threads, tasks)
    root, size = Path(tempfile.mkdtemp(dir="/dev/shm", prefix=MARK)), (arguments.mib << 20) + 128
    arena = Arena(root, 4 * size)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        told = ["--mib", str(arguments.mib), "--send", str(listener.getsockname()[1])]
        other = subprocess.Popen([sys.executable, "-m", "benchmarks.arrivals", *told])
        line, _ = listener.accept()
    line.settimeout(STALL_S)
    taken = []
    try:
        for _ in range(arguments.repeats + 1):
            expected = Expected(size, False, arena)
            with Writer(None, 2 * size, root, sums=True, look=True, size=expected) as writer:  # type: ignore[arg-type]
                taken.append(receive(line, writer, size))
    finally:
        line.close()
        other.kill()
        other.wait()
        shutil.rmtree(root)
    names = ("received_ms", "looked_ms", "hashed_ms", "processor_ms")
    median = {name: statistics.median(one) for name, one in zip(names, zip(*taken[1:], strict=True), strict=True)}
    each = len(tasks) / len(taken)
    Rows("arrivals").add(mib=arguments.mib, threads=arguments.threads, **median, first_ms=taken[0][2], tasks=each)


if __name__ == "__main__":
    main()
