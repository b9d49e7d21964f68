"""A Redis of three under Sentinel, with real servers, for tests that kill some of them."""

import socket
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import redis


class Cluster:
    """A primary, two replicas and three sentinels."""

    def __init__(self, folder: Path, program: str) -> None:
        self.ports = [free_port() for _ in range(6)]
        self._commands: list[list[str]] = []
        self._folder = folder
        for k, port in enumerate(self.ports):
            (folder / str(k)).mkdir()
            common = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder / str(k))]
            data = ["--appendonly", "yes", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"]
            follow = ["--replicaof", "127.0.0.1", str(self.ports[0])] if k else []
            command = [program, *common, *data, *follow]
            if k >= 3:
                config = folder / str(k) / "sentinel.conf"
                config.write_text(
                    f"port {port}\nbind 127.0.0.1\ndir {folder / str(k)}\n"
                    f"sentinel monitor allot 127.0.0.1 {self.ports[0]} 2\n"
                    "sentinel down-after-milliseconds allot 1000\nsentinel failover-timeout allot 5000\n"
                )
                command = [program, str(config), "--sentinel"]
            self._commands.append(command)
        self.servers = [self._started(k) for k in range(6)]
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports[3:])
        self.url = f"sentinel://{hosts}/allot?min_replicas=1"

    def in_step(self) -> bool:
        """Both replicas follow, and every sentinel knows of them and of the others."""
        try:
            primary = redis.Redis(port=self.ports[0]).info("replication")
            watched: list[Any] = [redis.Redis(port=port).sentinel_masters() for port in self.ports[3:]]
        except redis.RedisError:
            return False
        told = [masters["allot"] for masters in watched]
        known = all(one["num-slaves"] == 2 and one["num-other-sentinels"] == 2 for one in told)
        return known and sum(primary.get(f"slave{k}", {}).get("state") == "online" for k in range(2)) == 2

    def primary(self) -> int:
        """Which of the servers most sentinels take for the primary."""
        told: list[Any] = [redis.Redis(port=port).sentinel_get_master_addr_by_name("allot") for port in self.ports[3:]]
        chosen = Counter(int(address[1]) for address in told if address).most_common(1)[0][0]
        return self.ports.index(chosen)

    def kill(self, k: int) -> None:
        """The server is gone at once."""
        self.servers[k].kill()
        self.servers[k].wait()

    def start(self, k: int) -> None:
        """Start a server that was killed, on its file; one that was the primary is told by the sentinels what it is."""
        self.servers[k] = self._started(k)

    def stop(self) -> None:
        for k in range(len(self.servers)):
            self.kill(k)

    def _started(self, k: int) -> subprocess.Popen[bytes]:
        with (self._folder / str(k) / "log").open("ab") as log:
            return subprocess.Popen(self._commands[k], stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
