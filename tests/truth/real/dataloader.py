#!/usr/bin/env python3
"""A PyTorch DataLoader and a trainer with a planted limit; knows nothing of headrace.

usage: dataloader.py --limit worker|trainer|storage|sleep --workers N [--start fork|spawn] [--seconds S] [--dir DIR]
The last line of the output is JSON: batches and the share of the loop in which the trainer waited for data.
exit: 0, or 77 when torch is not installed.
"""
import argparse
import json
import mmap
import os
import random
import sys
import time

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError as error:
    print(f"torch cannot be imported: {error}", file=sys.stderr)
    sys.exit(77)

BLOCK_BYTES = 4096
FILE_BLOCKS = 16384
# What one item and one step cost, by planted limit: CPU of __getitem__, blocks it reads from storage past the page
# cache, time it sleeps, CPU of the training step.
COSTS = {
    "worker": dict(item_cpu_s=0.004, blocks=0, sleep_s=0.0, step_cpu_s=0.002),
    "trainer": dict(item_cpu_s=0.0002, blocks=0, sleep_s=0.0, step_cpu_s=0.02),
    "storage": dict(item_cpu_s=0.0, blocks=96, sleep_s=0.0, step_cpu_s=0.002),
    "sleep": dict(item_cpu_s=0.0, blocks=0, sleep_s=0.02, step_cpu_s=0.002),
}


def burn(seconds):
    """Uses CPU time, not wall time: the same work however busy the machine is."""
    end = time.thread_time() + seconds
    x = 1
    while time.thread_time() < end:
        for _ in range(200):
            x = x * 1103515245 + 12345 & 0x7FFFFFFF
    return x


class Items(Dataset):
    def __init__(self, path, cost):
        self.path, self.cost = path, cost
        self.fd = self.buffer = None

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if self.cost["blocks"]:
            self.read_blocks(index)
        if self.cost["sleep_s"]:
            time.sleep(self.cost["sleep_s"])
        burn(self.cost["item_cpu_s"])
        return torch.full((256,), float(index))

    def read_blocks(self, index):
        if self.fd is None:
            try:
                self.fd = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
            except OSError:  # a file system without O_DIRECT
                self.fd = os.open(self.path, os.O_RDONLY)
            self.buffer = mmap.mmap(-1, BLOCK_BYTES)
        draw = random.Random(index)
        for _ in range(self.cost["blocks"]):
            os.preadv(self.fd, [self.buffer], BLOCK_BYTES * draw.randrange(FILE_BLOCKS))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", choices=COSTS, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--start", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--dir", default=".")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cost = COSTS[options.limit]
    path = os.path.join(options.dir, f"items-{os.getpid()}.bin")
    with open(path, "wb") as file:
        for _ in range(FILE_BLOCKS * BLOCK_BYTES >> 20):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    try:
        extra = {"multiprocessing_context": options.start} if options.workers else {}
        loader = DataLoader(Items(path, cost), batch_size=options.batch, num_workers=options.workers, shuffle=False,
                            **extra)
        batches, waited, began, end = 0, 0.0, None, None
        weight = torch.ones(256)
        iterator = iter(loader)
        next(iterator)  # the workers have started
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            batch = next(iterator)
            got = time.monotonic()
            waited += got - asked
            batches += 1
            float((batch * weight).sum())
            burn(cost["step_cpu_s"])
            end = time.monotonic()
            if end - began > options.seconds:
                break
        del iterator
        print(json.dumps({"batches": batches, "seconds": end - began, "stall_ratio": waited / (end - began)}))
    finally:
        os.unlink(path)


if __name__ == "__main__":
    main()
