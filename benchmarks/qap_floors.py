"""Certified gaps of quadratic assignment against time: python -m benchmarks.qap_floors [--device gpu] [--seconds 40].

An instance may have seconds of its own: nug30:3. Each is solved with the options as they are, and every report that
raises the bound is kept. The bound of the row is the certificate's; beside it stand all bounds that it checked, and
what the classic bounds alone come to in --classic seconds. A short solve before lets kernels of a size that is new be
compiled, 1 to 2 s on a GPU, as a worker's first job of it would. Instances are read from --data, $ALLOT_QAPLIB_DIR or
../shared/qaplib.
"""

import argparse
import time
from typing import Any

from benchmarks.qap import CARD, folder, gap, load
from benchmarks.rows import Rows, on_gpu
from kernels import Deadline, Progress
from kernels.problems import QuadraticAssignment
from kernels.qap import QapOptions

GPU_INSTANCES = "nug20:1,nug30:3,tai30a:2,ste36a:8,sko42:12,sko56:30,tai60a:30"
INSTANCES = "nug12,nug20,nug30,tai20a,tai30a,ste36a,tho30,kra30a,chr20a,lipa20a,esc32a"
CLASSIC = QapOptions(bounds=("gilmore-lawler", "projection", "rlt1"), method="memetic", bound_share=1.0)


def floor(problem: QuadraticAssignment, best: int, seconds: float, device: Any) -> dict[str, Any]:
    """One solve: the certified bound and gap, and when each bound was told."""
    curve: list[tuple[float, float]] = []

    def watch(progress: Progress) -> None:
        if progress.bound is not None and (not curve or -gap(progress.bound, best) < curve[-1][1]):
            curve.append((round(progress.elapsed_s, 2), round(-gap(progress.bound, best), 3)))

    begun = time.perf_counter()
    solution = CARD.solve(problem, QapOptions(), Deadline(seconds, on_progress=watch), device)
    solved = time.perf_counter()
    certificate = CARD.certify(problem, solution)
    return {
        "gap_pct": -gap(float(certificate.bound or 0), best), "bound": certificate.bound,
        "objective_gap_pct": gap(float(certificate.objective or 0), best), "termination": solution.termination,
        "verified": certificate.facts["verified"], "holds": certificate.holds,
        "claimed_too_much": not solution.facts["proved"] and "claimed_bound" in certificate.facts,
        "bounds": certificate.facts.get("bounds_checked"), "seconds": solved - begun,
        "certify_s": time.perf_counter() - solved, "curve": curve,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--data")
    parser.add_argument("--instances", help=f"by default {INSTANCES}; on a GPU {GPU_INSTANCES}")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--classic", type=float, default=10.0)
    arguments = parser.parse_args()
    where, device = folder(arguments.data), arguments.device
    rows = Rows("qap_floors" if device == "cpu" else on_gpu("qap_floors"))
    CARD.warm_up(device)
    asked = arguments.instances or (INSTANCES if device == "cpu" else GPU_INSTANCES)
    for name, _, own in (one.partition(":") for one in asked.split(",")):
        seconds = float(own or arguments.seconds)
        found = load(where, name)
        if found is None:
            rows.add(part="none", note=f"no {name} in {where}: name a directory with --data")
            continue
        problem, best = found
        classic = None
        CARD.solve(problem, QapOptions(bounds=(), rounds=1), Deadline(), device)
        if arguments.classic > 0:
            solution = CARD.solve(problem, CLASSIC, Deadline(arguments.classic), device)
            classic = -gap(float(CARD.certify(problem, solution).bound or 0), best)
        row = floor(problem, best, seconds, device)
        rows.add(part="floors", instance=name, n=problem.n, device=device, limit_s=seconds, best_known=best,
                 classic_gap_pct=classic, classic_s=arguments.classic, **row)  # fmt: skip


if __name__ == "__main__":
    main()
