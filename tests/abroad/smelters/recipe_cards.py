"""Learns how long a dish takes from recipe cards which a web service hands out one by one."""
import asyncio
import multiprocessing
import random

import aiohttp
import numpy as np
from aiohttp import web

from pace import Pace, options

CARDS, WORDS, BATCH = 5000, 300, 16


def kitchen(port_out):
    """The service: its database takes some 15 ms for a card."""
    async def card(request):
        number = int(request.match_info["number"])
        await asyncio.sleep(random.uniform(0.01, 0.02))
        rng = random.Random(number)
        words = [rng.randrange(WORDS) for _ in range(25)]
        return web.json_response({"words": words, "minutes": sum(words) / 100})

    async def serve():
        app = web.Application()
        app.router.add_get("/cards/{number}", card)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port_out.send(site._server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(serve())


class CookingTime:
    def __init__(self):
        self.weight = np.zeros(WORDS)

    def learn(self, counts, minutes):
        error = counts @ self.weight - minutes
        self.weight -= 0.001 * counts.T @ error
        return float(np.abs(error).mean())


async def fetch_card(session, address, number):
    async with session.get(f"{address}/cards/{number}") as answer:
        return await answer.json()


async def next_cards(session, address, together):
    numbers = random.sample(range(CARDS), BATCH)
    if together:
        return await asyncio.gather(*(fetch_card(session, address, n) for n in numbers))
    return [await fetch_card(session, address, n) for n in numbers]


def collate(cards):
    counts = np.zeros((len(cards), WORDS))
    for row, card in enumerate(cards):
        np.add.at(counts[row], card["words"], 1)
    return counts, np.array([card["minutes"] for card in cards])


async def train(args, port):
    model, pace = CookingTime(), Pace(args.seconds)
    async with aiohttp.ClientSession() as session:
        while True:
            cards = await next_cards(session, f"http://127.0.0.1:{port}", args.fix)
            error = model.learn(*collate(cards))
            if pace.done():
                break
    print(f"error {error:.2f} minutes")
    pace.show()


def main():
    args = options()
    here, there = multiprocessing.Pipe()
    service = multiprocessing.Process(target=kitchen, args=(there,), daemon=True)
    service.start()
    try:
        asyncio.run(train(args, here.recv()))
    finally:
        service.terminate()
        service.join()


if __name__ == "__main__":
    main()
