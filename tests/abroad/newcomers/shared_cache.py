"""A cache file that a maintenance process rewrites under flock for 30 ms at a time; readers need the same lock. --fix reads without it."""
import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

ROWS, WIDTH = 4096, 128

MAINTENANCE = """
import fcntl, os, sys, time
lock = os.open(sys.argv[1] + '.lock', os.O_RDWR | os.O_CREAT)
parent = os.getppid()
print('ready', flush=True)
while os.getppid() == parent:
    fcntl.flock(lock, fcntl.LOCK_EX)
    time.sleep(0.03)                       # moves segments about
    fcntl.flock(lock, fcntl.LOCK_UN)
    time.sleep(0.003)
"""


@contextlib.contextmanager
def locked(path):
    descriptor = os.open(path + ".lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


class CachedRows(Dataset):
    def __init__(self, path, lock):
        self.path, self.lock = path, lock

    def __len__(self):
        return ROWS * 1000

    def read(self, row):
        with open(self.path, "rb") as file:
            file.seek(row * WIDTH * 4)
            return np.frombuffer(file.read(WIDTH * 4), np.float32)

    def __getitem__(self, index):
        if self.lock:
            with locked(self.path):
                values = self.read(index % ROWS)
        else:
            values = self.read(index % ROWS)
        return torch.from_numpy(values.copy())


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cache.bin")
        np.random.default_rng(0).random((ROWS, WIDTH), dtype=np.float32).tofile(path)
        keeper = subprocess.Popen([sys.executable, "-c", MAINTENANCE, path], stdout=subprocess.PIPE)
        keeper.stdout.readline()
        coder = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.Tanh(), torch.nn.Linear(64, WIDTH))
        opt = torch.optim.RMSprop(coder.parameters())
        pace = Pace(args.seconds)
        for rows in DataLoader(CachedRows(path, not args.fix), batch_size=2, num_workers=2):
            opt.zero_grad()
            (coder(rows) - rows).abs().mean().backward()
            opt.step()
            if pace.over():
                break
        pace.report()
        keeper.kill()
        keeper.wait()


if __name__ == "__main__":
    main()
