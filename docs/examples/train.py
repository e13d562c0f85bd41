#!/usr/bin/env python3
"""A PyTorch training loop with operator accounts; see docs/python.md.

usage: headrace profile -- python train.py
"""
import random
import zlib

import torch
from torch.utils.data import DataLoader, Dataset

import headrace


class Records(Dataset):
    """Records of 512 floats, compressed."""

    def __init__(self, num_records):
        draw = random.Random(1)
        values = torch.tensor([[draw.gauss(0, 1) for _ in range(512)] for _ in range(64)])
        self.records = [zlib.compress(row.numpy().tobytes() * 50) for row in values]
        self.num_records = num_records

    def __len__(self):
        return self.num_records

    def __getitem__(self, index):
        data = self.records[index % len(self.records)]
        with headrace.operator("decompress") as op:
            plain = zlib.decompress(data)
            op.bytes(read=len(data), made=len(plain))
        with headrace.operator("normalise"):
            row = torch.frombuffer(bytearray(plain[:2048]), dtype=torch.float32)
            return (row - row.mean()) / row.std()


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(512, 64)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = headrace.wrap(DataLoader(Records(32000), batch_size=32, num_workers=2, shuffle=True))
    for batch in loader:
        optimiser.zero_grad()
        model(batch).square().mean().backward()
        optimiser.step()


if __name__ == "__main__":
    main()
