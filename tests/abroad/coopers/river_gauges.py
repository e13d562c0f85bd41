"""Forecasts a river's level from upstream gauges. asyncio: tasks fetch windows of readings from the gauges' service
(aiohttp, a child process on localhost) into a queue, the training takes them from there.

--fix: the hold-out years are evaluated every 60 batches, not every second one.
"""
import asyncio
import contextlib
import multiprocessing
import os

import aiohttp
import numpy as np
import torch
from aiohttp import web
from torch import nn

from pace import Pace, options

GAUGES, HOURS, BATCH, HELD_OUT = 12, 48, 32, 24_000


def gauge_service(pipe):
    windows = np.random.default_rng(4).normal(size=(4096, HOURS, GAUGES)).astype("float32")

    async def window(request):
        lo = int(request.match_info["start"]) % (len(windows) - BATCH)
        await asyncio.sleep(0.01)
        return web.Response(body=windows[lo:lo + BATCH].tobytes())

    async def serve():
        app = web.Application()
        app.router.add_get("/windows/{start}", window)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        pipe.send(runner.addresses[0][1])
        parent = os.getppid()
        while os.getppid() == parent:
            await asyncio.sleep(0.5)

    asyncio.run(serve())


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear((HOURS - 1) * GAUGES, 64), nn.ReLU(), nn.Linear(64, GAUGES))

    def forward(self, windows):
        return self.net(windows[:, :-1])


@torch.no_grad()
def evaluate(model, held_out):
    model.eval()
    error = sum(nn.functional.l1_loss(model(part), part[:, -1]).item() for part in held_out.split(1000))
    model.train()
    return error / (len(held_out) / 1000)


async def fetch(session, port, number, queue):
    start = number * 977
    while True:
        async with session.get(f"http://127.0.0.1:{port}/windows/{start}") as answer:
            body = await answer.read()
        readings = np.frombuffer(bytearray(body), "float32").reshape(BATCH, HOURS, GAUGES)
        await queue.put(torch.from_numpy(readings))
        start += 31


async def train(args, port):
    torch.set_num_threads(1)
    queue, pace = asyncio.Queue(maxsize=16), Pace(args.seconds)
    model = Forecast()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    held_out = torch.randn(HELD_OUT, HOURS, GAUGES)
    every, batches, best, over = 60 if args.fix else 2, 0, float("inf"), False
    async with aiohttp.ClientSession() as session:
        tasks = [asyncio.create_task(fetch(session, port, number, queue)) for number in range(8)]
        while not over:
            windows = await queue.get()
            loss = nn.functional.mse_loss(model(windows), windows[:, -1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batches += 1
            if batches % every == 0:
                best = min(best, evaluate(model, held_out))
            over = pace.done()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
    pace.show()


if __name__ == "__main__":
    arguments = options()
    here, there = multiprocessing.Pipe()
    service = multiprocessing.Process(target=gauge_service, args=(there,), daemon=True, name="gauges")
    service.start()
    try:
        asyncio.run(train(arguments, here.recv()))
    finally:
        service.terminate()
        service.join()
