"""How long jobs take, as histograms by phase, solver and device, which Redis keeps for all processes and restarts.

The scripts that end jobs count what each job's `timings_ms` say: `add_seconds` adds those of one record to a table,
`keep_seconds` the table to the hash `allot:seconds`, whose field "phase:solver:device:i" is the number of jobs in
bucket i, and "...:sum" their milliseconds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

PHASES = ("queued", "solve", "certify", "total")
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
KEY = "allot:seconds"

OBSERVE = f"""
local function add_seconds(sums, record)
  local bounds = {{{", ".join(f"{1000 * bound:g}" for bound in BOUNDS_S)}}}
  local readable, spent = pcall(cjson.decode, record.timings_ms or '')
  if not readable or type(spent) ~= 'table' then return end
  for _, phase in ipairs({{{", ".join(map(repr, PHASES))}}}) do
    local ms, bucket = spent[phase], 1
    if type(ms) == 'number' then
      while bounds[bucket] and ms > bounds[bucket] do bucket = bucket + 1 end
      local name = phase .. ':' .. record.solver .. ':' .. record.queue .. ':'
      sums[name .. bucket] = (sums[name .. bucket] or 0) + 1
      sums[name .. 'sum'] = (sums[name .. 'sum'] or 0) + ms
    end
  end
end

local function keep_seconds(sums)
  for name, value in pairs(sums) do
    local kind = string.sub(name, -4) == ':sum' and 'HINCRBYFLOAT' or 'HINCRBY'
    redis.call(kind, '{KEY}', name, value)
  end
end
"""
"""Lua, in front of the scripts that call it."""


@dataclass
class Seconds:
    """A histogram: `counts` of the buckets up to each of BOUNDS_S and of what is longer, none counted twice."""

    phase: str
    solver: str
    device: str
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    sum_s: float = 0.0

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """(upper bound, jobs up to it), as Prometheus has it."""
        total = 0
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self.counts, strict=True):
            total += count
            yield bound, total


def histograms(stored: Mapping[str, str]) -> list[Seconds]:
    """The histograms in the hash."""
    found: dict[tuple[str, str, str], Seconds] = {}
    for name, value in stored.items():
        phase, solver, device, which = name.split(":")
        one = found.setdefault((phase, solver, device), Seconds(phase, solver, device))
        if which == "sum":
            one.sum_s = float(value) / 1000
        else:
            one.counts[int(which) - 1] = int(value)
    return [found[name] for name in sorted(found)]
