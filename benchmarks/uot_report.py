"""Plots of the transport measurements on a GPU: python -m benchmarks.uot_report.

Reads benchmarks/results/uot_h200.jsonl (the last row of each case counts) and draws docs/images/uot_*.svg.
"""

import json
from typing import Any

from benchmarks.rows import RESULTS

IMAGES = RESULTS.parent.parent / "docs" / "images"


def rows(bench: str) -> list[dict[str, Any]]:
    lines = (RESULTS / "uot_h200.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["bench"] == bench]


def bandwidth(pyplot: Any) -> None:
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    for method, storage in (("fused", "float32"), ("fused", "float16"), ("log", "float32")):
        of = {r["n"]: r["bandwidth_share"] for r in rows("sweeps") if (r["method"], r["storage"]) == (method, storage)}
        axes.plot(sorted(of), [100 * of[n] for n in sorted(of)], marker="o", label=f"{method} {storage}")
    axes.set(xlabel="n", ylabel="% of 4.6 TB/s, one read an iteration", ylim=(0, 100), xscale="log")
    axes.set_xticks([1024, 2048, 4096, 8192, 20480], ["1024", "2048", "4096", "8192", "20480"])
    axes.legend()
    figure.tight_layout()
    figure.savefig(IMAGES / "uot_bandwidth.svg")


def gap(pyplot: Any) -> None:
    found = {(r["n"], r["reg"], r["reg_m"]): r for r in rows("gap")}
    cases = sorted(found)
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    places = range(len(cases))
    axes.bar([p - 0.2 for p in places], [found[c]["pot_ms_per_sweep"] * found[c]["pot_sweeps"] for c in cases], 0.4)
    axes.bar([p + 0.2 for p in places], [found[c]["ms"] for c in cases], 0.4)
    axes.set(yscale="log", ylabel="ms to a relative gap of 1e-6")
    axes.set_xticks(list(places), [f"n {n}\nreg {reg}, reg_m {reg_m:g}" for n, reg, reg_m in cases])
    axes.legend(["POT, torch", "allot, log"])
    figure.tight_layout()
    figure.savefig(IMAGES / "uot_gap.svg")


def main() -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "allot"
    from matplotlib import pyplot

    bandwidth(pyplot)
    gap(pyplot)


if __name__ == "__main__":
    main()
