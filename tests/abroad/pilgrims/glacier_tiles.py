"""Ice or rock, tile by tile; the tiles lie in the institute's object store (played by a child process)."""
import asyncio
import http.client
import multiprocessing
import random
import socket

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SIDE, BANDS, TILES = 64, 4, 4000


def institute(sock):
    """GET /tile/N: the answer comes some milliseconds later, as from any bucket."""
    body = np.random.default_rng(0).integers(0, 4096, (16, BANDS, SIDE, SIDE), dtype=np.uint16)
    bodies = [one.tobytes() for one in body]

    async def talk(reader, writer):
        try:
            while line := await reader.readline():
                name = int(line.split()[1].rsplit(b"/", 1)[1])
                while (await reader.readline()).strip():
                    pass
                await asyncio.sleep(random.uniform(0.005, 0.008))
                data = bodies[name % 16]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        writer.close()

    async def serve():
        async with await asyncio.start_server(talk, sock=sock) as server:
            await server.serve_forever()

    asyncio.run(serve())


class Tiles(Dataset):
    def __init__(self, port):
        self.port, self.link = port, None

    def __len__(self):
        return TILES

    def __getitem__(self, i):
        if self.link is None:
            self.link = http.client.HTTPConnection("127.0.0.1", self.port)
        self.link.request("GET", f"/tile/{i}")
        raw = self.link.getresponse().read()
        tile = np.frombuffer(raw, np.uint16).reshape(BANDS, SIDE, SIDE).astype(np.float32) / 4096
        return torch.from_numpy(tile), i % 2


def main():
    args = options()
    torch.set_num_threads(1)
    sock = socket.create_server(("127.0.0.1", 0))
    child = multiprocessing.get_context("fork").Process(target=institute, args=(sock,), daemon=True)
    child.start()
    loader = DataLoader(Tiles(sock.getsockname()[1]), batch_size=8, shuffle=True, persistent_workers=True,
                        num_workers=6 if args.fix else 1)
    net = nn.Sequential(nn.Conv2d(BANDS, 8, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    net(torch.zeros(1, BANDS, SIDE, SIDE))
    sgd = torch.optim.SGD(net.parameters(), 0.01)
    pace, over = Pace(args.seconds), False
    while not over:
        for tiles, ice in loader:
            loss = nn.functional.cross_entropy(net(tiles), ice)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            if over := pace.done():
                break
    pace.show()
    child.terminate()


if __name__ == "__main__":
    main()
