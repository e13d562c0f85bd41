"""Volumes over a link of 6 MB a second. --fix transfers bytes instead of 32-bit floats."""
import multiprocessing as mp
import os
import socket
import struct
import threading
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SHAPE = (24, 32, 32)
BYTES_PER_SECOND = 6_000_000


class Link:
    """All that goes out shares one budget."""

    def __init__(self):
        self.lock, self.free_at = threading.Lock(), 0.0

    def send(self, connection, data):
        for at in range(0, len(data), 16384):
            piece = data[at:at + 16384]
            with self.lock:
                now = time.monotonic()
                self.free_at = max(now, self.free_at) + len(piece) / BYTES_PER_SECOND
                pause = self.free_at - now
            time.sleep(pause)
            connection.sendall(piece)


def serve(listener):
    link = Link()
    volume = np.random.default_rng(0).integers(0, 150, SHAPE, dtype=np.uint8)

    def client(connection):
        while True:
            request = connection.recv(16)
            if not request:
                return
            number, size = struct.unpack("<qq", request)
            link.send(connection, (volume + np.uint8(number % 100)).astype(np.float32 if size == 4 else np.uint8).tobytes())

    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=client, args=(connection,), daemon=True).start()


def receive(connection, size):
    buffer = bytearray(size)
    view, got = memoryview(buffer), 0
    while got < size:
        n = connection.recv_into(view[got:])
        if n == 0:
            raise EOFError
        got += n
    return buffer


class RemoteVolumes(Dataset):
    def __init__(self, address, kind):
        self.address, self.kind, self.connections = address, np.dtype(kind), {}

    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        connection = self.connections.get(os.getpid())
        if connection is None:
            connection = self.connections[os.getpid()] = socket.create_connection(self.address)
        connection.sendall(struct.pack("<qq", i, self.kind.itemsize))
        data = receive(connection, int(np.prod(SHAPE)) * self.kind.itemsize)
        return torch.from_numpy(np.frombuffer(data, self.kind).reshape(SHAPE).astype(np.float32))


if __name__ == "__main__":
    args = options()
    listener = socket.create_server(("127.0.0.1", 0))
    store = mp.get_context("fork").Process(target=serve, args=(listener,), daemon=True)
    store.start()
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(24, 4, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(4, 24, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.001)
    loader = DataLoader(RemoteVolumes(listener.getsockname(), "uint8" if args.fix else "float32"), batch_size=4, num_workers=3)
    pace = Pace(args.seconds)
    for volumes in loader:
        loss = (net(volumes / 255)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if pace.over():
            break
    pace.report()
    store.kill()
