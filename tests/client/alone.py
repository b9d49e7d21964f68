"""What `allot-client` must do where nothing but its wheel is installed: part of `make wheel`.

    python -W error alone.py URL

Every call goes to the service at URL, which may know auctions alone. NumPy and httpx are all that is imported besides.
"""

import asyncio
import importlib
import pkgutil
import sys
import types
import typing
from collections.abc import Callable

import allot_client
import numpy as np
from allot_client import AsyncClient, Client, InvalidInput, Unreachable, as_completed

NEEDS_MORE = ("torch", "jax", "__main__")
BENEFIT = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
BEST, ASSIGNMENT = 11, [0, 2, 1]


def every_module_with_its_types(client: Client) -> None:
    """Annotations are resolved too: what they name must exist on this Python."""
    only_named = {"Client": Client, "AsyncClient": AsyncClient}
    for module in pkgutil.walk_packages(allot_client.__path__, "allot_client."):
        if module.name.rpartition(".")[2] in NEEDS_MORE:
            continue
        found = importlib.import_module(module.name)
        for value in vars(found).values():
            if isinstance(value, (type, types.FunctionType)) and value.__module__ == found.__name__:
                typing.get_type_hints(value, localns=only_named)


def one_problem(client: Client) -> None:
    answer = client.auction(BENEFIT)
    assert (answer.objective, answer.assignment.tolist(), answer.gap) == (BEST, ASSIGNMENT, 0)
    assert answer.optimal
    assert "the best possible; proved" in answer.in_words()


def points_and_large_arrays(client: Client) -> None:
    """Too many numbers for JSON: they go as .npy, and come back as safetensors."""
    x = np.random.default_rng(0).random((300, 2))
    answer = client.auction(x=x, y=x[::-1], metric="sqeuclidean")
    assert answer.assignment.tolist() == list(range(299, -1, -1))
    dense = -((x[:, None] - x[None, ::-1]) ** 2).sum(-1)
    assert client.auction(client.upload(dense)).assignment.tolist() == answer.assignment.tolist()


def several_at_a_time(client: Client) -> None:
    found = list(client.map(client.auction, [BENEFIT + k for k in range(5)], concurrency=2))
    assert [one.objective for one in found] == [BEST + 3 * k for k in range(5)]


def jobs_and_their_events(client: Client) -> None:
    jobs = [client.submit("auction", {"benefit": BENEFIT}) for _ in range(3)]
    assert {job.id for job in as_completed(jobs)} == {job.id for job in jobs}
    assert [event.kind for event in jobs[0].events()][-1]
    assert jobs[0].result().objective == BEST
    assert {job.id for job in jobs} <= {view["id"] for view in client.jobs()}


def words_for_what_is_wrong(client: Client) -> None:
    fields: list[str] = []
    try:
        client.auction(BENEFIT, epsilon="much")
    except InvalidInput as wrong:
        fields = [fault.field for fault in wrong.faults]
    assert any("epsilon" in field for field in fields), fields


def no_service_of_its_own(client: Client) -> None:
    told = ""
    try:
        Client.local().close()
    except Unreachable as wrong:
        told = str(wrong)
    assert "pip install allot" in told, told


def the_same_in_asyncio(client: Client) -> None:
    async def ask() -> None:
        async with AsyncClient(client.url) as other:
            job = await other.submit("auction", {"benefit": BENEFIT})
            assert (await job.result()).objective == BEST
            found = [one.objective async for one in other.map(other.auction, [BENEFIT] * 4)]
            assert found == [BEST] * 4

    asyncio.run(ask())


TRIED: tuple[Callable[[Client], None], ...] = (
    every_module_with_its_types, one_problem, points_and_large_arrays, several_at_a_time, jobs_and_their_events,
    words_for_what_is_wrong, no_service_of_its_own, the_same_in_asyncio,
)  # fmt: skip

if __name__ == "__main__":
    with Client(sys.argv[1]) as client:
        for tried in TRIED:
            tried(client)
    extra = sorted({"torch", "jax", "cupy", "scipy", "pandas", "anndata"} & set(sys.modules))
    assert not extra, f"imported without being asked for: {extra}"
