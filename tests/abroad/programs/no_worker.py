"""A DataLoader without workers whose items cost CPU; the fix is two workers."""
import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        harness.burn(0.003)
        return torch.full((64,), float(index))


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Items(), batch_size=8, num_workers=2 if args.fix else 0)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.004), args.seconds)
