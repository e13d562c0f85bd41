"""Trains a small model on records that a store far away keeps. Nothing in it is for headrace. See docs/tutorial.md.

usage: python train.py [WORKERS]
"""
import sys
import time
import zlib

import torch
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    """Compressed records of 256 floats; the store answers after 3 ms."""

    def __init__(self):
        draw = torch.Generator().manual_seed(1)
        self.records = [zlib.compress(torch.randn(256, generator=draw).numpy().tobytes()) for _ in range(64)]

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return decode(fetch(self.records, index))


def fetch(records, index):
    time.sleep(0.003)
    return records[index % len(records)]


def decode(record):
    return torch.frombuffer(bytearray(zlib.decompress(record)), dtype=torch.float32)


def main(workers):
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Records(), batch_size=16, num_workers=workers)
    for batch in loader:
        optimiser.zero_grad()
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimiser.step()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
