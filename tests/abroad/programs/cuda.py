"""What the programs with an NVIDIA device share."""
import argparse
import time

import torch
from torch.utils.data import Dataset

import harness


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--fix", action="store_true", help="with the change that lifts the limit")
    args = parser.parse_args()
    torch.set_num_threads(1)
    return args


class Costly(Dataset):
    """Items that cost so many seconds of CPU time each, and hold so many numbers."""

    def __init__(self, seconds, numbers=1024):
        self.seconds, self.numbers = seconds, numbers

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        harness.burn(self.seconds)
        return torch.full((self.numbers,), float(index))


class Same(Dataset):
    """The same item again and again, which costs nothing to make."""

    def __init__(self, item):
        self.item = item

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return self.item


class Kernels:
    """A step that keeps the device busy for about so many milliseconds; returns as soon as its kernels are queued."""

    def __init__(self, milliseconds):
        self.a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
        self.out = torch.empty_like(self.a)
        self.queue(20)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.queue(50)
        torch.cuda.synchronize()
        self.count = max(1, round(0.001 * milliseconds / ((time.perf_counter() - begin) / 50)))

    def queue(self, count):
        for _ in range(count):
            torch.mm(self.a, self.a, out=self.out)

    def step(self):
        self.queue(self.count)
        return self.out


class Meter:
    """Prints the rate of batches whose work on the device is done, without the first second."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.first = self.begin = self.end = None
        self.count = 0

    def tick(self):
        """After each batch. True once the time is over."""
        now = time.perf_counter()
        if self.first is None:
            self.first = now
        if self.begin is None:
            if now - self.first > 1:
                torch.cuda.synchronize()
                self.begin = time.perf_counter()
            return False
        self.count += 1
        if now - self.begin <= self.seconds:
            return False
        if self.end is None:
            torch.cuda.synchronize()
            self.end = time.perf_counter()
        return True

    def show(self):
        print("rate %.3f batches/s" % (self.count / (self.end - self.begin)), flush=True)
