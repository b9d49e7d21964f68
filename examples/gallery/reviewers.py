"""Papers and reviewers

Each reviewer takes up to three of the papers. A column for each place of a reviewer turns that into an assignment.
"""

import numpy as np
from allot_client import Client

from examples.gallery.picture import FOUND, INK, Picture

PLACES = 3


def draw(client: Client) -> Picture:
    rng = np.random.default_rng(11)
    fit = rng.integers(0, 100, (20, 8))  # of papers to reviewers
    answer = client.lap(np.repeat(fit, PLACES, axis=1), maximize=True)

    reviewer = answer.assignment // PLACES
    assert np.bincount(reviewer, minlength=8).max() <= PLACES
    picture = Picture(420, 480)
    papers = np.column_stack([np.full(20, 90), np.linspace(30, 440, 20)])
    people = np.column_stack([np.full(8, 330), np.linspace(50, 420, 8)])
    picture.lines(papers, people[reviewer], width=fit[np.arange(20), reviewer] / 30)
    picture.dots(papers, 4, INK)
    picture.dots(people, 7, FOUND)
    for at, (x, y) in enumerate(papers):
        picture.label(x - 12, y + 4, f"paper {at + 1}", 11, anchor="end")
    for at, (x, y) in enumerate(people):
        picture.label(x + 14, y + 4, f"reviewer {at + 1}", 11)
    picture.label(90, 470, f"fit {answer.objective:.0f}, the most there is")
    return picture
