"""The pictures of the house: who imports whom, and what one reads to follow a job."""

import re
from collections import Counter

from docs.builder import house


def test_imports_are_counted_between_folders() -> None:
    texts = {
        "app/http/a.py": "from workers.jobs.b import run\nfrom kernels import SOLVERS\nimport json\n",
        "workers/jobs/b.py": "import kernels.lap.c\nfrom workers.jobs import b\n",
        "kernels/__init__.py": "",
        "kernels/lap/c.py": "",
        "kernels/lap/d.cu": '#include "device/e.cuh"\n#include "lap/f.cuh"\n',
        "kernels/lap/f.cuh": "",
        "kernels/device/e.cuh": "",
    }
    wanted = {("app/http", "workers/jobs"), ("app/http", "kernels"), ("workers/jobs", "kernels/lap")}
    assert house.imports(texts) == Counter([*wanted, ("kernels/lap", "kernels/device")])


def test_every_file_of_the_reading_path_is_there_and_drawn() -> None:
    texts = house.texts_at(None)
    panel, _ = house.path_of(texts, house.READ_NOW, 0, "now")
    assert panel.count('class="bar"') == len(house.READ_NOW.split())
    picture = house.beside((panel, 400), house.graph(texts, 700, "now"))
    assert picture.count("<svg") == 1
    assert not [pair for pair in house.imports(texts) if _floor(pair[0]) > _floor(pair[1])]


def test_the_pictures_show_the_house_that_stands() -> None:
    """Its folders and the files of the path; counts of lines may lag. `python -m docs.builder.house` draws both."""
    texts = house.texts_at(None)
    shown, path = (_names(name) for name in ("imports", "reading"))
    assert shown == {re.sub(r" \d+$", "", label) for label in _labels(house.graph(texts, 700, "now")[0])} - {"now"}
    assert path == set(house.READ_NOW.split())


def _names(picture: str) -> set[str]:
    """What the right panel of a picture names."""
    drawn = (house.ROOT / f"docs/images/{picture}.svg").read_text().partition("now: ")[2]
    return {re.sub(r" \d+$", "", label) for label in _labels(drawn) if not label.isdigit()}


def _labels(drawn: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", drawn)


def _floor(folder: str) -> int:
    return house.FLOORS.index(folder.split("/")[0])
