"""One call of each kind, to be shown in several languages: what is sent, and how the Python client says it.

`recorded.json` holds what a service answered; tests/docs sends every call again and holds the answers to it.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from docs.builder.contents import ROOT

RECORDED = ROOT / "docs/builder/recorded.json"
BASE = "http://127.0.0.1:8000"
COST = [[4, 1, 3], [2, 0, 5], [3, 2, 2]]
LAP = {"solver": "lap", "inputs": {"cost": COST}}
JOB = "{job_id}"
DIGEST = "{digest}"
SHARE, SECRET = "{share_id}", "{secret}"
MADE = "client = Client()\n"


@dataclass(frozen=True)
class Shown:
    """A call as it is shown. `python` is the same by the client, empty where the client has no word for it."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    python: str = ""
    binary: str = ""
    """A file that is sent as it is, instead of JSON."""


def by_job(verb: str) -> str:
    """What the client says about a job that was placed before."""
    return f'{MADE}print(client.job("{JOB}").{verb})'


CALLS: dict[str, Shown] = {
    "jobs_post": Shown("POST", "/v1/jobs", LAP, {"Prefer": "wait=5"},
                       f"{MADE}answer = client.lap({COST})\nprint(answer.assignment, answer.certificate.proved)"),
    "jobs_page": Shown("GET", "/v1/jobs?state=succeeded&limit=1",
                       python=f'{MADE}for job in client.jobs(state="succeeded"):\n    print(job["id"], job["solver"])'),
    "jobs_get": Shown("GET", f"/v1/jobs/{JOB}?wait=20", python=by_job("wait(timeout_s=20)")),
    "jobs_result": Shown("GET", f"/v1/jobs/{JOB}/result", python=by_job("result()")),
    "jobs_events": Shown("GET", f"/v1/jobs/{JOB}/events", headers={"Accept": "text/event-stream"},
                         python=f'{MADE}for event in client.job("{JOB}").events():\n    print(event.kind, event.data)'),
    "jobs_cancel": Shown("POST", f"/v1/jobs/{JOB}/cancel", python=by_job("cancel()")),
    "jobs_delete": Shown("DELETE", f"/v1/jobs/{JOB}", python=f'{MADE}client.job("{JOB}").delete()'),
    "workbench_put_note": Shown("PUT", f"/v1/jobs/{JOB}/note", {"title": "Monday", "rows": ["Ann", "Ben", "Cy"]}),
    "workbench_get_note": Shown("GET", f"/v1/jobs/{JOB}/note"),
    "workbench_share": Shown("POST", f"/v1/jobs/{JOB}/shares", {"expires_in_s": 86400, "inputs": False}),
    "workbench_share_list": Shown("GET", f"/v1/jobs/{JOB}/shares"),
    "workbench_unshare": Shown("DELETE", f"/v1/jobs/{JOB}/shares/{SHARE}"),
    "workbench_shared": Shown("GET", "/v1/shared", headers={"Allot-Share": SECRET}),
    "blobs_post": Shown("POST", "/v1/blobs?filename=costs.npy", binary="examples/costs.npy",
                        python=f'{MADE}cost = client.upload(np.load("examples/costs.npy"))\n'
                               "print(client.lap(cost).objective)"),
    "blobs_head": Shown("HEAD", f"/v1/blobs/{DIGEST}"),
    "blobs_get": Shown("GET", f"/v1/blobs/{DIGEST}"),
    "blobs_delete": Shown("DELETE", f"/v1/blobs/{DIGEST}"),
    "uploads_put": Shown("PUT", "/v1/uploads/costs-of-monday", headers={"Content-Range": "bytes 0-12927/25856"},
                         binary="examples/costs.npy"),
    "uploads_get": Shown("GET", "/v1/uploads/costs-of-monday"),
    "uploads_delete": Shown("DELETE", "/v1/uploads/costs-of-monday"),
    "service_solvers": Shown("GET", "/v1/solvers", python=f"{MADE}print(client.solvers())"),
    "service_devices": Shown("GET", "/v1/devices", python=f"{MADE}print(client.devices())"),
    "service_estimate": Shown("POST", "/v1/estimates", LAP),
    "service_livez": Shown("GET", "/livez"),
    "service_readyz": Shown("GET", "/readyz"),
    "service_metrics": Shown("GET", "/metrics"),
    "workbench_post": Shown("POST", "/v1/previews?filename=costs.csv", binary="examples/costs.csv"),
    "workbench_sample": Shown("GET", "/v1/samples/taxis"),
    "workbench_picture": Shown("GET", f"/v1/jobs/{JOB}/picture?array=plan&most=2"),
}  # fmt: skip


def curl(call: Shown) -> str:
    """The call in a shell."""
    parts = [f"curl '{BASE}{call.path}'"]
    if call.method == "HEAD":
        parts.append("--head")
    elif call.method not in ("GET", "POST") or (call.method == "POST" and call.body is None and not call.binary):
        parts.append(f"-X {call.method}")
    parts += [f"-H '{name}: {value}'" for name, value in call.headers.items()]
    if call.binary:
        parts.append(f"--data-binary @{call.binary}")
    elif call.body is not None:
        parts += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(call.body)}'"]
    return " \\\n  ".join(parts)


def client(call: Shown) -> str:
    """The call with allot-client; empty where it has no word for it."""
    if not call.python:
        return ""
    needs = "import numpy as np\n" if "np." in call.python else ""
    return f"{needs}from allot_client import Client\n\n{call.python}"


def httpx(call: Shown) -> str:
    """The call with a plain HTTP library of Python."""
    given = [f'"{call.method}"', f'"{BASE}{call.path}"']
    if call.headers:
        given.append(f"headers={json.dumps(call.headers)}")
    if call.binary:
        given.append(f'content=open("{call.binary}", "rb").read()')
    elif call.body is not None:
        given.append(f"json={json.dumps(call.body)}")
    shown = "print(answer.status_code, answer.text)"
    return "import httpx\n\nanswer = httpx.request(\n    " + ",\n    ".join(given) + ",\n)\n" + shown


def javascript(call: Shown) -> str:
    """The call in a browser or in Node."""
    given = [] if call.method == "GET" else [f'method: "{call.method}"']
    headers = dict(call.headers) | ({"Content-Type": "application/json"} if call.body is not None else {})
    if headers:
        given.append(f"headers: {json.dumps(headers)}")
    if call.binary:
        given.append("body: file")
    elif call.body is not None:
        given.append(f"body: JSON.stringify({json.dumps(call.body)})")
    options = ", {\n  " + ",\n  ".join(given) + ",\n}" if given else ""
    return (
        f'const answer = await fetch("{BASE}{call.path}"{options});\nconsole.log(answer.status, await answer.text());'
    )


LANGUAGES = {
    "curl": ("sh", curl),
    "Python client": ("python", client),
    "Python httpx": ("python", httpx),
    "JavaScript": ("js", javascript),
}
