"""What blocks and the host tell each other through incumbent.cuh: the ring of costs, and where things stand in it."""

from kernels.layout import enumeration, struct

RING = 64
"""Entries: none is lost unless so many come between two looks of the host."""
RELAY = ("RELAY_LEAST", "RELAY_TOLD", "RELAY_ASKED", "RELAY_STOP")
"""On the device: the least cost, how many entries were told, when the host was asked, what it said."""

NEWS = struct(
    "News",
    """
    long long* relay                 // [RELAY]
    volatile long long* mailbox      // [1 + 2 RING], of the host: the word to stop, then numbers from 1 and costs
    """,
)
CUDA = "\n".join([f"constexpr int RING = {RING};", enumeration("Relay", RELAY), NEWS.text])
