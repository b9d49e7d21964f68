"""The same cases, asked of a running service: files or JSON in, the result document out, judged alike."""

import functools
import io
import json
import time
from typing import Any

import httpx
import numpy as np

from app.cli.answer_file import arrays_of, claim_of
from kernels import Array, Csr
from kernels.certificates.exact.statement import permitted
from tests.fuzz.case import Case
from tests.fuzz.judge import ALLOWED_S, Verdict, judge_claim

WAIT_S = 30
ROUND_TRIP_S = 0.5


@functools.cache
def client(url: str) -> httpx.Client:
    """One connection for each process."""
    return httpx.Client(base_url=url, timeout=2 * WAIT_S)


def ask(url: str, case: Case, limit_s: float) -> tuple[str, list[Verdict]]:
    """How the service answered, and what is wrong with that."""
    limit = max(1e-3, limit_s if case.time_limit_s is None else case.time_limit_s)
    job: dict[str, Any] = {"solver": case.solver, "options": _plain(case.options), "time_limit_s": limit}
    begun = time.monotonic()
    headers = {"Prefer": f"wait={WAIT_S}"}
    if len(case.origin + case.family) % 2 and all(_writable(value) for value in case.inputs.values()):
        job["inputs"] = {name: _listed(value) for name, value in case.inputs.items()}
        answer = client(url).post("/v1/jobs", content=json.dumps(job), headers=headers)
    else:
        files: dict[str, Any] = {"job": (None, json.dumps(job), "application/json")}
        files |= {name: _file(name, value) for name, value in case.inputs.items()}
        answer = client(url).post("/v1/jobs", files=files, headers=headers)
    if answer.status_code == 202:
        answer = _waited_for(url, answer.json()["id"])
    if answer.status_code == 422:
        return "turned away", []
    if answer.status_code != 200:
        return "refused", [Verdict("refused", f"{answer.status_code}: {answer.text[:300]}")]
    document = answer.json()
    if document.get("state") != "succeeded":
        return "refused", [Verdict("refused", f"{document.get('state')}: {json.dumps(document.get('error'))[:300]}")]
    found = list(judge_claim(case, claim_of(document, arrays_of(document, None))))
    seconds = time.monotonic() - begun
    if not found and document["timings_ms"]["total"] / 1e3 > limit + ALLOWED_S + ROUND_TRIP_S:
        found.append(Verdict("slow", f"{seconds:.2f} s under a limit of {limit} s"))
    return (found[0].kind if found else "right"), found


def _waited_for(url: str, job: str) -> httpx.Response:
    """The result of a job that was not there in time, or the job when it has none."""
    for _ in range(4):
        shown = client(url).get(f"/v1/jobs/{job}", params={"wait": WAIT_S})
        if shown.json().get("state") == "succeeded":
            return client(url).get(f"/v1/jobs/{job}/result")
        if shown.json().get("state") in ("failed", "cancelled"):
            break
    return shown


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}


def _writable(value: Any) -> bool:
    """JSON has int64 and float64 alone."""
    if isinstance(value, Csr):
        return _writable(value.values)
    return value.dtype in (np.int64, np.float64)


def _listed(value: Any) -> Any:
    if isinstance(value, Csr):
        parts = {name: getattr(value, name).tolist() for name in ("indptr", "indices", "values")}
        return {"csr": {**parts, "shape": list(value.shape)}}
    return _nulled(value.tolist())


def _nulled(value: Any) -> Any:
    if isinstance(value, list):
        return [_nulled(one) for one in value]
    return value if permitted(value) else None


def _file(name: str, value: Array | Csr) -> tuple[str, bytes]:
    file = io.BytesIO()
    if isinstance(value, Csr):
        np.savez(file, indptr=value.indptr, indices=value.indices, data=value.values, shape=np.array(value.shape),
                 format=np.array(b"csr"))  # fmt: skip
        return f"{name}.npz", file.getvalue()
    np.save(file, value)
    return f"{name}.npy", file.getvalue()
