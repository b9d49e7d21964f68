"""Taxi dispatch

Forty riders, fifty taxis. `lap` finds the pairs with the least driving in all, and proves that none are shorter.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, INK, SOFT, Picture


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(1)
    riders, taxis = rng.uniform(30, 490, (40, 2)), rng.uniform(30, 490, (50, 2))
    answer = client.lap(np.linalg.norm(riders[:, None] - taxis, axis=2))

    assert answer.optimal
    picture = Picture(520, 540)
    picture.lines(riders, taxis[answer.assignment])
    picture.dots(taxis, 5, [FOUND if taxi in answer.assignment else SOFT for taxi in range(50)])
    picture.dots(riders, 4, INK)
    picture.label(30, 525, f"{answer.objective:.0f} in all; no other assignment is shorter")
    return picture
