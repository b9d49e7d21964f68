"""Give one picture the colours of another: unbalanced transport between their palettes, over HTTP.

    allot serve &
    python examples/colour_transfer.py --url http://localhost:8000 --out pictures

Both pictures (1920 x 1280 pixels) are drawn here, so nothing has to be downloaded. Each is reduced to a palette, 1920
colours of the day and 1280 of the dusk, weighted by the pixels they stand for. The service solves the transport
between the two weighted clouds of colours; every day colour then becomes the mean of the dusk colours that its row of
the plan leads to, and every pixel moves as the palette colours next to it do. The marginals are relaxed (a finite
reg_m), because the pictures do not hold the same share of sky: a balanced plan would have to paint hills in the
colours of clouds to use them up.
"""

import argparse
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

Array = npt.NDArray[Any]

WIDTH, HEIGHT = 1920, 1280
DAY, DUSK = 1920, 1280  # palette sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://localhost:8000")
    parser.add_argument("--key", help="API key, where the service wants one")
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    parser.add_argument("--reg", type=float, default=0.002, help="in squared colour distance; colours are in [0, 1]^3")
    parser.add_argument("--reg-m", type=float, default=0.1, help="how much a share of pixels may change: less is freer")
    parser.add_argument("--shrink", type=int, default=1, help="draw pictures smaller by this factor, to 4")
    arguments = parser.parse_args()
    day, dusk = draw_day(arguments.shrink), draw_dusk(arguments.shrink)
    (x, a), (y, b) = palette(day, DAY), palette(dusk, DUSK)
    plan, answer = solve(arguments, x, y, a, b)
    moved = recolour(day, x, plan @ y / plan.sum(axis=1, keepdims=True))
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, picture in (("day", day), ("dusk", dusk), ("day_as_dusk", moved)):
        write_png(arguments.out / f"{name}.png", picture)
    certificate, ms = answer["certificate"], answer["timings_ms"]
    print(f"{len(x)} x {len(y)} colours, {answer['method']} on {answer['device']}: {answer['iterations']} sweeps,")
    print(f"relative gap {certificate['gap_rel']:.1e}, solve {ms['solve']:.1f} ms, total {ms['total']:.1f} ms")
    print(f"mass {plan.sum():.3f} of 1 moved; pictures in {arguments.out}/")


def solve(arguments: argparse.Namespace, x: Array, y: Array, a: Array, b: Array) -> tuple[Array, dict[str, Any]]:
    """The plan between two weighted clouds, from the service; and its answer without the arrays."""
    job = {
        "solver": "uot",
        "options": {"reg": arguments.reg, "reg_m": arguments.reg_m, "metric": "sqeuclidean"},
        "time_limit_s": 60,
    }
    files = {name: (f"{name}.npy", npy(array)) for name, array in (("x", x), ("y", y), ("a", a), ("b", b))}
    headers = {"Authorization": f"Bearer {arguments.key}"} if arguments.key else {}
    with httpx.Client(base_url=arguments.url, headers=headers, timeout=120) as client:
        response = client.post("/v1/jobs", data={"job": json.dumps(job)}, files=files).raise_for_status()
        links = response.json()["links"]
        while (shown := client.get(links["self"], params={"wait": 20}).json())["state"] in ("queued", "running"):
            print(f"  {shown['state']}", shown.get("progress") or "")
        if shown["state"] != "succeeded":
            raise SystemExit(f"the job {shown['state']}: {shown.get('error')}")
        packed = client.get(links["result"], headers={"Accept": "application/x-npz"}).raise_for_status()
        answer = client.get(links["result"]).raise_for_status().json()
    return np.asarray(np.load(io.BytesIO(packed.content))["plan"], np.float64), answer


def npy(array: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def palette(picture: Array, size: int) -> tuple[Array, Array]:
    """`size` colours (size, 3) and the share of pixels next to each: k-means on a sample, two rounds."""
    pixels = picture.reshape(-1, 3)
    rng = np.random.default_rng(size)
    sample = pixels[rng.choice(len(pixels), 100_000, replace=False)]
    colours = np.unique(sample, axis=0)
    colours = colours[rng.choice(len(colours), size, replace=False)]
    for _ in range(2):
        nearest = cKDTree(colours).query(sample, workers=-1)[1]
        count = np.bincount(nearest, minlength=size)
        sums = np.stack([np.bincount(nearest, sample[:, k], size) for k in range(3)], axis=1)
        colours = np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], colours)
    share = np.bincount(cKDTree(colours).query(pixels, workers=-1)[1], minlength=size) / len(pixels)
    return colours, share


