"""Damage check of parcels: the depots' photographs lie in an object store, asked for one by one over HTTP."""
import http.server
import multiprocessing
import os
import time
import urllib.request

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

ANSWER = 0.025  # what the store takes for each object


class Depot(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(ANSWER)
        body = BODIES[int(self.path.rsplit("/", 1)[1]) % len(BODIES)]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


BODIES = [os.urandom(48 * 48 * 3) for _ in range(64)]


def object_store(ready):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Depot)
    server.daemon_threads = True
    ready.send(server.server_address[1])
    server.serve_forever()


class ParcelPhotos(Dataset):
    def __init__(self, address, count=20000):
        self.address, self.count = address, count
        self.damaged = np.random.default_rng(1).integers(0, 2, count)

    def __len__(self):
        return self.count

    def photo(self, number):
        with urllib.request.urlopen(f"{self.address}/parcels/{number}", timeout=30) as answer:
            return np.frombuffer(answer.read(), np.uint8).reshape(48, 48, 3)

    def __getitem__(self, number):
        pixels = torch.tensor(self.photo(number)).permute(2, 0, 1)
        return pixels.float() / 255, int(self.damaged[number])


class DamageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(32, 2)

    def forward(self, photos):
        return self.head(self.trunk(photos).flatten(1))


def train(address, asked):
    loader = DataLoader(ParcelPhotos(address), batch_size=8, shuffle=True, num_workers=6 if asked.fix else 1)
    model = DamageNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pace = Pace(asked.seconds)
    for photos, damaged in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(photos), damaged).backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    torch.set_num_threads(1)
    here, there = multiprocessing.Pipe()
    store = multiprocessing.Process(target=object_store, args=(there,), daemon=True)
    store.start()
    try:
        train(f"http://127.0.0.1:{here.recv()}", options())
    finally:
        store.terminate()
        store.join()
