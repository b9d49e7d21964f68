"""Samples that load with one click, as the cells that a person's own workbook would hold. All of them are invented."""

from collections.abc import Callable

import numpy as np

from app.http.refusal import Refusal
from app.web.cells import Cell
from app.web.tables import Sheet
from app.web.understood import COLOUR, PLACE
from kernels import Floats

DEPARTMENTS = (
    "Reception", "Emergency", "X-ray", "CT and MRI", "Ultrasound", "Blood tests", "Laboratory", "Pharmacy",
    "Cardiology", "Orthopaedics", "Fractures", "Physiotherapy", "Eye clinic", "Skin clinic", "Neurology", "Oncology",
    "Day surgery", "Recovery", "Endoscopy", "Sterile services", "Children", "Maternity", "Records", "Café",
)  # fmt: skip
BUSY = (("Reception", 9), ("Emergency", 6), ("X-ray", 7), ("Blood tests", 8), ("Pharmacy", 5), ("Laboratory", 4))
PARTNERS = (
    ("Emergency", "X-ray", 410), ("Emergency", "CT and MRI", 190), ("Fractures", "X-ray", 360),
    ("Orthopaedics", "X-ray", 280), ("Orthopaedics", "Physiotherapy", 240), ("Blood tests", "Laboratory", 390),
    ("Oncology", "Pharmacy", 210), ("Oncology", "Blood tests", 230), ("Day surgery", "Recovery", 420),
    ("Day surgery", "Sterile services", 260), ("Endoscopy", "Recovery", 180), ("Endoscopy", "Sterile services", 140),
    ("Maternity", "Ultrasound", 320), ("Children", "Blood tests", 110), ("Cardiology", "Ultrasound", 170),
    ("Neurology", "CT and MRI", 160), ("Reception", "Records", 230), ("Skin clinic", "Day surgery", 60),
    ("Eye clinic", "Pharmacy", 90), ("Fractures", "Physiotherapy", 150),
)  # fmt: skip


def sample_sheets(name: str) -> list[Sheet]:
    """The sheets of a sample. Raises Refusal, 404, for a name that is none."""
    if name not in SAMPLES:
        raise Refusal(404, f"There is no sample {name[:40]!r}; there are {', '.join(SAMPLES)}.")
    return SAMPLES[name]()


def _matrix(name: str, corner: str, rows: list[str], columns: list[str], values: Floats) -> Sheet:
    cells: list[list[Cell]] = [[corner, *columns]]
    for label, line in zip(rows, values.tolist(), strict=True):
        cells.append([label, *map(_cell, line)])
    return Sheet(name, cells)


def _cell(value: int | float) -> Cell:
    """Empty where there is nothing, whole where it can be."""
    if isinstance(value, int):
        return value
    return None if np.isnan(value) else int(value) if value.is_integer() else value


def _points(name: str, corner: str, columns: list[str], labels: list[str], values: Floats) -> Sheet:
    return _matrix(name, corner, labels, columns, values)


def office() -> list[Sheet]:
    """Departments of an outpatient clinic on one floor: four rows of six rooms along two corridors."""
    rng = np.random.default_rng(24)
    n = len(DEPARTMENTS)
    at = {name: i for i, name in enumerate(DEPARTMENTS)}
    trips = np.where(rng.random((n, n)) < 0.1, rng.integers(1, 25, (n, n)), 0)
    for name, weight in BUSY:
        some = rng.choice(n, 9, replace=False)
        trips[at[name], some] += weight * rng.integers(2, 14, 9)
    for one, other, count in PARTNERS:
        trips[at[one], at[other]] += count
    np.fill_diagonal(trips, 0)
    rooms, boxes = _floor()
    doors = np.array([[x + w / 2, (y + h) if row % 2 == 0 else y] for (x, y, w, h, row) in boxes])
    distance = np.rint(np.abs(doors[:, None] - doors[None]).sum(axis=2)).astype(np.int64)
    seats = rng.permutation(n)
    today: list[list[Cell]] = [["Department", "Room"]]
    today += [[name, rooms[seats[i]]] for i, name in enumerate(DEPARTMENTS)]
    names = list(DEPARTMENTS)
    return [
        _matrix("Trips", "trips a week", names, names, np.where(trips == 0, np.nan, trips)),
        _matrix("Distances", "metres", rooms, rooms, distance),
        Sheet("Today", today),
        _points("Rooms", "room", [*PLACE, "w", "h"], rooms, np.array([box[:4] for box in boxes])),
    ]


def _floor() -> tuple[list[str], list[tuple[float, float, float, float, int]]]:
    """Room names, and x, y, width, height in metres with the row of each."""
    widths = ((12, 10, 11, 9, 10, 12), (10, 12, 9, 12, 11, 10), (11, 9, 12, 10, 10, 12), (9, 12, 11, 11, 12, 9))
    tops = (0, 13, 25, 38)
    rooms, boxes = [], []
    for row, (line, top) in enumerate(zip(widths, tops, strict=True)):
        x = 0
        for place, width in enumerate(line):
            rooms.append(f"{'ABCD'[row]}{place + 1:02d}")
            boxes.append((float(x), float(top), float(width), 10.0 if row in (0, 3) else 9.0, row))
            x += width
    return rooms, boxes


