"""Features of users from a key-value store, fetched by a thread pool and put together in order."""
import collections
import concurrent.futures
import socket
import threading

import numpy as np
import torch

import stores
from pace import Pace, options


class Client:
    def __init__(self, port):
        self.port, self.local = port, threading.local()

    def get(self, key):
        if not hasattr(self.local, "file"):
            connection = socket.create_connection(("127.0.0.1", self.port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.local.file = connection.makefile("rwb")
        f = self.local.file
        f.write(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key))
        f.flush()
        size = int(f.readline()[1:])
        return f.read(size + 2)[:-2]


def features(client, users):
    return torch.from_numpy(np.stack([np.frombuffer(client.get(b"user:%d" % u), np.uint8) for u in users]))


def stream(client, threads, ahead=16):
    with concurrent.futures.ThreadPoolExecutor(max_workers=threads) as pool:
        pending, user = collections.deque(), 0
        while True:
            while len(pending) < ahead:
                pending.append(pool.submit(features, client, range(user, user + 4)))
                user += 4
            yield pending.popleft().result()


def main():
    args = options()
    client = Client(stores.start("resp_store.py", 0.012))
    tower = torch.nn.Sequential(torch.nn.Linear(1024, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimiser = torch.optim.Adagrad(tower.parameters())
    pace = Pace(args.seconds)
    batches = stream(client, threads=8 if args.fix else 2)
    for x in batches:
        optimiser.zero_grad()
        tower(x.float() / 255).mean().backward()
        optimiser.step()
        if pace.tick():
            break
    pace.show()
    batches.close()


if __name__ == "__main__":
    main()
