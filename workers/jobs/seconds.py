"""How long jobs take, as histograms by phase, solver and device, which Redis keeps for all processes and restarts.

The scripts that end jobs count what each job's `timings_ms` say: `add_seconds` adds those of one record to a table, and
`keep_seconds` the table to one string for each solver and device, `allot:seconds:{solver}:{device}`. It holds whole
numbers of 64 bits: for each phase the microseconds of all jobs, then the number of jobs in each bucket. So one command
counts all that a job, or a batch, has to be counted for.

Earlier releases kept the hash `allot:seconds`: its field "phase:solver:device:i" is the number of jobs in bucket i, and
"...:sum" their milliseconds. What stands in it still counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

PHASES = ("queued", "solve", "certify", "total")
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
KEY = "allot:seconds"

SLOTS = len(BOUNDS_S) + 2
"""Numbers of one phase in a string: the sum, and the buckets."""
NUMBERS = len(PHASES) * SLOTS
"""Of a string."""
MOST_MS = 1e12
"""Thirty years; whatever is said to have taken longer is counted so, as a sum has an end."""
OBSERVE = f"""
local BOUNDS = {{{", ".join(f"{1000 * bound:g}" for bound in BOUNDS_S)}}}
local PHASES = {{{", ".join(map(repr, PHASES))}}}
local function add_seconds(sums, record)
  local readable, spent = pcall(cjson.decode, record.timings_ms or '')
  if not readable or type(spent) ~= 'table' then return end
  local name = record.solver .. ':' .. record.queue
  local slots = sums[name] or {{}}
  sums[name] = slots
  for k, phase in ipairs(PHASES) do
    local ms, first, bucket = spent[phase], (k - 1) * {SLOTS}, 1
    if type(ms) == 'number' and ms == ms then
      while BOUNDS[bucket] and ms > BOUNDS[bucket] do bucket = bucket + 1 end
      slots[first] = (slots[first] or 0) + 1000 * math.max(0, math.min(ms, {MOST_MS:.0f}))
      slots[first + bucket] = (slots[first + bucket] or 0) + 1
    end
  end
end
local function keep_seconds(sums)
  for name, slots in pairs(sums) do
    local told = {{}}
    for slot, value in pairs(slots) do
      local at, more = #told, string.format('%.0f', value)
      told[at + 1], told[at + 2], told[at + 3], told[at + 4] = 'INCRBY', 'i64', '#' .. slot, more
    end
    if #told > 0 then redis.call('BITFIELD', '{KEY}:' .. name, unpack(told)) end
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


def histograms(
    stored: Mapping[str, str], counted: Mapping[tuple[str, str], Sequence[int]] | None = None
) -> list[Seconds]:
    """The histograms in the hash of earlier releases, and in the strings: the numbers of each by solver and device."""
    found: dict[tuple[str, str, str], Seconds] = {}
    for name, value in stored.items():
        phase, solver, device, which = name.split(":")
        one = found.setdefault((phase, solver, device), Seconds(phase, solver, device))
        if which == "sum":
            one.sum_s = float(value) / 1000
        else:
            one.counts[int(which) - 1] = int(value)
    for (solver, device), numbers in (counted or {}).items():
        for number, phase in enumerate(PHASES):
            total_us, *counts = numbers[SLOTS * number : SLOTS * (number + 1)] or [0]
            if any(counts):
                one = found.setdefault((phase, solver, device), Seconds(phase, solver, device))
                one.sum_s += total_us / 1e6
                one.counts = [before + more for before, more in zip(one.counts, counts, strict=True)]
    return [found[name] for name in sorted(found)]
