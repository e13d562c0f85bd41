"""asyncio and aiohttp ask a feature gateway, six requests at a time; the gateway greets each new connection after 40 ms, as a far handshake does.
--fix: one session, kept alive, for all requests."""
import asyncio
import os
import queue
import subprocess
import sys
import threading

import aiohttp
import numpy as np
import torch

from pace import Pace, options

BATCH = 6


async def ask(session, url):
    async with session.get(url) as answer:
        return np.frombuffer(await answer.read(), np.float32)


async def ask_alone(url):
    async with aiohttp.ClientSession() as session:
        return await ask(session, url)


async def fetch(port, shared, ready):
    number = 0
    async with aiohttp.ClientSession() as session:
        while True:
            urls = [f"http://127.0.0.1:{port}/users/{number + k}" for k in range(BATCH)]
            number += BATCH
            rows = await asyncio.gather(*(ask(session, url) if shared else ask_alone(url) for url in urls))
            while ready.full():
                await asyncio.sleep(0.001)
            ready.put_nowait(np.stack(rows))


def main():
    args = options()
    torch.set_num_threads(1)
    server = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gateway.py")], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    ready = queue.Queue(4)
    threading.Thread(target=lambda: asyncio.run(fetch(port, args.fix, ready)), name="fetcher", daemon=True).start()
    model = torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    pace = Pace(args.seconds)
    try:
        while True:
            rows = torch.from_numpy(ready.get())
            loss = (model(rows).squeeze(1) - rows.mean(1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        server.kill()
        server.wait()
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
