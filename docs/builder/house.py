"""`python -m docs.builder.house`: two pictures of the house, an earlier commit beside this one, into docs/images.

imports.svg has the folders, and who imports or includes whom. reading.svg has the files that one reads to follow an
assignment on a CPU from its POST to its answer, in order, each as long as its text.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BEFORE = "f726c99"
"""The last commit in which app and workers were one folder each, and so was every solver."""
FLOORS = ("app", "workers", "kernels")
Texts = dict[str, str]
READ_BEFORE = (
    "app/routes.py app/jobs.py app/submit.py app/inputs.py workers/queue.py workers/scripts.py workers/gpu_worker.py "
    "workers/link.py workers/child.py workers/run.py kernels/registry.py kernels/lap/__init__.py kernels/lap/cpu.py "
    "kernels/certificates/assignment.py workers/records.py app/answer.py"
)
READ_NOW = (
    "app/http/routes.py app/http/jobs.py app/intake/received.py app/intake/parsed.py app/intake/gathered.py "
    "app/intake/built.py app/intake/placed.py workers/jobs/entry.py workers/jobs/submit.lua workers/runtime/worker.py "
    "workers/runtime/link.py workers/runtime/child.py workers/runtime/run.py kernels/registry.py "
    "kernels/lap/__init__.py kernels/lap/cpu/solver.py kernels/certificates/assignment.py "
    "workers/runtime/document.py workers/jobs/finish.lua app/answers/answer.py"
)
WIDE, BOX, GAP, LINE = 700, 22, 8, 15
STYLE = (
    "text{font:11px sans-serif;fill:#333}.head{font-weight:bold}.box{fill:#eef3f8;stroke:#6b8cae}"
    ".down{stroke:#6b8cae;stroke-opacity:.35;fill:none}.bar{fill:#6b8cae}.band{fill:#f7f7f4}"
)


def texts_at(commit: str | None) -> Texts:
    """The sources of the three floors at a commit, or as they are here."""
    if commit is None:
        paths = [path for floor in FLOORS for path in (ROOT / floor).rglob("*")]
        kept = [path for path in paths if path.suffix in (".py", ".cu", ".cuh", ".lua")]
        return {path.relative_to(ROOT).as_posix(): path.read_text() for path in kept}
    packed = subprocess.run(["git", "archive", commit, *FLOORS], cwd=ROOT, check=True, capture_output=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith((".py", ".cu", ".cuh", ".lua")) else None
            if file is not None:
                found[member.name] = file.read().decode()
    return found


def folder_of(path: str) -> str:
    """Where a file stands in the picture; the certificates, a house of their own, stand as one."""
    folder = path.rpartition("/")[0]
    return "kernels/certificates" if folder.startswith("kernels/certificates") else folder


def imports(texts: Texts) -> Counter[tuple[str, str]]:
    """How many times files of one folder import or include files of another."""
    found: Counter[tuple[str, str]] = Counter()
    for path, text in texts.items():
        for target in _named(path, text):
            parent = target.rpartition("/")[0]
            options = (f"{target}.py", f"{target}/__init__.py", f"{parent}.py", f"{parent}/__init__.py", target)
            there = next((option for option in options if option in texts), None)
            if there is not None and folder_of(there) != folder_of(path):
                found[folder_of(path), folder_of(there)] += 1
    return found


def _named(path: str, text: str) -> list[str]:
    if not path.endswith(".py"):
        return [f"kernels/{one}" for one in re.findall(r'#include "([\w/.]+)"', text)]
    named = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            named += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named += [f"{node.module}.{alias.name}" for alias in node.names]
    return [one.replace(".", "/") for one in named if one.split(".")[0] in FLOORS]


def rows_of(floor: str, folders: Counter[str]) -> list[list[str]]:
    """The folders of a floor: those that stand alone in the first row, each with folders of its own in another."""
    groups: dict[str, list[str]] = {}
    for name in sorted(folders):
        if name.split("/")[0] == floor:
            groups.setdefault("/".join(name.split("/")[:2]), []).append(name)
    alone = [group[0] for group in groups.values() if len(group) == 1]
    return [alone, *(group for group in groups.values() if len(group) > 1)]


def graph(texts: Texts, left: int, title: str) -> tuple[str, int]:
    """One panel: the folders of each floor in rows, the files that each has, and their imports; and its height."""
    counts = Counter(folder_of(path) for path in texts)
    at: dict[str, tuple[float, float]] = {}
    boxes, y = [f'<text class="head" x="{left}" y="16">{escape(title)}</text>'], 30
    for floor in FLOORS:
        top = y
        y += GAP
        for k, row in enumerate(rows_of(floor, counts)):
            x, y = float(left + GAP), y + (BOX + 3 * GAP) * bool(k)
            for name in row:
                label = f"{name.removeprefix(floor + '/')} {counts[name]}"
                width = 12 + 6.2 * len(label)
                at[name] = x + width / 2, y + BOX / 2
                boxes.append(f'<rect class="box" x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="4"/>')
                boxes.append(f'<text x="{x + 6:.0f}" y="{y + 15}">{escape(label)}</text>')
                x += width + GAP
        y += BOX + GAP
        boxes.insert(0, f'<rect class="band" x="{left}" y="{top}" width="{WIDE}" height="{y - top}"/>')
        y += 4 * GAP
    lines = []
    for (source, target), times in sorted(imports(texts).items()):
        (x1, y1), (x2, y2) = at[source], at[target]
        size = min(4.0, 0.6 + times / 12)
        lines.append(f'<path class="down" stroke-width="{size:.1f}" d="M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}"/>')
    bands = boxes[: len(FLOORS)]
    return "\n".join([*bands, *lines, *boxes[len(FLOORS) :]]), y


def path_of(texts: Texts, files: str, left: int, title: str) -> tuple[str, int]:
    """One panel: the files of the reading path in order, each with a bar of its lines; and its height."""
    names = files.split()
    lengths = [len(texts[name].splitlines()) for name in names]
    said = f"{title}: {len(names)} files, {sum(lengths):,} lines, the longest {max(lengths)}"
    parts = [f'<text class="head" x="{left}" y="16">{escape(said)}</text>']
    for k, (name, length) in enumerate(zip(names, lengths, strict=True)):
        y = 36 + k * (LINE + 5)
        parts.append(f'<text x="{left}" y="{y + 11}">{escape(name)}</text>')
        parts.append(f'<rect class="bar" x="{left + 230}" y="{y}" width="{length}" height="{LINE}"/>')
        parts.append(f'<text x="{left + 236 + length}" y="{y + 11}">{length}</text>')
    return "\n".join(parts), 46 + len(names) * (LINE + 5)


def beside(left: tuple[str, int], right: tuple[str, int]) -> str:
    """Two panels as one picture."""
    width, height = 2 * WIDE + 40, max(left[1], right[1])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    page = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", page, left[0], right[0], "</svg>", ""])


def main(argv: Sequence[str] | None = None) -> int:
    """Write both pictures."""
    parser = argparse.ArgumentParser(prog="python -m docs.builder.house", description=__doc__)
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT", help=f"default {BEFORE}")
    parser.add_argument("--into", type=Path, default=ROOT / "docs/images", metavar="FOLDER")
    args = parser.parse_args(argv)
    old, new = texts_at(args.before), texts_at(None)
    right = WIDE + 40
    then, now = f"before ({args.before})", "now"
    panels = (
        graph(old, 0, f"{then}: folders, and files in each"),
        graph(new, right, f"{now}: folders, and files in each"),
    )
    (args.into / "imports.svg").write_text(beside(*panels))
    panels = path_of(old, READ_BEFORE, 0, then), path_of(new, READ_NOW, right, now)
    (args.into / "reading.svg").write_text(beside(*panels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
