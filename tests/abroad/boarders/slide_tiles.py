"""Trains on tiles of pathology slides that a hospital's image server hands out over HTTP, one tile a request.

--fix: num_workers 1 -> 8."""
import http.client
import http.server
import multiprocessing
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SIDE = 64


class Slides(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    tiles = np.random.default_rng(5).integers(0, 255, (32, SIDE, SIDE, 3), np.uint8)

    def do_GET(self):
        time.sleep(0.012)  # the way to the hospital and back
        body = self.tiles[int(self.path[1:]) % len(self.tiles)].tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slides)
    port.send(server.server_port)
    server.serve_forever()


class Tiles(Dataset):
    def __init__(self, port, count=100000):
        self.port, self.count, self.connection = port, count, None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.connection.request("GET", f"/{index}")
        body = self.connection.getresponse().read()
        tile = np.frombuffer(body, np.uint8).reshape(SIDE, SIDE, 3)
        return torch.from_numpy(tile.transpose(2, 0, 1).astype(np.float32) / 255), index % 2


def main():
    args = options()
    torch.set_num_threads(1)
    receive, send = multiprocessing.Pipe(False)
    multiprocessing.Process(target=serve, args=(send,), daemon=True).start()
    loader = DataLoader(Tiles(receive.recv()), batch_size=8, shuffle=True, num_workers=8 if args.fix else 1)
    model = nn.Sequential(nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pace = Pace(args.seconds)
    for tiles, tumour in loader:
        loss = nn.functional.cross_entropy(model(tiles), tumour)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
