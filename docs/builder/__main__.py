"""Write the site; a link that leads nowhere ends it with the page's name."""

import json
import sys
import tempfile
import zipfile
from pathlib import Path

from docs.builder.contents import ROOT, Page, pages
from docs.builder.frame import API, GALLERY, document
from docs.builder.gallery import gallery
from docs.builder.markdown import BrokenLink, Heading, Made, Writer
from docs.builder.plots import plots, with_plots
from docs.builder.reference import reference

SITE = ROOT / "app/web/site.zip"
STATIC = Path(__file__).parent / "static"
TOKENS = ROOT / "web/src/styles/tokens.css"
LONGEST_TEXT = 600
"""Characters of a section that the search looks through."""


def site() -> dict[str, bytes]:
    """Every page, the search's index, the styles and the images, by their addresses. Raises BrokenLink."""
    sections = pages()
    sections["Reference"].insert(0, API)
    sections["Start"].insert(1, GALLERY)
    every = [page for listed in sections.values() for page in listed]
    written = Writer([page for page in every if page.source])
    made = {page: written.make(page) for page in every if page.source}
    made[API] = Made(*reference(), {}, [])
    made[GALLERY] = Made(*gallery(), [])
    _check_links(made)
    found: dict[str, bytes] = {}
    for page, one in made.items():
        html = with_plots(one.html)
        scripts = ("try.js",) if page is API else ("plots.js",) if 'data-plot="' in html else ()
        text = document(page, html, one.headings, sections, scripts)
        found[f"{page.address or 'index'}.html"] = text.encode()
        found |= {f"images/{name}": image.read_bytes() for name, image in one.images.items()}
    found["search.json"] = json.dumps(_index(made), ensure_ascii=False, separators=(",", ":")).encode()
    found["plots.json"] = json.dumps(plots(), separators=(",", ":")).encode()
    found["docs.css"] = (TOKENS.read_text() + (STATIC / "docs.css").read_text()).encode()
    found |= {script.name: script.read_bytes() for script in STATIC.glob("*.js")}
    found["llms.txt"] = _for_models(sections).encode()
    return found


def build(out: Path = SITE) -> None:
    """Pack the site into `out`; nothing in it says when or where. Raises BrokenLink."""
    found = site()
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        packed = Path(folder) / out.name
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name in sorted(found):
                archive.writestr(zipfile.ZipInfo(name), found[name], zipfile.ZIP_DEFLATED)
        packed.replace(out)


def _check_links(made: dict[Page, Made]) -> None:
    ids = {page.url: {heading.id for heading in one.headings} for page, one in made.items()}
    for page, one in made.items():
        for url, anchor in one.links:
            if url not in ids or (anchor and anchor not in ids[url]):
                raise BrokenLink(f"{page.source} links to {url}#{anchor}, which is not there")


def _index(made: dict[Page, Made]) -> list[list[str]]:
    """One entry a heading: address, page, heading, and the first of its words."""
    return [_entry(page, heading) for page, one in made.items() for heading in one.headings]


def _entry(page: Page, heading: Heading) -> list[str]:
    text = " ".join(" ".join(heading.text).split())[:LONGEST_TEXT]
    url = page.url if heading.level == 1 else f"{page.url}#{heading.id}"
    return [url, page.title, heading.title, text]


def _for_models(sections: dict[str, list[Page]]) -> str:
    """llms.txt: what this is and where everything is, for programs that read before they act."""
    intro = (ROOT / "docs/builder/static/llms.head.txt").read_text()
    lists = [
        f"## {section}\n\n" + "".join(f"- [{page.title}]({page.url})\n" for page in listed)
        for section, listed in sections.items()
    ]
    return intro + "\n" + "\n".join(lists)


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]) if len(sys.argv) > 1 else SITE)
    except BrokenLink as broken:
        sys.exit(str(broken))
