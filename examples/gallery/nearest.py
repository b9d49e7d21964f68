"""Sparse matching by auction

Six hundred points on each side, and a point may only take one of its eight nearest. Nothing dense is ever made.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import INK, SOFT, Picture


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(3)
    y = rng.uniform(0, 1, (900, 2))
    x = np.clip(y[:600] + rng.normal(0, 0.012, (600, 2)), 0, 1)
    answer = client.auction(x=x, y=y, neighbours=8)

    assert answer.optimal
    picture = Picture(520, 540)
    begin, end = 20 + 480 * x, 20 + 480 * y
    picture.lines(begin, end[answer.assignment])
    picture.dots(end, 1.6, SOFT)
    picture.dots(begin, 1.6, INK)
    picture.label(20, 530, "600 pairs out of 4800 that are allowed; proved to be the best")
    return picture
