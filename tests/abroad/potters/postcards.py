"""Old postcards: a network guesses the decade of a card. The scans come over HTTP from the archive's server, which
has a line of its own speed (played here by a second process); --fix asks for more cards at a time."""
import asyncio
import multiprocessing
import os

import aiohttp
import torch
from aiohttp import web

from pace import Pace, options

CARD = (3, 160, 240)
LINE = 5e6     # bytes a second for all who ask
PER_BATCH = 4


def serve(pipe):
    card = os.urandom(CARD[0] * CARD[1] * CARD[2])

    async def answer(request):
        response = web.StreamResponse(headers={"Content-Length": str(len(card))})
        await response.prepare(request)
        for at in range(0, len(card), 16384):
            piece = card[at:at + 16384]
            loop = asyncio.get_running_loop()
            request.app["free"][0] = due = max(request.app["free"][0], loop.time()) + len(piece) / LINE
            await asyncio.sleep(due - loop.time())
            await response.write(piece)
        return response

    async def main():
        app = web.Application()
        app["free"] = [0.0]
        app.router.add_get("/card/{number}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        pipe.send(site._server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(main())


class Decades(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))

    def forward(self, cards):
        return self.layers(cards.float() / 255)


async def download(session, number):
    async with session.get(f"/card/{number}") as response:
        return torch.frombuffer(bytearray(await response.read()), dtype=torch.uint8).view(CARD)


async def collect(session, numbers, ready):
    while True:
        cards = [await download(session, next(numbers)) for _ in range(PER_BATCH)]
        await ready.put(torch.stack(cards))


async def train(port, args):
    model = Decades()
    model(torch.zeros(1, *CARD))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    ready, pace, numbers = asyncio.Queue(8), Pace(args.seconds), iter(range(10**9))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        collectors = [asyncio.create_task(collect(session, numbers, ready)) for _ in range(10 if args.fix else 4)]
        while True:
            cards = await ready.get()
            loss = torch.nn.functional.cross_entropy(model(cards), torch.randint(10, (len(cards),)))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if pace.done():
                break
        for task in collectors:
            task.cancel()
    pace.show()


if __name__ == "__main__":
    here, there = multiprocessing.Pipe()
    archive = multiprocessing.get_context("fork").Process(target=serve, args=(there,), name="archive", daemon=True)
    archive.start()
    try:
        torch.set_num_threads(1)
        asyncio.run(train(here.recv(), options()))
    finally:
        archive.terminate()
        archive.join()
