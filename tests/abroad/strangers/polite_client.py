"""A client that keeps itself to so many reads a second, of a store that could do more."""
import socket
import threading
import time
from queue import Queue

import numpy as np
import torch

import stores
from pace import Pace, options


class Limiter:
    def __init__(self, per_second):
        self.gap, self.next = 1 / per_second, time.monotonic()

    def wait(self):
        self.next = max(self.next + self.gap, time.monotonic())
        time.sleep(max(0, self.next - time.monotonic()))


class Feed:
    def __init__(self, port, per_second, batch):
        self.queue, self.batch, self.limiter = Queue(8), batch, Limiter(per_second)
        self.file = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        threading.Thread(target=self.work, daemon=True).start()

    def fetch(self, n):
        key = b"item:%d" % n
        self.limiter.wait()
        self.file.write(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key))
        self.file.flush()
        return np.frombuffer(self.file.read(int(self.file.readline()[1:]) + 2)[:-2], np.uint8)

    def work(self):
        n = 0
        while True:
            self.queue.put(np.stack([self.fetch(n + k) for k in range(self.batch)]))
            n += self.batch

    def __iter__(self):
        while True:
            yield torch.from_numpy(self.queue.get()).float()


args = options()
feed = Feed(stores.start("resp_store.py", 0), 800 if args.fix else 160, batch=8)
net = torch.nn.Sequential(torch.nn.Linear(1024, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
adam = torch.optim.Adam(net.parameters())
pace = Pace(args.seconds)
for x in feed:
    adam.zero_grad()
    net(x / 255).square().mean().backward()
    adam.step()
    if pace.tick():
        break
pace.show()
