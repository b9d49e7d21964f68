"""What the machine's loopback does with so many bytes and no service: the least that receiving can take."""

import os
import socket
import time

SLICE = 1 << 20


def bare_ms(size: int) -> float:
    """Milliseconds to send `size` bytes to another process, which reads them into memory that it touched before."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = os.fork()
        if receiver == 0:
            _receive(listener, size)
        try:
            data = memoryview(bytes(SLICE))
            with socket.create_connection(listener.getsockname()) as line:
                line.recv(1)  # its memory is touched
                started = time.perf_counter()
                left = size
                while left:
                    left -= line.send(data[:left])
                line.recv(1)
                return 1e3 * (time.perf_counter() - started)
        finally:
            os.waitpid(receiver, 0)


def _receive(listener: socket.socket, size: int) -> None:
    """In a process of its own, which ends here."""
    try:
        line, _ = listener.accept()
        held = memoryview(bytearray(b"\1") * size)
        line.sendall(b".")
        while held:
            held = held[line.recv_into(held) :]
        line.sendall(b".")
    finally:
        os._exit(0)
