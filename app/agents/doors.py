"""What the tools ask of a service, over HTTP and no other way. Answers are made short enough for an agent to read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
from allot_client.words import told_in_words

MOST_NUMBERS = 40_000
"""In the inputs of one call; larger arrays are uploaded first, and named by their reference."""
MOST_SHOWN = 2000
"""Numbers of one array of an answer."""
MOST_FILE = 256 << 20
LONGEST_WAIT_S = 55.0
Headers = Callable[[], Mapping[str, str]]


class Refused(Exception):
    """The service's own words, or what stands between us and it."""


class Doors:
    """Every question that a tool may ask.

    Args:
        http: a client of the service.
        files: `{"path": ...}` among the inputs names an .npy file below this folder; None takes no paths.
        headers: what goes along with each request, such as the key of who asks.
    """

    def __init__(self, http: httpx.AsyncClient, files: Path | None = None, headers: Headers = dict) -> None:
        self._http, self._files, self._headers = http, files, headers

    async def ask(self, method: str, path: str, **given: Any) -> Any:
        """The JSON of an answer. Raises Refused."""
        headers = {**self._headers(), **given.pop("headers", {})}
        try:
            answer = await self._http.request(method, path, headers=headers, timeout=LONGEST_WAIT_S + 10, **given)
        except httpx.HTTPError as wrong:
            where = str(self._http.base_url).rstrip("/")
            raise Refused(f"The service at {where} does not answer ({type(wrong).__name__}).") from None
        if answer.status_code >= 400:
            raise Refused(_words(answer))
        return answer.json() if answer.content else {}

    async def job(self, solver: str, inputs: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """The body of a job; files are uploaded, and what is too long to be sent as a list is refused."""
        if sum(map(_numbers, inputs.values())) > MOST_NUMBERS:
            raise Refused(
                f"The inputs hold more than {MOST_NUMBERS} numbers. Upload each array with POST /v1/blobs and give the "
                'reference that it answers with, as {"blob": "sha256:..."}.'
            )
        given = {name: await self._input(value) for name, value in inputs.items()}
        return {"solver": solver, "inputs": given, **{name: value for name, value in more.items() if value is not None}}

    async def _input(self, value: Any) -> Any:
        if not (isinstance(value, dict) and "path" in value):
            return value
        content = self._read(str(value["path"]))
        return await self.ask("POST", "/v1/blobs", params={"filename": "array.npy"}, content=content)

    def _read(self, name: str) -> bytes:
        if self._files is None:
            raise Refused("Paths are not taken here; start `allot mcp --files FOLDER`, or upload the array.")
        root = self._files.resolve()
        path = (root / name).resolve()  # follows links, so that none leads out
        if not path.is_relative_to(root) or path.suffix != ".npy" or not path.is_file():
            raise Refused(f"{name[:200]!r} is no .npy file below the folder that was given to --files.")
        if path.stat().st_size > MOST_FILE:
            raise Refused(f"{name[:200]!r} is larger than {MOST_FILE >> 20} MiB.")
        return path.read_bytes()


def _numbers(value: Any) -> int:
    """How many numbers a nested list holds, wherever it lies."""
    if isinstance(value, list):
        return sum(map(_numbers, value))
    return sum(map(_numbers, value.values())) if isinstance(value, dict) else 1


def _words(answer: httpx.Response) -> str:
    try:
        told = answer.json()
        faults = "; ".join(f"{one['field']}: {one['message']}" for one in told.get("errors", []))
        return f"{told.get('detail', answer.reason_phrase)} {faults}".strip()
    except (ValueError, KeyError, AttributeError):
        return f"The service answered {answer.status_code}."


def short(value: Any, source: str) -> Any:
    """The same document, with each array that is longer than `MOST_SHOWN` cut and its address named."""
    if isinstance(value, dict):
        return {name: short(one, source) for name, one in value.items()}
    if not isinstance(value, list) or _numbers(value) <= MOST_SHOWN:
        return value
    rows = len(value[0]) if isinstance(value[0], list) and value[0] else 1
    return {"first": value[: max(1, MOST_SHOWN // rows)][:MOST_SHOWN], "of": len(value), "all_of_it": source}


def explained(result: Mapping[str, Any]) -> str:
    """What an answer's certificate says, a line each, with the client's words for the gap."""
    certificate, objective = result["certificate"], result["objective"]
    lines = [f"{result['solver']} ended as {result['termination']}.", f"Proved: {certificate['proved']}."]
    bound = certificate["bound"]
    if objective is not None and bound is not None:
        lines.append(f"Objective {objective:.10g}, bound {bound:.10g}.")
        lines.append(f"So it is {told_in_words(result, certificate)}.")
    else:
        lines.append("There is no bound, so nothing says how good this is.")
    lines.append(
        "The certificate was recomputed by code that shares nothing with the solver, and it "
        + ("holds." if certificate["holds"] else "DOES NOT HOLD.")
    )
    lines += [f"{name}: {value}" for name, value in certificate.get("facts", {}).items() if not isinstance(value, list)]
    return "\n".join(lines)
