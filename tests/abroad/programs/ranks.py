"""Two ranks under torchrun, each with a DataLoader of one slow worker; the fix is a cheaper item."""
import itertools
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.full((64,), float(index))


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    loader = DataLoader(Items(0.001 if args.fix else 0.005), batch_size=8, num_workers=1)

    def step(batch):
        harness.burn(0.004)
        torch.distributed.all_reduce(batch.sum())

    steps = int(args.seconds * (60 if args.fix else 22))  # as many in each rank
    harness.loop([itertools.islice(loader, steps)], step, 1e9)
    torch.distributed.barrier()
    os._exit(0)
