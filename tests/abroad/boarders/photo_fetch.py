"""Fine-tunes a head over product photos' thumbnails, which asyncio and aiohttp fetch from the shop, sixteen a batch.

--fix: TCPConnector(limit_per_host=2 -> 16)."""
import asyncio
import http.server
import multiprocessing
import queue
import threading
import time

import aiohttp
import numpy as np
import torch
from torch import nn

from pace import Pace, options

SIDE, BATCH = 32, 16


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    photos = np.random.default_rng(14).integers(0, 255, (64, SIDE * SIDE * 3), np.uint8)

    def do_GET(self):
        time.sleep(0.03)
        body = self.photos[int(self.path.rsplit("/", 1)[1]) % len(self.photos)].tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    port.send(server.server_port)
    server.serve_forever()


async def fetch(session, url):
    async with session.get(url) as response:
        return np.frombuffer(await response.read(), np.uint8)


async def fetch_all(port, batches, at_once):
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit_per_host=at_once)) as session:
        for first in range(0, 10**9, BATCH):
            photos = await asyncio.gather(*(fetch(session, f"http://127.0.0.1:{port}/photos/{number}") for number in range(first, first + BATCH)))
            while batches.full():
                await asyncio.sleep(0.002)
            batches.put_nowait(np.stack(photos))


def main():
    args = options()
    torch.set_num_threads(1)
    receive, send = multiprocessing.Pipe(False)
    multiprocessing.Process(target=serve, args=(send,), daemon=True).start()
    batches = queue.Queue(4)
    threading.Thread(target=lambda port: asyncio.run(fetch_all(port, batches, 16 if args.fix else 2)), args=(receive.recv(),), daemon=True).start()
    model = nn.Sequential(nn.Linear(SIDE * SIDE * 3, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    while True:
        photos = torch.from_numpy(batches.get()).float() / 255
        loss = nn.functional.cross_entropy(model(photos), photos.sum(1).long() % 8)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
