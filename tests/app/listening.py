"""A server as `allot serve` runs it, in a thread of the test."""

import socket
import threading

from fastapi import FastAPI

from app.http.balance import Place
from app.http.config import HttpSettings
from app.http.server import Server


class Listening:
    """It answers on a free port until `stop`; with a place, as one process of several does."""

    def __init__(self, app: FastAPI, http: HttpSettings, place: Place | None = None) -> None:
        self.app, self.server = app, Server(app, http, place)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(10)
        self.listener.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)
