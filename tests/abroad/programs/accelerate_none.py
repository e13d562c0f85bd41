"""Accelerate's prepared loader without workers, whose items wait for a store; the fix is eight workers."""
import time

import accelerate
import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.full((64,), float(index))


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = accelerate.Accelerator(cpu=True).prepare(DataLoader(Items(), batch_size=8, num_workers=8 if args.fix else 0))
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.002), args.seconds)
