"""The gallery's page: every program of examples/gallery, with its picture and what it says of itself."""

import ast
from html import escape
from pathlib import Path

from docs.builder.contents import ROOT
from docs.builder.markdown import Heading, listing

PROGRAMS = ROOT / "examples/gallery"
PICTURES = ROOT / "docs/images/gallery"
INTRO = (
    "<h1>Gallery</h1>\n<p>Each picture is drawn by the program below it, from an answer of the service. "
    "All of them run in the tests. <code>python -m examples.gallery</code> draws them again.</p>\n"
)


def programs() -> list[Path]:
    """Every program that draws a picture."""
    return sorted(path for path in PROGRAMS.glob("*.py") if "def draw(" in path.read_text())


def gallery() -> tuple[str, list[Heading], dict[str, Path]]:
    """The body of the page, its headings and its images."""
    body, headings, images = [INTRO], [], {}
    for path in programs():
        code = path.read_text()
        said = ast.get_docstring(ast.parse(code)) or path.stem
        title, _, text = said.partition("\n\n")
        image = PICTURES / f"{path.stem}.svg"
        images[image.name] = image
        headings.append(Heading(2, path.stem, title, [text]))
        source = code.split('"""\n', 1)[1].strip() + "\n"
        body.append(
            f'<section class="shown"><h2 id="{path.stem}">{escape(title)}</h2>\n<p>{escape(text)}</p>\n'
            f'<img src="/docs/images/{image.name}" alt="{escape(title)}: {escape(text)}" loading="lazy">\n'
            f"<details><summary>The program</summary>\n{listing(source, 'python', title)}</details></section>\n"
        )
    return "".join(body), headings, images
