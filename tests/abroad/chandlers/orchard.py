"""Ripeness of fruit from multispectral tiles that a tile server in another building hands out."""
import io
import multiprocessing
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

ROUND_TRIP = 0.035


class TileHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        number = int(self.path.rsplit("/", 1)[1])
        tile = np.random.default_rng(number).random((5, 24, 24), dtype=np.float32)
        body = io.BytesIO()
        np.save(body, tile)
        time.sleep(ROUND_TRIP)
        self.send_response(200)
        self.send_header("Content-Length", str(body.tell()))
        self.end_headers()
        self.wfile.write(body.getvalue())

    def log_message(self, *_):
        pass


class TileServer(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def serve(port):
    server = TileServer(("127.0.0.1", 0), TileHandler)
    port.send(server.server_port)
    server.serve_forever()


class Tiles(Dataset):
    def __init__(self, address, count=100_000):
        self.address, self.count = address, count

    def __len__(self):
        return self.count

    def fetch(self, i):
        with urllib.request.urlopen(f"{self.address}/tile/{i}", timeout=10) as reply:
            return torch.from_numpy(np.load(io.BytesIO(reply.read())))

    def __getitem__(self, i):
        tile = self.fetch(i)
        return tile, tile[3].mean()


class PooledTiles(Tiles):
    """Asks for all the tiles of a batch at the same time."""
    pool = None

    def __getitems__(self, indices):
        if self.pool is None:
            self.pool = ThreadPoolExecutor(8)
        return list(self.pool.map(self.__getitem__, indices))


def main():
    args = options()
    here, there = multiprocessing.Pipe(False)
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    try:
        address = f"http://127.0.0.1:{here.recv()}"
        tiles = PooledTiles(address) if args.fix else Tiles(address)
        loader = DataLoader(tiles, batch_size=8, shuffle=True, num_workers=2)
        model = nn.Sequential(nn.Conv2d(5, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        pace = Pace(args.seconds)
        for tile, ripeness in loader:
            loss = nn.functional.mse_loss(model(tile).squeeze(1), ripeness)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
