"""Shifts and skills

Who takes which shift, if not everybody can do everything. A missing number forbids a pair.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, Picture

PEOPLE = ["Ann", "Ben", "Cy", "Dora", "Eve", "Finn"]
SHIFTS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(4)
    dislike = rng.integers(1, 10, (6, 6)).astype(float)
    dislike[rng.random((6, 6)) < 0.3] = np.inf
    answer = client.lap(dislike)

    assert answer.optimal
    picture = Picture(420, 330)
    for i, person in enumerate(PEOPLE):
        picture.label(20, 68 + 42 * i, person)
        for j, shift in enumerate(SHIFTS):
            chosen, free = answer.assignment[i] == j, np.isfinite(dislike[i, j])
            picture.box(
                80 + 52 * j, 42 + 42 * i, 48, 38, "#dfe7fb" if chosen else "none", FOUND if chosen else "#d9d9d4"
            )
            if free:
                picture.label(104 + 52 * j, 66 + 42 * i, int(dislike[i, j]), anchor="middle")
            picture.label(104 + 52 * j, 30, shift, anchor="middle")
    picture.label(80, 318, f"dislike {answer.objective:.0f}, the least there is")
    return picture
