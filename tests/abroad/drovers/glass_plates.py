"""Glass plates of an observatory: plates are asked from the vault's daemon, workers share a table of those seen."""
import multiprocessing
import os
import shutil
import socket
import socketserver
import tempfile
import time
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

from pace import Pace, options

PLATES, SIDE = 3000, 40


class Vault(socketserver.StreamRequestHandler):
    """Stands for the daemon of the plate vault: it answers after some 5 ms."""

    def handle(self):
        plates = np.random.default_rng(0).integers(0, 255, (16, SIDE, SIDE), dtype=np.uint8)
        while line := self.rfile.readline():
            time.sleep(0.005)
            self.wfile.write(plates[int(line) % 16].tobytes())


class VaultServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 32


def serve(address, ready):
    server = VaultServer(address, Vault)
    ready.set()
    server.serve_forever()


class Plates(Dataset):
    def __init__(self, address, narrow):
        self.address, self.narrow, self.link = address, narrow, None
        self.guard = multiprocessing.Lock()
        self.seen = torch.zeros(PLATES, dtype=torch.int32).share_memory_()

    def __len__(self):
        return PLATES

    def ask(self, plate):
        if self.link is None:
            self.link = socket.socket(socket.AF_UNIX)
            self.link.connect(self.address)
            self.reply = self.link.makefile("rb")
        self.link.sendall(b"%d\n" % plate)
        return np.frombuffer(self.reply.read(SIDE * SIDE), np.uint8)

    def lookup(self, plate):
        with self.guard:
            if self.narrow:
                self.seen[plate] += 1
                times = int(self.seen[plate])
            else:
                grains = self.ask(plate)
                self.seen[plate] += 1
                times = int(self.seen[plate])
        if self.narrow:
            grains = self.ask(plate)
        return grains, times

    def __getitem__(self, plate):
        grains, times = self.lookup(plate)
        image = torch.from_numpy(grains.astype(np.float32)).reshape(1, SIDE, SIDE) / 255
        return image, 1.0 / times, plate % 4


def main():
    args = options()
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    folder = tempfile.mkdtemp(prefix="plates")
    fork = multiprocessing.get_context("fork")
    ready, address = fork.Event(), os.path.join(folder, "vault.sock")
    daemon = fork.Process(target=serve, args=(address, ready), daemon=True)
    daemon.start()
    torch.set_num_threads(1)
    try:
        ready.wait()
        weights = torch.ones(PLATES)
        weights[::5] = 3
        loader = DataLoader(Plates(address, args.fix), batch_size=8, num_workers=4, persistent_workers=True,
                            sampler=WeightedRandomSampler(weights, PLATES))
        net = nn.Sequential(nn.Conv2d(1, 8, 5, stride=3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 12 * 12, 4))
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        pace, over = Pace(args.seconds), False
        while not over:
            for images, weight, kinds in loader:
                loss = (nn.functional.cross_entropy(net(images), kinds, reduction="none") * weight).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        daemon.terminate()
        daemon.join()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
