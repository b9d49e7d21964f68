"""Mass that stays at home

Unbalanced transport may leave what is too far away. Here two far clumps stay, and the rest is matched.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, INK, SOFT, Picture


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(9)
    x = np.vstack([rng.normal((0.3, 0.3), 0.06, (40, 2)), rng.normal((0.12, 0.9), 0.02, (12, 2))])
    y = np.vstack([rng.normal((0.55, 0.35), 0.06, (40, 2)), rng.normal((0.92, 0.92), 0.02, (12, 2))])
    answer = client.uot(x=x, y=y, reg=0.005, reg_m=0.2)

    moved = answer.plan.sum(axis=1) * len(x)
    assert moved[:40].mean() > 3 * moved[40:].mean()
    picture = Picture(520, 540)
    begin, end = 20 + 480 * x, 20 + 480 * y
    rows, columns = np.nonzero(answer.plan > answer.plan.max() / 8)
    picture.lines(begin[rows], end[columns], width=2 * answer.plan[rows, columns] / answer.plan.max())
    picture.dots(begin, 4, [INK if part > 0.5 else SOFT for part in moved])
    picture.dots(end, 4, FOUND)
    picture.label(
        20, 530, f"of the near points {100 * moved[:40].mean():.0f}% moves, of the far {100 * moved[40:].mean():.0f}%"
    )
    return picture
