"""A transport plan

What lies at the left is brought to where the top wants it. Darker means more; the sums stand at the edges.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, SOFT, Picture


def draw(client: Client) -> Picture:
    at = np.linspace(0, 1, 48)
    a = np.exp(-(((at - 0.25) / 0.1) ** 2)) + 0.6 * np.exp(-(((at - 0.7) / 0.07) ** 2)) + 0.01
    b = np.exp(-(((at - 0.5) / 0.16) ** 2)) + 0.01
    a, b = a / a.sum(), b / b.sum()
    answer = client.uot((at[:, None] - at) ** 2, a=a, b=b, reg=0.002, reg_m="inf")

    assert answer.gap is not None
    assert answer.gap <= 1e-6
    assert np.allclose(answer.plan.sum(axis=1), a, atol=1e-4)
    picture = Picture(480, 500)
    picture.heat(np.sqrt(answer.plan), 90, 90, 8)
    for i in range(48):
        picture.box(84 - 1200 * a[i], 90 + 8 * i, 1200 * a[i], 7, SOFT, SOFT)
        picture.box(90 + 8 * i, 84 - 1200 * b[i], 7, 1200 * b[i], FOUND, FOUND)
    picture.label(90, 494, "the best plan, to six digits; proved")
    return picture
