"""Land cover from satellite tiles that lie in an object store and are fetched one by one over HTTP."""
import io
import multiprocessing
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

TILES, BANDS, SIDE, CLASSES = 400, 4, 32, 5


class Store(BaseHTTPRequestHandler):
    """Stands for the bucket: some 40 ms until the first byte, as from another region."""
    bodies = []

    def do_GET(self):
        time.sleep(0.04)
        body = self.bodies[int(self.path.rsplit("/", 1)[1])]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *ignored):
        pass


def serve_store(ports):
    rng = np.random.default_rng(3)
    for i in range(TILES):
        out = io.BytesIO()
        np.save(out, rng.normal(loc=i % CLASSES / 4, size=(BANDS, SIDE, SIDE)).astype(np.float32))
        Store.bodies.append(out.getvalue())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.daemon_threads = True
    ports.put(server.server_address[1])
    server.serve_forever()


class Tiles(Dataset):
    def __init__(self, address):
        self.address = address

    def __len__(self):
        return TILES * 50

    def __getitem__(self, i):
        i %= TILES
        with urllib.request.urlopen(f"{self.address}/landcover/{i}", timeout=20) as answer:
            tile = np.load(io.BytesIO(answer.read()))
        return torch.from_numpy(tile), i % CLASSES


def main():
    args = options()
    torch.set_num_threads(1)
    ports = multiprocessing.Queue()
    store = multiprocessing.Process(target=serve_store, args=(ports,), daemon=True)
    store.start()
    try:
        tiles = Tiles(f"http://127.0.0.1:{ports.get(timeout=20)}")
        loader = DataLoader(tiles, batch_size=8, shuffle=True, num_workers=6 if args.fix else 2)
        model = nn.Sequential(nn.Conv2d(BANDS, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
                              nn.Flatten(), nn.Linear(256, CLASSES))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        criterion = nn.CrossEntropyLoss()
        pace = Pace(args.seconds)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        print(f"loss {loss.item():.3f}")
        pace.show()
    finally:
        store.terminate()
        store.join()


if __name__ == "__main__":
    main()
