"""Blobs from a store that is often unavailable (503); the reader retries with exponential back-off. --fix: eight workers instead of two."""
import functools
import hashlib
import multiprocessing as mp
import random
import socketserver
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import requests
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Blobs(BaseHTTPRequestHandler):
    def do_GET(self):
        if random.random() < 0.45:
            self.send_error(503)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(hashlib.sha256(self.path.encode()).digest() * 8)

    def log_message(self, *args):
        pass


class Store(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    request_queue_size = 64


def retry(times, base):
    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            for attempt in range(times):
                try:
                    return function(*args, **kwargs)
                except requests.HTTPError:
                    if attempt == times - 1:
                        raise
                    time.sleep(base * 2 ** min(attempt, 2))
        return call
    return decorate


class BlobDataset(Dataset):
    def __init__(self, url):
        self.url = url

    def __len__(self):
        return 1_000_000

    @retry(times=60, base=0.03)
    def download(self, name):
        reply = requests.get(f"{self.url}/{name}", proxies={"http": None})
        reply.raise_for_status()
        return reply.content

    def __getitem__(self, i):
        data = np.frombuffer(self.download(f"blob{i:07d}"), np.uint8)
        return torch.from_numpy(data.astype(np.float32) / 255)


def main():
    args = options()
    store = Store(("127.0.0.1", 0), Blobs)
    process = mp.get_context("fork").Process(target=store.serve_forever, daemon=True)
    process.start()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 32), torch.nn.ReLU(), torch.nn.Linear(32, 256))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    pace = Pace(args.seconds)
    loader = DataLoader(BlobDataset(f"http://127.0.0.1:{store.server_port}"), batch_size=2, num_workers=8 if args.fix else 2)
    for x in loader:
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()
        if pace.over():
            break
    pace.report()
    process.kill()


if __name__ == "__main__":
    main()
