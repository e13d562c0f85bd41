"""Spectra by remote calls, from a multiprocessing pool."""
import itertools
import multiprocessing
import pickle
import socket
import struct

import numpy as np
import torch

import stores
from pace import options, timed

stub = None


class Stub:
    def __init__(self, port):
        self.file = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def call(self, name, argument):
        message = pickle.dumps((name, argument))
        self.file.write(struct.pack("<I", len(message)) + message)
        self.file.flush()
        return pickle.loads(self.file.read(struct.unpack("<I", self.file.read(4))[0]))


def connect(port):
    global stub
    stub = Stub(port)


def measure(number):
    rows = [stub.call("Measure", number * 4 + k)["spectrum"] for k in range(4)]
    return np.array(rows, np.float32)


def bounded(pool, ahead=8):
    pending = [pool.apply_async(measure, (n,)) for n in range(ahead)]
    for n in itertools.count(ahead):
        yield pending.pop(0).get()
        pending.append(pool.apply_async(measure, (n,)))


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    port = stores.start("rpc_server.py", 0.01)
    model = torch.nn.Sequential(torch.nn.Linear(400, 100), torch.nn.ReLU(), torch.nn.Linear(100, 3))
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    with multiprocessing.Pool(4 if args.fix else 1, initializer=connect, initargs=(port,)) as pool:
        for spectra in timed(bounded(pool), args.seconds):
            optimiser.zero_grad()
            model(torch.from_numpy(spectra)).square().mean().backward()
            optimiser.step()
