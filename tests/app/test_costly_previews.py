"""Previews of few bytes that ask for much: made elsewhere, in little memory, and nobody else waits for them."""

import functools
import gzip
import io
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.app.alone import GROWS, MIB, Alone, header
from tests.bombs import Made, made
from tests.workers.service import allowed


@functools.cache
def workbook(rows: int, columns: int) -> bytes:
    """An .xlsx whose one sheet is `rows` times the same, and deflates to little."""
    row = "<row>" + "<c><v>1</v></c>" * columns + "</row>"
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{row * rows}</sheetData></worksheet>'
    one = '<sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets>'
    book = f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">{one}</workbook>'
    related = f'<Relationship Id="r1" Type="{OFFICE}/%s" Target="%s"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Override PartName="/xl/workbook.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>',
        "_rels/.rels": RELATED % (related % ("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": book,
        "xl/_rels/workbook.xml.rels": RELATED % (related % ("worksheet", "worksheets/sheet1.xml")),
        "xl/worksheets/sheet1.xml": sheet,
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


@functools.cache
def zeros(head: bytes, count: int) -> bytes:
    return gzip.compress(head + bytes(count))


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
RELATED = f'<Relationships xmlns="{PACKAGE}/relationships">%s</Relationships>'

PREVIEWS: dict[str, tuple[str, Made]] = {
    "a long row among short ones": ("t.csv", b"1\n" * 180_000 + b"1," * 180_000),
    "a quarter of a million empty cells": ("t.csv", b",," * 250_000 + b"1"),
    "many names": ("t.csv", b"a,b\n" + b"n,1\n" * 190_000),
    "one cell of a megabyte": ("t.csv", b'"' + b"x" * 1_000_000 + b'"'),
    "a workbook of a million cells": ("t.xlsx", lambda: workbook(1000, 1000)),
    "an order of 300,000 places": ("t.sln", b"150000 1 " + b"1 " * 300_000),
    "64 million bytes": ("t.npy.gz", lambda: zeros(header("(8000, 8000)").replace(b"<f8", b"|u1"), 8000**2)),
    "zeros": ("t.npy.gz", lambda: zeros(header("(4000, 4000)"), 8 * 4000 * 4000)),
}


@pytest.mark.parametrize("kind", PREVIEWS)
def test_a_preview_of_few_bytes_takes_little_memory_and_stops_nobody(alone: Alone, kind: str) -> None:
    """It is made by a clerk: what it costs there is bounded, and here it costs no more than its answer."""
    filename, body = PREVIEWS[kind][0], made(PREVIEWS[kind][1])
    assert len(body) < MIB
    before = alone.forget_peak()
    pool = ThreadPoolExecutor(1)
    asked = pool.submit(httpx.post, f"{alone.url}/v1/previews?filename={filename}", content=body, timeout=120)
    worst = []
    while not asked.done():
        begun = time.monotonic()
        assert httpx.get(f"{alone.url}/livez").status_code == 200
        worst.append(time.monotonic() - begun)
        time.sleep(0.05)  # else this process takes the core that the preview is made on
    assert asked.result().status_code in (200, 413, 422), asked.result().text[:500]
    assert alone.memory("VmHWM") - before < GROWS
    assert sorted(worst)[len(worst) // 2] < allowed(0.5)
    pool.shutdown()
