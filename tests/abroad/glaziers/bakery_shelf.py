"""Counts the loaves on pictures of a bakery's shelves. New pictures lie on the local disk; a few old ones
were moved to the archive tier of the picture store, which takes its time to bring one back."""
import http.server
import multiprocessing
import os
import shutil
import tempfile
import time
import urllib.request

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SIDE = 32


class Archive(http.server.BaseHTTPRequestHandler):
    folder = None

    def do_GET(self):
        time.sleep(0.4)                     # the robot brings the cartridge
        with open(os.path.join(self.folder, os.path.basename(self.path)), "rb") as f:
            body = f.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(folder, port):
    Archive.folder = folder
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    server.daemon_threads = True
    port.send(server.server_address[1])
    server.handle_error = lambda *rest: None
    server.serve_forever()


class Shelves(Dataset):
    def __init__(self, folder, archive, count, archived):
        self.folder, self.archive, self.archived = folder, archive, archived
        self.names = [f"shelf{i:05d}.bin" for i in range(count)]
        self.loaves = torch.randint(0, 30, (count,)).float()

    def __len__(self):
        return len(self.names)

    def picture(self, i):
        name = self.names[i]
        if i in self.archived:
            return urllib.request.urlopen(f"{self.archive}/{name}").read()
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def __getitem__(self, i):
        pixels = np.frombuffer(self.picture(i), np.uint8).reshape(3, SIDE, SIDE)
        return torch.from_numpy(pixels.astype(np.float32) / 255), self.loaves[i]


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(12)
    folder = tempfile.mkdtemp(prefix="bakery")
    here, there = multiprocessing.Pipe()
    store = multiprocessing.Process(target=serve, args=(folder, there), daemon=True)
    store.start()
    try:
        random = np.random.default_rng(1)
        for i in range(4096):
            random.integers(0, 255, (3, SIDE, SIDE), dtype=np.uint8).tofile(f"{folder}/shelf{i:05d}.bin")
        shelves = Shelves(folder, f"http://127.0.0.1:{here.recv()}", 4096, set(range(0, 4096, 192)))
        loader = DataLoader(shelves, batch_size=8, shuffle=True, num_workers=2, prefetch_factor=2,
                            persistent_workers=True, in_order=not args.fix)
        model = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
        model(torch.zeros(1, 3, SIDE, SIDE))
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            for pictures, loaves in loader:
                loss = nn.functional.smooth_l1_loss(model(pictures).squeeze(1), loaves)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        store.terminate()
        store.join()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
