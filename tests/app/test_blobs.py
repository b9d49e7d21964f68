import base64
import gzip
import hashlib
import io

import httpx
import numpy as np
import safetensors.numpy
import zstandard
from scipy.sparse import csr_array, save_npz

from tests.app.test_bad_input import check, npy

DATA = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_upload_look_download_delete(client: httpx.Client) -> None:
    body = npy(DATA)
    made = client.post("/v1/blobs", content=body)
    assert made.status_code == 201
    digest = "sha256:" + hashlib.sha256(body).hexdigest()
    told = made.json()
    assert (told["digest"], told["dtype"], told["shape"], told["size"]) == (digest, "float32", [3, 4], len(body))
    where = made.headers["location"]
    seen = client.head(where)
    assert (seen.headers["x-dtype"], seen.headers["x-shape"]) == ("float32", "3,4")
    assert int(seen.headers["content-length"]) == len(body)
    got = client.get(where)
    assert got.content == body
    expected = base64.b64encode(hashlib.sha256(body).digest()).decode()
    assert got.headers["repr-digest"] == f"sha-256=:{expected}:"
    assert client.get(where, headers={"If-None-Match": got.headers["etag"]}).status_code == 304
    assert client.delete(where).status_code == 204
    check(client.get(where), 404)
    check(client.delete(where), 404)


def test_formats(client: httpx.Client) -> None:
    graph = io.BytesIO()
    save_npz(graph, csr_array(DATA))
    forms = {
        "gzip": (gzip.compress(npy(DATA)), {}),
        "zstd": (zstandard.compress(npy(DATA)), {}),
        "safetensors": (safetensors.numpy.save({"x": DATA}), {}),
        "raw": (DATA.tobytes(), {"dtype": "float32", "shape": "3,4"}),
        "csr": (graph.getvalue(), {}),
    }
    for name, (body, params) in forms.items():
        made = client.post("/v1/blobs", content=body, params=params)
        assert made.status_code == 201, (name, made.text)
        assert made.json()["shape"] == [3, 4], name
    raw = client.post("/v1/blobs", content=DATA.tobytes(), headers={"X-Dtype": "float32", "X-Shape": "4, 3"})
    assert raw.json()["shape"] == [4, 3]
    dat = client.post("/v1/blobs", content=b"2\n0 1\n1 0\n0 3\n3 0\n", params={"filename": "x.dat"})
    assert set(dat.json()["arrays"]) == {"flow", "distance"}
    job = {"solver": "qap", "inputs": {"qaplib": {"blob": dat.json()["digest"]}}, "time_limit_s": 5}
    answer = client.post("/v1/jobs", json=job, headers={"Prefer": "wait=30"})
    assert answer.json()["objective"] == 6, answer.text


def test_chunked_upload_with_a_digest(client: httpx.Client) -> None:
    body = npy(np.zeros((1000, 100)))
    digest = "sha256:" + hashlib.sha256(body).hexdigest()
    pieces = (body[at : at + 5000] for at in range(0, len(body), 5000))
    made = client.post("/v1/blobs", content=pieces, params={"digest": digest})
    assert made.status_code == 201
    header = "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":"
    assert client.post("/v1/blobs", content=body, headers={"Content-Digest": header}).status_code == 201
