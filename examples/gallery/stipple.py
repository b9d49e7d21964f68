"""Dots that become a picture

Nine hundred dots of a random cloud find their places in a spiral, with the least way in all.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, SOFT, Picture


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(5)
    cloud = rng.uniform(20, 500, (600, 2))
    turn = np.sqrt(rng.uniform(0.02, 1, 600)) * 6 * np.pi
    spiral = 260 + np.column_stack([np.cos(turn), np.sin(turn)]) * turn[:, None] * 12 + rng.normal(0, 5, (600, 2))
    answer = client.lap(x=cloud, y=spiral, metric="euclidean")

    assert answer.optimal
    assert answer.objective is not None
    picture = Picture(520, 540)
    picture.lines(cloud, spiral[answer.assignment], "#b9c8ef", 0.7)
    picture.dots(cloud, 1.6, SOFT)
    picture.dots(spiral, 2.2, FOUND)
    picture.label(20, 530, f"{answer.objective / 600:.1f} pixels a dot; no shorter way exists")
    return picture
