"""asyncio gathers a batch of eight feature rows, but each coroutine calls urllib, which blocks the event loop.
--fix: asyncio.to_thread around that call."""
import asyncio
import os
import queue
import subprocess
import sys
import threading
import urllib.request

import numpy as np
import torch

from pace import Pace, options

BATCH = 8


def read_row(url):
    with urllib.request.urlopen(url) as answer:
        return np.frombuffer(answer.read(), np.float32)


async def row(url, in_thread):
    if in_thread:
        return await asyncio.to_thread(read_row, url)
    return read_row(url)


async def collect(port, in_thread, ready):
    number = 0
    while True:
        urls = [f"http://127.0.0.1:{port}/rows/{number + k}" for k in range(BATCH)]
        number += BATCH
        rows = await asyncio.gather(*(row(url, in_thread) for url in urls))
        await asyncio.to_thread(ready.put, np.stack(rows))


def main():
    args = options()
    torch.set_num_threads(1)
    shelf = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shelf.py")
    server = subprocess.Popen([sys.executable, shelf, "0.012"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    ready = queue.Queue(4)
    threading.Thread(target=lambda: asyncio.run(collect(port, args.fix, ready)), name="collector", daemon=True).start()
    model = torch.nn.Sequential(torch.nn.Linear(96, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    pace = Pace(args.seconds)
    try:
        while True:
            rows = torch.from_numpy(ready.get())
            loss = (model(rows).squeeze(1) - rows[:, 0]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        server.kill()
        server.wait()
        os._exit(0)


if __name__ == "__main__":
    main()
