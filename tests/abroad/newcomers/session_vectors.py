"""A generator of batches over a key-value store, with a thread pool that fetches keys. --fix: max_workers 8 instead of 2."""
import collections
import itertools
import pathlib
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from pace import Pace, options


class RespClient:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def get(self, key):
        key = key.encode()
        self.socket.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key))
        size = int(self.file.readline()[1:])
        return self.file.read(size + 2)[:-2]


class Feed:
    def __init__(self, port, max_workers, batch_size=8, ahead=32):
        self.port, self.batch_size, self.ahead = port, batch_size, ahead
        self.local = threading.local()
        self.pool = ThreadPoolExecutor(max_workers=max_workers, thread_name_prefix="feed")

    def fetch(self, number):
        if not hasattr(self.local, "client"):
            self.local.client = RespClient(self.port)
        return np.frombuffer(self.local.client.get(f"session:{number}"), np.float32)

    def __iter__(self):
        pending = collections.deque()
        for number in itertools.count():
            pending.append(self.pool.submit(self.fetch, number))
            if len(pending) >= self.ahead:
                yield torch.from_numpy(np.stack([pending.popleft().result() for _ in range(self.batch_size)]))


def main():
    args = options()
    store = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).with_name("resp_store.py"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port = int(store.stdout.readline())
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))
    adam = torch.optim.Adam(net.parameters())
    pace = Pace(args.seconds)
    feed = Feed(port, 8 if args.fix else 2)
    for batch in feed:
        loss = torch.nn.functional.mse_loss(net(batch), batch)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if pace.over():
            break
    pace.report()
    feed.pool.shutdown(wait=True, cancel_futures=True)
    store.kill()


if __name__ == "__main__":
    main()
