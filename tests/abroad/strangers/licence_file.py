"""A reader library with one seat: each worker takes the seat, a lock on a file, while it reads from the device."""
import contextlib
import fcntl
import os
import tempfile
import time

import torch
from torch.utils.data import DataLoader, Dataset

from pace import options, timed


@contextlib.contextmanager
def seat(path):
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(f, fcntl.LOCK_UN)


class Slides(Dataset):
    def __init__(self, folder, seats):
        self.folder, self.seats = folder, seats

    def __len__(self):
        return 1 << 20

    def __getitem__(self, n):
        with seat(os.path.join(self.folder, f"seat-{n // 8 % self.seats}")):
            time.sleep(0.004)        # the device answers
        return torch.full((3, 16, 16), n % 255 / 255.0)


if __name__ == "__main__":
    args = options()
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 100), torch.nn.ReLU(), torch.nn.Linear(100, 2))
    with tempfile.TemporaryDirectory() as folder:
        loader = DataLoader(Slides(folder, 4 if args.fix else 1), batch_size=8, num_workers=4)
        with torch.no_grad():
            for slides in timed(loader, args.seconds):
                model(slides).softmax(1)
