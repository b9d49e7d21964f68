"""The table of contents: which file is which page, in the order of the navigation."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Page:
    """One page: its title in the navigation, its address under /docs/, and the Markdown that it is made of."""

    title: str
    address: str
    source: str

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        return f"/docs/{self.address}".rstrip("/")


CONTENTS: dict[str, list[Page]] = {
    "Start": [
        Page("Start here", "", "docs/start.md"),
        Page("Command line", "command-line", "docs/command-line.md"),
        Page("Python client", "client", "client/README.md"),
        Page("Coming from another library", "coming-from", "docs/coming-from.md"),
        Page("Examples", "examples", "examples/README.md"),
    ],
    "Guides": [
        Page("Facility planning", "guides/facility-planning", "docs/guides/facility-planning.md"),
        Page("Operations", "guides/operations", "docs/guides/operations.md"),
        Page("Tracking", "guides/tracking", "docs/guides/tracking.md"),
        Page("Single cell", "guides/single-cell", "docs/guides/single-cell.md"),
        Page("Machine learning", "guides/machine-learning", "docs/guides/machine-learning.md"),
        Page("Agents (MCP)", "guides/agents", "docs/guides/agents.md"),
    ],
    "Solvers": [
        Page("Which solver", "solvers", "docs/solvers/README.md"),
        Page("lap", "solvers/lap", "docs/solvers/lap.md"),
        Page("auction", "solvers/auction", "docs/solvers/auction.md"),
        Page("uot", "solvers/uot", "docs/solvers/uot.md"),
        Page("qap", "solvers/qap", "docs/solvers/qap.md"),
        Page("lawler", "solvers/lawler", "docs/solvers/lawler.md"),
        Page("barycenter", "solvers/barycenter", "docs/solvers/barycenter.md"),
        Page("lowrank", "solvers/lowrank", "docs/solvers/lowrank.md"),
        Page("gromov", "solvers/gromov", "docs/solvers/gromov.md"),
        Page("multimarginal", "solvers/multimarginal", "docs/solvers/multimarginal.md"),
    ],
    "Reference": [
        Page("HTTP in words", "http", "docs/http.md"),
        Page("Trust", "trust", "docs/trust.md"),
    ],
    "Benchmarks": [
        Page("Summary", "benchmarks", "docs/benchmarks.md"),
        Page("lap systems", "benchmarks/lap_systems", "docs/benchmarks/lap_systems.md"),
        Page("auction", "benchmarks/auction", "docs/benchmarks/auction.md"),
        Page("uot", "benchmarks/uot", "docs/benchmarks/uot.md"),
        Page("qap", "benchmarks/qap", "docs/benchmarks/qap.md"),
    ],
    "Operating": [
        Page("Deploying", "deploying", "docs/deploying.md"),
        Page("Operating", "operations", "docs/operations/README.md"),
        Page("Sizing", "operations/sizing", "docs/operations/sizing.md"),
        Page("Kubernetes", "operations/kubernetes", "docs/operations/kubernetes.md"),
        Page("Sentinel", "operations/sentinel", "docs/operations/sentinel.md"),
        Page("Backup", "operations/backup", "docs/operations/backup.md"),
        Page("Upgrade", "operations/upgrade", "docs/operations/upgrade.md"),
        Page("Runbooks", "operations/runbooks", "docs/operations/runbooks.md"),
        Page("Disasters", "operations/disasters", "docs/operations/disasters.md"),
    ],
    "Inside": [
        Page("Architecture", "architecture", "docs/architecture.md"),
        Page("How lap works", "inside/lap", "kernels/lap/README.md"),
        Page("How auction works", "inside/auction", "kernels/auction/README.md"),
        Page("How uot works", "inside/uot", "kernels/uot/README.md"),
        Page("How qap works", "inside/qap", "kernels/qap/README.md"),
        Page("How lawler works", "inside/lawler", "kernels/lawler/README.md"),
        Page("How barycenter works", "inside/barycenter", "kernels/barycenter/README.md"),
        Page("How lowrank works", "inside/lowrank", "kernels/lowrank/README.md"),
        Page("How gromov works", "inside/gromov", "kernels/gromov/README.md"),
        Page("How multimarginal works", "inside/multimarginal", "kernels/multimarginal/README.md"),
        Page("Development", "development", "docs/development.md"),
        Page("Contributing", "contributing", "CONTRIBUTING.md"),
        Page("Security", "security", "SECURITY.md"),
        Page("Changelog", "changelog", "CHANGELOG.md"),
    ],
}
"""What is not listed here (notes, decisions) comes last under Inside."""


def pages() -> dict[str, list[Page]]:
    """Every page by its section; what docs/ holds and nobody listed comes last, so that nothing is forgotten."""
    found = {section: list(listed) for section, listed in CONTENTS.items()}
    known = {page.source for listed in found.values() for page in listed}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        source = path.relative_to(ROOT).as_posix()
        if source not in known:
            address = source.removeprefix("docs/").removesuffix(".md").removesuffix("/README")
            found["Inside"].append(Page(_title(path), address, source))
    return found


def _title(path: Path) -> str:
    """The first heading of a page."""
    return next(line for line in path.read_text().splitlines() if line.startswith("# ")).removeprefix("# ").strip()
