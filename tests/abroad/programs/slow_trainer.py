"""The trainer's step is the limit; the fix is a cheaper step."""
import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        harness.burn(0.0002)
        return torch.full((64,), float(index))


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Items(), batch_size=8, num_workers=2)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.008 if args.fix else 0.03), args.seconds)
