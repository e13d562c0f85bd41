"""Land cover from satellite tiles kept in an object store (a small HTTP server stands in for it here)."""
import http.client
import multiprocessing
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

SIZE = 48
ROUND_TRIP = 0.025  # seconds, as measured from our office to the bucket's region


class Bucket(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        key = int(self.path.rsplit("/", 1)[1])
        time.sleep(ROUND_TRIP)
        body = np.random.default_rng(key).integers(0, 255, SIZE * SIZE * 3, dtype=np.uint8).tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve_bucket(port):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    server.daemon_threads = True
    port.value = server.server_address[1]
    server.serve_forever()


class Tiles(IterableDataset):
    def __init__(self, host, port, keys):
        self.host, self.port, self.keys = host, port, keys

    def download(self, connection, key):
        connection.request("GET", f"/landcover/{key}")
        return connection.getresponse().read()

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        connection = http.client.HTTPConnection(self.host, self.port)
        for key in self.keys[first::step]:
            body = self.download(connection, key)
            tile = torch.frombuffer(bytearray(body), dtype=torch.uint8).view(3, SIZE, SIZE)
            yield tile.float() / 255, key % 6


class LandCover(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 5, stride=3)
        self.head = nn.Linear(8, 6)

    def forward(self, tiles):
        return self.head(F.relu(self.conv(tiles)).mean(dim=(2, 3)))


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)  # the model is tiny
    port = multiprocessing.Value("i", 0)
    bucket = multiprocessing.Process(target=serve_bucket, args=(port,), daemon=True)
    bucket.start()
    while not port.value:
        time.sleep(0.01)
    try:
        tiles = Tiles("127.0.0.1", port.value, list(range(50_000)))
        loader = DataLoader(tiles, batch_size=8, num_workers=8 if args.fix else 2)
        model = LandCover()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        pace = Pace(args.seconds)
        for batch, cover in loader:
            loss = F.cross_entropy(model(batch), cover)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        bucket.terminate()
        bucket.join()
