"""Requests of one owner who means harm: bodies of every kind below 1 MiB, and floods of small ones.

Each is a verb, a path, headers and a body, made from a seed. `Targets` holds what earlier answers gave, so that later
requests go for jobs, blobs and links that are there.
"""

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.attack.seeds import CORPUS, header, tensors

MIB = 1 << 20
JSON, FORM = "application/json", "multipart/form-data; boundary=b"
KINDS = (
    JSON,
    FORM,
    "application/octet-stream",
    "text/csv",
    "image/png",
    "multipart/form-data",
    "application/x-npy",
    "",
)
VALUES = (
    "null",
    "-1",
    "1e999",
    "NaN",
    "[]",
    "{}",
    '"x"',
    "[[1,2],[3]]",
    "[[null]]",
    "true",
    '{"blob":"sha256:0"}',
    '{"part":"cost"}',
    '{"file":"/etc/passwd"}',
    '{"url":"s3://a/b"}',
    '"\\ud800"',
    "9" * 400,
    "[" * 900 + "]" * 900,
    '{"csr":{"indptr":[0,9],"indices":[0],"values":[1],"shape":[1,1000000000000]}}',
    '{"data":[[1,2],[3,4]]}',
)
FIELDS = ("solver", "inputs", "options", "device", "time_limit_s", "priority", "label", "x", "__proto__", "files")
COSTLY: tuple[bytes, ...] = (
    gzip.compress(b"1414\n" + b"0 " * (2 * 1414**2 - 1), 9),
    gzip.compress(header("(8000, 8000)", "|u1") + bytes(8000 * 8000), 9),
    gzip.compress(header("(90, 1000000)") + bytes(8 * 90 * 100_000), 9),
    gzip.compress(gzip.compress(bytes(MIB))),
    b"%%MatrixMarket matrix coordinate real general\n" + b"%\n" * 400_000 + b"x",
    b"%%MatrixMarket matrix coordinate real general\n100000000 100000000 1\n1 1 1\n",
    tensors({str(k): {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]} for k in range(12_000)}),
    b"1\n" * 180_000 + b"1," * 180_000,
    b"a,b\n" + b"n,1\n" * 190_000,
)
TEXTS: tuple[bytes, ...] = (
    b'{"solver":"lap","inputs":{"cost":[' + b"[1]," * 250_000 + b"[1]]}}",
    b'{"solver":"lap","inputs":{"cost":[[' + b"1," * 500_000 + b"1]]}}",
    b'{"solver":"lap","inputs":{"cost":[' + b'"",' * 300_000 + b"1]}}",
    b"[" * (MIB - 1),
    b'{"solver":"lap",' + b",".join(b'"u%d":1' % k for k in range(90_000)) + b"}",
    b'{"solver":"lap","inputs":{' + b",".join(b'"u%d":[[1]]' % k for k in range(60_000)) + b"}}",
    b'{"solver":"' + b"x" * 900_000 + b'"}',
)
SMALL = b'{"solver":"lap","inputs":{"cost":[[4,1,3],[2,0,5],[3,2,2]]}}'


@dataclass(frozen=True)
class Shot:
    """One request. `host` and the key are added by whoever sends it."""

    verb: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Targets:
    """Ids that answers gave, the newest last, and not many."""

    jobs: list[str] = field(default_factory=lambda: ["0" * 32])
    blobs: list[str] = field(default_factory=lambda: ["sha256:" + "0" * 64])

    def seen(self, answer: bytes) -> None:
        """Remember what an answer names."""
        for names, begin, length in ((self.jobs, b'"id":"', 32), (self.blobs, b'"sha256:', 71)):
            at = answer.find(begin)
            if at >= 0:
                start = at + (len(begin) if names is self.jobs else 1)
                name = answer[start : start + length].decode("latin-1")
                if len(name) == length and name.replace(":", "").isalnum():
                    names.append(name)
                    del names[:-200]


