"""From a ring to a square

Transport between two shapes, and where each point is at a quarter, a half and three quarters of its way.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, INK, Picture


def draw(client: Client) -> Picture:
    turn = np.linspace(0, 2 * np.pi, 160, endpoint=False)
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    square = ring / np.abs(ring).max(axis=1, keepdims=True) * 0.8
    square = square @ np.array([[0.8, -0.6], [0.6, 0.8]])
    answer = client.uot(x=ring, y=square, reg=0.003, reg_m="inf")
    goal = answer.barycentric(square)

    assert np.abs(np.abs(goal @ np.array([[0.8, 0.6], [-0.6, 0.8]])).max(axis=1) - 0.8).mean() < 0.05
    picture = Picture(720, 190)
    for step, share in enumerate((0, 0.25, 0.5, 0.75, 1)):
        at = (1 - share) * ring + share * goal
        picture.dots(np.array([80 + 140 * step, 85]) + 58 * at, 2, INK if share < 1 else FOUND)
        picture.label(80 + 140 * step, 178, f"{100 * share:.0f}%", anchor="middle")
    return picture
