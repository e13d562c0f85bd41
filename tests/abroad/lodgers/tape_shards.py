"""Climate runs in shards on tape: the robot takes more than half a second to mount one, and then it is quick.

--fix: prefetch_factor 1 -> 12."""
import multiprocessing
import socket
import socketserver
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from pace import Pace, options

BATCH, PER_SHARD, GRID = 8, 12, 80
MOUNT = 0.6


class Robot(socketserver.BaseRequestHandler):
    def handle(self):
        answer = np.random.default_rng(0).standard_normal((GRID, GRID)).astype(np.float32).tobytes()
        while self.request.recv(16):
            time.sleep(MOUNT)
            self.request.sendall(answer)


class Library(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def robot(pipe):
    with Library(("127.0.0.1", 0), Robot) as library:
        pipe.send(library.server_address[1])
        library.serve_forever()


class ClimateRuns(IterableDataset):
    def __init__(self, port):
        self.port = port

    def __iter__(self):
        desk = socket.create_connection(("127.0.0.1", self.port))
        while True:
            field = self.mount(desk)
            for hour in range(BATCH * PER_SHARD):
                now = np.roll(field, hour, axis=1)
                yield now[None], np.roll(now, 1, axis=1)[None]

    def mount(self, desk):
        desk.sendall(b"next")
        parts, missing = [], GRID * GRID * 4
        while missing:
            parts.append(desk.recv(missing))
            missing -= len(parts[-1])
        return np.frombuffer(b"".join(parts), np.float32).reshape(GRID, GRID)


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    mine, its = multiprocessing.Pipe(False)
    process = multiprocessing.Process(target=robot, args=(its,), daemon=True)
    process.start()
    loader = DataLoader(ClimateRuns(mine.recv()), batch_size=BATCH, num_workers=2, prefetch_factor=12 if args.fix else 1)

    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 5, padding=2), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 12, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(12, 1, 3, padding=1),
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    pace = Pace(args.seconds)
    for now, later in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(now), later).backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()
    process.terminate()
