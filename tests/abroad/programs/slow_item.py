"""One item of 160 takes 0.4 s and holds up those behind it; the fix is in_order=False."""
import time

import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        time.sleep(0.4 if index % 160 == 7 else 0.001)
        return torch.full((64,), float(index))


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Items(), batch_size=4, num_workers=4, in_order=not args.fix)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.004), args.seconds)
