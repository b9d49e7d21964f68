"""A keyboard

Twelve frequent letters find their keys, so that a finger that writes English moves little.
"""

from collections import Counter
from itertools import pairwise

import numpy as np
from allot_client import Client

from examples.gallery.picture import Picture

TEXT = """a row that is free takes the column that costs it least and when another row wants the same column the two of
them must settle who is to have it the one that loses least takes the next best and so on until no row is free"""


def draw(client: Client) -> Picture:
    letters = [letter for letter, _ in Counter(TEXT.replace(" ", "").replace("\n", "")).most_common(12)]
    pairs = Counter(pairwise(TEXT))
    follows = np.array([[pairs[a, b] + pairs[b, a] for b in letters] for a in letters])
    keys = np.array([[column + row / 2, row] for row in range(3) for column in range(4)])
    answer = client.qap(
        follows, np.rint(100 * np.linalg.norm(keys[:, None] - keys, axis=2)).astype(int), time_limit_s=2
    )

    assert sorted(answer.permutation) == list(range(12))
    picture = Picture(420, 250)
    for letter, (column, row) in zip(letters, keys[answer.permutation], strict=True):
        picture.box(20 + 70 * column, 20 + 66 * row, 62, 58)
        picture.label(51 + 70 * column, 56 + 66 * row, letter, 20, anchor="middle")
    picture.label(20, 238, "letters that follow each other are neighbours")
    return picture