def recolour(picture: Array, colours: Array, become: Array) -> Array:
    """Move every pixel by the mean shift of its six nearest palette colours, the nearer the heavier."""
    pixels = picture.reshape(-1, 3)
    away, nearest = cKDTree(colours).query(pixels, k=6, workers=-1)
    weight = 1 / (away + 0.01)
    shift = ((become - colours)[nearest] * (weight / weight.sum(axis=1, keepdims=True))[..., None]).sum(axis=1)
    return np.asarray(np.clip(pixels + shift, 0, 1).reshape(picture.shape))


def draw_day(shrink: int) -> Array:
    """Hills under a clear noon sky, a lake in front."""
    sky = (np.array([0.25, 0.52, 0.86]), np.array([0.80, 0.90, 0.97]))
    hills = ([0.48, 0.60, 0.66], [0.30, 0.50, 0.36], [0.22, 0.43, 0.18])
    water, glow = np.array([0.24, 0.50, 0.62]), [1.0, 0.98, 0.85]
    return draw(sky, [np.array(hill) for hill in hills], water, (1450, 230), glow, 1, shrink)


def draw_dusk(shrink: int) -> Array:
    """Another range at dusk, more of it sky."""
    sky = (np.array([0.17, 0.12, 0.35]), np.array([0.99, 0.60, 0.28]))
    hills = ([0.52, 0.27, 0.38], [0.33, 0.16, 0.27], [0.13, 0.08, 0.14])
    water, glow = np.array([0.45, 0.24, 0.32]), [1.0, 0.86, 0.55]
    return draw(sky, [np.array(hill) for hill in hills], water, (560, 760), glow, 5, shrink)


def draw(
    sky: tuple[Array, Array], hills: list[Array], water: Array, sun: tuple[int, int], glow: Any, seed: int, shrink: int
) -> Array:
    """A landscape (height, width, 3) in [0, 1]: graded sky with clouds, a sun, ranges of hills, water that reflects."""
    width, height = WIDTH // shrink, HEIGHT // shrink
    rng = np.random.default_rng(seed)
    across, down = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    picture = sky[0] + (sky[1] - sky[0]) * np.clip(down / 0.65, 0, 1)[..., None] ** 1.3
    cloud = (
        np.clip(waves(rng, across, down * 4, 9) - 0.15, 0, 1)[..., None]
        * np.exp(-(((down - 0.22) / 0.2) ** 2))[..., None]
    )
    picture += 0.6 * cloud * (np.array(glow) - picture)
    distance = np.hypot(across * WIDTH - sun[0], down * HEIGHT - sun[1])
    light = np.exp(-((distance / 330) ** 1.2))[..., None] + (distance < 62)[..., None]
    picture += np.clip(light, 0, 1) * (np.array(glow) - picture)
    for depth, colour in enumerate(hills):
        ridge = 0.52 + 0.07 * depth + 0.06 * waves(rng, across[0], 0 * across[0], 5)
        inside = down > ridge
        shade = 1 + 0.25 * waves(rng, across, down * 3, 8) - 0.5 * np.clip(down - ridge, 0, 0.3)
        picture = np.where(inside[..., None], np.clip(colour * shade[..., None], 0, 1), picture)
    shore = int(0.78 * height)
    mirror = picture[shore - 1 : 2 * shore - height - 1 : -1]
    ripple = (np.sin(down[shore:] * 900 + 6 * waves(rng, across, down * 6, 6)[shore:]) * 0.04)[..., None]
    picture[shore:] = np.clip(0.55 * mirror + 0.45 * water + ripple, 0, 1)
    return np.clip(picture + rng.normal(0, 0.006, picture.shape), 0, 1)


def waves(rng: np.random.Generator, across: Array, down: Array, octaves: int) -> Array:
    """Smooth noise in about [-1, 1]: sines of random direction, each octave weaker."""
    total = np.zeros_like(across)
    for octave in range(1, octaves + 1):
        kx, ky, phase = rng.normal(0, 3 * octave), rng.normal(0, 3 * octave), rng.random() * 6.3
        total += np.sin(kx * across * 2 + ky * down + phase) / octave
    return np.asarray(total / 2)


def write_png(path: Path, picture: Array) -> None:
    """8-bit RGB, rows coded as differences to the row above, which is what compresses gradients well."""
    pixels = (picture * 255 + 0.5).astype(np.uint8).reshape(len(picture), -1)
    rows = np.diff(pixels, axis=0, prepend=np.zeros((1, pixels.shape[1]), np.uint8))
    lines = np.concatenate([np.full((len(rows), 1), 2, np.uint8), rows], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", picture.shape[1], picture.shape[0], 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


if __name__ == "__main__":
    main()
