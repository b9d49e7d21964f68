"""Match 2000 bidders with 2000 objects on a sparse graph: upload once as a blob, solve, start again from its prices."""

import io
import os

import httpx
import numpy as np
from scipy.sparse import csr_array, save_npz

URL = os.environ.get("ALLOT_URL", "http://127.0.0.1:8000")


def main() -> None:
    n = 2000
    rng = np.random.default_rng(0)
    rows, cols = np.repeat(np.arange(n), 20), rng.integers(0, n, 20 * n)
    rows, cols = np.append(rows, np.arange(n)), np.append(cols, np.arange(n))  # so that everybody can be matched
    graph = csr_array((rng.integers(1, 10_000, len(rows)), (rows, cols)), shape=(n, n))
    graph.sum_duplicates()
    packed = io.BytesIO()
    save_npz(packed, graph)

    with httpx.Client(base_url=URL, timeout=60, headers={"Prefer": "wait=60"}) as client:
        blob = client.post("/v1/blobs", content=packed.getvalue()).raise_for_status().json()  # says how to read it
        job = {"solver": "auction", "inputs": {"benefit": blob}}
        first = client.post("/v1/jobs", json=job).raise_for_status().json()
        again = client.post("/v1/jobs", json=job | {"warm_start": first["id"]}).raise_for_status().json()
    for name, answer in (("first", first), ("from its prices", again)):
        proof = answer["certificate"]
        print(f"{name}: {answer['objective']} in {answer['timings_ms']['solve']:.1f} ms, proved: {proof['proved']}")


if __name__ == "__main__":
    main()
