"""Epochs of 20 batches whose workers are started anew each time; the fix is persistent_workers."""
import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        harness.burn(0.0005)
        return torch.full((64,), float(index))


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Items(), batch_size=8, num_workers=2, multiprocessing_context="spawn", persistent_workers=args.fix)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.001), args.seconds)
