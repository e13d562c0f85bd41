"""Batches of 32 MB as arrays, pickled through the queue; the fix is tensors, which share memory."""
import numpy
import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Batches(Dataset):
    def __init__(self, tensors):
        self.tensors = tensors

    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        if self.tensors:
            return torch.zeros(8 << 20)
        return numpy.zeros(8 << 20, dtype=numpy.float32)


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Batches(args.fix), batch_size=None, num_workers=2, collate_fn=lambda batch: batch)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.001), args.seconds)
