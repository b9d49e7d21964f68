"""Tracks through a video

Boxes of one frame are matched to those of the next. With `cost_limit` a box that went away stays alone.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, INK, SOFT, Picture


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(7)
    before = rng.uniform(40, 440, (18, 2))
    after = before + rng.normal(0, 14, before.shape)
    after[:3] = rng.uniform(40, 440, (3, 2))  # three went away, three came
    answer = client.lap(np.linalg.norm(before[:, None] - after, axis=2), cost_limit=60.0)

    kept = answer.assignment >= 0
    assert 12 <= kept.sum() <= 18
    picture = Picture(480, 500)
    for x, y in before:
        picture.box(x - 16, y - 16, 32, 32, stroke=SOFT)
    for j, (x, y) in enumerate(after):
        picture.box(x - 16, y - 16, 32, 32, stroke=FOUND if j in answer.assignment else INK)
    picture.lines(before[kept], after[answer.assignment[kept]])
    picture.label(30, 488, f"{kept.sum()} of 18 boxes go on")
    return picture
