"""Boxes that come and go: pairs up to a limit, and frames of different sizes in one request, with nothing but HTTP."""

import io
import json
import os

import httpx
import numpy as np

URL = os.environ.get("ALLOT_URL", "http://127.0.0.1:8000")
LIMIT = 0.7
"""A box and a track that overlap less than 30% are no pair."""


def overlap_costs(tracks: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """1 - intersection over union of boxes (x1, y1, x2, y2)."""
    low, high = np.maximum(tracks[:, None, :2], boxes[:, :2]), np.minimum(tracks[:, None, 2:], boxes[:, 2:])
    common = np.clip(high - low, 0, None).prod(axis=2)
    areas = [(one[:, 2:] - one[:, :2]).prod(axis=1) for one in (tracks, boxes)]
    return np.asarray(1 - common / (areas[0][:, None] + areas[1] - common))


def main() -> None:
    rng = np.random.default_rng(0)
    frames = []
    for _ in range(100):
        corner = rng.uniform(0, 500, (rng.integers(0, 40), 2))
        tracks = np.hstack([corner, corner + 40])
        seen = tracks[rng.random(len(tracks)) < 0.8]  # some are hidden
        new = rng.uniform(0, 500, (rng.integers(0, 5), 2))
        frames.append(
            overlap_costs(tracks, np.vstack([seen + rng.normal(0, 3, seen.shape), np.hstack([new, new + 40])]))
        )
    packed = io.BytesIO()
    np.savez(packed, *frames)  # arr_0, arr_1, ...: each of its own size
    with httpx.Client(base_url=URL, timeout=60) as client:
        answer = client.post(
            "/v1/jobs",
            data={"job": json.dumps({"solver": "lap", "options": {"cost_limit": LIMIT}})},
            files={"cost": ("frames.npz", packed.getvalue())},
            headers={"Prefer": "wait=60"},
        )
        result = client.get(
            answer.raise_for_status().json()["links"]["result"], headers={"Accept": "application/x-npz"}
        )
    columns = np.load(io.BytesIO(result.content))["assignment"]
    by_frame = np.split(columns, np.cumsum([len(frame) for frame in frames])[:-1])
    problems = answer.json()["certificate"]["facts"]["problems"]
    print(f"{sum((one >= 0).sum() for one in by_frame)} pairs in {len(frames)} frames")
    print(
        f"proved optimal: {problems['terminations'].count('optimal')} frames, largest gap {max(problems['gaps']):.1e}"
    )


if __name__ == "__main__":
    main()