def taxis() -> list[Sheet]:
    """Riders who wait, taxis that are free, and the minutes between them in a town of streets."""
    rng = np.random.default_rng(7)
    riders = np.concatenate([rng.normal((4, 4), 1.6, (30, 2)), rng.uniform(0, 10, (18, 2))]).clip(0.2, 9.8).round(2)
    cabs = np.concatenate([rng.normal((6, 6), 2.2, (26, 2)), rng.uniform(0, 10, (30, 2))]).clip(0.2, 9.8).round(2)
    minutes = (2 * np.abs(riders[:, None] - cabs[None]).sum(axis=2) + 1).round(1)
    rider_names = [f"Rider {i + 1}" for i in range(len(riders))]
    cab_names = [f"Taxi {i + 1}" for i in range(len(cabs))]
    return [
        _matrix("Minutes", "minutes", rider_names, cab_names, minutes),
        _points("Riders", "rider", PLACE, rider_names, riders),
        _points("Taxis", "taxi", PLACE, cab_names, cabs),
    ]


def tracks() -> list[Sheet]:
    """Objects seen before, detections in the next picture, how alike they are, and what a lost one is worth."""
    rng = np.random.default_rng(11)
    before = rng.uniform(0, 100, (36, 2)).round(1)
    speed = rng.normal(0, 2.4, (36, 2))
    seen = rng.random(36) < 0.85
    now = np.concatenate([(before + speed)[seen], rng.uniform(0, 100, (14, 2))]).round(1)
    away = np.sqrt(((before[:, None] - now[None]) ** 2).sum(axis=2))
    alike = np.where(away < 14, np.rint(100 * np.exp(-((away / 6) ** 2))), np.nan)
    track_names = [f"Track {i + 1}" for i in range(len(before))]
    seen_names = [f"Detection {i + 1}" for i in range(len(now))]
    lost: list[list[Cell]] = [["track", "worth if not seen"]]
    lost += [[name, 20] for name in track_names]
    return [
        _matrix("Likeness", "likeness", track_names, seen_names, alike),
        Sheet("Not seen", lost),
        _points("Tracks", "track", PLACE, track_names, before),
        _points("Detections", "detection", PLACE, seen_names, now),
    ]


def cells() -> list[Sheet]:
    """Cells of two days along one path of growth, of which some kinds multiply: mass is not kept."""
    rng = np.random.default_rng(4)

    def day(ages: Floats, shift: float) -> Floats:
        noise = rng.normal(0, 0.025, (len(ages), 2))
        return (np.stack([ages, 0.5 + 0.35 * np.sin(5 * ages + shift)], axis=1) + noise).round(4)

    early = np.sort(np.concatenate([rng.normal(0.25, 0.07, 90), rng.normal(0.62, 0.08, 70)])).clip(0, 1)
    later = np.sort(np.concatenate([rng.normal(0.35, 0.09, 70), rng.normal(0.78, 0.08, 110)])).clip(0, 1)
    first = [f"Day 2, cell {i + 1}" for i in range(len(early))]
    second = [f"Day 4, cell {i + 1}" for i in range(len(later))]
    return [
        _points("Day 2", "cell", PLACE, first, day(early, 0.0)),
        _points("Day 4", "cell", PLACE, second, day(later, 0.35)),
    ]


def colours() -> list[Sheet]:
    """The colours of a picture at noon and of one at dusk, and how much of each picture has them."""
    rng = np.random.default_rng(9)

    def palette(centres: Floats, count: int) -> Floats:
        chosen = centres[rng.integers(0, len(centres), count)]
        rgb = (chosen + rng.normal(0, 0.06, (count, 3))).clip(0, 1)
        rgb = rgb[np.argsort(rgb.sum(axis=1))]
        return np.concatenate([rgb, rng.integers(1, 9, (count, 1))], axis=1).round(3)

    noon = palette(np.array([[0.45, 0.68, 0.92], [0.35, 0.55, 0.25], [0.85, 0.8, 0.65], [0.25, 0.3, 0.35]]), 96)
    dusk = palette(np.array([[0.93, 0.5, 0.3], [0.45, 0.2, 0.4], [0.98, 0.8, 0.5], [0.15, 0.12, 0.25]]), 96)
    columns = [*COLOUR, "weight"]
    return [
        _points("Noon", "colour", columns, [f"Noon {i + 1}" for i in range(96)], noon),
        _points("Dusk", "colour", columns, [f"Dusk {i + 1}" for i in range(96)], dusk),
    ]


def outlines() -> list[Sheet]:
    """Two drawings of one curve. The second has fewer points, is turned, and was drawn from the other end."""
    rng = np.random.default_rng(3)

    def drawn(at: Floats) -> Floats:
        angle = 3 * np.pi * at
        return np.stack([at * np.cos(angle), at * np.sin(angle)], axis=1) + rng.normal(0, 0.01, (len(at), 2))

    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    first = drawn(np.linspace(0, 1, 60) ** 0.8)
    second = drawn(np.linspace(1, 0, 48) ** 0.8) @ turn + 3
    return [
        _points("First drawing", "dot", PLACE, [f"Dot {i + 1}" for i in range(60)], first.round(3)),
        _points("Second drawing", "mark", PLACE, [f"Mark {i + 1}" for i in range(48)], second.round(3)),
    ]


SAMPLES: dict[str, Callable[[], list[Sheet]]] = {
    "office": office,
    "taxis": taxis,
    "tracks": tracks,
    "cells": cells,
    "colours": colours,
    "outlines": outlines,
}
