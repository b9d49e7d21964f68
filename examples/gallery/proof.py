"""An answer and its proof, as they come

Each step down is a better layout, each step up a higher floor under all layouts. The gap between them is what is open.
"""

from itertools import pairwise

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, INK, Picture


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(6)
    flow, distance = rng.integers(0, 20, (2, 26, 26))
    job = client.submit("qap", {"flow": flow, "distance": distance}, time_limit_s=3)
    told = [event.data for event in job.events() if event.kind in ("progress", "incumbent")]
    answer = job.result()

    seen = [(one["elapsed_s"], one["objective"], one["bound"]) for one in told if one["objective"] is not None]
    assert seen
    found, floor = answer.objective, answer.certificate.bound
    assert found is not None
    assert floor is not None
    assert floor <= found
    picture = Picture(560, 330)
    low, high = 0.9 * floor, 1.02 * max(objective for _, objective, _ in seen)
    end = max(3.0, seen[-1][0])

    def at(second: float, value: float) -> tuple[float, float]:
        return 40 + 400 * second / end, 290 - 260 * (value - low) / (high - low)

    for nth, stroke, word in ((1, FOUND, "found"), (2, INK, "floor")):
        last = found if nth == 1 else floor
        steps = [(one[0], one[nth]) for one in seen if one[nth] is not None] + [(end, last)]
        for (begin, before), (then, after) in pairwise(steps):
            picture.lines([at(begin, before), at(then, before)], [at(then, before), at(then, after)], stroke, 2)
        picture.label(446, at(end, last)[1] + 4, f"{word} {last:.0f}", fill=stroke)
    picture.label(40, 322, f"{end:.0f} seconds")
    return picture
