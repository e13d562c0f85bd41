"""Four workers that take one lock for most of their work; the fix is no lock."""
import contextlib
import multiprocessing
import time

import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __init__(self, lock):
        self.lock = lock

    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        with self.lock or contextlib.nullcontext():
            time.sleep(0.004)
        return torch.full((64,), float(index))


if __name__ == "__main__":
    args = harness.options(workers=4)
    torch.set_num_threads(1)
    loader = DataLoader(Items(None if args.fix else multiprocessing.Lock()), batch_size=4, num_workers=args.workers)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.001), args.seconds)
