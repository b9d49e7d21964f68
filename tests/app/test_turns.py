"""Requests of several owners begin in turns."""

import asyncio

from app.http.turns import Turns


async def begun(asked: list[str]) -> list[str]:
    """Owners in the order in which their requests begin, all of which came in one turn of the loop."""
    turns, order = Turns(), list[str]()

    async def request(owner: str) -> None:
        await turns.take(owner)
        order.append(owner)

    await asyncio.gather(*map(request, asked))
    return order


def test_an_owner_with_many_requests_costs_another_the_time_of_one() -> None:
    order = asyncio.run(begun(["eve"] * 50 + ["bob"] + ["eve"] * 50 + ["bob"]))
    assert sorted(order) == ["bob"] * 2 + ["eve"] * 100
    assert order.index("bob") <= 2
    assert order[:6].count("bob") == 2


def test_one_request_begins_in_a_turn_of_the_loop_and_a_lone_one_at_once() -> None:
    async def run() -> list[int]:
        turns, at, tick = Turns(), list[int](), 0

        async def request() -> None:
            await turns.take("ann")
            at.append(tick)

        tasks = [asyncio.create_task(request()) for _ in range(5)]
        for tick in range(20):  # noqa: B007  # read by the requests
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return at

    at = asyncio.run(run())
    assert len(set(at)) == 5
    assert at[0] == 0


def test_whoever_goes_away_gives_up_the_turn() -> None:
    async def run() -> list[str]:
        turns, order = Turns(), list[str]()

        async def request(owner: str) -> None:
            await turns.take(owner)
            order.append(owner)

        tasks = {owner: asyncio.create_task(request(owner)) for owner in ("ann", "bob", "cid")}
        await asyncio.sleep(0)
        tasks["bob"].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        await turns.take("dan")
        return order

    assert asyncio.run(run()) == ["ann", "cid"]