class Hostile:
    """Makes one shot after another."""

    def __init__(self, seed: int) -> None:
        self.rng, self.targets = random.Random(seed), Targets()
        self._files = [path.read_bytes() for path in sorted(CORPUS.iterdir()) if path.stat().st_size < MIB]
        self._makers: list[tuple[Callable[[], Shot], int]] = [
            (self._document, 100),
            (self._file, 100),
            (self._form, 60),
            (self._costly, 1),
            (self._text, 1),
            (self._look, 120),
            (self._change, 40),
            (self._odd, 60),
            (self._range, 30),
            (self._beside, 40),
            (self._flood, 80),
        ]

    def shot(self) -> Shot:
        """The next request."""
        makers, weights = zip(*self._makers, strict=True)
        made: Shot = self.rng.choices(makers, weights)[0]()
        return made

    def _pick(self, *some: str) -> str:
        return self.rng.choice(some)

    def _damaged(self) -> bytes:
        data = bytearray(self.rng.choice(self._files))
        for _ in range(self.rng.randrange(4)):
            at = self.rng.randrange(len(data) + 1)
            data[at : at + self.rng.randrange(9)] = self.rng.randbytes(self.rng.randrange(9))
        return bytes(data)

    def _document(self) -> Shot:
        """JSON that is nearly a job."""
        chosen = {name: self.rng.choice(VALUES) for name in self.rng.sample(FIELDS, self.rng.randrange(4))}
        made = {"solver": f'"{self._pick("lap", "auction", "uot", "qap")}"', **chosen}
        given = ("cost", "a", "b", "x", "y", "flow", "distance", "benefit", "sln", "qaplib")
        inputs = {name: self.rng.choice(VALUES) for name in self.rng.sample(given, self.rng.randrange(1, 4))}
        made.setdefault("inputs", "{" + ",".join(f'"{name}":{text}' for name, text in inputs.items()) + "}")
        body = "{" + ",".join(f'"{name}":{text}' for name, text in made.items()) + "}"
        return Shot("POST", self._pick("/v1/jobs", "/v1/estimates"), body.encode(), (("Content-Type", JSON),))

    def _file(self) -> Shot:
        """A file of the corpus, damaged, with odd words about its form."""
        about = self._pick(
            "",
            "",
            "?format=npy",
            "?dtype=float64&shape=2,3",
            "?dtype=O&shape=1",
            "?member=%00",
            "?shape=" + "9" * 40,
            "?filename=%F0%9F.npz",
            "?filename=a.sln",
            "?digest=sha256:" + "0" * 64,
            "?format=csr",
        )
        door = self._pick("/v1/blobs", "/v1/blobs", "/v1/previews")
        packed = self._pick("", "", "gzip", "zstd", "br", "x" * 100)
        headers = (("Content-Type", self._pick(*KINDS)), ("Content-Encoding", packed))
        return Shot("POST", door + about, self._damaged(), tuple(one for one in headers if one[1]))

    def _form(self) -> Shot:
        """Multipart with a damaged file, or damaged itself."""
        job = b'{"solver":"%b"}' % self._pick("lap", "uot", "qap", "auction").encode()
        name = self._pick("cost", "qaplib", "flow", "sln", "x", "job", "", "a" * 400).encode()
        body = b'--b\r\nContent-Disposition: form-data; name="job"\r\n\r\n' + job + b"\r\n"
        body += b'--b\r\nContent-Disposition: form-data; name="' + name + b'"; filename="x"\r\n\r\n' + self._damaged()
        body += b"\r\n--b--\r\n"
        if self.rng.random() < 0.3:
            at = self.rng.randrange(len(body))
            body = body[:at] + self.rng.randbytes(3) + body[at + 5 :]
        return Shot("POST", self._pick("/v1/jobs", "/v1/estimates"), body, (("Content-Type", FORM),))

    def _costly(self) -> Shot:
        """Few bytes that ask for much."""
        door = self._pick("/v1/blobs", "/v1/previews?filename=t.csv", "/v1/previews?filename=t.npy.gz")
        return Shot("POST", door, self.rng.choice(COSTLY), (("Content-Type", "application/octet-stream"),))

    def _text(self) -> Shot:
        """Up to 1 MiB of JSON that is long to read."""
        where = self._pick("/v1/jobs", "/v1/estimates", f"/v1/jobs/{self._job()}/note", "/mcp")
        verb = "PUT" if where.endswith("note") else "POST"
        return Shot(verb, where, self.rng.choice(TEXTS), (("Content-Type", JSON), ("Accept", "*/*")))

    def _job(self) -> str:
        return self.rng.choice(self.targets.jobs)

    def _look(self) -> Shot:
        """Ask after what is there, and after what is not."""
        job, blob = self._job(), self.rng.choice(self.targets.blobs)
        path = self._pick(
            f"/v1/jobs/{job}",
            f"/v1/jobs/{job}/result",
            f"/v1/jobs/{job}/picture",
            f"/v1/blobs/{blob}",
            f"/v1/jobs/{job}/shares",
            f"/v1/jobs/{job}/note",
            "/v1/jobs?limit=100",
            "/v1/devices",
            "/v1/jobs?state=queued&limit=100",
            "/v1/jobs?cursor=%D9%A3:" + job,
            "/v1/jobs?cursor=1:x",
            f"/v1/jobs/{job}?wait=1e-9",
            f"/v1/jobs/{job}?wait=nan",
            "/v1/samples/x",
            "/v1/shared",
            "/v1/solvers",
            "/v1/uploads/abcdefgh",
            "/metrics",
            "/readyz",
            "/v1/../etc/passwd",
            "/assets/..%2f..%2fpasswd",
            "/docs/%2e%2e/x",
            "/%00",
            "/v1/jobs/%FF",
        )
        some = (
            (
                "Accept",
                self._pick("*/*", "application/x-npz", "application/x-safetensors", "image/png", ";;q=x", "\xff"),
            ),
            ("If-None-Match", self._pick("*", '"1"', "x" * 300)),
            ("Range", self._pick("bytes=0-", "bytes=9-1", "x")),
            ("Last-Event-ID", self._pick("0-0", "x", "9" * 30)),
            ("Allot-Share", self._pick("x", "y" * 99)),
        )
        return Shot("GET", path, headers=tuple(self.rng.sample(some, self.rng.randrange(3))))

    def _change(self) -> Shot:
        """End and forget jobs and blobs, again and again."""
        job, blob = self._job(), self.rng.choice(self.targets.blobs)
        verb, path = self.rng.choice(
            [
                ("POST", f"/v1/jobs/{job}/cancel"),
                ("DELETE", f"/v1/jobs/{job}"),
                ("DELETE", f"/v1/blobs/{blob}"),
                ("DELETE", "/v1/uploads/abcdefgh"),
                ("DELETE", f"/v1/jobs/{job}/shares/x"),
            ]
        )
        return Shot(verb, path)

    def _odd(self) -> Shot:
        """Verbs, targets and headers that nobody means."""
        headers = (
            ("Authorization", self._pick("Bearer x", "Basic eDp5", "Bearer " + "z" * 5000, "Bearer a.b.c")),
            ("Idempotency-Key", self._pick("", "k", "k" * 3000, "\xe9")),
            ("Prefer", self._pick("wait=1e9", "wait=x", "wait=-1")),
            ("Content-Type", self._pick(*KINDS)),
            ("Host", "evil.example"),
            ("Origin", "https://evil.example"),
            ("X-Forwarded-For", "1.2.3.4"),
            ("traceparent", "00-" + "f" * 90),
            ("X-Request-ID", "a\tb"),
            ("Repr-Digest", "sha-256=:x:"),
            ("Content-Digest", ":" * 50),
        )
        verb = self._pick("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE")
        path = self._pick(
            "/v1/jobs", "/v1/blobs", "/", "/v1/estimates", "/v1/shared", "/mcp", "/v1/jobs?" + "a=1&" * 900
        )
        return Shot(verb, path, self._pick("", "{}", "x").encode(), tuple(self.rng.sample(headers, 3)))

    def _range(self) -> Shot:
        """Ranges of an upload, most of which lie."""
        said = self._pick(
            "bytes 0-3/4", "bytes 0-3/999999999999", "bytes 5-2/9", "x", "bytes 0-3/1000000", "bytes 4-7/8"
        )
        name = self._pick(*(f"upload-{k:02}" for k in range(80)), "a", "..%2f..%2fx1234")
        return Shot("PUT", f"/v1/uploads/{name}", self._pick("abcd", "abc", "").encode(), (("Content-Range", said),))

    def _beside(self) -> Shot:
        """Notes and links."""
        job = self._job()
        if self.rng.random() < 0.5:
            body = self._pick("{}", '{"expires_in_s":1e999}', '{"expires_in_s":60,"inputs":true}', "[]", '{"x":1}')
            return Shot("POST", f"/v1/jobs/{job}/shares", body.encode(), (("Content-Type", JSON),))
        body = self._pick("{}", '{"a":"\\ud800"}', "[1]", "{", '{"a":' + "[" * 300 + "]" * 300 + "}")
        return Shot("PUT", f"/v1/jobs/{job}/note", body.encode(), (("Content-Type", JSON),))

    def _flood(self) -> Shot:
        """Right ones: small jobs, as fast as they go."""
        key = (("Idempotency-Key", f"k{self.rng.randrange(50)}"),) if self.rng.random() < 0.2 else ()
        return Shot("POST", "/v1/jobs", SMALL, (("Content-Type", JSON), *key))
