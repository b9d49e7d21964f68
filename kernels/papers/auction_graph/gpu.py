"""The auction's rounds as CUDA graphs of single steps (`steps.cu`), for comparison with the persistent kernel."""

from typing import Any

import cupy

from kernels.auction.gpu_buffers import Device

STEPS = "papers/auction_graph/steps.cu"
GRAPH_ROUNDS = 64
"""Rounds captured into one CUDA graph."""
ROUND = ("bid", "reread", "settle", "award", "tidy", "finish")
ALONE = {"blocks": 1, "block": 1}


def captured(device: Device) -> Any:
    """GRAPH_ROUNDS rounds, each step a launch of its own, captured once."""
    stream = cupy.cuda.Stream(non_blocking=True)
    device.load(STEPS, *(f"{step}_round" for step in ROUND))
    with stream:
        stream.begin_capture()
        for _ in range(GRAPH_ROUNDS):
            for step in ROUND:
                device.launch(STEPS, f"{step}_round", **(ALONE if step == "finish" else {}))
        return stream.end_capture()


def run_rounds(device: Device, graph: Any, n_phases: int, until: int, stop: int, patience: int) -> None:
    """The persistent kernel's work with the host in the loop: a graph of rounds, then a look at the queue."""
    state = device.state()
    while state["phase"] < n_phases and state["rounds"] < until:
        if not state["opened"]:
            for step in ("open_phase", "open_stale", "close_open"):
                device.launch(STEPS, step, **(ALONE if step == "close_open" else {}))
        graph.launch(cupy.cuda.get_current_stream())
        state = device.state()
        if state["n_queue"] <= stop or state["rounds"] + 1 - state["opened"] >= patience:
            device.launch(STEPS, "close_phase", **ALONE)
            state = device.state()
