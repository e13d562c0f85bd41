"""Features come from an in-memory store of our own on the same machine, a process with one thread: three workers ask it for each
item over a connection each, and it counts the user's events anew at every request. --fix lets it keep the counts."""
import pathlib
import socket
import subprocess
import sys

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

import meter


class Users(Dataset):
    def __init__(self, port):
        self.port, self.store = port, None

    def __len__(self):
        return 1 << 18

    def __getitem__(self, index):
        if self.store is None:
            self.store = socket.create_connection(("127.0.0.1", self.port))
            self.store.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.store.sendall(b"TOP %d\n" % index)
        answer = b""
        while len(answer) < 128:
            answer += self.store.recv(128 - len(answer))
        pairs = numpy.frombuffer(answer, "<i4").reshape(16, 2)
        return torch.from_numpy(pairs[:, 0].astype("int64")), torch.from_numpy(numpy.log1p(pairs[:, 1]).astype("float32"))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.items = torch.nn.EmbeddingBag(5000, 32, mode="sum")
        self.out = torch.nn.Linear(32, 1)

    def forward(self, items, counts):
        return self.out(self.items(items, per_sample_weights=counts))


def main():
    options = meter.arguments()
    torch.set_num_threads(1)
    command = [sys.executable, str(pathlib.Path(__file__).with_name("feature_store.py"))] + ["--kept"] * options.fix
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(Users(port), batch_size=16, shuffle=True, num_workers=3)
    clock = meter.Meter(options.seconds)
    for items, counts in loader:
        optimizer.zero_grad()
        model(items, counts).square().mean().backward()
        optimizer.step()
        if clock.tick():
            break
    clock.show()
    server.kill()
    server.wait()


if __name__ == "__main__":
    main()
