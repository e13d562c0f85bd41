"""A collate_fn that takes most of the worker's time; the fix is a cheaper one."""
import torch
from torch.utils.data import DataLoader, Dataset

import harness

CHEAP = False


class Items(Dataset):
    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        return torch.full((64,), float(index))


def slow(samples):
    harness.burn(0.04)
    return torch.stack(samples)


def cheap(samples):
    return torch.stack(samples)


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Items(), batch_size=8, num_workers=1, collate_fn=cheap if args.fix else slow)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.004), args.seconds)
