"""Unbalanced optimal transport between two clouds of points; the plan comes back as bytes, not as JSON."""

import io
import os

import httpx
import numpy as np

URL = os.environ.get("ALLOT_URL", "http://127.0.0.1:8000")


def main() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(300, 2)) + 1
    job = {
        "solver": "uot",
        "inputs": {"x": x.tolist(), "y": y.tolist(), "a": [1 / 200] * 200, "b": [1.5 / 300] * 300},
        "options": {"reg": 0.05, "reg_m": [1.0, "inf"]},  # rows may lose mass, columns must be met
    }
    with httpx.Client(base_url=URL, timeout=60) as client:
        answer = client.post("/v1/jobs", json=job, headers={"Prefer": "wait=60"}).raise_for_status().json()
        packed = client.get(answer["links"]["result"], headers={"Accept": "application/x-npz"}).raise_for_status()
    plan = np.load(io.BytesIO(packed.content))["plan"]
    proof = answer["certificate"]
    print(f"objective {answer['objective']:.6f}, gap {proof['gap_rel']:.1e}, {answer['iterations']} iterations")
    print(f"moved {plan.sum():.4f} of mass, at most {plan.max():.2e} at once; column sums {plan.sum(axis=0)[:3]} ...")


if __name__ == "__main__":
    main()
