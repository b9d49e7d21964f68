"""One palette into another

The colours of noon are brought to those of dusk. Each moves to the mean of where its mass goes.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import Picture


def shade(colours: np.ndarray) -> list[str]:
    return ["#{:02x}{:02x}{:02x}".format(*row) for row in (255 * np.clip(colours, 0, 1)).astype(int)]


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(2)
    noon = np.repeat([[0.45, 0.7, 0.95], [0.95, 0.95, 0.9], [0.35, 0.6, 0.3], [0.85, 0.8, 0.65]], 24, axis=0)
    dusk = np.repeat([[0.93, 0.5, 0.3], [0.45, 0.2, 0.4], [0.98, 0.8, 0.5], [0.15, 0.12, 0.25]], 24, axis=0)
    noon, dusk = (np.clip(one + rng.normal(0, 0.05, one.shape), 0, 1) for one in (noon, dusk))
    answer = client.uot(x=noon, y=dusk, reg=0.01, reg_m="inf")
    moved = answer.barycentric(dusk)

    assert np.abs(moved.mean(axis=0) - dusk.mean(axis=0)).max() < 0.02
    picture = Picture(500, 330)
    for row, (name, colours) in enumerate({"noon": noon, "dusk": dusk, "noon as dusk": moved}.items()):
        picture.label(20, 60 + 100 * row, name)
        for at, colour in enumerate(shade(colours)):
            picture.box(130 + 14 * (at % 24), 20 + 100 * row + 18 * (at // 24), 14, 18, colour, colour)
    return picture
