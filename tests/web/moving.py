"""`python -m tests.web.moving FOLDER`: the README's moving picture, of those that the walks have kept in a folder."""

import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent.parent
SCENES = ("solve-layout", "job-running", "planner-answer", "compare")
SIZE, SECONDS = (960, 600), 2.5


def main(folder: Path) -> None:
    """Write docs/images/workbench.gif, and its second scene alone as workbench.png for pages that must not move."""
    whole = [Image.open(folder / f"{name}.png").convert("RGB") for name in SCENES]
    scenes = [one.resize(SIZE, Image.Resampling.LANCZOS).quantize(64, dither=Image.Dither.NONE) for one in whole]
    out = ROOT / "docs/images"
    scenes[0].save(out / "workbench.gif", save_all=True, append_images=scenes[1:], duration=int(1000 * SECONDS), loop=0)
    scenes[1].save(out / "workbench.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
