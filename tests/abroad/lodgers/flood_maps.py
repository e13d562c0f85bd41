"""Radar images of floods come from an agency's download server, which shares 6 MB a second out among all connections.

--fix: num_workers 3 -> 10, prefetch_factor 2 -> 6."""
import http.server
import multiprocessing
import threading
import time
import urllib.request

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SIDE, RATE, PIECE = 128, 6e6, 16384


class Agency(http.server.BaseHTTPRequestHandler):
    gate, free_at = threading.Lock(), 0.0
    image = np.random.default_rng(9).random((SIDE, SIDE), np.float32).tobytes()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.image)))
        self.end_headers()
        for start in range(0, len(self.image), PIECE):
            with Agency.gate:  # the line's next free moment
                Agency.free_at = max(Agency.free_at, time.monotonic()) + PIECE / RATE
                wait = Agency.free_at - time.monotonic()
            time.sleep(max(0, wait))
            self.wfile.write(self.image[start:start + PIECE])

    def log_message(self, *_):
        pass


def agency(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agency)
    port.put(server.server_port)
    server.serve_forever()


class Floods(Dataset):
    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}/scene"

    def __len__(self):
        return 1000000

    def __getitem__(self, number):
        with urllib.request.urlopen(f"{self.address}/{number}.bin") as answer:
            image = np.frombuffer(answer.read(), np.float32).reshape(1, SIDE, SIDE)
        return torch.from_numpy(image.copy()), torch.from_numpy((image > 0.9).astype(np.float32))


def train(args):
    port = multiprocessing.Queue()
    multiprocessing.Process(target=agency, args=(port,), daemon=True).start()
    torch.set_num_threads(1)
    loader = DataLoader(Floods(port.get()), batch_size=4, num_workers=10 if args.fix else 3, prefetch_factor=6 if args.fix else 2)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(6, 1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    pace = Pace(args.seconds)
    for image, water in loader:
        optimizer.zero_grad(set_to_none=True)
        F.binary_cross_entropy_with_logits(model(image), water).backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    train(options())
