"""A headless Chromium for the tests, and what it heard while a page was open."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.workers.service import allowed

ROOT = Path(__file__).parent.parent.parent
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) => {
  (window.__violations ||= []).push(event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile);
});
"""


def chromium_path() -> str:
    """The system's Chromium, or skip; ALLOT_CHROMIUM names another, REQUIRE_BROWSER=1 makes a skip a failure."""
    found = os.environ.get("ALLOT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    try:
        import playwright  # noqa: F401
    except ImportError:
        found = None
    if found is None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("REQUIRE_BROWSER=1, but there is no Chromium, or no playwright, here")
        pytest.skip("no Chromium, or no playwright, here: apt-get install chromium; pip install playwright")
    return found


@dataclass
class Heard:
    """What went wrong in a page, and where it asked for anything."""

    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; its sandbox needs rights that containers do not give."""
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, url: str, width: int = 1440) -> Iterator[tuple[Any, Heard]]:
    """A page in a context of its own. At its end: no error, no violation, no request to anywhere else."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="light", base_url=url,
                                  reduced_motion="reduce", accept_downloads=True)  # fmt: skip
    context.add_init_script(VIOLATIONS)
    page, heard = context.new_page(), Heard()
    page.set_default_timeout(1000 * allowed(20))
    page.on("pageerror", lambda error: heard.errors.append(str(error)))
    page.on("console", lambda said: heard.errors.append(said.text) if said.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith((url, "blob:")) else heard.foreign.append(asked.url))
    try:
        yield page, heard
        assert page.evaluate("window.__violations || []") == []
        assert heard.errors == []
        assert heard.foreign == []
    finally:
        context.close()


def faults_of(page: Any) -> list[str]:
    """What axe-core finds wrong with the page as it is, in both themes."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed here: npm ci --prefix web")
    page.evaluate(AXE.read_text())  # it goes through the debugger, past the policy
    found = []
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        found += [f"{theme}: {fault}" for fault in _faults(page)]
    return found


def _faults(page: Any) -> list[str]:
    found = page.evaluate("""async () => {
      const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
      const {violations} = await axe.run(document, {runOnly: tags});
      return violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
    }""")
    return [str(one)[:400] for one in found]


def keep_picture(page: Any, name: str) -> None:
    """Save what the page shows under ALLOT_PICTURES, where that names a folder: the documentation uses it."""
    folder = os.environ.get("ALLOT_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")


def is_too_wide(page: Any) -> bool:
    """True when a page scrolls sideways."""
    wide: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth + 1")
    return wide


def dropped(page: Any, tab: str, path: Path) -> None:
    """Open a problem's tab and give it a file."""
    page.goto(f"/solve/{tab}")
    page.locator("input[type=file]").set_input_files(path)


def solved(page: Any, timeout_ms: float = 20_000) -> None:
    """Wait for the whole answer."""
    page.wait_for_selector("text=The certificate, line by line", timeout=allowed(timeout_ms))


def try_now(page: Any) -> None:
    """Press the button; a page that has tried again by itself meanwhile has it no more."""
    from playwright.sync_api import TimeoutError as WaitedInVain

    with contextlib.suppress(WaitedInVain):
        page.get_by_role("button", name="Try now").click(timeout=5_000)


def write_workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    """An .xlsx; a text that begins with = is a text in it, not a formula."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
        for cell in sheet["A"]:
            cell.data_type = "s" if isinstance(cell.value, str) else cell.data_type
    book.save(path)
    return path
