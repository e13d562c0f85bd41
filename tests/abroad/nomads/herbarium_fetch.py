"""Herbarium sheets from a public image service: aiohttp client in a thread of its own, a torch classifier in the main one."""
import asyncio
import multiprocessing
import queue
import random
import threading

import aiohttp
import numpy as np
import torch
from aiohttp import web
from torch import nn

from pace import Pace, options

BATCH, SIDE, GENERA = 8, 48, 6
REQUESTS_PER_SECOND = 80  # what the service grants to one client


def serve(port_pipe):
    """Stands for the image service: spaces the answers of a client out."""
    async def sheet(request):
        loop = asyncio.get_running_loop()
        slot = max(loop.time(), request.app["next"][0])
        request.app["next"][0] = slot + 1 / REQUESTS_PER_SECOND
        await asyncio.sleep(slot - loop.time() + 0.004)
        number = int(request.match_info["number"])
        rng = np.random.default_rng(number)
        pixels = rng.integers(0, 120, (SIDE, SIDE)).astype(np.uint8)
        pixels[:, :: 2 + number % GENERA] += 100
        return web.Response(body=pixels.tobytes(), content_type="application/octet-stream")

    async def run():
        app = web.Application()
        app["next"] = [0.0]
        app.router.add_get("/sheet/{number}", sheet)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port_pipe.send(site._server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(run())


async def fetch_sheet(session, number):
    async with session.get(f"/sheet/{number}") as response:
        response.raise_for_status()
        body = await response.read()
    return np.frombuffer(body, np.uint8).reshape(1, SIDE, SIDE), number % GENERA


async def crawl(base, connections, batches, stopped):
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(base, connector=connector) as session:
        wanted = [asyncio.create_task(fetch_sheet(session, random.randrange(10_000))) for _ in range(connections)]
        sheets = []
        while not stopped.is_set():
            done, rest = await asyncio.wait(wanted, return_when=asyncio.FIRST_COMPLETED)
            sheets += [task.result() for task in done]
            wanted = list(rest) + [asyncio.create_task(fetch_sheet(session, random.randrange(10_000))) for _ in done]
            while len(sheets) >= BATCH:
                chosen, sheets = sheets[:BATCH], sheets[BATCH:]
                batches.put((np.stack([pixels for pixels, _ in chosen]), np.array([genus for _, genus in chosen])))
        for task in wanted:
            task.cancel()
        await asyncio.gather(*wanted, return_exceptions=True)


def main():
    args = options()
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    service = context.Process(target=serve, args=(there,), daemon=True)
    service.start()
    batches, stopped = queue.Queue(), threading.Event()
    base = f"http://127.0.0.1:{here.recv()}"
    crawler = threading.Thread(target=lambda: asyncio.run(crawl(base, 64 if args.fix else 8, batches, stopped)))
    crawler.start()
    model = nn.Sequential(nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(144, GENERA))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    pace = Pace(args.seconds)
    try:
        while True:
            pixels, genera = batches.get()
            loss = nn.functional.cross_entropy(model(torch.from_numpy(pixels).float() / 255), torch.from_numpy(genera))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        print(f"loss {loss.item():.3f}")
        pace.show()
    finally:
        stopped.set()
        crawler.join()
        service.terminate()
        service.join()


if __name__ == "__main__":
    main()
