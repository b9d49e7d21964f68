"""A floor plan

Twelve departments, twelve rooms. `qap` puts those side by side between which people walk most.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import Picture

NAMES = ["Store", "Office", "Lab", "Desk", "Ward", "X-ray", "Pharmacy", "Kitchen", "Gym", "Archive", "Café", "IT"]


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(8)
    trips = rng.integers(0, 30, (12, 12)) * (rng.random((12, 12)) < 0.3)
    trips = np.triu(trips, 1) + np.triu(trips, 1).T
    rooms = np.array([[column, row] for row in range(3) for column in range(4)])
    metres = 8 * np.abs(rooms[:, None] - rooms).sum(axis=2)
    answer = client.qap(trips, metres, time_limit_s=2)

    assert answer.objective <= (trips * metres).sum()
    picture = Picture(560, 420)
    where = rooms[answer.permutation] * [130, 120] + [80, 70]
    for name, (x, y) in zip(NAMES, where, strict=True):
        picture.box(x - 60, y - 55, 120, 110)
        picture.label(x, y - 36, name, anchor="middle")
    left, right = np.nonzero(np.triu(trips))
    picture.lines(where[left], where[right], width=trips[left, right] / 6)
    saved = 1 - answer.objective / (trips * metres).sum()
    picture.label(20, 408, f"{100 * saved:.0f}% less walking than in the order of the list")
    return picture
