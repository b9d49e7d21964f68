"""What one body below 1 MiB makes the API and its clerks grow by: 100 MB at most."""

import json
import time

import httpx
import pytest

from tests.app.alone import GROWS, Alone
from tests.app.test_costly_bytes import UPLOADS
from tests.app.test_costly_previews import PREVIEWS
from tests.bombs import made
from tests.weight import Weight

FIELDS = dict.fromkeys((f"{k:x}" for k in range(100_000)), 0)
TEXTS = {
    "unknown fields": json.dumps({"solver": "lap", **FIELDS}, separators=(",", ":")),
    "unknown options": json.dumps({"solver": "lap", "options": FIELDS}, separators=(",", ":")),
}
SMALL = [*UPLOADS, *(f"{name}: {body[0]}" for name, body in PREVIEWS.items()), *TEXTS]


@pytest.mark.parametrize("name", SMALL)
def test_neither_the_api_nor_its_clerks_grow_by_much(alone: Alone, name: str) -> None:
    with Weight(alone.process.pid, every_s=0.01) as weight:
        if name in UPLOADS:
            httpx.post(f"{alone.url}/v1/blobs", content=UPLOADS[name], timeout=60)
            job = {"job": json.dumps({"solver": "lap"})}
            httpx.post(f"{alone.url}/v1/jobs", data=job, files={"cost": ("c", UPLOADS[name])}, timeout=60)
            httpx.post(f"{alone.url}/v1/estimates", data=job, files={"cost": ("c", UPLOADS[name])}, timeout=60)
        elif name in TEXTS:
            assert len(TEXTS[name]) < 1 << 20
            answer = httpx.post(f"{alone.url}/v1/jobs", content=TEXTS[name], timeout=60)
            assert answer.json()["detail"].endswith("and 99980 more")
        else:
            filename, body = PREVIEWS[name.partition(":")[0]]
            httpx.post(f"{alone.url}/v1/previews?filename={filename}", content=made(body), timeout=120)
        time.sleep(0.05)
    print(f"grown {weight.together >> 20} MiB", name)
    assert weight.together < GROWS, weight.together >> 20
